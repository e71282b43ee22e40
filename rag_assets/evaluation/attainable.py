"""What a suite of this size can decide: from how many passes on a threshold rule is a PASS."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.project import Project
from rag_assets.statistics import Interval, clopper_pearson


@dataclass(frozen=True, slots=True)
class Attainable:
    """When a threshold rule on a rate passes, if every eligible case is observed.

    Attributes:
        rule: of kind min or max.
        cases: the eligible cases: those that the criterion is not excluded for.
        passes: the least (min) or most (max) passed cases for a PASS; None where none will do.
        best: the interval of the best possible result; None without a case.
        needed: the least number of cases with which the best result is a PASS; None where no
            number is enough.
    """

    rule: Rule
    cases: int
    passes: int | None
    best: Interval | None
    needed: int | None


def attainable_decisions(project: Project) -> Iterator[Attainable]:
    """What each threshold rule on a verdict metric takes, in the order of the policy."""
    # What passes of single cases come to says little about a mean over groups.
    if project.policy is None or project.is_grouped:
        return
    evaluators = {evaluator.criterion: evaluator for evaluator in project.evaluators}
    # Neither do they about means over samples.
    single = {one.criterion: one for one in project.measured if one.samples == 1}
    for rule in project.policy.rules:
        criterion = single.get(rule.metric)
        if criterion is None or criterion.kind != "verdict":
            continue
        # No case is excluded from what no evaluator judges.
        evaluator = evaluators.get(criterion.every or criterion.criterion)
        if rule.kind in ("min", "max"):
            cases = project.dataset.cases
            eligible = sum(evaluator is None or not evaluator.exclusion(case) for case in cases)
            yield attainable(rule, eligible, project.policy.confidence_level)


def attainable(rule: Rule, cases: int, level: float) -> Attainable:
    """When a threshold rule on a rate passes.

    Args:
        rule: of kind min or max.
        cases: number of eligible cases.
        level: two-sided confidence, strictly between 0 and 1.
    """
    is_min = rule.kind == "min"
    threshold = rule.threshold or 0.0

    def passes_with(good: int, observed: int) -> bool:
        """Whether so many cases on the right side of the rule (passes for min) are enough."""
        interval = clopper_pearson(good if is_min else observed - good, observed, level=level)
        if is_min:
            return interval.lower is not None and interval.lower >= threshold
        return interval.upper is not None and interval.upper <= threshold

    good = bisect_left(range(cases + 1), True, key=lambda count: passes_with(count, cases))
    passes = None if good > cases else good if is_min else cases - good
    best = clopper_pearson(cases if is_min else 0, cases, level=level) if cases else None
    share = threshold if is_min else 1.0 - threshold
    return Attainable(rule, cases, passes, best, _needed(share, level, passes_with))


def _needed(share: float, level: float, passes_with: Callable[[int, int], bool]) -> int | None:
    """The least number of cases of which all on the right side are enough.

    Their bound is (α/2)^(1/n), so n is ln(α/2) / ln(share) rounded up; the neighbours are tried
    because that quotient is itself rounded.
    """
    if share >= 1.0:
        return None
    if share <= 0.0:
        return 1
    about = math.ceil(math.log((1 - level) / 2) / math.log(share))
    return next(n for n in range(max(1, about - 1), about + 3) if passes_with(n, n))
