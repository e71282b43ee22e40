"""How numbers are printed: the only place that rounds.

Estimates round half to even on the decimal text of the number. Bounds round outward, so that a
printed interval is never narrower than the one that was decided on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

# Share of the last printed digit by which a bound may pass it without being carried on: the
# binary image of 0.3 can be 0.30000000000000004, and that still prints as 0.300.
_GUARD = Decimal("1e-6")


@dataclass(frozen=True, slots=True)
class Format:
    """How the numbers of one metric are printed.

    Attributes:
        decimals: digits after the point.
        percent: numbers are shares, printed as hundredths.
        signed: a plus sign stands before numbers that are not negative.
        suffix: follows each number ("%").
    """

    decimals: int
    percent: bool = False
    signed: bool = False
    suffix: str = ""

    def estimate(self, value: float) -> str:
        """An estimate, rounded half to even.

        Raises:
            ValueError: the value is not finite.
        """
        return self._text(self._rounded(value, ROUND_HALF_EVEN, self.decimals))

    def lower(self, value: float | None, missed: float | None = None) -> str:
        """A lower bound, rounded down; "none" where there is none.

        Args:
            value: the bound.
            missed: a threshold that the bound misses, although it may print like it. The bound
                then has one more decimal.

        Raises:
            ValueError: the value is not finite.
        """
        return self._bound(value, ROUND_FLOOR, missed)

    def upper(self, value: float | None, missed: float | None = None) -> str:
        """An upper bound, rounded up; otherwise like `lower`."""
        return self._bound(value, ROUND_CEILING, missed)

    def interval(self, lower: float | None, upper: float | None) -> str:
        """Both bounds, like "[38.5%, 91.0%]".

        Raises:
            ValueError: a bound is not finite.
        """
        return f"[{self.lower(lower)}, {self.upper(upper)}]"

    def _bound(self, value: float | None, rounding: str, missed: float | None) -> str:
        if value is None:
            return "none"
        shown = self._rounded(value, rounding, self.decimals)
        if missed is not None and shown == self._rounded(missed, ROUND_HALF_EVEN, self.decimals):
            shown = self._rounded(value, rounding, self.decimals + 1)
        return self._text(shown)

    def _rounded(self, value: float, rounding: str, decimals: int) -> Decimal:
        if not math.isfinite(value):
            raise ValueError(f"Only finite numbers can be printed, not {value}.")
        exact = Decimal(repr(float(value))).scaleb(2 if self.percent else 0)
        digit = Decimal(1).scaleb(-decimals)
        if rounding == ROUND_FLOOR:
            exact += _GUARD * digit
        elif rounding == ROUND_CEILING:
            exact -= _GUARD * digit
        return exact.quantize(digit, rounding)

    def _text(self, number: Decimal) -> str:
        # A rounded zero keeps no sign of its own: "-0.0" would look like a loss.
        shown = abs(number) if number == 0 else number
        return f"{shown:{'+' if self.signed else ''}f}{self.suffix}"


RATE = Format(decimals=1, percent=True, suffix="%")
"""Rates between 0 and 1, in percent: "69.2%"."""

RATE_DIFFERENCE = Format(decimals=1, percent=True, signed=True)
"""Differences of rates, in points: "+6.7"."""


def score_format(range_width: float) -> Format:
    """How a score is printed: three decimals for [0, 1], fewer for wider ranges.

    Args:
        range_width: highest minus lowest possible score, above 0 and finite.

    Raises:
        ValueError: the width is not above 0 and finite.
    """
    return Format(decimals=_score_decimals(range_width))


def score_difference_format(range_width: float) -> Format:
    """How a difference of scores is printed: with the score's decimals and a sign.

    Args:
        range_width: width of the score's range (not of the difference's), above 0 and finite.

    Raises:
        ValueError: the width is not above 0 and finite.
    """
    return Format(decimals=_score_decimals(range_width), signed=True)


def _score_decimals(range_width: float) -> int:
    if not 0.0 < range_width < math.inf:
        raise ValueError(f"range_width must be above 0 and finite, not {range_width}.")
    # `adjusted` is floor(log10) of the decimal text, without the rounding of a logarithm.
    return max(0, 3 - Decimal(repr(float(range_width))).adjusted())
