"""Evaluators whose value is what reviewers said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluating import NOWHERE, build_all, context, entry, evidence
from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.human_labels import About, Disagreement, HumanLabel
from rag_assets.evaluators import Evaluator, Outcome, judge
from rag_assets.evaluators.registry import build_evaluators
from rag_assets.evaluators.reviewers import DisputedError, settled

ANSWER = {"answer": "Two claims.", "abstained": False}
ABSTENTION = {"answer": "I do not know.", "abstained": True}


def said(
    label: str,
    unit: str = "",
    *,
    about: About = "claim",
    by: str = "r1",
    criterion: str = "claim_support",
    of: Any = ANSWER,
    at: str = "",
) -> HumanLabel:
    return HumanLabel("c1", criterion, digest(of), about, unit, label, by, at)


def case(*labels: HumanLabel, **expected: Any) -> Case:
    made = parse_case({"id": "c1", "input": "Q?", "expected": expected})
    return replace(made, human_labels=labels)


def evaluator(type: str, rule: Disagreement = "exclude") -> Evaluator:
    """One of the three, beside the other two and an abstention."""
    names = ("abstention", "context_support", "fact_coverage", "claim_support")
    entries = [entry(one, **({"field": "abstained"} if one == names[0] else {})) for one in names]
    problems: list[Any] = []
    built = build_evaluators(
        entries,
        file="rag_assets.yaml",
        depth=None,
        recorded=frozenset({"context"}),
        dataset=None,
        root=NOWHERE,
        problems=problems,
        label_disagreement=rule,
    )
    assert problems == []
    return next(one for one in built if one.type == type)


def outcome(type: str, of: Case, output: Any = ANSWER, rule: Disagreement = "exclude") -> Outcome:
    return judge(evaluator(type, rule), evidence(of, output, context=context("a")))


def test_claim_support_is_the_share_of_supported_claims() -> None:
    found = outcome(
        "claim_support",
        case(said("supported", "a"), said("unsupported", "b"), said("contradicted", "c")),
    )
    assert found.value == pytest.approx(1 / 3)
    assert found.detail["counts"] == [1, 3]
    assert found.detail["not_supported"] == [
        {"unit": "b", "label": "unsupported"},
        {"unit": "c", "label": "contradicted"},
    ]


def test_fact_coverage_needs_a_label_for_every_expected_fact() -> None:
    fact = {"about": "fact", "criterion": "fact_coverage"}
    one = said("covered", "F1", **fact)
    both = (one, said("not covered", "F2", **fact))
    assert outcome("fact_coverage", case(*both)).reason == "no_expected_facts"
    half = outcome("fact_coverage", case(one, facts=["F1", "F2"]))
    assert (half.status, half.reason) == ("missing", "not_labelled")
    assert half.detail["not_labelled"] == ["F2"]
    whole = outcome("fact_coverage", case(*both, facts=["F1", "F2"]))
    assert (whole.value, whole.detail["counts"]) == (0.5, [1, 2])
    assert whole.detail["not_covered"] == ["F2"]


def test_context_support_needs_every_claim_to_be_supported() -> None:
    own = {"criterion": "context_support"}
    whole = said("pass", about="answer", **own)
    assert outcome("context_support", case(whole)).value == 1.0
    assert outcome("context_support", case(replace(whole, label="fail"))).value == 0.0
    claims = case(said("supported", "a", **own), said("contradicted", "b", **own))
    assert outcome("context_support", claims).value == 0.0
    # Without labels of its own, those of claim_support count.
    assert outcome("context_support", case(said("supported", "a"))).value == 1.0
    assert outcome("context_support", case(said("unsupported", "a"), whole)).value == 1.0


@pytest.mark.parametrize(
    ("type", "reason"),
    [("claim_support", "no_claims"), ("context_support", "not_a_factual_answer")],
)
def test_an_abstention_is_excluded(type: str, reason: str) -> None:
    labels = case(said("supported", "a", of=ABSTENTION))
    assert outcome(type, labels, ABSTENTION) == Outcome.excluded(reason)
    # Recognised by nobody, but labelled as an answer without a claim.
    silent = case(said("no_claims", about="answer"))
    assert (found := outcome(type, silent)).reason == reason
    assert found.status == "excluded"


@pytest.mark.parametrize("type", ["claim_support", "context_support"])
def test_a_label_is_bound_to_its_answer(type: str) -> None:
    assert outcome(type, case()) == Outcome.missing("not_labelled")
    changed = case(said("supported", "a", of={"answer": "Another."}))
    assert outcome(type, changed) == Outcome.missing("answer_changed_since_label")
    assert outcome(type, changed, {"answer": "Another."}).value == 1.0


@pytest.mark.parametrize(
    ("rule", "value", "reason"),
    [("exclude", None, "reviewers_disagree"), ("majority", 1.0, None), ("strictest", 0.0, None)],
)
def test_reviewers_who_disagree(rule: Disagreement, value: float | None, reason: str) -> None:
    labels = [said("supported", "a", by=name) for name in ("r1", "r2")]
    disputed = case(*labels, said("unsupported", "a", by="r3"))
    found = outcome("claim_support", disputed, rule=rule)
    assert (found.value, found.reason) == (value, reason)
    # What everybody said stays on record.
    assert found.detail["labels"] == [
        {
            "about": "claim",
            "unit": "a",
            "by": {"r1": "supported", "r2": "supported", "r3": "unsupported"},
        }
    ]


def test_whether_an_answer_makes_claims_can_be_disputed() -> None:
    disputed = case(said("supported", "a"), said("no_claims", about="answer", by="r2"))
    reasons = {
        rule: outcome("claim_support", disputed, rule=rule).reason
        for rule in ("exclude", "majority", "strictest")
    }
    assert reasons == {
        "exclude": "reviewers_disagree",
        "majority": "reviewers_disagree",
        "strictest": None,
    }


def test_a_judgment_reads_the_labels_of_its_answer_and_no_others() -> None:
    one = evaluator("claim_support")

    def read(*labels: HumanLabel) -> Any:
        return one.reads_of_labels(case(*labels), digest(ANSWER))

    base = read(said("supported", "a"))
    other = {"answer": "Another."}
    assert read(said("supported", "a"), said("unsupported", "a", of=other)) == base
    assert read(said("supported", "a"), said("fail", about="answer", criterion="x")) == base
    assert read(said("unsupported", "a", at="2026-01-01"), said("supported", "a", at="2026-01-02"))
    assert read(said("unsupported", "a")) != base
    assert read(said("supported", "a"), said("supported", "a", by="r2")) != base


def test_the_rule_for_disagreements_is_part_of_the_identity() -> None:
    identities = {evaluator("claim_support", rule).identity for rule in ("exclude", "majority")}
    assert len(identities) == 2


def test_an_acceptance_may_be_made_of_labelled_verdicts() -> None:
    accepted = entry("task_acceptance", all_of=["context_support"])
    built, problems = build_all(accepted, entry("context_support"))
    assert problems == []
    assert [one.criterion for one in built[0].parts] == ["context_support"]
    _, problems = build_all(
        entry("task_acceptance", all_of=["claim_support"]), entry("claim_support")
    )
    assert len(problems) == 1
    assert '"claim_support" is no criterion of verdicts' in problems[0]


CLAIMS = st.sampled_from(["supported", "unsupported", "contradicted"])


@given(st.dictionaries(st.text(max_size=3), CLAIMS, min_size=1, max_size=7))
def test_what_reviewers_come_to(labels: dict[str, str]) -> None:
    values = list(labels.values())
    assert settled(labels, "claim", "strictest") == min(
        values, key=["contradicted", "unsupported", "supported"].index
    )
    winners = [one for one in set(values) if 2 * values.count(one) > len(values)]
    if len(set(values)) == 1:
        assert settled(labels, "claim", "exclude") == values[0]
    else:
        with pytest.raises(DisputedError):
            settled(labels, "claim", "exclude")
    if winners:
        assert settled(labels, "claim", "majority") == winners[0]
    else:
        with pytest.raises(DisputedError):
            settled(labels, "claim", "majority")
