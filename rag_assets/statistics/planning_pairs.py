"""How many pairs a comparison of verdicts needs before a rule can be decided.

With q the share gained and r the share lost, the chance to pass at n pairs is the sum over the
number lost c of Bin(n, r)(c) · P(at least b(c) gained of the n − c others), where b(c) is the
fewest gained whose lower bound stays within the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from rag_assets.statistics.arguments import check_count, check_share
from rag_assets.statistics.binomial import least_counts, ln_ways, reach
from rag_assets.statistics.exact_search import reaches
from rag_assets.statistics.mixture import BETS, GUARD
from rag_assets.statistics.planning import Sizes, search_sizes
from rag_assets.statistics.tango import statistic

if TYPE_CHECKING:
    from numpy import bool_, intp
    from numpy.typing import NDArray

Method = Literal["paired_mixture", "exact_paired"]
# From so many pairs on, the exact method is taken to need at most so many gains more or fewer than
# Tango's limit (levels from 0.8 to 0.999). It was never more than two in 100,000 tables of 100
# pairs and more. From 1,000 on it was more than one in 1 of 500 tables, which moves a probability
# by less than a ten-thousandth. Below, anything is thought possible.
SLACKS = ((1000, 1), (100, 3))
# Parts in which the exact numbers are looked up, until the rest cannot change the answer.
PARTS = 10
# Quantiles that an integral is taken over.
QUANTILES = 2000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is assumed of the pairs, and asked of the interval.

    Attributes:
        gain: share of pairs that only the candidate passes.
        loss: share of pairs that only the baseline passes.
        margin: the lower bound must not be below minus this.
        tail: allowed probability that the lower bound is above the true difference.
        equivalence: the upper bound must not be above the margin either.
    """

    gain: float
    loss: float
    margin: float
    tail: float
    equivalence: bool

    def losses(self, pairs: int) -> NDArray[intp]:
        """The numbers lost that have a chance; for equivalence also the numbers gained."""
        import numpy as np

        first, last = reach(pairs, self.loss)
        if self.equivalence:
            low, high = reach(pairs, self.gain)
            first, last = min(first, low), max(last, high)
        return np.arange(first, last + 1)

    def chance(self, pairs: int, lost: NDArray[intp], fewest: NDArray[intp]) -> float:
        """Probability to pass, given the fewest gained that pass at each number lost."""
        import numpy as np
        from scipy.special import bdtrc, xlog1py, xlogy

        left = pairs - lost
        weights = np.exp(ln_ways(pairs, lost) + xlogy(lost, self.loss) + xlog1py(left, -self.loss))
        share = min(1.0, self.gain / (1 - self.loss)) if self.loss < 1 else 0.0
        at_least = np.clip(fewest, 0, left + 1)
        at_most = left
        if self.equivalence:
            # Mirrored: b gained and c lost stay below when c gained and b lost stay above.
            at_most = np.minimum(left, lost[0] - 1 + np.searchsorted(fewest, lost, side="right"))
        within = bdtrc(at_least - 1, left, share) - bdtrc(at_most, left, share)
        return float((weights * np.maximum(within, 0.0)).sum())


def pairs_for_margin(
    gain: float,
    loss: float,
    margin: float,
    method: Method = "paired_mixture",
    level: float = 0.95,
    *,
    equivalence: bool = False,
) -> Sizes:
    """Pairs until the lower bound of a paired difference of verdicts is within a margin.

    Superiority has the margin 0. Where an increase is the harm, exchange `gain` and `loss`.

    Exact for independent pairs that follow the assumed shares, which are taken as known. Asks for
    some dozens of sizes. At each, time grows with the √pairs numbers lost that have a chance; for
    "exact_paired" some of them take a certified search each, which can take seconds together.

    Args:
        gain: assumed share of future pairs that only the candidate passes.
        loss: assumed share that only the baseline passes; both together at most 1.
        margin: the loss that is tolerated, as a difference of rates, strictly between -1 and 1;
            below 0 it is a gain that must be exceeded, which plans for failing a margin when
            `gain` and `loss` are exchanged.
        method: the interval that decides.
        level: two-sided confidence of the interval, strictly between 0 and 1.
        equivalence: the upper bound must be within the margin too.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    check_share("level", level)
    if not (gain >= 0.0 and loss >= 0.0 and gain + loss <= 1.0):
        raise ValueError(f"gain and loss must be shares of one whole, not {gain} and {loss}.")
    if not -1.0 < margin < 1.0:
        raise ValueError(f"margin must be strictly between -1 and 1, not {margin}.")
    plan = Plan(gain, loss, margin, (1 - level) / 2, equivalence)
    if method == "paired_mixture":
        return search_sizes(_passes_by_mixture(plan))
    if method == "exact_paired":
        return search_sizes(_passes_exactly(plan))
    raise ValueError(f'method must be "paired_mixture" or "exact_paired", not {method!r}.')


def chance_of_margin(gained: int, lost: int, pairs: int, margin: float) -> float:
    """How probable it is, after a sample, that the true difference is above minus a margin.

    The shares gained, lost and unchanged have the posterior of H. Jeffreys' prior, a Dirichlet
    distribution with the counts plus one half. To be shown beside a plan for fewer than about 100
    pairs, which takes the observed shares for the true ones. The integral over the share lost is
    a mean over its quantiles.

    Args:
        gained: observed pairs that only the candidate passes.
        lost: observed pairs that only the baseline passes.
        pairs: all observed pairs.
        margin: the loss that is tolerated, at least 0 and below 1.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    import numpy as np
    from scipy.special import betaincc, betaincinv

    check_count("gained", gained, at_most=("pairs", pairs))
    check_count("lost", lost, at_most=("pairs less gained", pairs - gained))
    if not 0.0 <= margin < 1.0:
        raise ValueError(f"margin must be at least 0 and below 1, not {margin}.")
    gain, loss, tie = gained + 0.5, lost + 0.5, pairs - gained - lost + 0.5
    quantiles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    lost_share = betaincinv(loss, gain + tie, quantiles)
    # Of what is not lost, this part must be gained.
    needed = np.clip((lost_share - margin) / (1 - lost_share), 0.0, 1.0)
    return float(betaincc(gain, tie, needed).mean())


