"""`Retry-After`: how long a service asks to be left alone (RFC 9110, 10.2.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds to wait at least, ≥ 0; 0 where the answer says nothing that can be read.

    A date is compared with the date of the answer, which comes from the same clock, and with our
    own clock where the answer has none.

    Args:
        headers: of the answer, whatever their case.
    """
    written = headers.get("Retry-After", "").strip()
    # So many digits are 31 years.
    if re.fullmatch(r"[0-9]{1,9}", written):
        return float(written)
    until = _date(written)
    if until is None:
        return 0.0
    now = _date(headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _date(written: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(written)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
