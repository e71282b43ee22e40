"""Cron expressions of five fields, as Dagster's scheduler takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_assets.contracts.text import shown

MACROS = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# February has its 29th in a leap year.
_MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)


@dataclass(frozen=True)
class _Field:
    """One of the five fields: its name, its range, and words that stand for numbers."""

    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()

    def values(self, text: str) -> set[int]:
        """The numbers that a field allows.

        Raises:
            ValueError: the field is malformed; the message says what is wrong.
        """
        found: set[int] = set()
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None:
                raise ValueError(f"the {self.name} {shown(text)} is malformed")
            first, last, step = match.groups()
            low = self.least if first is None else self._number(first)
            high = self._number(last) if last else low if first and not step else self.most
            if low > high:
                raise ValueError(f"the {self.name} {shown(part)} runs backwards")
            if step and not 1 <= int(step) <= self.most:
                raise ValueError(f"the step of the {self.name} {shown(part)} is out of range")
            found.update(range(low, high + 1, int(step or 1)))
        return found

    def _number(self, text: str) -> int:
        if text.lower() in self.words:
            return self.words.index(text.lower()) + self.least
        if not text.isdigit() or not self.least <= int(text) <= self.most:
            raise ValueError(
                f"the {self.name} {shown(text)} is not between {self.least} and {self.most}"
            )
        return int(text)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


def must_be_cron(text: str) -> str:
    """The expression itself, when a schedule can be made of it.

    Args:
        text: five fields (minute, hour, day of the month, month, day of the week) of numbers,
            names, `*`, ranges, steps and lists; or one of `MACROS`.

    Raises:
        ValueError: it is malformed, or names a day that never comes.
    """
    if text in MACROS:
        return text
    parts = text.split()
    try:
        if len(parts) != len(_FIELDS):
            raise ValueError(f"it has {len(parts)} fields")
        _, _, days, months, _ = (
            field.values(part) for field, part in zip(_FIELDS, parts, strict=True)
        )
        if min(days) > max(_MONTH_LENGTHS[month - 1] for month in months):
            raise ValueError("that day never comes")
    except ValueError as error:
        raise ValueError(
            'must be five fields (minute, hour, day, month, weekday) such as "0 2 * * *", or a '
            f'word such as "@daily", got {shown(text)}: {error}'
        ) from None
    return text
