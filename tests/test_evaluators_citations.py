"""Citation validity: golden vectors, the rules one by one, and properties."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluating import build, case, citations, context, evidence
from rag_assets.contracts.artifacts import Citations, Context
from rag_assets.evaluators import Absent, Outcome, judge

GOLDEN = Path(__file__).parent / "golden"
VECTORS = json.loads((GOLDEN / "citation_validity.json").read_text(encoding="utf-8"))
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


def outcome(passages, cited, **parameters):
    shown = evidence(case(), context=context(*passages), citations=citations(*cited))
    return judge(build("citation_validity", **parameters), shown)


@pytest.mark.parametrize("v", VECTORS, ids=lambda v: v["tag"])
def test_golden_vectors(v):
    shown = evidence(
        case(),
        context=None if v["context"] is None else Context(items=v["context"]),
        citations=None if v["citations"] is None else Citations(ids=v["citations"]),
    )
    evaluator = build("citation_validity", require_citations=v["require_citations"])
    found, right = judge(evaluator, shown), v["expected"]
    passed = None if found.value is None else found.value == 1.0
    assert (found.status, passed) == (right["status"], right.get("passed"))
    assert found.reason == right.get("reason")


@pytest.mark.parametrize(
    ("passages", "cited", "invalid"),
    [
        (["a"], ["a#1"], ["a#1"]),
        (["a#1"], ["a"], []),
        (["a#1"], ["a#1", "a#2"], ["a#2"]),
        (["a", "b"], ["b", "A", "b", "A"], ["A"]),
        ([], ["x"], ["x"]),
    ],
)
def test_the_detail_lists_what_is_invalid_once_and_in_order(passages, cited, invalid):
    detail = {"invalid_ids": invalid} if invalid else None
    assert outcome(passages, cited) == Outcome.verdict(not invalid, detail=detail)


def test_the_detail_stops_at_ten_ids():
    found = outcome(["a"], [f"x{number:02}" for number in range(12)])
    assert found.value == 0.0
    assert found.detail == {"invalid_ids": [f"x{number:02}" for number in range(10)]}


def test_citing_nothing_passes_unless_citations_are_required():
    assert outcome(["a"], []) == Outcome.verdict(True)
    assert outcome(["a"], [], require_citations=True) == Outcome.verdict(False)


def test_malformed_citations_are_missing_with_what_was_found():
    shown = evidence(
        case(), context=context("a"), citations=Absent("malformed_citations", '"kb-01"')
    )
    assert judge(build("citation_validity"), shown) == Outcome.missing(
        "malformed_citations", '"kb-01"'
    )


def test_the_first_absent_part_gives_the_reason():
    shown = evidence(case(), context=Absent("execution_error"), citations=Absent("not_executed"))
    assert judge(build("citation_validity"), shown) == Outcome.missing("execution_error")


def test_settings():
    evaluator = build("citation_validity", None)
    assert evaluator.criterion == "citations_valid"
    assert str(evaluator) == "citation_validity(require_citations=false)"
    assert (evaluator.kind, evaluator.reads) == ("verdict", ("context", "citations"))
    assert evaluator.reads_of_case(case("x")) is None
    required = build("citation_validity", require_citations=True)
    assert required.identity != evaluator.identity


passages = st.lists(st.sampled_from(["a", "a#1", "a#2", "b", "b#1", "c"]), max_size=5)
ids = st.lists(st.sampled_from(["a", "a#1", "a#2", "b", "b#1", "c", "C"]), max_size=5)


@deterministic
@given(passages, ids, passages)
def test_more_context_never_makes_a_citation_invalid(shown, cited, more):
    assert outcome(shown, cited).value <= outcome([*shown, *more], cited).value


@deterministic
@given(passages, ids)
def test_order_and_repeats_decide_nothing(shown, cited):
    again = outcome([*reversed(shown), *shown], [*reversed(cited), *cited])
    assert outcome(shown, cited).value == again.value


@deterministic
@given(passages)
def test_citing_the_context_itself_is_valid(shown):
    assert outcome(shown, shown) == Outcome.verdict(True)
    assert outcome(shown, [name.partition("#")[0] for name in shown]) == Outcome.verdict(True)
