"""The config key `metrics`: metrics that no evaluator yields."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from rag_assets.contracts.errors import Problem
from rag_assets.contracts.system_config import declared_kind
from rag_assets.contracts.text import shown
from rag_assets.contracts.validation import FileModel, NonEmpty, validate
from rag_assets.contracts.yaml_source import YamlSource

Source = Literal[
    "latency_ms", "retrieval_ms", "generation_ms", "input_tokens", "output_tokens", "cost_usd"
]
SOURCES: tuple[str, ...] = get_args(Source)
Quantile = Annotated[float, Field(gt=0, lt=1)]

_STAGED = ("retrieval_ms", "generation_ms")
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


def read_metrics(
    entries: list[Any], source: YamlSource, problems: list[Problem]
) -> list[MetricEntry | None]:
    """The entries of the list `metrics`; None for one that cannot be read.

    Ids are unique, an entry has the keys of one sort of metric, and its source is one of the kind
    of system. Whether an id is a criterion as well, and what a criterion yields, is checked later.

    Args:
        entries: the list as the config file has it.
        source: the config file.
        problems: what is wrong is appended here.
    """
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
        if entry.get("source") in _STAGED and declared_kind(source) not in ("rag", None):
            message = (
                f"{entry['source']} is the time of one stage, and only a staged system "
                "(system.rag) is called stage by stage. Take latency_ms, the time of the whole "
                "call."
            )
            problems.append(source.problem(f"metrics.{index}.source", message))
    return [_entry(index, entry, source, problems) for index, entry in enumerate(entries)]


def _entry(
    index: int, entry: Any, source: YamlSource, problems: list[Problem]
) -> MetricEntry | None:
    key = f"metrics.{index}"
    if not isinstance(entry, dict):
        message = f"The entry must be a mapping with an id, got {shown(entry)}."
        problems.append(source.problem(key, message))
        return None
    return validate(MetricEntry, entry, source, problems, key=key)


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
