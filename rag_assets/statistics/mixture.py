"""The mixture bound: how much a gambler who bets against a mean would have won.

Against the claim that values in [0, 1] have the mean m, a bet of the share f on each value turns
1 into Π(1 − f + f·y/m). No bet is expected to win while the mean is at most m, so a capital of
1/t or more has a probability of at most t (J. Ville, 1939). Splitting the capital evenly over
twenty shares f = 1/21 … 20/21 makes one bet that serves for every sample; the lower bound is the
largest m that this bet refutes. The bound does not depend on the order of the cases.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

BETS = 20
# The logarithm of the capital must exceed its target by this much: rounding refutes nothing.
GUARD = 1e-9
# A bound below this one is given as 0, before the capital leaves the range of a float.
SMALLEST_BOUND = 1e-300
# Distinct values per step: few enough for their gains to stay in the cache of a core.
BLOCK = 512


def mixture_lower(shares: NDArray[float64], missing: int, tail: float) -> float:
    """Lower confidence bound for the mean of values between 0 and 1.

    Args:
        shares: the observed values, each between 0 and 1.
        missing: number of further values that are not known, counted as 0.
        tail: allowed probability that the bound is above the mean, between 0 and 0.5.

    Returns:
        The largest mean whose capital reaches 1/tail; it is below the mean of all values.
    """
    import numpy as np

    values, repeats = np.unique(np.append(shares, np.zeros(missing)), return_counts=True)
    counts = repeats.astype(np.float64)
    mean = float((values * counts).sum() / counts.sum())
    if mean < SMALLEST_BOUND:
        return 0.0
    target = GUARD - math.log(tail)
    limit = -math.log(SMALLEST_BOUND)

    def newton(x: float) -> float:
        height, slope = log_capital(values, counts, math.exp(-x))
        return min(x - (height - target) / slope, limit)

    # ln(capital) is a convex, rising function of x = −ln(m), and at most 0 at the sample mean.
    # So the first step from there passes the root, and the others fall towards it from means
    # that are refuted: stopping early would be safe. It takes about six steps.
    x = newton(-math.log(mean))
    while (following := newton(x)) < x:
        x = following
    return math.exp(-x) if x < limit else 0.0


def log_capital(
    values: NDArray[float64], counts: NDArray[float64], mean: float
) -> tuple[float, float]:
    """ln(capital) against a mean, and its slope over −ln(mean).

    Args:
        values: distinct values between 0 and 1.
        counts: how often each of them was observed.
        mean: the mean that is bet against, above 0.
    """
    import numpy as np

    bets = np.arange(1, BETS + 1) / (BETS + 1)
    logs, inverses = np.zeros(BETS), np.zeros(BETS)
    for start in range(0, len(values), BLOCK):
        block = slice(start, start + BLOCK)
        gains = np.multiply.outer(bets, values[block] / mean) + (1 - bets)[:, None]
        # einsum adds in the same order on every number of cores; a matrix product need not.
        logs += np.einsum("bv,v->b", np.log(gains), counts[block])
        inverses += np.einsum("bv,v->b", 1 / gains, counts[block])
    # d ln(gain) / d(−ln m) = bet · (y/m) / gain = 1 − (1 − bet) / gain
    slopes = counts.sum() - (1 - bets) * inverses
    largest = logs.max()
    weights = np.exp(logs - largest)
    height = largest + math.log(weights.mean())
    return float(height), float((weights * slopes).sum() / weights.sum())
