"""The certified search behind the exact paired limit.

For a table, with R the tables at least as favourable, the lower limit is the smallest q − r with
P(R; q, r) > ceiling among the shares (q gained, r lost) of a box. A difference d is refuted when
P stays within the ceiling on the whole line q − r = d of the box: P rises with q and falls with
r, so every smaller difference is then refuted too.

A line is refuted cell by cell, without a gap. For q in [q1, q2] either bound is enough:

* corner: P ≤ P(q2, q1 − d), because P rises with q and falls with r;
* curvature: √P ≤ k + √(k² + G), with G the larger P of both ends. Along the line the second
  derivative of P is at most √P · √(2n(n − 1)) · J (Cauchy-Schwarz on the second derivative of
  the likelihood ratio, whose variance is exact), where J = 1/q1 + 1/r1 + 4/(1 − q2 − r2) bounds
  the information of one pair, and k = √(2n(n − 1)) · J · (q2 − q1)² / 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.statistics.tango import ordering_value
from rag_assets.statistics.trinomial import Region, probabilities, region_of

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Part of a tail that is spent on the limits of the box.
NUISANCE = 0.001
# The search stops this close to the limit: as a part of estimate − limit, or absolutely.
RELATIVE_STEP = 1e-4
SMALLEST_STEP = 1e-6
# Cells that a line is first cut into, and how often they are halved. A line that is undecided
# then counts as not refuted, which is safe.
CELLS = 16
HALVINGS = 40
# Points of one section of a bracket, and sections; together they resolve 1 in 65,536.
POINTS = 17
SECTIONS = 4
_TINY = 1e-30


@dataclass(frozen=True, slots=True)
class Table:
    """An observed table with everything that its lower limit depends on.

    Attributes:
        estimate: observed difference.
        ordering: Tango's lower limit, by which the tables are ordered.
        least_gained: lower limit of the share gained, one side of the box.
        most_lost: upper limit of the share lost, the other side.
        ceiling: probability of the region above which shares are not refuted.
        region: the tables that are at least as favourable.
    """

    estimate: float
    ordering: float
    least_gained: float
    most_lost: float
    ceiling: float
    region: Region

    @property
    def smallest_difference(self) -> float:
        """The smallest q − r in the box."""
        return self.least_gained - min(self.most_lost, 1 - self.least_gained)

    def line(self, difference: float) -> tuple[float, float]:
        """The smallest and the largest share gained on the line q − r = difference."""
        low = max(self.least_gained, difference)
        return low, max(low, min(self.most_lost + difference, (1 + difference) / 2))


def table_of(gained: int, lost: int, pairs: int, tail: float) -> Table:
    """Prepare the search for one table.

    Args:
        gained: pairs that only the candidate passes.
        lost: pairs that only the baseline passes, fewer than `pairs`.
        pairs: all pairs.
        tail: allowed probability that the limit is above the true difference.
    """
    from scipy.special import betaincinv, ndtri

    z = -float(ndtri(tail))
    estimate = (gained - lost) / pairs
    ordering = ordering_value(gained, lost, pairs, z)
    side = tail * NUISANCE / 2
    least = float(betaincinv(gained, pairs - gained + 1, side)) if gained else 0.0
    most = float(betaincinv(lost + 1, pairs - lost, 1 - side))
    return Table(
        estimate=estimate,
        ordering=ordering,
        least_gained=least,
        most_lost=most,
        ceiling=tail * (1 - NUISANCE),
        region=region_of(pairs, ordering, z, (least, min(most + estimate, (1 + estimate) / 2))),
    )


def lower_limit(table: Table) -> float:
    """A refuted difference, at most one step below the exact limit."""
    step = max(SMALLEST_STEP, RELATIVE_STEP * (table.estimate - table.ordering))
    limit = table.estimate
    while (q := find_witness(table, limit - step)) is not None:
        limit = _descend(table, q, limit - step)
    return max(limit - step, -1.0)


def reaches(gained: int, lost: int, pairs: int, difference: float, tail: float) -> bool:
    """Whether the lower limit of a table is certainly not below a difference.

    Args:
        gained: pairs that only the candidate passes.
        lost: pairs that only the baseline passes.
        pairs: all pairs.
        difference: what the limit is compared with.
        tail: allowed probability that the limit is above the true difference.
    """
    if lost == pairs or (gained - lost) / pairs < difference:
        return False
    return find_witness(table_of(gained, lost, pairs, tail), difference) is None


def find_witness(table: Table, difference: float) -> float | None:
    """A share gained that is not refuted on the line q − r = difference.

    Returns:
        A share where P is above the ceiling, or could not be bounded; None where the whole line
        is refuted.
    """
    import numpy as np

    if difference < table.smallest_difference:
        return None
    q = np.linspace(*table.line(difference), CELLS + 1)
    p = probabilities(table.region, q, q - difference)
    left, right, p_left, p_right = q[:-1], q[1:], p[:-1], p[1:]
    for _ in range(HALVINGS):
        if p.max() > table.ceiling:
            return float(q[p.argmax()])
        k = _curvature(table, left, right, difference)
        curvature = (k + np.sqrt(k**2 + np.maximum(p_left, p_right))) ** 2
        open_ = np.flatnonzero(curvature > table.ceiling)
        corner = probabilities(table.region, right[open_], left[open_] - difference)
        open_ = open_[corner > table.ceiling]
        if not len(open_):
            return None
        left, right, p_left, p_right = left[open_], right[open_], p_left[open_], p_right[open_]
        q = (left + right) / 2
        p = probabilities(table.region, q, q - difference)
        left, right = np.append(left, q), np.append(q, right)
        p_left, p_right = np.append(p_left, p), np.append(p, p_right)
    return float(left[0])


def _curvature(
    table: Table, left: NDArray[float64], right: NDArray[float64], difference: float
) -> NDArray[float64]:
    """The k of the curvature bound, for cells of a line."""
    import numpy as np

    n = table.region.pairs
    information = (
        1 / np.maximum(left, _TINY)
        + 1 / np.maximum(left - difference, _TINY)
        + 4 / np.maximum(1 - 2 * right + difference, _TINY)
    )
    k: NDArray[float64] = math.sqrt(2 * n * (n - 1)) / 16 * information * (right - left) ** 2
    return k


def _descend(table: Table, q: float, difference: float) -> float:
    """The smallest difference that is not refuted at the place of a share on its line.

    The place is the share's relative distance from the ends of the line. From line to line the
    share gained falls and the share lost rises as the difference falls, so P falls too.
    """
    import numpy as np

    ends = table.line(difference)
    place = (q - ends[0]) / (ends[1] - ends[0]) if ends[0] < ends[1] else 0.0
    high, low = difference, table.smallest_difference
    for _ in range(SECTIONS):
        differences = np.linspace(high, low, POINTS)
        lines = np.array([table.line(float(d)) for d in differences])
        shares = lines[:, 0] + place * (lines[:, 1] - lines[:, 0])
        above = probabilities(table.region, shares, shares - differences) > table.ceiling
        if above.all():
            return low
        last = max(int(above.sum()) - 1, 0)
        high, low = float(differences[last]), float(differences[last + 1])
    return high
