"""Differences of slices. Exploratory, never gated: they say where to look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.differences import Difference, OutcomePair, difference
from rag_assets.evaluation.grouping import GroupKey
from rag_assets.evaluation.marks import Part, mark_parts
from rag_assets.evaluation.matching import CaseFacts, Match, holds_stale, match_relevant
from rag_assets.evaluation.pairing import Pairing
from rag_assets.evaluation.recorded_sources import recorded_cases
from rag_assets.evaluation.slices import shown_order, slice_value
from rag_assets.evaluation.stored_cases import stage_payloads
from rag_assets.evaluation.views import RunView
from rag_assets.store.reader import Reader


def slice_differences(
    reader: Reader,
    candidate: Mapping[str, Any],
    baseline: RunView,
    pairing: Pairing,
    whole: Mapping[str, Difference],
    pairs_of: Callable[[str], Mapping[str, OutcomePair]],
    level: float,
    keys: Mapping[str, GroupKey] | None = None,
) -> dict[str, Any]:
    """The differences of every slice that both runs declare, by the baseline's membership.

    A verdict's slice is tested on the pairs that changed: the gained among them, against the
    gained among the changed pairs of the rest.

    Args:
        reader: the open store.
        candidate: what the candidate froze at its start.
        baseline: the baseline.
        pairing: which cases are paired.
        whole: the differences over all pairs.
        pairs_of: criterion → outcomes of every paired case.
        level: two-sided confidence of the intervals.
        keys: the group of each paired case, where cases belong together; nothing is marked then.

    Returns:
        Rows, tests, whether no outcome could have been marked, the least support, and the slices
        that only one run declares.
    """
    declared = candidate["slices"], baseline.record["slices"]
    names = [name for name in declared[0] if name in declared[1]]
    support = max(candidate["min_slice_support"], baseline.record["min_slice_support"])
    members = _members(reader, baseline, names, pairing.paired)
    outcomes = {criterion: pairs_of(criterion) for criterion in whole}
    rows: list[tuple[str, str, Difference]] = []
    for name in names:
        for value in shown_order(name, members[name]):
            for criterion, metric in whole.items():
                chosen = {one: outcomes[criterion][one] for one in members[name][value]}
                found = difference(criterion, metric.kind, metric.value_range, chosen, keys)
                supported = found.eligible >= support
                rows.append((name, value, found.bounded(level) if supported else found))
    marks = mark_parts(
        [_part(name, value, found) for name, value, found in rows],
        {name: (len(one.gained), len(one.gained) + len(one.lost)) for name, one in whole.items()},
    )
    return {
        "rows": [
            _row(name, value, found) | (asdict(mark) if mark else {})
            for (name, value, found), mark in zip(rows, marks.marks, strict=True)
        ],
        "tests": marks.tests,
        "too_few": marks.too_few,
        "min_support": support,
        "only_in_candidate": [name for name in declared[0] if name not in declared[1]],
        "only_in_baseline": [name for name in declared[1] if name not in declared[0]],
    }


def _part(name: str, value: str, found: Difference) -> Part:
    changed = len(found.gained) + len(found.lost)
    return Part(
        name,
        value,
        found.criterion,
        passes=len(found.gained) if found.kind == "verdict" else None,
        cases=changed,
        is_supported=found.interval is not None and found.groups is None,
    )


def _row(name: str, value: str, found: Difference) -> dict[str, Any]:
    return {
        "slice": [name, value],
        "criterion": found.criterion,
        "support": found.eligible,
        "estimate": found.estimate,
        "lower": found.interval.lower if found.interval else None,
        "upper": found.interval.upper if found.interval else None,
        "gained": len(found.gained),
        "lost": len(found.lost),
        "p_value": None,
        "p_adjusted": None,
        "mark": None,
    }


def _members(
    reader: Reader, baseline: RunView, names: Sequence[str], paired: Sequence[str]
) -> dict[str, dict[str, list[str]]]:
    """Slice → value → ids of the paired cases in it."""
    found: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    if not names:
        return found
    made = recorded_cases(reader, baseline.record)
    cases = {
        case_id: made.case(record)
        for case_id, record in stage_payloads(reader, baseline.row.id, "cases", paired)
    }
    facts = _facts(reader, baseline, cases, names)
    top_k = baseline.record["system"].get("top_k") or 0
    for case_id, case in cases.items():
        for name in names:
            value = slice_value(name, case, facts.get(case_id) or CaseFacts(), top_k)
            if value is not None:
                found[name].setdefault(value, []).append(case_id)
    return found


def _facts(
    reader: Reader, baseline: RunView, cases: Mapping[str, Case], names: Sequence[str]
) -> dict[str, CaseFacts]:
    """What slices ask of the cases, as far as a declared slice asks it."""
    facts = {case_id: CaseFacts() for case_id in cases}
    run, unit = baseline.row.id, baseline.record["relevance_unit"]
    if "relevant_position" in names:
        for case_id, retrieval in stage_payloads(reader, run, "retrieval", list(cases)):
            facts[case_id].match = _match(cases[case_id], retrieval["candidates"], unit)
    if {"context_truncated", "stale_source"} & set(names):
        for case_id, context in stage_payloads(reader, run, "assembled_context", list(cases)):
            reasons = (one["reason"] for one in context["dropped"])
            facts[case_id].truncated = "token_budget" in reasons
            facts[case_id].stale = holds_stale(cases[case_id], context["items"])
    return facts


def _match(case: Case, candidates: Sequence[Mapping[str, Any]], unit: Any) -> Match:
    """Stored candidates were checked when they were recorded; only their ids matter here."""
    ids: list[Any] = [
        SimpleNamespace(doc_id=one["doc_id"], chunk_id=one.get("chunk_id")) for one in candidates
    ]
    return match_relevant(case, ids, unit)
