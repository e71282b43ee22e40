"""Checks of arguments that the statistical functions share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


def check_count(name: str, count: int, *, at_most: tuple[str, int] | None = None) -> None:
    """Refuse what is not a whole number of at least 0, or is above another argument.

    Args:
        name: name of the argument, for the message.
        count: its value.
        at_most: name and value of the argument that limits it.

    Raises:
        ValueError: the count is negative, not whole, or above its limit.
    """
    try:
        whole = index(count)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {count!r}.") from None
    if whole < 0:
        raise ValueError(f"{name} must be at least 0, not {count}.")
    if at_most is not None and whole > at_most[1]:
        limit, value = at_most
        raise ValueError(f"{name} must be at most {limit}, and {count} is above {value}.")


def check_share(name: str, share: float) -> None:
    """Refuse what is not strictly between 0 and 1.

    Raises:
        ValueError: the share is 0, 1, outside of them, or not a number.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} must be strictly between 0 and 1, not {share}.")


def finite_values(
    name: str, values: Sequence[float], value_range: tuple[float, float]
) -> NDArray[float64]:
    """The values as an array, all of them inside their range.

    Args:
        name: name of the argument, for the message.
        values: the numbers, in any order.
        value_range: lowest and highest possible value, finite and not equal.

    Raises:
        ValueError: the range is empty or not finite, or a value is not a number inside it.
    """
    import numpy as np

    low, high = value_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"value_range must be two finite, rising numbers, not {value_range}.")
    array = np.asarray(values, dtype=np.float64)
    outside = ~((array >= low) & (array <= high))
    if outside.any():
        value = float(array[outside][0])
        raise ValueError(f"{name} must lie between {low} and {high}, and {value} does not.")
    return array
