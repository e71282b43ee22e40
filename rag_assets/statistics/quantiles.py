"""Interval for a quantile of an operational metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from rag_assets.statistics.arguments import check_count, check_share
from rag_assets.statistics.binomial import least_counts
from rag_assets.statistics.interval import Interval

METHOD = "order_statistic_quantile@1"
# A tail this close to its limit counts as too large, so that rounding never narrows.
TIE = 1e-9


def order_statistic_quantile(
    values: Sequence[float], q: float, missing: int = 0, level: float = 0.95
) -> Interval:
    """Interval for a quantile between two of the observed values, whatever their distribution.

    The number of values at or below a quantile is binomial, which gives the ranks of the bounds
    (H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1).

    Valid for independent values of one distribution, with ties and at every number of cases.
    Time is that of sorting the values.

    Args:
        values: one value per observed case, in any order.
        q: the share of cases at or below the quantile, strictly between 0 and 1.
        missing: number of eligible cases without a value; they could lie anywhere.
        level: two-sided confidence, strictly between 0 and 1.

    Returns:
        Observed values; None where too few cases are known for a bound. The estimate is the
        smallest observed value with at least the share `q` at or below it.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    check_share("q", q)
    check_count("missing", missing)
    check_share("level", level)
    ordered = sorted(float(value) for value in values)
    if not all(math.isfinite(value) for value in ordered):
        raise ValueError("values must be finite numbers.")
    observed = len(ordered)
    estimate = lower = upper = None
    if observed:
        # The rank uses the decimal number that was written: 0.95 · 20 is 19 and not a bit more.
        estimate = ordered[math.ceil(Fraction(repr(float(q))) * observed) - 1]
        below, above = _ranks(observed + missing, q, (1 - level) / 2)
        # Missing values are below all others for the lower bound, above them for the upper one.
        if below > missing:
            lower = ordered[below - missing - 1]
        if above <= observed:
            upper = ordered[above - 1]
    return Interval(estimate, lower, upper, METHOD, level, observed, missing)


def _ranks(cases: int, q: float, tail: float) -> tuple[int, int]:
    """The largest rank for the lower bound (0: none) and the smallest for the upper one."""
    import numpy as np
    from scipy.special import bdtr, bdtrc

    allowed = tail * (1 - TIE)
    below = least_counts(lambda k: bdtr(k, cases, q) > allowed, np.array(cases))
    above = least_counts(lambda k: bdtrc(k - 1, cases, q) <= allowed, np.array(cases + 1))
    return int(below), int(above)
