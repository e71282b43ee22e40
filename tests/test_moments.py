"""Dates and times as files write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.moments import Moment, day, moment

deterministic = settings(derandomize=True, deadline=None, max_examples=100)


def test_a_date_alone_is_the_whole_day_in_utc() -> None:
    assert moment("2024-05-01") == Moment(
        datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1, 23, 59, 59, 999999, tzinfo=UTC)
    )
    assert moment("9999-12-31").last.year == 9999
    assert moment("2026-W05-3") == moment("20260128") == day(date(2026, 1, 28))


def test_a_time_is_an_instant_with_its_zone() -> None:
    there = datetime(2024, 5, 1, tzinfo=timezone(timedelta(hours=2)))
    assert moment("2024-05-01T00:00:00+02:00") == Moment(there, there)
    assert moment("2024-05-01T00:00:00+02:00").first == datetime(2024, 4, 30, 22, tzinfo=UTC)
    assert moment("2024-05-01T12:00").first == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert moment("2024-05-01T00:00:00Z").first == moment("2024-05-01").first


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2024-13-01", "2024-02-30", "12:00", "2026-W05", "2026W05T10"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be an ISO date like"):
        moment(text)


@deterministic
@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_a_value_error(text: str) -> None:
    try:
        found = moment(text)
    except ValueError:
        return
    assert found.first <= found.last
    assert found.first.tzinfo is not None


@deterministic
@given(st.dates(), st.dates())
def test_days_do_not_overlap(one: date, other: date) -> None:
    assert (day(one).last < day(other).first) == (one < other)
    assert moment(one.isoformat()) == day(one)
