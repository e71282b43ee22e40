"""A sharper use of the mixture capital for small samples.

The capital C of `mixture` is linear in each value. So the expectation of any convex function of
it is largest when all values are 0 or 1, where k ones give the capital M(k) and k is binomial
(V. Bentkus, Annals of Probability 32, 2004). With f_j the bets and w the weight of each, for
every count k with M(k) below the capital x that was reached

    P(C ≥ x) ≤ (Σ_j w·P(Bin(n, m + f_j(1 − m)) > k) − M(k)·P(Bin(n, m) > k)) / (x − M(k)),

and P(C ≥ x) ≤ 1/x, which is the rule of `mixture`: the bound is never wider than that one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rag_assets.statistics.binomial import least_counts
from rag_assets.statistics.mixture import BETS, SMALLEST_BOUND, log_capital, mixture_lower

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

# How far below the largest possible count the other counts lie that are tried.
BELOW = (
    *range(7), *range(8, 17, 2), *range(20, 33, 4), *range(40, 65, 8), 80, 96, 128, 160, 192,
    256, 320, 384, 512, 768, 1024,
)  # fmt: skip
# Capitals this close count as equal: on values of 0 and 1 they are, but for rounding. Leaving
# out a count only widens the interval.
TIE = 1e-9
# The largest logarithm of a capital.
LARGEST = 500.0
# Rounding must not refute a mean.
GUARD = 1e-9
# Means that are scanned between the mixture's bound and the sample mean, and halvings between
# the last that is refuted and the first that is not.
SCANNED = 32
HALVINGS = 40


def convex_lower(shares: NDArray[float64], missing: int, tail: float) -> float:
    """Lower confidence bound for the mean of values between 0 and 1.

    Args:
        shares: the observed values, each between 0 and 1.
        missing: number of further values that are not known, counted as 0.
        tail: allowed probability that the bound is above the mean, between 0 and 0.5.

    Returns:
        A mean up to which all that were looked at are refuted, at least that of `mixture_lower`.
    """
    import numpy as np

    values, repeats = np.unique(np.append(shares, np.zeros(missing)), return_counts=True)
    counts = repeats.astype(np.float64)
    low = mixture_lower(shares, missing, tail)
    high = float((values * counts).sum() / counts.sum())
    if high < SMALLEST_BOUND:
        return low

    def refuted(mean: float) -> bool:
        capital = math.exp(log_capital(values, counts, mean)[0])
        return _chance(capital, len(shares) + missing, mean) <= tail * (1 - GUARD)

    # Nothing is known to make the probability rise with the mean, so the first mean that is not
    # refuted is looked for from below.
    for mean in np.linspace(low, high, SCANNED + 1)[1:]:
        if not refuted(float(mean)):
            high = float(mean)
            break
        low = float(mean)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _chance(capital: float, number: int, mean: float) -> float:
    """Bound for the probability that a mean lets the capital get this high."""
    import numpy as np
    from scipy.special import bdtrc

    bets = np.arange(1, BETS + 1) / (BETS + 1)
    losses, gains = np.log(1 - bets), np.log(1 - bets + bets / mean)

    def extreme(ones: NDArray[intp]) -> NDArray[float64]:
        """M(k), cut off far above any capital that is asked for."""
        logs = np.multiply.outer(number - ones, losses) + np.multiply.outer(ones, gains)
        found: NDArray[float64] = np.exp(np.minimum(logs, LARGEST)).mean(axis=-1)
        return found

    top = int(least_counts(lambda k: extreme(k) >= capital * (1 - TIE), np.array(number + 1))) - 1
    k = top - np.array([below for below in BELOW if below <= top], dtype=np.intp)
    reached = extreme(k)
    tilted = bdtrc(k[:, None], number, mean + bets * (1 - mean)).mean(axis=1)
    bounds = (tilted - reached * bdtrc(k, number, mean)) / (capital - reached)
    return min(1 / capital, float(bounds.min(initial=1.0)))
