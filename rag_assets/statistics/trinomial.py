"""Probability that a table is at least as favourable as an observed one.

With q the share gained and r the share lost, (gained, lost) of n pairs is trinomial. The tables
that are at least as favourable form a region: for each number gained, all numbers lost up to a
limit. Its probability rises with q and falls with r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.statistics.binomial import LEFT_OUT, least_counts, ln_ways, reach
from rag_assets.statistics.tango import statistic

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

# Tables whose statistic is this close to that of the observed one count as equally favourable.
TIE = 1e-9
# Elements per matrix: a block stays in the cache of a core.
BLOCK = 1 << 15
# The logarithm of a probability that is nothing beside any other; finite, to be multiplied.
NOTHING = -1e6
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Region:
    """The tables that are at least as favourable as the observed one, ready to be summed.

    The share of `lost` within its limit, F(b), changes from b − 1 to b gained by single binomial
    probabilities (one pair fewer is left, and the limit may rise), all of them positive. These
    are the steps: F is their running sum.

    Attributes:
        pairs: n.
        first_gained: the first of the consecutive numbers gained that are summed over.
        first_limit: the largest number lost at the first of them, -1 for none.
        gains: for each number gained (columns), what ln q, ln(1 − q) and 1 are multiplied by in
            the logarithm of its probability.
        steps: for each step (columns), what ln p, ln(1 − p) and 1 are multiplied by, with p the
            share lost among the pairs not gained.
        ends: for each number gained, the index of the last step up to it.
    """

    pairs: int
    first_gained: int
    first_limit: int
    gains: NDArray[float64]
    steps: NDArray[float64]
    ends: NDArray[intp]


def region_of(pairs: int, ordering: float, z: float, shares: tuple[float, float]) -> Region:
    """The region of all tables whose statistic at `ordering` is at least z.

    Args:
        pairs: number of pairs.
        ordering: Tango's lower limit of the observed table.
        z: upper normal quantile of one tail.
        shares: lowest and highest share gained for which probabilities will be asked.
    """
    import numpy as np

    first, last = reach(pairs, shares[0])[0], reach(pairs, shares[1])[1]
    gained = np.arange(first, last + 1)
    limits = _limits(gained, pairs, ordering, z)
    # Each further number gained adds one step for the pair that is no longer left, which is
    # multiplied by p once more, and one for each number lost by which the limit rises. The
    # first number gained has a step of its own, and that is nothing.
    counts = 1 + np.diff(limits, prepend=limits[0])
    ends = np.cumsum(counts) - 1
    place = np.arange(ends[-1] + 1) - np.repeat(ends + 1 - counts, counts)
    left = np.repeat(pairs - gained, counts)
    lost = np.repeat(np.append(limits[0], limits[:-1]), counts) + place
    nothing = (lost < 0) | (lost > left)
    nothing[0] = True
    lost = np.clip(lost, 0, left)
    ways = np.where(nothing, NOTHING, ln_ways(left, lost))
    return Region(
        pairs=pairs,
        first_gained=first,
        first_limit=int(limits[0]),
        gains=np.stack((gained, pairs - gained, ln_ways(pairs, gained))).astype(np.float64),
        steps=np.stack((lost + (place == 0), left - lost, ways)).astype(np.float64),
        ends=ends,
    )


def probabilities(region: Region, q: NDArray[float64], r: NDArray[float64]) -> NDArray[float64]:
    """Probability of the region for each pair of shares, or up to 2e-9 more.

    Args:
        region: what to sum over.
        q: shares gained, inside the range that the region was made for.
        r: shares lost, with q + r at most 1.
    """
    import numpy as np

    rows = max(1, BLOCK // region.steps.shape[1])
    found = np.empty(len(q))
    for start in range(0, len(q), rows):
        block = slice(start, start + rows)
        found[block] = _probabilities(region, q[block], r[block])
    return found


def _probabilities(region: Region, q: NDArray[float64], r: NDArray[float64]) -> NDArray[float64]:
    import numpy as np

    rest = np.maximum(1 - q, _TINY)
    share = np.minimum(r / rest, 1.0)
    ln_share = np.log(np.maximum(share, _TINY))
    ln_other = np.log(np.maximum((1 - q - r) / rest, _TINY))
    one = np.ones_like(q)
    steps = np.stack((ln_share, ln_other, one), axis=1) @ region.steps
    np.exp(steps, out=steps)
    within = np.cumsum(steps, axis=1)[:, region.ends]
    within += _first_share(region, share)[:, None]
    ln_q = np.log(np.maximum(q, _TINY))
    chances = np.stack((ln_q, np.log(rest), one), axis=1) @ region.gains
    np.exp(chances, out=chances)
    total: NDArray[float64] = np.einsum("qb,qb->q", chances, within)
    # What was left out is added back: a sum is never too small.
    return total + LEFT_OUT


def _first_share(region: Region, share: NDArray[float64]) -> NDArray[float64]:
    """Probability that the number lost is within its limit at the first number gained."""
    import numpy as np
    from scipy.special import betainc

    left = region.pairs - region.first_gained
    if region.first_limit < 0:
        return np.zeros_like(share)
    if region.first_limit >= left:
        return np.ones_like(share)
    found: NDArray[float64] = betainc(left - region.first_limit, region.first_limit + 1, 1 - share)
    return found


def _limits(gained: NDArray[intp], pairs: int, ordering: float, z: float) -> NDArray[intp]:
    """For each number gained the largest number lost in the region, -1 for none."""
    import numpy as np

    # Beyond these the statistic would not be positive.
    positive = np.floor(gained - pairs * ordering).astype(np.intp)
    beyond = np.maximum(np.minimum(pairs - gained, positive), -1) + 1
    limits = -1 + least_counts(
        lambda lost: statistic(gained, lost, pairs, ordering) < z - TIE, beyond
    )
    # Where every number lost is inside, a limit beyond the pairs that are left says the same,
    # and limits that never fall need no steps back.
    return np.maximum.accumulate(limits)
