"""Paired differences of a metric between two runs, candidate minus baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rag_assets.evaluation.grouping import GroupKey, GroupValues, group_values
from rag_assets.evaluators import Outcome
from rag_assets.statistics import Interval, exact_paired, paired_mixture
from rag_assets.statistics.paired import MIXTURE

OutcomePair = tuple[Outcome, Outcome]
"""The outcomes of one case: of the candidate, and of the baseline."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric over paired cases.

    Attributes:
        criterion, kind, value_range: of the metric (not of the difference).
        values: candidate minus baseline of each observed pair.
        gained, lost: ids of the cases whose verdict went from fail to pass, and from pass to
            fail; empty for scores.
        missing, excluded: numbers of pairs.
        missing_reasons, excluded_reasons: reason → number of pairs.
        interval: of the mean difference; None where nothing was observed or none was asked for.
        groups: one difference for each group, where cases belong together; else None.
        samples: more than 1 where the value of a case is a mean over samples.
    """

    criterion: str
    kind: Literal["verdict", "score"]
    value_range: tuple[float, float]
    values: tuple[float, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    missing: int
    excluded: int
    missing_reasons: Mapping[str, int]
    excluded_reasons: Mapping[str, int]
    interval: Interval | None = None
    groups: GroupValues | None = None
    samples: int = 1

    @property
    def observed(self) -> int:
        """Pairs with a value on both sides."""
        return len(self.values)

    @property
    def eligible(self) -> int:
        """Pairs to which the criterion applies: observed and missing."""
        return self.observed + self.missing

    @property
    def width(self) -> float:
        """The largest possible difference."""
        return self.value_range[1] - self.value_range[0]

    @property
    def estimate(self) -> float | None:
        """The mean difference, over groups where there are any; None without an observed pair."""
        from math import fsum

        if self.groups is not None:
            return self.groups.estimate

        return fsum(self.values) / len(self.values) if self.values else None

    def bounded(self, level: float, method: str | None = None) -> Difference:
        """The same with an interval.

        Args:
            level: two-sided confidence, strictly between 0 and 1.
            method: as a policy names it; None for the default.
        """
        return replace(self, interval=self._interval(level, method) if self.values else None)

    def resolved(self, value: float) -> Difference:
        """The same as if every missing pair had this difference (-1, 0 or 1 for verdicts)."""
        unknown = ("",) * self.missing
        return replace(
            self,
            values=self.values + (value,) * self.missing,
            gained=self.gained + (unknown if value > 0 else ()),
            lost=self.lost + (unknown if value < 0 else ()),
            missing=0,
        )

    def _interval(self, level: float, method: str | None) -> Interval | None:
        if self.groups is not None:
            found = self.groups.interval(level, (-self.width, self.width))
            return found and replace(found, method=MIXTURE)
        if method == "exact_paired":
            counts = len(self.gained), len(self.lost), self.observed
            return exact_paired(*counts, missing=self.missing, level=level)
        return paired_mixture(self.values, self.missing, level, (-self.width, self.width))


def difference(
    criterion: str,
    kind: Literal["verdict", "score"],
    value_range: tuple[float, float],
    pairs: Mapping[str, OutcomePair],
    keys: Mapping[str, GroupKey] | None = None,
    samples: int = 1,
) -> Difference:
    """Pair the outcomes of a criterion; without an interval.

    A pair is excluded if either side is, else missing if either side is, else observed. The
    reason is the candidate's where both sides have one.

    Args:
        criterion, kind, value_range: of the evaluator.
        pairs: case id → both outcomes.
        keys: case id → its group, where cases belong together.
        samples: of a case, in the run that has more of them.
    """
    values: list[float] = []
    gained: list[str] = []
    lost: list[str] = []
    missing: Counter[str] = Counter()
    excluded: Counter[str] = Counter()
    eligible: dict[str, float | None] = {}
    for case_id, pair in pairs.items():
        if any(one.status == "excluded" for one in pair):
            excluded[_reason(pair, "excluded")] += 1
        elif any(one.value is None for one in pair):
            missing[_reason(pair, "missing")] += 1
            eligible[case_id] = None
        else:
            change = (pair[0].value or 0.0) - (pair[1].value or 0.0)
            values.append(change)
            eligible[case_id] = change
            if kind == "verdict" and change:
                (gained if change > 0 else lost).append(case_id)
    return Difference(
        criterion=criterion,
        kind=kind,
        value_range=value_range,
        values=tuple(values),
        gained=tuple(gained),
        lost=tuple(lost),
        missing=missing.total(),
        excluded=excluded.total(),
        missing_reasons=dict(sorted(missing.items())),
        excluded_reasons=dict(sorted(excluded.items())),
        groups=_grouped(eligible, keys, value_range[1] - value_range[0]) if keys else None,
        samples=samples,
    )


def _grouped(
    eligible: Mapping[str, float | None], keys: Mapping[str, GroupKey], width: float
) -> GroupValues:
    members = [keys[case_id] for case_id in eligible]
    return group_values(list(eligible.values()), members, (-width, width))


def _reason(pair: Sequence[Outcome], status: str) -> str:
    return next(one.reason or "" for one in pair if one.status == status)
