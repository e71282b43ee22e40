"""Decisions: one state for each rule of the policy, and what the states mean for the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from rag_assets.contracts.policy import Policy
from rag_assets.contracts.rules import Rule
from rag_assets.contracts.text import names
from rag_assets.evaluation.metrics import MetricValue
from rag_assets.evaluation.words import Completeness, DecisionState, GateState
from rag_assets.evaluators import Outcome
from rag_assets.statistics import Interval

BLOCKS_ALWAYS = ("no_observations", "missingness_exceeds_policy")


class _Reasons(NamedTuple):
    """Why a rule passed, failed or stayed open."""

    passed: str
    failed: str
    open: str


_WORDS: Mapping[str, _Reasons] = {
    "min": _Reasons(
        "lower_bound_meets_minimum", "upper_bound_below_minimum", "interval_overlaps_threshold"
    ),
    "max": _Reasons(
        "upper_bound_meets_maximum", "lower_bound_above_maximum", "interval_overlaps_threshold"
    ),
    "non_inferiority": _Reasons(
        "lower_bound_above_margin", "upper_bound_below_margin", "interval_overlaps_margin"
    ),
    "superiority": _Reasons(
        "difference_above_zero", "difference_below_zero", "interval_overlaps_zero"
    ),
    "equivalence": _Reasons(
        "interval_within_margins", "interval_outside_margins", "interval_overlaps_margins"
    ),
}


class Measured(Protocol):
    """What a rule decides on: a metric of one run, or the difference of two."""

    @property
    def observed(self) -> int:
        """Observed cases or pairs."""

    @property
    def missing(self) -> int:
        """Missing ones."""

    @property
    def eligible(self) -> int:
        """Both."""

    @property
    def interval(self) -> Interval | None:
        """The interval of the rule's method."""


M = TypeVar("M", bound=Measured)


@dataclass(frozen=True, slots=True)
class RuleDecision(Generic[M]):
    """What one rule decided, with its reasons in the order of the rules."""

    rule: Rule
    metric: M
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


def decide(rule: Rule, metric: M, *, required_missing: bool = False) -> RuleDecision[M]:
    """Decide one rule.

    Bounds are compared as they are, without tolerance.

    Args:
        rule: the rule.
        metric: the metric or difference that it names, with the interval of its method.
        required_missing: whether a required case has no value for this metric.
    """
    if rule.requires_manual_review:
        return RuleDecision(rule, metric, "MANUAL_REVIEW", ("policy_requires_review",))
    unusable = _unusable(rule, metric, required_missing)
    if unusable:
        return RuleDecision(rule, metric, "INSUFFICIENT_EVIDENCE", unusable)
    if isinstance(metric, MetricValue) and rule.kind == "observed_count":
        state, reason = _on_failures(rule, metric)
    else:
        state, reason = _on_bounds(rule, metric.interval)
    return RuleDecision(rule, metric, state, (reason,))


def gate_of(
    policy: Policy, decisions: Sequence[RuleDecision[M]], completeness: Completeness
) -> GateDecision:
    """Combine the decisions of a policy.

    Args:
        policy: what blocks and what warns.
        decisions: of its rules.
        completeness: of the run, or of both runs.
    """
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
        if names(pattern, case_id)
    )


def lacks_required(required: frozenset[str], outcomes: Mapping[str, Outcome]) -> bool:
    """Whether a required case has no value for a metric, for whatever reason."""
    return any(
        case_id not in outcomes or outcomes[case_id].status != "observed" for case_id in required
    )


def _unusable(rule: Rule, metric: Measured, required_missing: bool) -> tuple[str, ...]:
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


def _on_bounds(rule: Rule, interval: Interval | None) -> tuple[DecisionState, str]:
    """Only the bound that a state needs has to exist."""
    if interval is None:
        return "INSUFFICIENT_EVIDENCE", "interval_unavailable"
    lower, upper = interval.lower, interval.upper
    if rule.kind == "non_inferiority" and rule.direction == "max":
        lower, upper = (None if bound is None else -bound for bound in (upper, lower))
    words = _WORDS[rule.kind]
    if _passes(rule, lower, upper):
        return "PASS", words.passed
    if _fails(rule, lower, upper):
        return "FAIL", words.failed
    unbounded = lower is None or upper is None
    return "INSUFFICIENT_EVIDENCE", "interval_unbounded" if unbounded else words.open


def _passes(rule: Rule, lower: float | None, upper: float | None) -> bool:
    """Whether the whole interval is on the right side."""
    limit = _limit(rule)
    match rule.kind:
        case "min" | "non_inferiority":
            return lower is not None and lower >= limit
        case "superiority":
            return lower is not None and lower > limit
        case "max":
            return upper is not None and upper <= limit
    return lower is not None and upper is not None and limit < lower and upper < -limit


def _fails(rule: Rule, lower: float | None, upper: float | None) -> bool:
    """Whether the whole interval is on the wrong side."""
    limit = _limit(rule)
    match rule.kind:
        case "min" | "non_inferiority":
            return upper is not None and upper < limit
        case "superiority":
            return upper is not None and upper <= limit
        case "max":
            return lower is not None and lower > limit
    return (upper is not None and upper <= limit) or (lower is not None and lower >= -limit)


def _limit(rule: Rule) -> float:
    """What a bound is compared with: the threshold, minus the margin, or 0."""
    return rule.threshold if rule.threshold is not None else -(rule.margin or 0.0)
