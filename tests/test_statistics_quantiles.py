"""Intervals for quantiles of operational metrics."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import order_statistic_quantile

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


@pytest.mark.parametrize(
    "v", json.loads((GOLDEN / "interval_quantile.json").read_text(encoding="utf-8"))
)
def test_golden_intervals(v):
    found = order_statistic_quantile(v["values"], v["q"], v["n_missing"], v["confidence"])
    assert (found.estimate, found.lower, found.upper) == (v["estimate"], v["lower"], v["upper"])


@pytest.mark.parametrize(("q", "cases"), [(0.5, 6), (0.9, 36), (0.95, 72)])
def test_the_fewest_cases_with_an_upper_bound(q, cases):
    values = list(range(cases))
    assert order_statistic_quantile(values, q).upper == cases - 1
    assert order_statistic_quantile(values[:-1], q).upper is None


def test_the_rank_of_the_estimate_is_that_of_the_decimal_share():
    # In binary 0.95 · 20 is a little above 19; the nineteenth value is the right one.
    assert order_statistic_quantile(list(range(1, 21)), 0.95).estimate == 19
    assert order_statistic_quantile(list(range(1, 11)), 0.5).estimate == 5


def test_six_values_have_both_bounds_of_their_median():
    found = order_statistic_quantile([30, 10, 20, 60, 50, 40], 0.5)
    assert (found.estimate, found.lower, found.upper) == (30.0, 10.0, 60.0)
    assert (found.method, found.observed) == ("order_statistic_quantile@1", 6)


def test_a_missing_value_takes_both_bounds_away():
    found = order_statistic_quantile([30, 10, 20, 60, 50], 0.5, missing=1)
    assert (found.estimate, found.lower, found.upper) == (30.0, None, None)


def test_a_tail_equal_to_its_limit_is_too_large():
    # P(no value above the median of five) = 1/32 = (1 − 0.9375) / 2.
    assert order_statistic_quantile([1, 2, 3, 4, 5], 0.5, level=0.9375).upper is None
    assert order_statistic_quantile([1, 2, 3, 4, 5], 0.5, level=0.937).upper == 5.0


def test_nothing_observed_has_no_interval():
    found = order_statistic_quantile([], 0.5, missing=4)
    assert (found.estimate, found.lower, found.upper) == (None, None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 1.0), "q must be strictly between 0 and 1, not 1.0."),
        (([1.0], 0.5, -1), "missing must be at least 0, not -1."),
        (([math.inf], 0.5), "values must be finite numbers."),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match="must") as caught:
        order_statistic_quantile(*arguments)
    assert str(caught.value) == message


values_of = st.lists(st.floats(0, 1e4), min_size=1, max_size=120)
quantiles = st.sampled_from([0.1, 0.5, 0.9, 0.95])


@deterministic
@given(st.data(), values_of, quantiles)
def test_the_order_of_the_cases_changes_nothing(data, values, q):
    shuffled = data.draw(st.permutations(values))
    assert order_statistic_quantile(shuffled, q) == order_statistic_quantile(values, q)


@deterministic
@given(values_of, quantiles)
def test_bounds_are_observed_values_around_the_estimate(values, q):
    found = order_statistic_quantile(values, q)
    assert found.estimate in values
    assert found.lower is None or (found.lower in values and found.lower <= found.estimate)
    assert found.upper is None or (found.upper in values and found.upper >= found.estimate)


@deterministic
@given(values_of, quantiles, st.integers(0, 4))
def test_a_missing_value_never_narrows(values, q, missing):
    found = order_statistic_quantile(values, q, missing)
    more = order_statistic_quantile(values, q, missing + 1)
    assert more.lower is None or (found.lower is not None and more.lower <= found.lower)
    assert more.upper is None or (found.upper is not None and more.upper >= found.upper)


@pytest.mark.parametrize("cases", [1, 5, 6, 20, 80])
@pytest.mark.parametrize("q", [0.5, 0.9, 0.95])
def test_each_bound_misses_with_at_most_a_fortieth(cases, q):
    """With values 1 … n, a bound of rank k is wrong by a binomial tail."""
    found = order_statistic_quantile(list(range(1, cases + 1)), q)
    chances = [math.comb(cases, k) * q**k * (1 - q) ** (cases - k) for k in range(cases + 1)]
    if found.lower is not None:
        assert sum(chances[: int(found.lower)]) <= 0.025
    if found.upper is not None:
        assert sum(chances[int(found.upper) :]) <= 0.025
