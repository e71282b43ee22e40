"""Slices: the metrics of parts of a run, and which of them stand out. Exploratory, never gated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.grouping import GroupKey
from rag_assets.evaluation.marks import Direction, Part, mark_parts
from rag_assets.evaluation.matching import CaseFacts
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluation.replicates import Criterion
from rag_assets.evaluators import Outcome

NO_VALUE = "(none)"
_POSITIONS = ("top_k", "beyond_top_k", "not_retrieved")


@dataclass(frozen=True, slots=True)
class SliceMetric:
    """One metric in one slice value.

    Attributes:
        slice_name, value: which cases.
        metric: their metric; without an interval below the least support.
        p_value: against the rest of the run; None where nothing was tested.
        p_adjusted: after Benjamini-Yekutieli over the family.
        mark: "none", "worse" or "better" than the rest; None where nothing was tested.
    """

    slice_name: str
    value: str
    metric: MetricValue
    p_value: float | None = None
    p_adjusted: float | None = None
    mark: Direction | None = None


@dataclass(frozen=True, slots=True)
class SliceTable:
    """All slice metrics of a run.

    Attributes:
        rows: in the order of the config; values of a slice sorted.
        tests: size of the tested family.
        too_few: no outcome could have been marked with so few cases.
    """

    rows: tuple[SliceMetric, ...]
    tests: int
    too_few: bool


def slice_metrics(
    names: Sequence[str],
    cases: Sequence[Case],
    facts: Mapping[str, CaseFacts],
    criteria: Sequence[Criterion],
    outcomes: Mapping[str, Sequence[Outcome]],
    *,
    top_k: int,
    min_support: int,
    level: float,
    keys: Sequence[GroupKey] | None = None,
) -> SliceTable:
    """Measure every declared slice value, and mark those that differ from the rest.

    Args:
        names: the declared slices.
        cases, facts: all cases of the run, and what is known of their retrieval and context.
        criteria, outcomes: criterion → one outcome for each case, in the order of `cases`.
        top_k: the system's, for `relevant_position`.
        min_support: eligible cases below which there is no interval and no test.
        level: two-sided confidence of the intervals.
        keys: the group of each case, where cases belong together; nothing is marked then, because
            the test needs independent cases.
    """
    rows: list[SliceMetric] = []
    for name in names:
        for value, members in _values(name, cases, facts, top_k).items():
            for criterion in criteria:
                chosen = [outcomes[criterion.criterion][index] for index in members]
                inside = None if keys is None else [keys[index] for index in members]
                metric = _measure(criterion, chosen, level, min_support, inside)
                rows.append(SliceMetric(name, value, metric))
    whole = {
        one.criterion: measure(
            one.criterion,
            one.kind,
            one.value_range,
            outcomes[one.criterion],
            level=level,
            with_interval=False,
        )
        for one in criteria
    }
    return _mark(rows, whole)


def _measure(
    criterion: Criterion,
    outcomes: Sequence[Outcome],
    level: float,
    min_support: int,
    keys: Sequence[GroupKey] | None,
) -> MetricValue:
    support = sum(outcome.status != "excluded" for outcome in outcomes)
    return measure(
        criterion.criterion,
        criterion.kind,
        criterion.value_range,
        outcomes,
        level=level,
        with_interval=support >= min_support,
        keys=keys,
        samples=criterion.samples,
        counts=criterion.counts,
    )


def _mark(rows: list[SliceMetric], whole: Mapping[str, MetricValue]) -> SliceTable:
    parts = [
        Part(
            row.slice_name,
            row.value,
            row.metric.criterion,
            passes=row.metric.passes,
            cases=row.metric.observed,
            # The test needs one independent verdict for each case.
            is_supported=row.metric.interval is not None
            and row.metric.groups is None
            and row.metric.samples == 1,
        )
        for row in rows
    ]
    runs = {name: (metric.passes or 0, metric.observed) for name, metric in whole.items()}
    marks = mark_parts(parts, runs)
    done = (
        row if mark is None else replace(row, **asdict(mark))
        for row, mark in zip(rows, marks.marks, strict=True)
    )
    return SliceTable(tuple(done), marks.tests, marks.too_few)


def _values(
    name: str, cases: Sequence[Case], facts: Mapping[str, CaseFacts], top_k: int
) -> dict[str, list[int]]:
    """Slice value → indices of its cases, in the order in which values are shown."""
    members: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        value = slice_value(name, case, facts.get(case.id) or CaseFacts(), top_k)
        if value is not None:
            members.setdefault(value, []).append(index)
    return {value: members[value] for value in shown_order(name, members)}


def shown_order(name: str, values: Iterable[str]) -> list[str]:
    """The values of a slice in the order in which they are shown."""
    found = set(values)
    if name == "relevant_position":
        return [value for value in _POSITIONS if value in found]
    return sorted(found)


def slice_value(name: str, case: Case, facts: CaseFacts, top_k: int) -> str | None:
    """The value that a case has in a slice; None where it is in no value of it."""
    if name == "context_truncated":
        return None if facts.truncated is None else json.dumps(facts.truncated)
    if name == "stale_source":
        return None if facts.stale is None else json.dumps(facts.stale)
    if name == "admissible_source":
        return _admissible_source(case)
    if name == "relevant_position":
        match = facts.match
        if match is None or not match.labelled or match.ambiguous:
            return None
        if match.position is None:
            return "not_retrieved"
        return "top_k" if match.position <= top_k else "beyond_top_k"
    return _text(case.metadata.get(name.removeprefix("metadata."), NO_VALUE))


def _admissible_source(case: Case) -> str | None:
    """Whether a relevant document is admissible; a case that says nothing about that is in none."""
    if any(label.grade > 0 for label in case.relevant):
        return "present"
    is_known = case.inadmissible or case.expectation.behavior != "answer"
    return "absent" if is_known else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