def _passes_by_mixture(plan: Plan) -> Callable[[int, float], bool]:
    @cache
    def chance(pairs: int) -> float:
        lost = plan.losses(pairs)
        return plan.chance(pairs, lost, fewest_by_mixture(plan, pairs, lost))

    return lambda pairs, assurance: chance(pairs) >= assurance


def fewest_by_mixture(plan: Plan, pairs: int, lost: NDArray[intp]) -> NDArray[intp]:
    """Fewest gained of `paired_mixture`, pairs − lost + 1 where no number is enough."""
    import numpy as np

    # Differences of -1, 0 and 1 are values of 0, ½ and 1, and the margin is this mean.
    mean = (1 - plan.margin) / 2
    bets = np.arange(1, BETS + 1)[:, None] / (BETS + 1)
    loss, tie, gain = (np.log(1 - bets + bets * value / mean) for value in (0.0, 0.5, 1.0))
    target = GUARD - math.log(plan.tail) + math.log(BETS)

    def refuted(gained: NDArray[intp]) -> NDArray[bool_]:
        logs = gained * gain + lost * loss + (pairs - gained - lost) * tie
        largest = logs.max(axis=0)
        found: NDArray[bool_] = largest + np.log(np.exp(logs - largest).sum(axis=0)) >= target
        return found

    return least_counts(refuted, pairs - lost + 1)


def _passes_exactly(plan: Plan) -> Callable[[int, float], bool]:
    """Exact numbers are costly, so they are looked up from the likeliest on, as far as needed."""
    import numpy as np
    from scipy.special import ndtri

    z = -float(ndtri(plan.tail))

    @cache
    def exact(pairs: int, lost: int, guess: int) -> int:
        return fewest_exactly(plan, pairs, lost, guess)

    def passes(pairs: int, assurance: float) -> bool:
        lost = plan.losses(pairs)
        guesses = least_counts(
            lambda gained: statistic(gained, lost, pairs, -plan.margin) >= z, pairs - lost + 1
        )
        slack = next((slack for large, slack in SLACKS if pairs >= large), pairs + 1)
        most, least = guesses + slack, guesses - slack
        far = np.abs(lost - pairs * plan.loss)
        if plan.equivalence:
            far = np.minimum(far, np.abs(lost - pairs * plan.gain))
        for part in np.array_split(np.argsort(far, kind="stable"), PARTS):
            # The fewest gained never fall with the number lost, which makes up for any gap.
            if plan.chance(pairs, lost, np.maximum.accumulate(most)) >= assurance:
                return True
            if plan.chance(pairs, lost, np.maximum.accumulate(least)) < assurance:
                return False
            for place in part.tolist():
                found = exact(pairs, int(lost[place]), int(guesses[place]))
                most[place] = least[place] = found
        return plan.chance(pairs, lost, most) >= assurance

    return passes


def fewest_exactly(plan: Plan, pairs: int, lost: int, guess: int) -> int:
    """Fewest gained of `exact_paired`, pairs − lost + 1 where no number is enough."""

    def enough(gained: int) -> bool:
        return reaches(gained, lost, pairs, -plan.margin, plan.tail)

    gained = min(guess, pairs - lost)
    if enough(gained):
        while gained > 0 and enough(gained - 1):
            gained -= 1
        return gained
    while gained <= pairs - lost and not enough(gained):
        gained += 1
    return gained
