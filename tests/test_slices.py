"""Slices: membership, support, the tested family, and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.config import EvaluatorEntry
from rag_assets.evaluation.matching import CaseFacts, Match
from rag_assets.evaluation.replicates import criterion_of
from rag_assets.evaluation.slices import SliceMetric, SliceTable, slice_metrics
from rag_assets.evaluators import Evaluator, Outcome, build_evaluators


def an_evaluator(**parameters: Any) -> Evaluator:
    entry = EvaluatorEntry(type="regex", criterion="ok", parameters={"pattern": "x"})
    (evaluator,) = build_evaluators(
        [entry],
        file="rag_assets.yaml",
        depth=5,
        recorded=frozenset(),
        dataset=None,
        root=Path("/nowhere"),
        problems=[],
    )
    return evaluator


def a_case(case_id: str, **metadata: Any) -> Case:
    return parse_case({"id": case_id, "input": "Q?", "metadata": metadata})


def table(
    names: Sequence[str],
    cases: Sequence[Case],
    outcomes: Sequence[Outcome],
    facts: Mapping[str, CaseFacts] | None = None,
    *,
    min_support: int = 1,
) -> SliceTable:
    return slice_metrics(
        names,
        cases,
        facts or {},
        [criterion_of(an_evaluator())],
        {"ok": outcomes},
        top_k=2,
        min_support=min_support,
        level=0.95,
    )


def verdicts(*passed: bool) -> list[Outcome]:
    return [Outcome.verdict(one) for one in passed]


def found(rows: Sequence[SliceMetric]) -> dict[str, tuple[int | None, int]]:
    return {row.value: (row.metric.passes, row.metric.eligible) for row in rows}


def test_metadata_values_and_their_names() -> None:
    cases = [
        a_case("a", topic="billing"),
        a_case("b", topic=""),
        a_case("c", topic=1),
        a_case("d", topic=1.0),
        a_case("e", topic=True),
        a_case("f", topic=None),
        a_case("g"),
    ]
    rows = table(["metadata.topic"], cases, verdicts(*[True] * 7)).rows
    assert [row.value for row in rows] == ["", "(none)", "1", "1.0", "billing", "null", "true"]


def test_the_key_is_literal() -> None:
    cases = [a_case("a", **{"a.b": "x"}), parse_case({"id": "b", "input": "Q?"})]
    assert found(table(["metadata.a.b"], cases, verdicts(True, False)).rows) == {
        "x": (1, 1),
        "(none)": (0, 1),
    }


def test_relevant_position_and_truncation() -> None:
    facts = {
        "a": CaseFacts(Match(labelled=True, position=2), truncated=False),
        "b": CaseFacts(Match(labelled=True, position=3), truncated=True),
        "c": CaseFacts(Match(labelled=True), truncated=False),
        "d": CaseFacts(Match(labelled=False), truncated=False),
        "e": CaseFacts(Match(labelled=True, ambiguous=True), truncated=None),
    }
    cases = [a_case(case_id) for case_id in [*facts, "f"]]
    outcomes = [*verdicts(True, True, False, False, True), Outcome.missing("timeout")]
    done = table(["relevant_position", "context_truncated"], cases, outcomes, facts)
    rows = [
        (row.slice_name, row.value, row.metric.passes, row.metric.eligible) for row in done.rows
    ]
    assert rows == [
        ("relevant_position", "top_k", 1, 1),
        ("relevant_position", "beyond_top_k", 1, 1),
        ("relevant_position", "not_retrieved", 0, 1),
        ("context_truncated", "false", 1, 3),
        ("context_truncated", "true", 1, 1),
    ]


def test_failed_cases_stay_in_their_metadata_slices() -> None:
    cases = [a_case("a", topic="x"), a_case("b", topic="x"), a_case("c", topic="y")]
    outcomes = [*verdicts(True), Outcome.missing("timeout"), Outcome.excluded("no_expected")]
    x, y = table(["metadata.topic"], cases, outcomes).rows
    assert (x.metric.observed, x.metric.missing, x.metric.excluded) == (1, 1, 0)
    assert (y.metric.observed, y.metric.missing, y.metric.excluded) == (0, 0, 1)


def split(inside: tuple[int, int], outside: tuple[int, int]) -> tuple[list[Case], list[Outcome]]:
    cases: list[Case] = []
    outcomes: list[Outcome] = []
    for topic, (passes, total) in (("in", inside), ("out", outside)):
        cases += [a_case(f"{topic}{index}", topic=topic) for index in range(total)]
        outcomes += [Outcome.verdict(index < passes) for index in range(total)]
    return cases, outcomes


def test_two_values_that_split_the_run_are_one_test() -> None:
    done = table(["metadata.topic"], *split((3, 6), (6, 7)), min_support=4)
    assert done.tests == 1
    for row in done.rows:
        assert row.p_value == pytest.approx(0.4335664335664336, abs=1e-12)
        assert row.p_adjusted == row.p_value
        assert row.mark == "none"


def test_below_the_least_support_there_is_no_interval_and_no_test() -> None:
    done = table(["metadata.topic"], *split((12, 12), (0, 1)), min_support=4)
    inside, outside = done.rows
    assert (inside.metric.interval is None, outside.metric.interval is None) == (False, True)
    assert inside.p_value == pytest.approx(2 / 13)
    assert (outside.p_value, outside.mark) == (None, None)
    assert done.tests == 1
    assert done.too_few


def test_a_value_that_holds_everything_is_not_tested() -> None:
    cases = [a_case(str(index), topic="all") for index in range(20)]
    done = table(["metadata.topic"], cases, verdicts(*[True] * 10, *[False] * 10))
    assert (done.tests, done.rows[0].p_value, done.rows[0].mark) == (0, None, None)


def test_a_clear_difference_is_marked_in_both_directions() -> None:
    done = table(["metadata.topic"], *split((10, 50), (45, 50)), min_support=4)
    assert [row.mark for row in done.rows] == ["worse", "better"]
    assert not done.too_few


def test_score_metrics_carry_no_mark() -> None:
    criterion = replace(criterion_of(an_evaluator()), kind="score")
    cases, _ = split((5, 50), (45, 50))
    outcomes = [Outcome.score(0.0 if index < 50 else 1.0) for index in range(100)]
    done = slice_metrics(
        ["metadata.topic"],
        cases,
        {},
        [criterion],
        {"ok": outcomes},
        top_k=2,
        min_support=4,
        level=0.95,
    )
    assert done.tests == 0
    assert {row.mark for row in done.rows} == {None}
    assert all(row.metric.interval is not None for row in done.rows)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=40))
def test_a_metadata_slice_covers_the_suite(rows: list[tuple[str, bool]]) -> None:
    cases = [a_case(str(index), topic=topic) for index, (topic, _) in enumerate(rows)]
    done = table(["metadata.topic"], cases, verdicts(*[passed for _, passed in rows]))
    assert sum(row.metric.eligible for row in done.rows) == len(rows)
    assert sum(row.metric.passes or 0 for row in done.rows) == sum(passed for _, passed in rows)
    for row in done.rows:
        assert row.p_adjusted is None or row.p_value is None or row.p_adjusted >= row.p_value
