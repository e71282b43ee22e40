"""Slices: the metrics of parts of a run, and which of them stand out. Exploratory, never gated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluation.session import CaseFacts
from rag_assets.evaluators import Evaluator, Outcome
from rag_assets.statistics import benjamini_yekutieli, fisher_slice, smallest_attainable_p

NO_VALUE = "(none)"
MARKED_AT = 0.10
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
    mark: Literal["none", "worse", "better"] | None = None


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
    evaluators: Sequence[Evaluator],
    outcomes: Mapping[str, Sequence[Outcome]],
    *,
    top_k: int,
    min_support: int,
    level: float,
) -> SliceTable:
    """Measure every declared slice value, and mark those that differ from the rest.

    Args:
        names: the declared slices.
        cases, facts: all cases of the run, and what is known of their retrieval and context.
        evaluators, outcomes: criterion → one outcome for each case, in the order of `cases`.
        top_k: the system's, for `relevant_position`.
        min_support: eligible cases below which there is no interval and no test.
        level: two-sided confidence of the intervals.
    """
    rows: list[SliceMetric] = []
    for name in names:
        for value, members in _values(name, cases, facts, top_k).items():
            for evaluator in evaluators:
                chosen = [outcomes[evaluator.criterion][index] for index in members]
                rows.append(
                    SliceMetric(name, value, _measure(evaluator, chosen, level, min_support))
                )
    whole = {
        evaluator.criterion: measure(
            evaluator.criterion,
            evaluator.kind,
            evaluator.value_range,
            outcomes[evaluator.criterion],
            level=level,
            with_interval=False,
        )
        for evaluator in evaluators
    }
    return _mark(rows, whole)


def _measure(
    evaluator: Evaluator, outcomes: Sequence[Outcome], level: float, min_support: int
) -> MetricValue:
    support = sum(outcome.status != "excluded" for outcome in outcomes)
    return measure(
        evaluator.criterion,
        evaluator.kind,
        evaluator.value_range,
        outcomes,
        level=level,
        with_interval=support >= min_support,
    )


def _mark(rows: list[SliceMetric], whole: Mapping[str, MetricValue]) -> SliceTable:
    """Test each split of the run once, adjust all tests together, and mark."""
    halves = _halves(rows, whole)
    splits: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        part, run = row.metric, whole[row.metric.criterion]
        if part.interval is None or part.passes is None or not 0 < part.observed < run.observed:
            continue
        is_half = (row.slice_name, part.criterion) in halves
        split = row.slice_name if is_half else f"{row.slice_name}={row.value}"
        splits.setdefault((split, part.criterion), []).append(index)
    tested = list(splits.values())
    p_values = [_p(rows[members[0]].metric, whole) for members in tested]
    attainable = [_attainable(rows[members[0]].metric, whole) for members in tested]
    adjusted, marked = benjamini_yekutieli(p_values, MARKED_AT)
    _, attainably_marked = benjamini_yekutieli(attainable, MARKED_AT)
    done = list(rows)
    for members, p_value, p_adjusted, is_marked in zip(
        tested, p_values, adjusted, marked, strict=True
    ):
        for index in members:
            mark = _direction(rows[index].metric, whole) if is_marked else "none"
            done[index] = replace(rows[index], p_value=p_value, p_adjusted=p_adjusted, mark=mark)
    return SliceTable(tuple(done), len(tested), not any(attainably_marked))


def _halves(rows: Sequence[SliceMetric], whole: Mapping[str, MetricValue]) -> set[tuple[str, str]]:
    """(slice, criterion) where two values hold all observed cases of the metric between them."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        if row.metric.observed:
            sizes.setdefault((row.slice_name, row.metric.criterion), []).append(row.metric.observed)
    return {
        place
        for place, observed in sizes.items()
        if len(observed) == 2 and sum(observed) == whole[place[1]].observed
    }


def _p(part: MetricValue, whole: Mapping[str, MetricValue]) -> float:
    run = whole[part.criterion]
    return fisher_slice(part.passes or 0, part.observed, run.passes or 0, run.observed)


def _attainable(part: MetricValue, whole: Mapping[str, MetricValue]) -> float:
    run = whole[part.criterion]
    return smallest_attainable_p(part.observed, run.passes or 0, run.observed)


def _direction(part: MetricValue, whole: Mapping[str, MetricValue]) -> Literal["worse", "better"]:
    run = whole[part.criterion]
    inside = (part.passes or 0) * run.observed
    return "worse" if inside < (run.passes or 0) * part.observed else "better"


def _values(
    name: str, cases: Sequence[Case], facts: Mapping[str, CaseFacts], top_k: int
) -> dict[str, list[int]]:
    """Slice value → indices of its cases, in the order in which values are shown."""
    members: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        value = _value(name, case, facts.get(case.id) or CaseFacts(), top_k)
        if value is not None:
            members.setdefault(value, []).append(index)
    if name == "relevant_position":
        return {value: members[value] for value in _POSITIONS if value in members}
    return dict(sorted(members.items()))


def _value(name: str, case: Case, facts: CaseFacts, top_k: int) -> str | None:
    if name == "context_truncated":
        return None if facts.truncated is None else json.dumps(facts.truncated)
    if name == "relevant_position":
        match = facts.match
        if match is None or not match.labelled or match.ambiguous:
            return None
        if match.position is None:
            return "not_retrieved"
        return "top_k" if match.position <= top_k else "beyond_top_k"
    return _text(case.metadata.get(name.removeprefix("metadata."), NO_VALUE))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
