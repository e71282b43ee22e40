"""Numbers as they are printed."""

import json
import math
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import (
    RATE,
    RATE_DIFFERENCE,
    clopper_pearson,
    score_difference_format,
    score_format,
)

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=100)


def vectors(key):
    return json.loads((GOLDEN / "display_rounding.json").read_text(encoding="utf-8"))[key]


@pytest.mark.parametrize("v", vectors("rates"))
def test_golden_rates(v):
    assert RATE.estimate(v["value"]) == v["percent_estimate"]
    assert RATE.lower(v["value"]) == v["percent_lower"]
    assert RATE.upper(v["value"]) == v["percent_upper"]


@pytest.mark.parametrize("v", vectors("rate_differences"))
def test_golden_rate_differences(v):
    assert RATE_DIFFERENCE.estimate(v["value"]) == v["points_estimate"]
    assert RATE_DIFFERENCE.lower(v["value"]) == v["points_lower"]
    assert RATE_DIFFERENCE.upper(v["value"]) == v["points_upper"]


@pytest.mark.parametrize("v", vectors("scores"))
def test_golden_scores(v):
    shown = score_format(v["range_width"])
    assert shown.estimate(v["value"]) == v["estimate"]
    assert shown.interval(v["value"], v["value"]) == v["interval_if_both_bounds_equal_value"]


@pytest.mark.parametrize("v", vectors("score_differences"))
def test_golden_score_differences(v):
    shown = score_difference_format(v["range_width"])
    assert shown.estimate(v["value"]) == v["estimate"]
    assert shown.interval(v["value"], v["value"]) == v["interval_if_both_bounds_equal_value"]


def test_estimates_round_half_to_even_on_their_decimal_text():
    # 0.0445 and 0.0455 are binary numbers just beside these decimals; the decimals count.
    shown = [RATE.estimate(value) for value in (0.6995, 0.0005, 0.0445, 0.0455)]
    assert shown == ["70.0%", "0.0%", "4.4%", "4.6%"]
    assert RATE.lower(0.6995) == "69.9%"


def test_an_interval_of_a_rate():
    found = clopper_pearson(9, 13)
    assert RATE.interval(found.lower, found.upper) == "[38.5%, 91.0%]"


def test_an_interval_of_a_difference_has_both_signs():
    assert RATE_DIFFERENCE.interval(-0.264280204736848, 0.4079601698507359) == "[-26.5, +40.8]"


def test_a_side_without_a_bound():
    assert score_format(100.0).interval(None, 42.25) == "[none, 42.3]"


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (0.5, "0.2500"),
        (1.0, "0.250"),
        (9.9, "0.250"),
        (10.0, "0.25"),
        (40.0, "0.25"),
        (100.0, "0.2"),
        (1000.0, "0"),
        (1e6, "0"),
    ],
)
def test_scores_have_fewer_decimals_in_wider_ranges(width, text):
    assert score_format(width).estimate(0.25) == text


def test_a_bound_is_not_carried_on_by_its_binary_image():
    # The sum is 0.30000000000000004: it prints as 0.300, not as 0.301.
    assert score_format(1.0).upper(0.1 + 0.2) == "0.300"
    assert score_format(1.0).lower(0.7 + 0.1) == "0.800"


def test_an_upper_bound_that_misses_a_minimum_does_not_print_like_it():
    assert RATE.upper(0.69951) == "70.0%"
    assert RATE.upper(0.69951, missed=0.7) == "69.96%"


def test_a_lower_bound_that_misses_a_maximum_does_not_print_like_it():
    assert RATE.lower(0.2004, missed=0.2) == "20.04%"


def test_an_upper_bound_that_misses_a_margin_does_not_print_like_it():
    assert RATE_DIFFERENCE.upper(-0.0504) == "-5.0"
    assert RATE_DIFFERENCE.upper(-0.0504, missed=-0.05) == "-5.04"
    assert score_difference_format(1.0).upper(-0.0504, missed=-0.05) == "-0.0504"


def test_a_bound_that_prints_apart_from_its_threshold_keeps_its_decimals():
    assert RATE.upper(0.6912, missed=0.7) == "69.2%"


def test_a_threshold_with_more_digits_is_compared_as_it_prints():
    assert RATE.lower(0.8842966917779722, missed=0.8842966917779723) == "88.42%"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_finite_numbers_are_printed(value):
    with pytest.raises(ValueError, match=r"^Only finite numbers can be printed, not "):
        RATE.estimate(value)


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf])
def test_a_range_has_a_width(width):
    with pytest.raises(ValueError, match=r"^range_width must be above 0 and finite, not "):
        score_format(width)


def number(text):
    return Decimal(text.removesuffix("%"))


@deterministic
@given(st.floats(-1.0, 1.0))
def test_bounds_round_outward_by_less_than_a_digit(value):
    exact = Decimal(repr(value)) * 100
    lower = number(RATE_DIFFERENCE.lower(value))
    upper = number(RATE_DIFFERENCE.upper(value))
    # A ten-millionth of a point is the most by which a bound may be inside.
    assert exact - Decimal("0.1") < lower <= exact + Decimal("1e-7")
    assert exact - Decimal("1e-7") <= upper < exact + Decimal("0.1")


@deterministic
@given(st.floats(-1.0, 1.0))
def test_estimates_are_at_most_half_a_digit_away(value):
    exact = Decimal(repr(value)) * 100
    assert abs(number(RATE_DIFFERENCE.estimate(value)) - exact) <= Decimal("0.05")


@deterministic
@given(st.floats(-0.002, 0.002))
def test_zero_has_no_minus(value):
    for shown in (score_format(1.0), score_difference_format(1.0), RATE_DIFFERENCE):
        for text in (shown.estimate(value), shown.lower(value), shown.upper(value)):
            assert number(text) != 0 or not text.startswith("-")


@deterministic
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_larger_numbers_never_print_smaller(first, second):
    low, high = sorted((first, second))
    for show in (RATE.estimate, RATE.lower, RATE.upper):
        assert number(show(low)) <= number(show(high))
