"""Cron expressions: what is taken, what is refused and why, and that Dagster takes the same."""

from __future__ import annotations

import pytest
from dagster._utils.schedules import is_valid_cron_string
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.cron import MACROS, must_be_cron


@pytest.mark.parametrize(
    "text",
    [
        "0 2 * * *",
        "*/15 * * * *",
        "5-55/10 9-17 * * mon-fri",
        "0 0 1,15 jan,JUL *",
        "30 4/6 * * 7",
        "0 0 29 feb *",
        *MACROS,
    ],
)
def test_expressions_that_are_taken(text: str) -> None:
    assert must_be_cron(text) == text
    assert is_valid_cron_string(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has 0 fields"),
        ("0 2 * *", "it has 4 fields"),
        ("0 0 2 * * *", "it has 6 fields"),
        ("60 2 * * *", 'the minute "60" is not between 0 and 59'),
        ("0 24 * * *", 'the hour "24" is not between 0 and 23'),
        ("0 2 0 * *", 'the day of the month "0" is not between 1 and 31'),
        ("0 2 * 13 *", 'the month "13" is not between 1 and 12'),
        ("0 2 * * 8", 'the day of the week "8" is not between 0 and 7'),
        ("0 2 * * someday", 'the day of the week "someday" is not between 0 and 7'),
        ("0 20-4 * * *", 'the hour "20-4" runs backwards'),
        ("*/0 * * * *", 'the step of the minute "*/0" is out of range'),
        ("*/60 * * * *", 'the step of the minute "*/60" is out of range'),
        ("0 2 , * *", 'the day of the month "," is malformed'),
        ("-5 2 * * *", 'the minute "-5" is malformed'),
        ("0 2 31 feb,apr *", "that day never comes"),
        ("0 2 30 2 mon", "that day never comes"),
        ("@nightly", "it has 1 fields"),
    ],
)
def test_expressions_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="must be five fields") as caught:
        must_be_cron(text)
    assert str(caught.value).endswith(f": {why}")


def fields(least: int, most: int, *words: str) -> st.SearchStrategy[str]:
    numbers = st.integers(least - 1, most + 1).map(str)
    values = st.one_of(numbers, st.sampled_from(words)) if words else numbers
    spans = st.one_of(st.just("*"), values, st.builds("{}-{}".format, values, values))
    steps = st.one_of(spans, st.builds("{}/{}".format, spans, st.integers(0, most + 1)))
    return st.lists(steps, min_size=1, max_size=3).map(",".join)


@given(
    st.tuples(
        fields(0, 59),
        fields(0, 23),
        fields(1, 31),
        fields(1, 12, "jan", "Feb", "DEC"),
        fields(0, 7, "sun", "Mon", "SAT"),
    ).map(" ".join)
)
@settings(derandomize=True, deadline=None, max_examples=400)
def test_dagster_takes_what_is_taken_here(text: str) -> None:
    try:
        must_be_cron(text)
    except ValueError:
        return
    assert is_valid_cron_string(text)
