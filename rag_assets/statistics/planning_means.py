"""How many cases a mean of a bounded score needs before a rule can be decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_assets.statistics.arguments import check_share, finite_values
from rag_assets.statistics.mixture import BETS, GUARD
from rag_assets.statistics.planning import SIZES, Sizes, lasting_sizes

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Standard deviations that are looked at, and halvings between them.
FARTHEST = 12.0
HALVINGS = 40


def cases_for_mean(
    values: Sequence[float],
    floor: float,
    level: float = 0.95,
    value_range: tuple[float, float] = (0.0, 1.0),
) -> Sizes:
    """About how many cases it takes until the lower bound of a mean reaches a floor.

    The interval is `bounded_mean` by its mixture method, or `paired_mixture` with the range of
    the differences. A ceiling is a floor for the mirrored values.

    Future cases are assumed to be drawn from the observed values. The logarithm of each bet's
    capital is then a sum of independent terms, taken here as normal (the central limit theorem),
    and one normal deviate moves all bets, because all of them gain on the same high values. So
    the sizes are approximate; they are exact where all values are equal. Time grows with the
    number of values once, and does not depend on it beyond that.

    Args:
        values: one value per observed case, in any order, at least one.
        floor: the bound that must be reached, strictly inside the range.
        level: two-sided confidence of the interval, strictly between 0 and 1.
        value_range: lowest and highest possible value.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    import numpy as np
    from scipy.special import ndtr

    check_share("level", level)
    low, high = value_range
    shares = (finite_values("values", values, value_range) - low) / (high - low)
    if not len(shares):
        raise ValueError("values must hold at least one value.")
    if not low < floor < high:
        raise ValueError(f"floor must lie strictly between {low} and {high}, not {floor}.")
    means, deviations = _moments(shares, (floor - low) / (high - low))
    target = GUARD - math.log((1 - level) / 2)
    sizes = np.array(SIZES)[:, None]

    # The least deviate with which the capital reaches its target, for each size.
    below, above = np.full(len(SIZES), -FARTHEST), np.full(len(SIZES), FARTHEST)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        logs = sizes * means + np.sqrt(sizes) * deviations * middle[:, None]
        largest = logs.max(axis=1)
        reached = largest + np.log(np.exp(logs - largest[:, None]).mean(axis=1)) >= target
        below, above = np.where(reached, below, middle), np.where(reached, middle, above)
    chances = np.where(above < FARTHEST, ndtr(-above), 0.0)
    return lasting_sizes(chances)


def _moments(shares: NDArray[float64], mean: float) -> tuple[NDArray[float64], NDArray[float64]]:
    """Mean and standard deviation of each bet's logarithmic gain on one case."""
    import numpy as np

    values, counts = np.unique(shares, return_counts=True)
    bets = np.arange(1, BETS + 1)[:, None] / (BETS + 1)
    gains = np.log(1 - bets + bets * values / mean)
    weights = counts / counts.sum()
    means = (gains * weights).sum(axis=1)
    squares = ((gains - means[:, None]) ** 2 * weights).sum(axis=1)
    return means, np.sqrt(squares)
