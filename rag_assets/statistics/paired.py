"""Intervals for paired differences, candidate minus baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.statistics.arguments import check_count, check_share
from rag_assets.statistics.interval import Interval
from rag_assets.statistics.means import bounded_mean

MIXTURE = "paired_mixture@1"
EXACT = "exact_paired@1"


def paired_mixture(
    differences: Sequence[float],
    missing: int = 0,
    level: float = 0.95,
    value_range: tuple[float, float] = (-1.0, 1.0),
) -> Interval:
    """Interval for the mean of paired differences, valid at every number of pairs.

    This is `bounded_mean` by its mixture method on the differences, with the same conditions:
    independent pairs, or a constant conditional mean. Verdicts have three distinct differences,
    so their interval takes the same time at every number of pairs.

    Args:
        differences: one per observed pair, candidate minus baseline; for verdicts -1, 0 or 1.
        missing: number of eligible pairs without a difference.
        level: two-sided confidence, strictly between 0 and 1.
        value_range: lowest and highest possible difference.

    Returns:
        Bounds in the unit of the differences; without an observed pair there is no interval.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    found = bounded_mean(differences, missing, level, value_range)
    return replace(found, method=MIXTURE)


def exact_paired(
    gained: int, lost: int, pairs: int, missing: int = 0, level: float = 0.95
) -> Interval:
    """Exact interval for a paired difference of verdicts, much narrower than `paired_mixture`.

    Each bound is a limit in the sense of R. J. Buehler (Journal of the American Statistical
    Association 52, 1957): among all shares gained and lost, those under which a table at least
    as favourable is too improbable are refuted. Tables are ordered by Tango's score limit, and
    the nuisance share is confined to an interval that a thousandth of the error pays for. The
    search for the limit is certified: a bound is never inside the exact one, and outside of it
    by at most about a ten-thousandth of its distance from the estimate, or 1e-6.

    It holds for pairs that are drawn independently from one population. The unconditional error
    is controlled, so the interval can exclude 0 where McNemar's conditional test does not.

    Time grows with pairs · √(changed pairs), through the tables that a probability is summed
    over; a bound asks for a few hundred such probabilities.

    Args:
        gained: observed pairs that only the candidate passes.
        lost: observed pairs that only the baseline passes.
        pairs: all observed pairs, ties included.
        missing: number of eligible pairs without a difference; they count as lost for the lower
            bound and as gained for the upper one.
        level: two-sided confidence, strictly between 0 and 1.

    Returns:
        Differences of rates between -1 and 1; without an observed pair there is no interval.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    check_count("pairs", pairs)
    check_count("gained", gained, at_most=("pairs", pairs))
    check_count("lost", lost, at_most=("pairs less gained", pairs - gained))
    check_count("missing", missing)
    check_share("level", level)
    estimate = lower = upper = None
    if pairs:
        tail = (1 - level) / 2
        estimate = (gained - lost) / pairs
        lower = _lower(gained, lost + missing, pairs + missing, tail)
        upper = -_lower(lost, gained + missing, pairs + missing, tail)
    return Interval(estimate, lower, upper, EXACT, level, pairs, missing)


def _lower(gained: int, lost: int, pairs: int, tail: float) -> float:
    from rag_assets.statistics.exact_search import lower_limit, table_of

    return -1.0 if lost == pairs else lower_limit(table_of(gained, lost, pairs, tail))
