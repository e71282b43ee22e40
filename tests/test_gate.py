"""Decisions of single-run rules, against every golden vector and the documented boundaries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.policy import Policy, Rule
from rag_assets.evaluation.gate import RuleDecision, decide, gate_of, lacks_required, required_ids
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluators import Outcome

GOLDEN = json.loads((Path(__file__).parent / "golden" / "gate_run_decisions.json").read_text())


def rule_of(entry: dict[str, Any]) -> Rule:
    fields = {key: value for key, value in entry.items() if key not in ("min", "max", "kind")}
    threshold = entry.get("min", entry.get("max"))
    kind = entry.get("kind") or ("min" if "min" in entry else "max")
    return Rule(kind=kind, threshold=threshold, **fields)


def policy_of(entry: dict[str, Any], rule: Rule) -> Policy:
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()}
    return Policy(rules=(rule,), path=Path("release.yaml"), digest="", lines={}, **fields)


def rate(
    passed: int, observed: int, missing: int = 0, excluded: int = 0, level: float = 0.95
) -> MetricValue:
    outcomes = [Outcome.verdict(index < passed) for index in range(observed)]
    outcomes += [Outcome.missing("timeout")] * missing + [
        Outcome.excluded("no_expected")
    ] * excluded
    return measure("m", "verdict", (0.0, 1.0), outcomes, level=level)


def minimum(threshold: float, **fields: Any) -> Rule:
    return Rule(id="r", metric="m", kind="min", threshold=threshold, **fields)


@pytest.mark.parametrize("vector", GOLDEN["rates"], ids=lambda vector: vector["tag"])
def test_golden_rates(vector: dict[str, Any]) -> None:
    rule = rule_of(vector["rule"])
    metric = rate(
        vector["passed"],
        vector["observed"],
        vector["missing"],
        vector["excluded"],
        vector["confidence"],
    )
    bounds = metric.interval and [metric.interval.lower, metric.interval.upper]
    assert bounds == (vector["interval"] and pytest.approx(vector["interval"], abs=1e-9))
    decision = decide(rule, metric)
    assert (decision.state, list(decision.reasons)) == (vector["state"], vector["reasons"])
    gate = gate_of(policy_of(vector["policy"], rule), [decision], vector["completeness"])
    assert (gate.state, gate.exit_code, list(gate.reasons)) == (
        vector["gate"],
        vector["exit_code"],
        vector["gate_reasons"],
    )


@pytest.mark.parametrize("vector", GOLDEN["means"], ids=lambda vector: vector["tag"])
def test_golden_means(vector: dict[str, Any]) -> None:
    low, high = vector["range"]
    outcomes = [Outcome.score(value) for value in vector["values"]]
    outcomes += [Outcome.missing("timeout")] * vector["missing"]
    metric = measure("m", "score", (low, high), outcomes, level=vector["confidence"])
    bounds = metric.interval and [metric.interval.lower, metric.interval.upper]
    assert (bounds if bounds != [None, None] else None) == (
        vector["interval"] and pytest.approx(vector["interval"], abs=1e-9)
    )
    decision = decide(rule_of(vector["rule"]), metric)
    assert (decision.state, list(decision.reasons)) == (vector["state"], vector["reasons"])


@pytest.mark.parametrize(
    ("passed", "observed", "kind", "threshold", "state"),
    [
        (30, 30, "min", 0.8842966917779722, "PASS"),
        (30, 30, "min", 0.8842966917779723, "INSUFFICIENT_EVIDENCE"),
        (5, 40, "min", 0.2680329173617204, "INSUFFICIENT_EVIDENCE"),
        (5, 40, "min", 0.26803291736172047, "FAIL"),
        (5, 40, "max", 0.2680329173617204, "PASS"),
        (5, 40, "max", 0.04185962613861672, "INSUFFICIENT_EVIDENCE"),
        (5, 40, "max", 0.04185962613861671, "FAIL"),
    ],
)
def test_boundaries_are_exact(
    passed: int, observed: int, kind: Any, threshold: float, state: str
) -> None:
    rule = Rule(id="r", metric="m", kind=kind, threshold=threshold)
    assert decide(rule, rate(passed, observed)).state == state


@pytest.mark.parametrize(
    ("passed", "observed", "missing", "limit", "state", "reason"),
    [
        (13, 13, 2, 0, "INSUFFICIENT_EVIDENCE", "missing_could_change_outcome"),
        (13, 13, 2, 1, "INSUFFICIENT_EVIDENCE", "missing_could_change_outcome"),
        (13, 13, 2, 2, "PASS", "observed_failures_within_limit"),
        (12, 13, 1, 1, "INSUFFICIENT_EVIDENCE", "missing_could_change_outcome"),
        (11, 13, 0, 1, "FAIL", "observed_failures_exceed_limit"),
        (0, 0, 3, 99, "INSUFFICIENT_EVIDENCE", "no_observations"),
    ],
)
def test_observed_count(
    passed: int, observed: int, missing: int, limit: int, state: str, reason: str
) -> None:
    rule = Rule(id="r", metric="m", kind="observed_count", max_failures=limit)
    decision = decide(rule, rate(passed, observed, missing))
    assert (decision.state, decision.reasons) == (state, (reason,))


def test_missingness_at_the_limit_is_allowed() -> None:
    assert decide(minimum(0.1, max_missing_fraction=0.2), rate(8, 8, 2)).state == "PASS"
    assert decide(minimum(0.1, max_missing_fraction=0.2), rate(20, 22, 8)).reasons == (
        "missingness_exceeds_policy",
    )


def test_every_reason_that_applies_is_given() -> None:
    rule = minimum(0.1, max_missing_fraction=0.2, min_support=5)
    decision = decide(rule, rate(0, 0, 13), required_missing=True)
    assert decision.reasons == (
        "no_observations",
        "missingness_exceeds_policy",
        "insufficient_support",
        "required_case_missing",
    )
    nothing = measure("m", "score", (0.0, 1.0), [Outcome.missing("timeout")], level=0.95)
    assert decide(minimum(0.1), nothing).reasons == ("no_observations", "interval_unavailable")


def test_manual_review_comes_first() -> None:
    rule = minimum(0.1, requires_manual_review=True)
    decision = decide(rule, rate(0, 0, 3))
    assert (decision.state, decision.reasons) == ("MANUAL_REVIEW", ("policy_requires_review",))


def test_required_cases() -> None:
    policy = policy_of({"required_cases": ["refund_*", "sso"]}, minimum(0.5))
    required = required_ids(policy, ["refund_a", "refund_b", "sso", "other"])
    assert required == {"refund_a", "refund_b", "sso"}
    passed, lost = Outcome.verdict(True), Outcome.missing("timeout")
    assert not lacks_required(required, dict.fromkeys(required, passed))
    assert lacks_required(required, {"refund_a": passed, "refund_b": lost, "sso": passed})
    assert lacks_required(required, {"refund_a": passed, "refund_b": passed})


def test_exit_1_wins_over_3() -> None:
    rules = [minimum(0.9), minimum(0.5)]
    metrics = [rate(2, 13), rate(9, 13)]
    decisions = [decide(rule, metric) for rule, metric in zip(rules, metrics, strict=True)]
    assert [one.state for one in decisions] == ["FAIL", "INSUFFICIENT_EVIDENCE"]
    assert gate_of(policy_of({}, rules[0]), decisions, "PARTIAL").exit_code == 1


def test_a_warned_fail_does_not_block() -> None:
    rule = minimum(0.9)
    decisions: list[RuleDecision] = [decide(rule, rate(2, 13))]
    policy = policy_of({"block_on": ["INSUFFICIENT_EVIDENCE"], "warn_on": ["FAIL"]}, rule)
    gate = gate_of(policy, decisions, "COMPLETE")
    assert (gate.state, gate.exit_code) == ("WARN", 0)


@settings(derandomize=True, deadline=None)
@given(
    passed=st.integers(0, 40),
    failed=st.integers(0, 40),
    missing=st.integers(0, 10),
    threshold=st.floats(0, 1),
)
def test_pass_and_fail_survive_any_outcome_of_the_missing(
    passed: int, failed: int, missing: int, threshold: float
) -> None:
    """What is decided with missing cases is decided alike once they are resolved."""
    decided = decide(minimum(threshold), rate(passed, passed + failed, missing)).state
    if decided not in ("PASS", "FAIL"):
        return
    for resolved in (0, missing):
        complete = rate(passed + resolved, passed + failed + missing)
        assert decide(minimum(threshold), complete).state == decided
