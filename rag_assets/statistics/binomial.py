"""Small helpers for binomial numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.typing import NDArray

# Probability that sums over a binomial may leave out, half of it at each end.
LEFT_OUT = 1e-9


def reach(number: int, share: float) -> tuple[int, int]:
    """The smallest and largest count that a sum over a binomial must look at.

    From S. Bernstein's inequality, P(X − np ≥ s) ≤ exp(−s² / (2(np(1 − p) + s/3))).

    Args:
        number: number of draws.
        share: probability of each, from 0 to 1.

    Returns:
        Two counts; the probability beyond each of them is at most LEFT_OUT / 2.
    """
    exponent = -math.log(LEFT_OUT / 2)
    mean = number * share
    far = exponent / 3 + math.sqrt(exponent**2 / 9 + 2 * exponent * mean * (1 - share))
    return max(0, math.floor(mean - far)), min(number, math.ceil(mean + far))


def ln_ways(total: NDArray[intp] | int, chosen: NDArray[intp]) -> NDArray[float64]:
    """ln of the number of ways to choose from a total."""
    from scipy.special import gammaln

    found: NDArray[float64] = gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1)
    return found


def least_counts(
    holds: Callable[[NDArray[intp]], NDArray[bool_]], beyond: NDArray[intp]
) -> NDArray[intp]:
    """For each place the least count from 0 on at which a condition holds, by halving.

    Args:
        holds: the condition, for one count per place; once it holds it holds for larger ones.
        beyond: for each place the count to give where it holds at no smaller one, at least 0.
    """
    import numpy as np

    failing, holding = np.full_like(beyond, -1), beyond
    while (undecided := holding - failing > 1).any():
        middle = (failing + holding) // 2
        found = holds(middle)
        holding = np.where(undecided & found, middle, holding)
        failing = np.where(undecided & ~found, middle, failing)
    return holding
