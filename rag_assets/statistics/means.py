"""Interval for the mean of a bounded score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from rag_assets.statistics.arguments import check_count, check_share, finite_values
from rag_assets.statistics.convex import convex_lower
from rag_assets.statistics.interval import Interval
from rag_assets.statistics.mixture import mixture_lower

METHODS = {"mixture": "bounded_mean_mixture@1", "convex": "bounded_mean_convex@1"}


def bounded_mean(
    values: Sequence[float],
    missing: int = 0,
    level: float = 0.95,
    value_range: tuple[float, float] = (0.0, 1.0),
    method: Literal["mixture", "convex"] = "mixture",
) -> Interval:
    """Interval for a mean of values whose range is known, valid at every sample size.

    It holds for independent cases and for values with a constant conditional mean. Cases that
    belong together (several questions about one document) need one value for each group. The
    methods and their sources are in `mixture` and `convex`.

    Time grows with the number of distinct values, by some twenty logarithms for each of them and
    step of the search; "mixture" takes about six steps for a bound, "convex" up to 72 more.

    Args:
        values: one value per observed case, in any order.
        missing: number of eligible cases without a value; they count as the lowest value for
            the lower bound and as the highest for the upper one.
        level: two-sided confidence, strictly between 0 and 1.
        value_range: lowest and highest possible value.
        method: "mixture", or "convex" for an interval that is never wider and up to a sixth
            narrower below 50 cases, at some milliseconds more.

    Returns:
        Bounds in the unit of the values; without an observed value there is no interval.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    check_count("missing", missing)
    check_share("level", level)
    if method not in METHODS:
        raise ValueError(f'method must be "mixture" or "convex", not {method!r}.')
    lower_share = convex_lower if method == "convex" else mixture_lower
    array = finite_values("values", values, value_range)
    observed = len(array)
    estimate = lower = upper = None
    if observed:
        low, high = value_range
        shares = (array - low) / (high - low)
        tail = (1 - level) / 2
        estimate = math.fsum(array) / observed
        lower = low + (high - low) * lower_share(shares, missing, tail)
        # The upper bound is the mirrored lower one: 1 − lower(1 − values).
        upper = min(high, low + (high - low) * (1 - lower_share(1 - shares, missing, tail)))
    return Interval(estimate, lower, upper, METHODS[method], level, observed, missing)
