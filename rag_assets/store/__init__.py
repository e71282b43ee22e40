"""The DuckDB store: what every stage produced, written once and read back by digest."""

from rag_assets.store.database import Store
from rag_assets.store.records import (
    CaseStage,
    ComparisonRow,
    Decision,
    DiagnosisRow,
    Head,
    Judgment,
    Metric,
    RunJudgment,
    RunRow,
    SampleStage,
    SettledCase,
    StageResult,
)

__all__ = [
    "CaseStage",
    "ComparisonRow",
    "Decision",
    "DiagnosisRow",
    "Head",
    "Judgment",
    "Metric",
    "RunJudgment",
    "RunRow",
    "SampleStage",
    "SettledCase",
    "StageResult",
    "Store",
]
