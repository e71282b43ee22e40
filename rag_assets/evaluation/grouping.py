"""Cases that belong together count once: a group has one value, and intervals are over groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_assets.statistics import Interval, bounded_mean

GroupKey = tuple[str, str]
"""("group", its name), or ("case", its id) for a case that is its own group."""


@dataclass(frozen=True, slots=True)
class GroupValues:
    """One value for each group that the metric applies to.

    Attributes:
        observed: means over the observed cases, of the groups that have any.
        lowest, highest: means over the eligible cases, the missing ones at the end of the range.
    """

    observed: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]

    @property
    def estimate(self) -> float | None:
        """The mean over groups; None where nothing was observed."""
        return math.fsum(self.observed) / len(self.observed) if self.observed else None

    def interval(
        self, level: float, value_range: tuple[float, float], method: str | None = None
    ) -> Interval | None:
        """The interval of the mean over groups; None where nothing was observed.

        Args:
            level: two-sided confidence, strictly between 0 and 1.
            value_range: lowest and highest value of a case.
            method: as a policy names it; None for the default.
        """
        if not self.observed:
            return None
        name = "convex" if method == "bounded_mean_convex" else "mixture"
        below, above = (
            bounded_mean(values, 0, level, value_range, name)  # type: ignore[arg-type]
            for values in (self.lowest, self.highest)
        )
        return Interval(
            estimate=self.estimate,
            lower=below.lower,
            upper=above.upper,
            method=below.method,
            level=level,
            observed=len(self.observed),
            missing=len(self.lowest) - len(self.observed),
        )


def group_keys(cases: Iterable[tuple[str, str | None]]) -> tuple[GroupKey, ...] | None:
    """The group of each case; None when every group has one case, so that nothing changes.

    Args:
        cases: (id, group or None) of each case.
    """
    keys = tuple(
        ("case", case_id) if group is None else ("group", group) for case_id, group in cases
    )
    return None if len(set(keys)) == len(keys) else keys


def group_values(
    values: Sequence[float | None], keys: Sequence[GroupKey], value_range: tuple[float, float]
) -> GroupValues:
    """One value for each group.

    Args:
        values: of the eligible cases; None for a missing one.
        keys: the group of each of them.
        value_range: lowest and highest value of a case.
    """
    members: dict[GroupKey, list[float | None]] = {}
    for value, key in zip(values, keys, strict=True):
        members.setdefault(key, []).append(value)
    known = [[one for one in group if one is not None] for group in members.values()]
    low, high = value_range
    return GroupValues(
        observed=tuple(_mean(group) for group in known if group),
        lowest=tuple(_mean(_filled(group, low)) for group in members.values()),
        highest=tuple(_mean(_filled(group, high)) for group in members.values()),
    )


def _filled(group: Sequence[float | None], end: float) -> list[float]:
    return [end if one is None else one for one in group]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
