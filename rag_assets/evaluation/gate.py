"""Decisions: one state for each rule of the policy, and what the states mean for the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rag_assets.contracts.policy import Policy
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.metrics import MetricValue
from rag_assets.evaluation.words import Completeness, DecisionState, GateState
from rag_assets.evaluators import Outcome

BLOCKS_ALWAYS = ("no_observations", "missingness_exceeds_policy")


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """What one rule decided, with its reasons in the order of the rules."""

    rule: Rule
    metric: MetricValue
    state: DecisionState
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What all rules together mean.

    Attributes:
        state: BLOCK, WARN or ALLOW.
        exit_code: 1 when a blocking rule FAILed, 3 for any other block, else 0.
        reasons: why it blocks beyond the states of the rules.
    """

    state: GateState
    exit_code: int
    reasons: tuple[str, ...]


def decide(rule: Rule, metric: MetricValue, *, required_missing: bool = False) -> RuleDecision:
    """Decide one rule on one metric of one run.

    Bounds are compared as they are, without tolerance.

    Args:
        rule: of kind min, max or observed_count.
        metric: the metric that it names, with its interval.
        required_missing: whether a required case has no value for this metric.
    """
    if rule.requires_manual_review:
        return RuleDecision(rule, metric, "MANUAL_REVIEW", ("policy_requires_review",))
    unusable = _unusable(rule, metric, required_missing)
    if unusable:
        return RuleDecision(rule, metric, "INSUFFICIENT_EVIDENCE", unusable)
    state, reason = (
        _on_failures(rule, metric) if rule.kind == "observed_count" else _on_bounds(rule, metric)
    )
    return RuleDecision(rule, metric, state, (reason,))


def gate_of(
    policy: Policy, decisions: Sequence[RuleDecision], completeness: Completeness
) -> GateDecision:
    """Combine the decisions of a policy."""
    blocking = [decision for decision in decisions if decision.state in policy.block_on]
    reasons: list[str] = []
    tolerated = (decision for decision in decisions if decision not in blocking)
    if any(reason in BLOCKS_ALWAYS for decision in tolerated for reason in decision.reasons):
        reasons.append("missing_evidence")
    if completeness != "COMPLETE" and policy.block_on_partial_run:
        reasons.append("partial_run")
    if blocking or reasons:
        failed = any(decision.state == "FAIL" for decision in blocking)
        return GateDecision("BLOCK", 1 if failed else 3, tuple(reasons))
    warned = any(decision.state in policy.warn_on for decision in decisions)
    return GateDecision("WARN" if warned else "ALLOW", 0, ())


def required_ids(policy: Policy, case_ids: Sequence[str]) -> frozenset[str]:
    """The cases that the policy requires, from its ids and globs."""
    return frozenset(
        case_id
        for case_id in case_ids
        for pattern in policy.required_cases
        if case_id == pattern or fnmatchcase(case_id, pattern)
    )


def lacks_required(required: frozenset[str], outcomes: Mapping[str, Outcome]) -> bool:
    """Whether a required case has no value for a metric, for whatever reason."""
    return any(
        case_id not in outcomes or outcomes[case_id].status != "observed" for case_id in required
    )


def _unusable(rule: Rule, metric: MetricValue, required_missing: bool) -> tuple[str, ...]:
    reasons: list[str] = []
    if metric.observed == 0:
        reasons.append("no_observations")
    limit = rule.max_missing_fraction
    if limit is not None and metric.eligible and metric.missing / metric.eligible > limit:
        reasons.append("missingness_exceeds_policy")
    if rule.min_support is not None and metric.observed < rule.min_support:
        reasons.append("insufficient_support")
    if required_missing:
        reasons.append("required_case_missing")
    if rule.kind != "observed_count" and (
        metric.interval is None or (metric.interval.lower is None and metric.interval.upper is None)
    ):
        reasons.append("interval_unavailable")
    return tuple(reasons)


def _on_failures(rule: Rule, metric: MetricValue) -> tuple[DecisionState, str]:
    limit = rule.max_failures or 0
    failures = metric.observed - (metric.passes or 0)
    if failures > limit:
        return "FAIL", "observed_failures_exceed_limit"
    if failures + metric.missing <= limit:
        return "PASS", "observed_failures_within_limit"
    return "INSUFFICIENT_EVIDENCE", "missing_could_change_outcome"


def _on_bounds(rule: Rule, metric: MetricValue) -> tuple[DecisionState, str]:
    interval, threshold = metric.interval, rule.threshold
    if interval is None or threshold is None or interval.lower is None or interval.upper is None:
        return "INSUFFICIENT_EVIDENCE", "interval_unbounded"
    if rule.kind == "min":
        if interval.lower >= threshold:
            return "PASS", "lower_bound_meets_minimum"
        if interval.upper < threshold:
            return "FAIL", "upper_bound_below_minimum"
    else:
        if interval.upper <= threshold:
            return "PASS", "upper_bound_meets_maximum"
        if interval.lower > threshold:
            return "FAIL", "lower_bound_above_maximum"
    return "INSUFFICIENT_EVIDENCE", "interval_overlaps_threshold"
