"""Tango's score statistic for a difference of paired shares, and the order it gives to tables.

T. Tango, Statistics in Medicine 17, 1998. A table is (gained, lost) of a number of pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.typing import NDArray

_TINY = 1e-300


@overload
def statistic(gained: int, lost: int, pairs: int, difference: float) -> float: ...


@overload
def statistic(
    gained: NDArray[intp], lost: NDArray[intp], pairs: int, difference: float
) -> NDArray[float64]: ...


def statistic(gained: Any, lost: Any, pairs: int, difference: float) -> Any:
    """Standardised distance between the observed difference and an assumed one.

    Args:
        gained: pairs that only the candidate passes; a number, or an array of them.
        lost: pairs that only the baseline passes, likewise.
        pairs: all pairs.
        difference: assumed share gained minus share lost, between -1 and 1.

    Returns:
        A number that rises with `gained` and falls with `lost` and `difference`.
    """
    spread = difference * (1 - difference)
    linear = (2 * pairs - gained + lost) * difference - gained - lost
    # abs() only undoes rounding: neither root can be of a negative number.
    root = abs(linear * linear + 8 * pairs * lost * spread) ** 0.5
    lost_share = (root - linear) / (4 * pairs)
    variance = abs(pairs * (2 * lost_share + spread)) + _TINY
    return (gained - lost - pairs * difference) / variance**0.5


def ordering_value(gained: int, lost: int, pairs: int, z: float) -> float:
    """Tango's lower limit: the difference at which the statistic is z.

    Args:
        gained: pairs that only the candidate passes.
        lost: pairs that only the baseline passes, fewer than `pairs`.
        pairs: all pairs.
        z: upper normal quantile of one tail.

    Returns:
        A difference between -1 and the observed one; larger for more favourable tables.
    """
    low, high = -1.0, (gained - lost) / pairs
    for _ in range(60):
        middle = (low + high) / 2
        if statistic(gained, lost, pairs, middle) >= z:
            low = middle
        else:
            high = middle
    return low
