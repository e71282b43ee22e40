"""The rules of a policy on the metrics of one run, and the record of each decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rag_assets.contracts.policy import Policy
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.gate import Measured, RuleDecision, decide, lacks_required
from rag_assets.evaluation.grouping import GroupKey
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluation.planning import plan_for_metric
from rag_assets.evaluators import Outcome


def rules_for(policy: Policy | None, subject: Literal["run", "comparison"]) -> tuple[Rule, ...]:
    """The rules that decide on one run, or those that decide on a comparison."""
    return tuple(rule for rule in policy.rules if rule.decides_on == subject) if policy else ()


def decide_on_run(
    policy: Policy,
    required: frozenset[str],
    case_ids: Sequence[str],
    outcomes: Mapping[str, Sequence[Outcome]],
    metrics: Sequence[MetricValue],
    keys: Sequence[GroupKey] | None = None,
) -> tuple[RuleDecision[MetricValue], ...]:
    """Decide every rule that is about one run, in the order of the policy.

    Args:
        policy: the policy, checked against these metrics.
        required: ids of the cases that must be observed.
        case_ids: the cases of the run.
        outcomes: criterion → one outcome for each of these cases.
        metrics: over all of them, at the policy's level.
        keys: the group of each of these cases, where cases belong together.
    """
    known = {metric.criterion: metric for metric in metrics}
    return tuple(
        decide(
            rule,
            _with_method(known[rule.metric], rule, outcomes, policy.confidence_level, keys),
            required_missing=lacks_required(
                required, dict(zip(case_ids, outcomes[rule.metric], strict=True))
            ),
        )
        for rule in rules_for(policy, "run")
    )


def run_decision_record(
    decision: RuleDecision[MetricValue], policy: Policy, outcomes: Mapping[str, Sequence[Outcome]]
) -> dict[str, Any]:
    """A decision on one run with every number that it rests on, as JSON."""
    values = [one.value for one in outcomes[decision.rule.metric] if one.value is not None]
    plan = plan_for_metric(decision, values, policy.confidence_level)
    return {
        **decision_record(decision, policy),
        "kind": decision.metric.kind,
        "range": finite_range(decision.metric),
        "passes": decision.metric.passes,
        "quantile": decision.metric.quantile,
        "groups": group_count(decision.metric),
        "samples": decision.metric.samples,
        "flaky": decision.metric.flaky,
        "excluded": decision.metric.excluded,
        "estimate": decision.metric.estimate,
        "plan": plan.as_json() if plan else None,
    }


def finite_range(metric: MetricValue) -> list[float | None]:
    """The range of a metric as JSON, which has no infinity: operational metrics have no end."""
    return [end if math.isfinite(end) else None for end in metric.value_range]


def group_count(metric: MetricValue) -> int | None:
    """Number of groups that the metric applies to; None where every case is its own."""
    return len(metric.groups.lowest) if metric.groups else None


def decision_record(decision: RuleDecision[Any], policy: Policy) -> dict[str, Any]:
    """What the records of all decisions have in common."""
    metric: Measured = decision.metric
    interval = metric.interval
    return {
        "rule": decision.rule.model_dump(mode="json", exclude_none=True, exclude={"line"}),
        "reasons": list(decision.reasons),
        "observed": metric.observed,
        "missing": metric.missing,
        "lower": interval.lower if interval else None,
        "upper": interval.upper if interval else None,
        "method": interval.method if interval else None,
        "level": policy.confidence_level,
        "policy_digest": policy.digest,
    }


def _with_method(
    metric: MetricValue,
    rule: Rule,
    outcomes: Mapping[str, Sequence[Outcome]],
    level: float,
    keys: Sequence[GroupKey] | None,
) -> MetricValue:
    """The metric with the interval of the rule's method, where that is not the default."""
    if rule.method != "bounded_mean_convex":
        return metric
    return measure(
        metric.criterion,
        metric.kind,
        metric.value_range,
        outcomes[metric.criterion],
        level=level,
        method=rule.method,
        keys=keys,
        samples=metric.samples,
    )
