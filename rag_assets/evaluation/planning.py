"""What it would take to decide an undecided rule.

A plan is made when a rule is decided, from the numbers that it was decided on, and stored with
the decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.gate import RuleDecision, decide
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluators import Outcome
from rag_assets.statistics import (
    Sizes,
    cases_for_floor,
    cases_for_mean,
    predicted_cases_for_floor,
)

Obstacle = Literal["estimate", "quantile", "difference", "zero", "gain"]

# Below so many cases the observed distribution is itself too uncertain to be planned with.
FEW = 100
# Reasons under which there is nothing to plan: more cases would not help, or nothing is known.
_NOTHING_TO_PLAN = frozenset(
    {
        "no_observations",
        "missingness_exceeds_policy",
        "required_case_missing",
        "interval_unavailable",
    }
)


@dataclass(frozen=True, slots=True)
class Assumed:
    """What future cases are assumed to follow: the observed distribution.

    Attributes:
        cases: observed cases or pairs.
        estimate: their rate, mean or mean difference.
        passes: passed cases of a rate; None for anything else.
        gained, lost: changed pairs of verdicts; None for anything else.
    """

    cases: int
    estimate: float
    passes: int | None = None
    gained: int | None = None
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class MethodSizes:
    """Sizes under one method; None where their search is left to the command `plan`."""

    method: str
    sizes: Sizes | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What it would take to decide a rule.

    Attributes:
        assumed: what the sizes assume; None where there are none.
        missing: missing cases that would decide the rule if all were counted favourably, else 0.
        bound: the deciding bound with them; None for a rule that counts failures.
        obstacle: why no size would make the rule PASS; None where some size would.
        methods: the sizes to PASS, or to FAIL where there is an obstacle, under the rule's own
            method first.
        approximate: the sizes come from a normal approximation (scores and groups).
        grouped: the sizes are numbers of groups.
        chance: with fewer than 100 cases, how probable it is that the rule is truly met
            (Jeffreys' prior); None for scores.
        predicted: with fewer than 100 cases, the sizes to PASS that allow for the rate being
            uncertain; None for anything but rates.
    """

    assumed: Assumed | None = None
    missing: int = 0
    bound: float | None = None
    obstacle: Obstacle | None = None
    methods: tuple[MethodSizes, ...] = ()
    approximate: bool = False
    grouped: bool = False
    chance: float | None = None
    predicted: Sizes | None = None

    def as_json(self) -> dict[str, Any]:
        """One object, for the record of the decision."""
        return asdict(self) | {"methods": [asdict(one) for one in self.methods]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Plan:
        """The plan that `as_json` wrote."""
        assumed, predicted = record["assumed"], record["predicted"]
        methods = tuple(
            MethodSizes(one["method"], Sizes(**one["sizes"]) if one["sizes"] else None)
            for one in record["methods"]
        )
        return cls(
            **{
                **record,
                "assumed": Assumed(**assumed) if assumed else None,
                "methods": methods,
                "predicted": Sizes(**predicted) if predicted else None,
            }
        )


def is_plannable(decision: RuleDecision[Any]) -> bool:
    """Whether more cases, or the missing ones, could decide what was not decided."""
    return decision.state == "INSUFFICIENT_EVIDENCE" and _NOTHING_TO_PLAN.isdisjoint(
        decision.reasons
    )


def with_support(rule: Rule, sizes: Sizes) -> Sizes:
    """The sizes, none of them below the support that the rule asks for."""
    least = rule.min_support or 0
    return Sizes(*(size and max(size, least) for size in astuple(sizes)))


def plan_for_metric(
    decision: RuleDecision[MetricValue], values: Sequence[float], level: float
) -> Plan | None:
    """Plan an undecided rule on one run; None where there is nothing to plan.

    Args:
        decision: the decision.
        values: the observed values of its metric.
        level: two-sided confidence, strictly between 0 and 1.
    """
    rule, metric = decision.rule, decision.metric
    if not is_plannable(decision):
        return None
    if rule.kind == "observed_count":
        return Plan(missing=metric.missing)
    if metric.groups is not None:
        return _of_mean(rule, metric, metric.groups.observed, level)
    if metric.passes is not None and metric.samples == 1:
        plan = _of_rate(rule, metric, metric.passes, level)
    elif metric.quantile is None:
        plan = _of_mean(rule, metric, values, level)
    else:
        return _of_quantile(rule, metric, values, level)
    if not metric.missing:
        return plan
    resolved = _resolved(rule, metric, values, level)
    if decide(rule, resolved).state != "PASS" or resolved.interval is None:
        return plan
    bound = resolved.interval.lower if rule.kind == "min" else resolved.interval.upper
    return replace(plan, missing=metric.missing, bound=bound)


def _of_rate(rule: Rule, metric: MetricValue, passes: int, level: float) -> Plan:
    """A ceiling is planned as a floor for the failures."""
    cases, threshold = metric.observed, rule.threshold or 0.0
    is_min = rule.kind == "min"
    good = passes if is_min else cases - passes
    floor = threshold if is_min else _complement(threshold)
    share = good / cases
    is_few = cases < FEW and floor > 0
    predicted = predicted_cases_for_floor(good, cases, floor, level) if is_few else None
    plan = Plan(
        assumed=Assumed(cases, passes / cases, passes=passes),
        chance=predicted.reachable if predicted else None,
        predicted=with_support(rule, predicted.sizes) if predicted else None,
    )
    if share > floor:
        sizes = cases_for_floor(share, floor, level)
    elif share < floor < 1:
        plan = replace(plan, obstacle="estimate")
        sizes = cases_for_floor(1 - share, _complement(floor), level)
    else:
        return replace(plan, obstacle="estimate")
    return replace(plan, methods=(MethodSizes("clopper_pearson", with_support(rule, sizes)),))


def _of_mean(rule: Rule, metric: MetricValue, values: Sequence[float], level: float) -> Plan:
    """A ceiling is planned as a floor for the mirrored values."""
    mean, threshold = metric.estimate or 0.0, rule.threshold or 0.0
    ends = metric.value_range
    plan = Plan(
        assumed=Assumed(len(values), mean), approximate=True, grouped=metric.groups is not None
    )
    is_inside = mean > threshold if rule.kind == "min" else mean < threshold
    if not is_inside:
        plan = replace(plan, obstacle="estimate")
    if mean == threshold or not ends[0] < threshold < ends[1]:
        return plan
    # To PASS a floor or to FAIL a ceiling, the lower bound has to come above the threshold.
    is_upward = mean > threshold
    sizes = (
        cases_for_mean(values, threshold, level, ends)
        if is_upward
        else cases_for_mean(_mirrored(values, ends), sum(ends) - threshold, level, ends)
    )
    method = rule.method or "bounded_mean_mixture"
    return replace(plan, methods=(MethodSizes(method, with_support(rule, sizes)),))


def _of_quantile(
    rule: Rule, metric: MetricValue, values: Sequence[float], level: float
) -> Plan | None:
    """A ceiling for a quantile is a floor for the share of cases that stay within it."""
    threshold, q = rule.threshold or 0.0, metric.quantile or 0.0
    if rule.kind == "max":
        floor, good = q, sum(value <= threshold for value in values)
    else:
        floor, good = _complement(q), sum(value >= threshold for value in values)
    share = good / len(values)
    plan = Plan(assumed=Assumed(len(values), share, passes=good))
    if share <= floor:
        return replace(plan, obstacle="quantile")
    sizes = with_support(rule, cases_for_floor(share, floor, level))
    return replace(plan, methods=(MethodSizes("order_statistic_quantile", sizes),))


def _mirrored(values: Sequence[float], ends: tuple[float, float]) -> list[float]:
    return [min(max(sum(ends) - value, ends[0]), ends[1]) for value in values]


def _resolved(
    rule: Rule, metric: MetricValue, values: Sequence[float], level: float
) -> MetricValue:
    """The metric as if every missing case spoke for the rule."""
    best = metric.value_range[1 if rule.kind == "min" else 0]
    outcomes = [Outcome.score(value) for value in (*values, *[best] * metric.missing)]
    return measure(
        metric.criterion,
        metric.kind,
        metric.value_range,
        outcomes,
        level=level,
        method=rule.method,
        samples=metric.samples,
    )


def _complement(share: float) -> float:
    """1 − share, as the decimal number that it is written as."""
    return float(1 - Decimal(repr(share)))
