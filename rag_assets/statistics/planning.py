"""How many cases a run needs before a rule can be decided.

A size is worth planning for when the rule passes there with the wanted probability, computed
exactly under assumed shares, and still does at every size up to a quarter more: exact methods
make that probability rise in a saw-tooth.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.statistics.arguments import check_count, check_share
from rag_assets.statistics.binomial import least_counts

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

# The sizes that are looked at, and how far beyond a size the rule must keep passing.
SIZES = (*range(1, 300), *range(300, 1000, 5), *range(1000, 10_001, 50))
SPAN = 1.25
ASSURANCES = (0.5, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of cases at which a rule passes in 50, 80 and 90 % of such samples.

    Attributes:
        at_50: the number for 50 %, or None where there is none up to 10,000.
        at_80: the number for 80 %, likewise.
        at_90: the number for 90 %, likewise.
    """

    at_50: int | None
    at_80: int | None
    at_90: int | None


@dataclass(frozen=True, slots=True)
class Predicted:
    """Sizes that allow for the rate being known only from a small sample.

    Attributes:
        reachable: probability that the rate is truly above the floor; no size passes more often.
        sizes: the numbers of cases.
    """

    reachable: float
    sizes: Sizes


def cases_for_floor(rate: float, floor: float, level: float = 0.95) -> Sizes:
    """Cases until the lower bound of a rate reaches a floor (`clopper_pearson`).

    A ceiling is a floor for the failures: plan it with `1 - rate` and `1 - floor`. So is the
    plan for failing a floor.

    Exact for independent cases that follow the assumed rate, which is taken as known. Looks at
    all 620 sizes, by one binomial tail each.

    Args:
        rate: assumed pass rate of future cases, from 0 to 1.
        floor: the bound that must be reached, above 0 and at most 1.
        level: two-sided confidence of the interval, strictly between 0 and 1.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    import numpy as np
    from scipy.special import bdtrc

    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must lie between 0 and 1, and {rate} does not.")
    sizes = np.array(SIZES)
    fewest = _fewest_passes(sizes, floor, level)
    chances = np.where(fewest > sizes, 0.0, bdtrc(np.minimum(fewest, sizes) - 1, sizes, rate))
    return lasting_sizes(chances)


def predicted_cases_for_floor(
    passes: int, cases: int, floor: float, level: float = 0.95
) -> Predicted:
    """Like `cases_for_floor`, averaged over what the rate could be after a sample.

    The rate has the posterior of H. Jeffreys' prior, Beta(passes + ½, failures + ½), so the
    number of future passes is beta-binomial. To be shown beside the other plan for samples of
    fewer than about 100 cases.

    Args:
        passes: observed passes of the sample.
        cases: observed cases of the sample.
        floor: the bound that must be reached, above 0 and at most 1.
        level: two-sided confidence of the interval, strictly between 0 and 1.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    import numpy as np
    from scipy.special import betaincc

    check_count("cases", cases)
    check_count("passes", passes, at_most=("cases", cases))
    fewest = _fewest_passes(np.array(SIZES), floor, level)
    prior = passes + 0.5, cases - passes + 0.5
    chances = _beta_binomial_tails(np.array(SIZES), fewest, *prior)
    return Predicted(
        reachable=float(betaincc(*prior, floor)),
        sizes=lasting_sizes(chances),
    )


def lasting_sizes(chances: NDArray[float64]) -> Sizes:
    """Sizes from the probability to pass at each of SIZES."""
    return _sizes(lambda assurance: _least_lasting((chances >= assurance).tolist()))


def search_sizes(passes: Callable[[int, float], bool]) -> Sizes:
    """Sizes where looking at every size would take too long.

    The least size is bracketed by halving. From there smaller sizes are taken while one of the
    three before it passes, and larger ones while a size up to a quarter beyond it fails. A
    smaller size behind a deeper dip can be overlooked: the answer is then larger than needed.

    Args:
        passes: whether the rule passes at a size with a probability.
    """
    return _sizes(lambda assurance: _search(lambda size: passes(size, assurance)))


def _sizes(least: Callable[[float], int | None]) -> Sizes:
    return Sizes(*(least(assurance) for assurance in ASSURANCES))


def _fewest_passes(sizes: NDArray[intp], floor: float, level: float) -> NDArray[intp]:
    """The fewest passes whose lower bound reaches the floor, size + 1 where none does."""
    from scipy.special import bdtrc

    check_share("level", level)
    if not 0.0 < floor <= 1.0:
        raise ValueError(f"floor must be above 0 and at most 1, not {floor}.")
    tail = (1 - level) / 2
    return least_counts(lambda passes: bdtrc(passes - 1, sizes, floor) <= tail, sizes + 1)


def _beta_binomial_tails(
    sizes: NDArray[intp], fewest: NDArray[intp], alpha: float, beta: float
) -> NDArray[float64]:
    """P(at least `fewest` of `sizes`), with the rate from Beta(alpha, beta)."""
    import numpy as np
    from scipy.special import betaln, gammaln

    number = np.arange(int(sizes.max()) + 1)
    passed, failed = (gammaln(number + prior) - gammaln(number + 1) for prior in (alpha, beta))
    scale = gammaln(sizes + 1) - gammaln(sizes + alpha + beta) - betaln(alpha, beta)
    tails = [
        np.exp(passed[few : size + 1] + failed[: size + 1 - few][::-1] + factor).sum()
        for size, few, factor in zip(sizes, fewest, scale, strict=True)
    ]
    return np.array(tails)


def _least_lasting(passing: Sequence[bool]) -> int | None:
    """The least of SIZES that passes together with every one up to a quarter more."""
    least = None
    failure = float("inf")
    for size, passes in zip(reversed(SIZES), reversed(passing), strict=True):
        if not passes:
            failure = size
        elif failure > SPAN * size:
            least = size
    return least


def _search(passes: Callable[[int], bool]) -> int | None:
    if not passes(SIZES[-1]):
        return None
    failing, place = -1, len(SIZES) - 1
    while place - failing > 1:
        middle = (failing + place) // 2
        failing, place = (failing, middle) if passes(SIZES[middle]) else (middle, place)
    while lower := [i for i in range(max(0, place - 3), place) if passes(SIZES[i])]:
        place = lower[0]
    while (failure := _last_failure(passes, place)) is not None:
        place = failure + 1
    return SIZES[place] if place < len(SIZES) else None


def _last_failure(passes: Callable[[int], bool], place: int) -> int | None:
    """The last place up to a quarter beyond a size at which the rule fails."""
    if place == len(SIZES):
        return None
    end = bisect_right(SIZES, SPAN * SIZES[place])
    return next((i for i in reversed(range(place, end)) if not passes(SIZES[i])), None)
