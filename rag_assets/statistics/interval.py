"""What an interval method returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its two-sided confidence interval, unrounded.

    Attributes:
        estimate: the value over the observed cases, or None where nothing was observed.
        lower: lower bound in the unit of the estimate, or None where there is no bound.
        upper: upper bound, likewise.
        method: name and definition version of the method ("clopper_pearson@1").
        level: two-sided confidence, strictly between 0 and 1.
        observed: number of observed cases (or pairs).
        missing: number of missing cases (or pairs), which the bounds count at their worst.
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    method: str
    level: float
    observed: int
    missing: int
