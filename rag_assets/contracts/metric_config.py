"""The config key `metrics`: metrics that no evaluator yields."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from rag_assets.contracts.errors import Problem
from rag_assets.contracts.text import shown
from rag_assets.contracts.validation import FileModel, NonEmpty
from rag_assets.contracts.yaml_source import YamlSource

Source = Literal[
    "latency_ms", "retrieval_ms", "generation_ms", "input_tokens", "output_tokens", "cost_usd"
]
SOURCES: tuple[str, ...] = get_args(Source)
Quantile = Annotated[float, Field(gt=0, lt=1)]

_SOURCE = f"one of {', '.join(SOURCES)}"
_QUANTILE = "a number between 0 and 1, such as 0.95"


class MetricEntry(FileModel):
    """One declared metric: a quantile of what the cases took, or whether all samples pass.

    Attributes:
        id: its name, for rules and reports.
        source: milliseconds of the whole case or of a stage, tokens, or US dollars.
        quantile: strictly between 0 and 1; 0.95 is the value that 95 % of the cases stay within.
        every_replicate: the verdict criterion that every sample of a case has to pass; stands
            instead of the other two.
    """

    id: NonEmpty = Field(description="a name for the metric")
    source: Source | None = Field(default=None, description=_SOURCE)
    quantile: Quantile | None = Field(default=None, description=_QUANTILE)
    every_replicate: NonEmpty | None = None


class OperationalMetric(FileModel):
    """An operational metric: a quantile of what the cases took; attributes as of `MetricEntry`."""

    id: NonEmpty
    source: Source
    quantile: Quantile


def check_metrics(source: YamlSource, problems: list[Problem]) -> None:
    """Ids are unique, and an entry has the keys of one sort of metric.

    Whether an id is a criterion as well, and what a criterion yields, is checked later.
    """
    entries = source.content.get("metrics")
    if not isinstance(entries, list):
        return
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        name = entry.get("id")
        if isinstance(name, str) and name in seen:
            message = f"The id {shown(name)} is taken by another metric; ids are unique."
            problems.append(source.problem(f"metrics.{index}.id", message))
        elif isinstance(name, str):
            seen.add(name)
        for message in _sort_problems(entry):
            problems.append(source.problem(f"metrics.{index}", message))


def _sort_problems(entry: dict[str, Any]) -> list[str]:
    given = [key for key in ("source", "quantile") if entry.get(key) is not None]
    if entry.get("every_replicate") is not None:
        if not given:
            return []
        others = " and ".join(given)
        return [f"every_replicate stands alone; remove {others}, or declare two metrics."]
    return [
        f"{key} is required: {meaning}."
        for key, meaning in (("source", _SOURCE), ("quantile", _QUANTILE))
        if key not in entry
    ]
