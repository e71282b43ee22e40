"""What it would take to decide an undecided rule on a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Literal

from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.differences import Difference
from rag_assets.evaluation.gate import RuleDecision, decide
from rag_assets.evaluation.planning import (
    FEW,
    Assumed,
    MethodSizes,
    Obstacle,
    Plan,
    is_plannable,
    with_support,
)
from rag_assets.evaluation.views import DecisionView
from rag_assets.statistics import Sizes, cases_for_mean, chance_of_margin, pairs_for_margin

Method = Literal["paired_mixture", "exact_paired"]
DEFAULT: Method = "paired_mixture"
EXACT: Method = "exact_paired"

# The search for sizes of the exact method takes longer the larger the default method's size is
# and the more pairs change. Above this product of both it can take more than three seconds, and
# is left to the command `plan`. It does not look at a clock: equal records have equal plans.
LONGEST_SEARCH = 1000


def plan_for_difference(decision: RuleDecision[Difference], level: float) -> Plan | None:
    """Plan an undecided rule on a comparison; None where there is nothing to plan.

    Args:
        decision: the decision.
        level: two-sided confidence, strictly between 0 and 1.
    """
    rule, metric = decision.rule, decision.metric
    if not is_plannable(decision):
        return None
    plan = _of_verdicts(rule, metric, level) if _counts_pairs(metric) else None
    plan = plan or _of_scores(rule, metric, level)
    if not metric.missing or metric.groups is not None:
        return plan
    resolved = metric.resolved(_favourable(rule, metric)).bounded(level, rule.method)
    if decide(rule, resolved).state != "PASS" or resolved.interval is None:
        return plan
    is_upper = rule.kind == "non_inferiority" and rule.direction == "max"
    bound = resolved.interval.upper if is_upper else resolved.interval.lower
    return replace(plan, missing=metric.missing, bound=bound)


def with_complete_plan(decision: DecisionView) -> DecisionView:
    """A decision with the sizes whose search was left to the command `plan`."""
    if decision.plan is None or decision.measure.level is None:
        return decision
    plan, level = Plan.from_json(decision.plan), decision.measure.level
    assumed, rule = plan.assumed, Rule.model_validate(decision.rule)
    if assumed is None or assumed.gained is None or assumed.lost is None:
        return decision
    shares = assumed.gained / assumed.cases, assumed.lost / assumed.cases
    methods = tuple(
        replace(one, sizes=_sizes(rule, *shares, EXACT, level, failing=plan.obstacle is not None))
        if one.sizes is None
        else one
        for one in plan.methods
    )
    return replace(decision, plan=replace(plan, methods=methods).as_json())


def _of_verdicts(rule: Rule, metric: Difference, level: float) -> Plan:
    pairs, gained, lost = metric.observed, len(metric.gained), len(metric.lost)
    plan = Plan(
        assumed=Assumed(pairs, metric.estimate or 0.0, gained=gained, lost=lost),
        obstacle=_obstacle(rule, metric),
        chance=_chance(rule, gained, lost, pairs) if pairs < FEW else None,
    )
    gain, loss, failing = gained / pairs, lost / pairs, bool(plan.obstacle)
    default = _sizes(rule, gain, loss, DEFAULT, level, failing=failing)
    if default is None:
        return plan
    is_short = (
        default.at_50 is not None and default.at_50 * (gained + lost) <= LONGEST_SEARCH * pairs
    )
    exact = _sizes(rule, gain, loss, EXACT, level, failing=failing) if is_short else None
    methods = (MethodSizes(DEFAULT, default), MethodSizes(EXACT, exact))
    return replace(plan, methods=methods[::-1] if rule.method == EXACT else methods)


def _sizes(
    rule: Rule, gain: float, loss: float, method: Method, level: float, *, failing: bool
) -> Sizes | None:
    """The sizes to PASS, or to FAIL; None where no size would."""
    margin, is_equivalence = rule.margin or 0.0, rule.kind == "equivalence"
    if rule.direction == "max" and rule.kind == "non_inferiority":
        gain, loss = loss, gain
    if not failing:
        sizes = pairs_for_margin(gain, loss, margin, method, level, equivalence=is_equivalence)
    elif gain - loss < -margin:
        sizes = pairs_for_margin(loss, gain, -margin, method, level)
    elif is_equivalence and gain - loss > margin:
        sizes = pairs_for_margin(gain, loss, -margin, method, level)
    else:
        return None
    return with_support(rule, sizes)


def _of_scores(rule: Rule, metric: Difference, level: float) -> Plan:
    mean = metric.estimate or 0.0
    observed = metric.groups.observed if metric.groups else metric.values
    plan = Plan(
        assumed=Assumed(len(observed), mean),
        obstacle=_obstacle(rule, metric),
        approximate=True,
        grouped=metric.groups is not None,
    )
    sign = -1.0 if rule.direction == "max" and rule.kind == "non_inferiority" else 1.0
    upward = [sign * value for value in observed]
    margin, ends = rule.margin or 0.0, (-metric.width, metric.width)
    if margin >= metric.width:
        return plan
    # Every question is whether the lower bound of some differences comes above some limit.
    asked: list[tuple[Sequence[float], float]] = []
    downward = [-value for value in upward]
    if plan.obstacle is None:
        asked.append((upward, -margin))
        if rule.kind == "equivalence":
            asked.append((downward, -margin))
    elif sign * mean < -margin:
        asked.append((downward, margin))
    elif rule.kind == "equivalence" and mean > margin:
        asked.append((upward, margin))
    found = [cases_for_mean(values, limit, level, ends) for values, limit in asked]
    if not found:
        return plan
    return replace(plan, methods=(MethodSizes(DEFAULT, with_support(rule, _largest(found))),))


def _largest(found: Sequence[Sizes]) -> Sizes:
    columns = zip(*(astuple(sizes) for sizes in found), strict=True)
    return Sizes(*(None if None in column else max(column) for column in columns))


def _counts_pairs(metric: Difference) -> bool:
    """Whether every pair gained, lost or stayed, so that there are only three outcomes."""
    outcomes = {-1.0, 0.0, 1.0}
    is_single = metric.groups is None and metric.samples == 1
    return metric.kind == "verdict" and is_single and set(metric.values) <= outcomes


def _obstacle(rule: Rule, metric: Difference) -> Obstacle | None:
    """Why no size would make the rule PASS if future pairs are like these."""
    estimate, margin = metric.estimate or 0.0, rule.margin or 0.0
    if rule.kind == "superiority":
        if not any(value > 0 for value in metric.values):
            return "gain"
        return "zero" if estimate <= 0 else None
    if rule.kind == "equivalence":
        return "difference" if abs(estimate) >= margin else None
    harm = estimate if rule.direction == "max" else -estimate
    return "difference" if harm >= margin else None


def _chance(rule: Rule, gained: int, lost: int, pairs: int) -> float:
    """How probable it is that the true difference is where the rule wants it."""
    margin = rule.margin or 0.0
    if rule.kind == "non_inferiority" and rule.direction == "max":
        gained, lost = lost, gained
    above = chance_of_margin(gained, lost, pairs, margin)
    if rule.kind != "equivalence":
        return above
    return above + chance_of_margin(lost, gained, pairs, margin) - 1.0


def _favourable(rule: Rule, metric: Difference) -> float:
    """The difference of one pair that speaks most for the rule."""
    if rule.kind == "equivalence":
        return 0.0
    return -metric.width if rule.direction == "max" else metric.width
