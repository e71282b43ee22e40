"""Interval for the pass rate of one run."""

from __future__ import annotations

from rag_assets.statistics.arguments import check_count, check_share
from rag_assets.statistics.interval import Interval

METHOD = "clopper_pearson@1"


def clopper_pearson(
    successes: int, observed: int, missing: int = 0, level: float = 0.95
) -> Interval:
    """Exact interval for a rate, with the missing cases counted at their worst.

    The bounds are quantiles of beta distributions (C. J. Clopper and E. S. Pearson, Biometrika
    26, 1934). Missing cases are failures for the lower bound and passes for the upper one, so a
    missing case can only widen the interval.

    Valid for independent cases with one pass rate, at every number of cases. Constant time: two
    quantiles.

    Args:
        successes: number of observed passes, at most `observed`.
        observed: number of observed cases.
        missing: number of eligible cases without a verdict.
        level: two-sided confidence, strictly between 0 and 1.

    Returns:
        Rates between 0 and 1. Without any case there is no interval; with missing cases only,
        the interval is [0, 1] and there is no estimate.

    Raises:
        ValueError: an argument is outside its range; the message names it.
    """
    check_count("observed", observed)
    check_count("successes", successes, at_most=("observed", observed))
    check_count("missing", missing)
    check_share("level", level)
    cases = observed + missing
    return Interval(
        estimate=successes / observed if observed else None,
        lower=_lower(successes, cases, level) if cases else None,
        upper=_upper(successes + missing, cases, level) if cases else None,
        method=METHOD,
        level=level,
        observed=observed,
        missing=missing,
    )


def _lower(successes: int, cases: int, level: float) -> float:
    if successes == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(successes, cases - successes + 1, (1 - level) / 2))


def _upper(successes: int, cases: int, level: float) -> float:
    if successes == cases:
        return 1.0
    from scipy.special import betaincinv

    # Decisions compare bounds without a tolerance, so the last digit matters: the mirrored
    # forms (the complement of the lower bound, or betainccinv) differ in it.
    return float(betaincinv(successes + 1, cases - successes, 1 - (1 - level) / 2))
