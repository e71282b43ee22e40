"""Metrics: per criterion an estimate, an interval, and three counts that add up to all cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

from rag_assets.contracts.metric_config import Source
from rag_assets.evaluation.grouping import GroupKey, GroupValues, group_values
from rag_assets.evaluation.replicates import Pooled, is_flaky, pooled
from rag_assets.evaluators import Outcome
from rag_assets.statistics import Interval, bounded_mean, clopper_pearson

Kind = Literal["verdict", "score"] | Source


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One metric over some cases.

    Attributes:
        criterion, kind, value_range: of the evaluator; the kind of an operational metric is what
            it measures.
        observed, missing, excluded: numbers of cases; they add up to all cases looked at.
        passes: number of passed verdicts; None for scores.
        interval: the estimate with its bounds, or None where no interval was asked for.
        estimate: rate of passes or mean of scores; None when nothing was observed.
        missing_reasons, excluded_reasons: reason → number of cases.
        quantile: which quantile an operational metric is; None for all others.
        groups: one value for each group, where cases belong together; else None.
        samples: how many samples of a case its value is the mean of.
        flaky: cases whose observed samples disagree.
        pooled: of a ratio, what it counts over all cases together; None for all others.
    """

    criterion: str
    kind: Kind
    value_range: tuple[float, float]
    observed: int
    missing: int
    excluded: int
    passes: int | None
    estimate: float | None
    interval: Interval | None
    missing_reasons: Mapping[str, int] = field(default_factory=dict)
    excluded_reasons: Mapping[str, int] = field(default_factory=dict)
    quantile: float | None = None
    groups: GroupValues | None = None
    samples: int = 1
    flaky: int = 0
    pooled: Pooled | None = None

    @property
    def eligible(self) -> int:
        """Cases to which the criterion applies: observed and missing."""
        return self.observed + self.missing


def measure(
    criterion: str,
    kind: Kind,
    value_range: tuple[float, float],
    outcomes: Sequence[Outcome],
    *,
    level: float,
    method: str | None = None,
    with_interval: bool = True,
    keys: Sequence[GroupKey] | None = None,
    samples: int = 1,
    counts: str | None = None,
) -> MetricValue:
    """Count the outcomes of one criterion and bound their rate or mean.

    Args:
        criterion, kind, value_range: of the evaluator.
        outcomes: one for each case.
        level: two-sided confidence, strictly between 0 and 1.
        method: of the interval, as a policy names it; None for the default of the kind.
        with_interval: False leaves the interval out (slices with too little support).
        keys: the group of each case, where cases belong together: estimate and interval are then
            over groups.
        samples: more than 1 where the value of a case is the mean of so many samples; a case then
            counts as passed when all of its observed samples pass.
        counts: what the ratio of a case is a share of, where it is one.
    """
    values = [outcome.value for outcome in outcomes if outcome.value is not None]
    missing, excluded = count_reasons(outcomes)
    lost = sum(missing.values())
    passes = sum(value == 1.0 for value in values) if kind == "verdict" else None
    interval = groups = None
    if keys is not None:
        groups = _grouped(outcomes, keys, value_range)
        interval = groups.interval(level, value_range, method) if with_interval else None
    elif with_interval and (values or lost):
        if passes is not None and samples == 1:
            interval = clopper_pearson(passes, len(values), lost, level)
        else:
            name: Literal["mixture", "convex"] = (
                "convex" if method == "bounded_mean_convex" else "mixture"
            )
            interval = bounded_mean(values, lost, level, value_range, name)
    return MetricValue(
        criterion=criterion,
        kind=kind,
        value_range=value_range,
        observed=len(values),
        missing=lost,
        excluded=sum(excluded.values()),
        passes=passes,
        estimate=_estimate(values) if groups is None else groups.estimate,
        interval=interval,
        missing_reasons=missing,
        excluded_reasons=excluded,
        groups=groups,
        samples=samples,
        flaky=sum(map(is_flaky, outcomes)) if samples > 1 else 0,
        pooled=None if counts is None else pooled(outcomes, counts),
    )


def _grouped(
    outcomes: Sequence[Outcome], keys: Sequence[GroupKey], value_range: tuple[float, float]
) -> GroupValues:
    eligible = [
        (one.value, key)
        for one, key in zip(outcomes, keys, strict=True)
        if one.status != "excluded"
    ]
    return group_values([value for value, _ in eligible], [key for _, key in eligible], value_range)


def count_reasons(outcomes: Sequence[Outcome]) -> tuple[dict[str, int], dict[str, int]]:
    """Reasons with their numbers of cases: of the missing ones, and of the excluded ones."""
    missing, excluded = (
        Counter(one.reason or "" for one in outcomes if one.status == status)
        for status in ("missing", "excluded")
    )
    return dict(sorted(missing.items())), dict(sorted(excluded.items()))


def _estimate(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None
