"""Decisions on differences, against every golden vector, and how pairs are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.policy import Policy, Rule
from rag_assets.evaluation.differences import Difference, difference
from rag_assets.evaluation.gate import decide, gate_of
from rag_assets.evaluation.wording import rule_words
from rag_assets.evaluators import Outcome
from rag_assets.reports.planning import difference_format, difference_text

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "gate_comparison_decisions.json").read_text()
)
PASS, FAIL = Outcome.verdict(True), Outcome.verdict(False)
CRASHED, EXCLUDED = Outcome.missing("execution_error"), Outcome.excluded("no_expected")


def verdicts(gained: int, lost: int, same: int, missing: int = 0, excluded: int = 0) -> Difference:
    pairs = [
        *[(PASS, FAIL)] * gained,
        *[(FAIL, PASS)] * lost,
        *[(PASS, PASS)] * same,
        *[(CRASHED, PASS)] * missing,
        *[(EXCLUDED, EXCLUDED)] * excluded,
    ]
    named = {f"c{index}": pair for index, pair in enumerate(pairs)}
    return difference("m", "verdict", (0.0, 1.0), named)


def decided(metric: Difference, rule: Rule) -> tuple[str, list[str], int]:
    policy = Policy(rules=(rule,), path=Path("compare.yaml"), digest="", lines={})
    decision = decide(rule, metric)
    gate = gate_of(policy, [decision], "COMPLETE")
    return decision.state, list(decision.reasons), gate.exit_code


@pytest.mark.parametrize("vector", GOLDEN["verdict_metrics"])
def test_golden_verdicts(vector: dict[str, Any]) -> None:
    rule = Rule(**vector["rule"])
    counts = (vector["candidate_only"], vector["baseline_only"], vector["concordant"])
    found = verdicts(*counts, vector["missing"], vector["excluded"])
    found = found.bounded(vector["confidence"], rule.method)
    state = (vector["state"], vector["reasons"], vector["exit_code"])
    assert decided(found, rule) == state
    assert rule_words(vector["rule"], "verdict") == vector["rule_words"]
    counts_text = f"{found.observed} paired · {found.missing} missing · {found.excluded} excluded"
    assert counts_text == vector["display"]["denominator"]
    if found.estimate is None or found.interval is None:
        assert (found.estimate, found.interval) == (vector["estimate"], vector["interval"])
        return
    assert found.estimate == pytest.approx(vector["estimate"], abs=1e-12)
    bounds = (found.interval.lower, found.interval.upper)
    if rule.method is None:
        assert bounds == pytest.approx(vector["interval"], abs=1e-9)
        shown = difference_format("verdict", (0.0, 1.0)).interval(*bounds)
        assert shown == vector["display"]["interval"]
    estimate = difference_text("verdict", (0.0, 1.0), found.estimate)
    assert estimate == vector["display"]["estimate"]


@pytest.mark.parametrize("vector", GOLDEN["score_metrics"], ids=lambda vector: vector["tag"])
def test_golden_scores(vector: dict[str, Any]) -> None:
    pairs = {
        f"c{index}": (Outcome.score(max(change, 0.0)), Outcome.score(max(-change, 0.0)))
        for index, change in enumerate(vector["differences"])
    }
    pairs |= {f"m{index}": (CRASHED, Outcome.score(0.5)) for index in range(vector["missing"])}
    found = difference("m", "score", (0.0, 1.0), pairs).bounded(vector["confidence"])
    assert found.estimate == pytest.approx(vector["estimate"], abs=1e-12)
    assert found.interval is not None
    bounds = (found.interval.lower, found.interval.upper)
    assert bounds == pytest.approx(vector["interval"], abs=1e-9)
    rule = Rule(**vector["rule"])
    assert decided(found, rule)[:2] == (vector["state"], vector["reasons"])
    assert rule_words(vector["rule"], "score") == vector["rule_words"]
    form = difference_format("score", (0.0, 1.0))
    assert form.interval(*bounds) == vector["display"]["interval"]


def test_how_fifteen_cases_are_paired() -> None:
    pairs = {
        "excluded_on_both": (EXCLUDED, EXCLUDED),
        "excluded_here_missing_there": (EXCLUDED, CRASHED),
        "crashed": (CRASHED, PASS),
        "gained": (PASS, FAIL),
        **{f"same_{index}": (PASS, PASS) for index in range(11)},
    }
    found = difference("m", "verdict", (0.0, 1.0), pairs)
    assert (found.observed, found.missing, found.excluded) == (12, 1, 2)
    assert (found.gained, found.lost) == (("gained",), ())
    assert found.missing_reasons == {"execution_error": 1}
    assert found.excluded_reasons == {"no_expected": 2}


def test_the_reason_is_the_candidates_where_both_sides_have_one() -> None:
    late = Outcome.missing("timeout")
    found = difference("m", "verdict", (0.0, 1.0), {"a": (late, CRASHED), "b": (PASS, CRASHED)})
    assert found.missing_reasons == {"timeout": 1, "execution_error": 1}


def test_the_named_method_decides() -> None:
    rule = Rule(id="r", metric="m", kind="non_inferiority", margin=0.05)
    exact = Rule(id="r", metric="m", kind="non_inferiority", margin=0.05, method="exact_paired")
    pairs = verdicts(0, 0, 72)
    assert decided(pairs.bounded(0.95), rule)[0] == "INSUFFICIENT_EVIDENCE"
    assert decided(pairs.bounded(0.95, "exact_paired"), exact)[0] == "PASS"
    fewer = verdicts(0, 0, 71).bounded(0.95, "exact_paired")
    assert decided(fewer, exact)[0] == "INSUFFICIENT_EVIDENCE"


def test_a_metric_without_pairs_cannot_be_decided() -> None:
    rule = Rule(id="r", metric="m", kind="superiority")
    found = difference("m", "verdict", (0.0, 1.0), {}).bounded(0.95)
    assert decided(found, rule) == (
        "INSUFFICIENT_EVIDENCE",
        ["no_observations", "interval_unavailable"],
        3,
    )


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    counts=st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60)),
    missing=st.integers(0, 5),
    margin=st.sampled_from([0.02, 0.05, 0.2]),
    kind=st.sampled_from(["non_inferiority", "superiority", "equivalence"]),
)
def test_what_is_decided_survives_any_outcome_of_the_missing(
    counts: tuple[int, int, int], missing: int, margin: float, kind: str
) -> None:
    rule = Rule.model_validate(
        {"id": "r", "metric": "m", "kind": kind}
        | ({} if kind == "superiority" else {"margin": margin})
    )
    gained, lost, same = counts
    state = decided(verdicts(gained, lost, same, missing).bounded(0.95), rule)[0]
    if state not in ("PASS", "FAIL"):
        return
    for resolved in (
        verdicts(gained + missing, lost, same),
        verdicts(gained, lost + missing, same),
        verdicts(gained, lost, same + missing),
    ):
        assert decided(resolved.bounded(0.95), rule)[0] == state
