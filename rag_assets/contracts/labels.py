"""What a case says about the right documents: relevance labels and gold passages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_assets.contracts.text import shown

# Takes the dotted key inside the case, and the message.
Report = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Label:
    """One entry of `expected.relevant`: a document or chunk, and its grade (finite, ≥ 0)."""

    doc_id: str
    chunk_id: str | None
    grade: float


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """One entry of `expected.gold_context`: a passage that holds the answer."""

    doc_id: str
    chunk_id: str | None
    text: str


def read_labels(value: Any, case_id: Any, report: Report) -> tuple[Label, ...]:
    """The labels of `expected.relevant`; an identical repeat counts once.

    Args:
        value: the list, or None for no labels.
        case_id: the case, for the message about labels that contradict each other.
        report: is told everything that is wrong.
    """
    labels: dict[tuple[str, str | None], Label] = {}
    for key, entry in _entries(value, "expected.relevant", report):
        unit = _unit(entry, key, report)
        grade = _grade(entry, key, report)
        if unit is None or grade is None:
            continue
        label = labels.setdefault(unit, Label(*unit, grade))
        if label.grade != grade:
            chunk = f", chunk {shown(unit[1])}," if unit[1] is not None else ""
            message = (
                f"Case {shown(case_id)} labels the document {shown(unit[0])}{chunk} with the "
                f"grades {label.grade:g} and {grade:g}; keep one."
            )
            report(key, message)
    return tuple(labels.values())


def read_gold_context(value: Any, report: Report) -> tuple[GoldPassage, ...]:
    """The passages of `expected.gold_context`, in their order."""
    passages: list[GoldPassage] = []
    for key, entry in _entries(value, "expected.gold_context", report):
        unit = _unit(entry, key, report)
        problem = text_problem(entry, "text")
        if problem is not None:
            report(f"{key}.text", problem)
        elif unit is not None:
            passages.append(GoldPassage(*unit, entry["text"]))
    return tuple(passages)


def text_problem(mapping: Mapping[str, Any], name: str) -> str | None:
    """What is wrong with a field that must be a non-empty string, or None."""
    if name not in mapping:
        return f"{name} is required, as a non-empty string."
    value = mapping[name]
    if not isinstance(value, str):
        fix = f'; write "{shown(value)}" in quotes' if type(value) in (int, float) else ""
        return f"{name} must be a string, got {shown(value)}{fix}."
    return None if value else f"{name} must not be empty."


def id_problem(mapping: Mapping[str, Any], name: str) -> str | None:
    """What is wrong with an id, or None. Ids are compared exactly, so nothing is trimmed."""
    problem = text_problem(mapping, name)
    if problem is None and mapping[name] != mapping[name].strip():
        value = shown(mapping[name])
        return f"{name} begins or ends with white space, got {value}; remove it."
    return problem


def _entries(value: Any, name: str, report: Report) -> Iterator[tuple[str, dict[str, Any]]]:
    if value is None:
        return
    if not isinstance(value, list):
        report(name, f"{name} must be a list of objects, got {shown(value)}.")
        return
    for index, entry in enumerate(value):
        key = f"{name}.{index}"
        if isinstance(entry, dict):
            yield key, entry
        else:
            report(key, f"The entry must be an object with a doc_id, got {shown(entry)}.")


def _unit(entry: dict[str, Any], key: str, report: Report) -> tuple[str, str | None] | None:
    chunk_id = entry.get("chunk_id")
    problem = id_problem(entry, "doc_id")
    if problem is not None:
        report(f"{key}.doc_id", problem)
    chunk_problem = None if chunk_id is None else id_problem(entry, "chunk_id")
    if chunk_problem is not None:
        report(f"{key}.chunk_id", chunk_problem)
    return (entry["doc_id"], chunk_id) if problem is None and chunk_problem is None else None


def _grade(entry: dict[str, Any], key: str, report: Report) -> float | None:
    value = entry.get("grade", 1.0)
    if type(value) in (int, float) and value >= 0:
        try:
            grade = float(value)
        except OverflowError:
            grade = math.inf
        if math.isfinite(grade):
            return grade
    report(f"{key}.grade", f"grade must be a finite number of at least 0, got {shown(value)}.")
    return None
