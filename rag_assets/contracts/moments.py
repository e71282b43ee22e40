"""Dates and times as files write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import lru_cache

from rag_assets.contracts.text import shown

_WEEK = re.compile(r"\d{4}-?W\d{2}(?!-?\d)", re.ASCII)
"""A week without its day, which Python reads as the Monday."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, or an instant, as the first and the last instant that belong to it.

    Attributes:
        first, last: with a time zone; equal for an instant.
    """

    first: datetime
    last: datetime


@lru_cache(maxsize=4096)
def moment(text: str) -> Moment:
    """What a text in ISO 8601 means.

    Args:
        text: a date alone is the whole day in UTC; a time without a zone is in UTC as well.

    Raises:
        ValueError: the text is no ISO date or time.
    """
    refusal = f'must be an ISO date like "2026-09-16", got {shown(text)}'
    if _WEEK.match(text):
        raise ValueError(refusal)
    try:
        return day(date.fromisoformat(text))
    except ValueError:
        pass
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(refusal) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return Moment(instant, instant)


def day(of: date) -> Moment:
    """A whole day in UTC."""
    return Moment(
        datetime.combine(of, time.min, tzinfo=UTC), datetime.combine(of, time.max, tzinfo=UTC)
    )
