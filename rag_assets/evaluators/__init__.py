"""Evaluators: one small declaration each, from an answer or a ranking to a verdict or a score."""

from __future__ import annotations

from rag_assets.evaluators.base import (
    COMMON_MISSES,
    Absent,
    Evaluator,
    Evidence,
    Kind,
    Outcome,
    Part,
)
from rag_assets.evaluators.catalogue import describe
from rag_assets.evaluators.judging import judge
from rag_assets.evaluators.ranking import recall_kind
from rag_assets.evaluators.registry import build_evaluators

__all__ = [
    "COMMON_MISSES",
    "Absent",
    "Evaluator",
    "Evidence",
    "Kind",
    "Outcome",
    "Part",
    "build_evaluators",
    "describe",
    "judge",
    "recall_kind",
]
