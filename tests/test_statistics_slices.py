"""Tests of slices against the rest of the run, and their adjustment."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rag_assets.statistics import benjamini_yekutieli, fisher_slice, smallest_attainable_p

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=80)


def vectors(key):
    return json.loads((GOLDEN / "stats_slices.json").read_text(encoding="utf-8"))[key]


@pytest.mark.parametrize("v", vectors("vectors"))
def test_golden_p_values(v):
    assert fisher_slice(v["x"], v["m"], v["K"], v["N"]) == pytest.approx(
        v["central_fisher"], abs=1e-9
    )


@pytest.mark.parametrize("v", vectors("by"))
def test_golden_adjusted_p_values(v):
    adjusted, marked = benjamini_yekutieli(v["p"], v["q"])
    assert adjusted == pytest.approx(v["by_adjusted"], abs=1e-9)
    assert marked == tuple(p <= v["q"] for p in v["by_adjusted"])


@pytest.mark.parametrize(
    ("slice_passes", "slice_cases", "passes", "cases", "p"),
    [
        (4, 7, 9, 13, 0.6853),
        (12, 12, 12, 13, 0.1538),
        (0, 1, 12, 13, 0.1538),
        (3, 6, 9, 13, 0.4336),
        (6, 7, 9, 13, 0.4336),
        (12, 12, 12, 12, 1.0),
    ],
)
def test_known_p_values(slice_passes, slice_cases, passes, cases, p):
    assert fisher_slice(slice_passes, slice_cases, passes, cases) == pytest.approx(p, abs=5e-5)


def test_a_large_run():
    # 2,700 of 3,000 expected; tail probabilities from exact integer arithmetic.
    assert fisher_slice(2650, 3000, 9000, 10000) == pytest.approx(0.00037268376965300844, rel=1e-9)


def test_marks_reach_up_to_q():
    adjusted, marked = benjamini_yekutieli([0.10])
    assert (adjusted, marked) == ((0.10,), (True,))
    assert benjamini_yekutieli([0.1000001])[1] == (False,)


def test_no_tests_have_no_marks():
    assert benjamini_yekutieli([]) == ((), ())


def test_smallest_p_is_that_of_the_most_extreme_outcome():
    # All 30 failures of 200 cases can fall into a slice of 40, or none of them.
    assert smallest_attainable_p(40, 170, 200) == pytest.approx(
        2 * math.comb(40, 30) / math.comb(200, 30), rel=1e-9
    )


def test_eight_halves_of_thirteen_cases_can_mark_nothing_and_one_could():
    # The four failures of the run all in the slice: 36 of 1716 ways.
    smallest = smallest_attainable_p(6, 9, 13)
    assert smallest == pytest.approx(2 * 36 / 1716, rel=1e-9)
    assert smallest_attainable_p(7, 9, 13) == pytest.approx(smallest, rel=1e-9)
    assert not any(benjamini_yekutieli([smallest] * 8)[1])
    assert benjamini_yekutieli([smallest])[1] == (True,)


def test_a_run_without_failures_can_mark_nothing():
    assert smallest_attainable_p(30, 100, 100) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fisher_slice(8, 7, 9, 13),
            "slice_passes must be at most slice_cases, and 8 is above 7.",
        ),
        (
            lambda: fisher_slice(1, 14, 9, 13),
            "slice_cases must be at most cases, and 14 is above 13.",
        ),
        (lambda: fisher_slice(1, 2, 14, 13), "passes must be at most cases, and 14 is above 13."),
        (lambda: smallest_attainable_p(-1, 9, 13), "slice_cases must be at least 0, not -1."),
        (
            lambda: benjamini_yekutieli([0.5, 1.2]),
            "pvalues must lie between 0 and 1, and 1.2 does not.",
        ),
        (lambda: benjamini_yekutieli([0.5], 0.0), "q must be strictly between 0 and 1, not 0.0."),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="must") as caught:
        call()
    assert str(caught.value) == message


def exact_fisher(slice_passes, slice_cases, passes, cases):
    """The definition, summed in whole numbers."""
    ways = [
        math.comb(passes, k) * math.comb(cases - passes, slice_cases - k)
        for k in range(slice_cases + 1)
    ]
    tail = min(sum(ways[: slice_passes + 1]), sum(ways[slice_passes:]))
    return min(1.0, 2 * tail / math.comb(cases, slice_cases))


@st.composite
def tables(draw):
    """Numbers of passes and failures inside and outside of a slice."""
    return tuple(draw(st.integers(0, 60)) for _ in range(4))


@deterministic
@given(tables())
def test_p_is_the_exact_one_and_the_same_for_the_complement(table):
    inside, inside_failed, outside, outside_failed = table
    passes, cases = inside + outside, sum(table)
    p = fisher_slice(inside, inside + inside_failed, passes, cases)
    assert p == pytest.approx(exact_fisher(inside, inside + inside_failed, passes, cases), rel=1e-9)
    complement = fisher_slice(outside, outside + outside_failed, passes, cases)
    assert p == pytest.approx(complement, rel=1e-9)


@deterministic
@given(tables())
def test_no_outcome_is_below_the_smallest_attainable_p(table):
    inside, inside_failed, outside, _ = table
    passes, cases, size = inside + outside, sum(table), inside + inside_failed
    possible = range(max(0, size - (cases - passes)), min(size, passes) + 1)
    smallest = min(fisher_slice(x, size, passes, cases) for x in possible)
    assert smallest_attainable_p(size, passes, cases) == pytest.approx(smallest, rel=1e-9)


@deterministic
@given(tables())
def test_the_test_keeps_its_level(table):
    """Under the null hypothesis p is at most 0.1 in at most a tenth of the outcomes."""
    inside, inside_failed, outside, _ = table
    passes, cases, size = inside + outside, sum(table), inside + inside_failed
    assume(size)
    extreme = sum(
        math.comb(passes, x) * math.comb(cases - passes, size - x)
        for x in range(max(0, size - (cases - passes)), min(size, passes) + 1)
        if fisher_slice(x, size, passes, cases) <= 0.1
    )
    assert extreme / math.comb(cases, size) <= 0.1 + 1e-12


pvalues = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


@deterministic
@given(pvalues)
def test_adjusted_values_are_not_smaller_and_keep_the_order(values):
    adjusted, _ = benjamini_yekutieli(values)
    assert all(p <= after <= 1.0 for p, after in zip(values, adjusted, strict=True))
    ordered = [after for _, after in sorted(zip(values, adjusted, strict=True))]
    assert ordered == sorted(ordered)


@deterministic
@given(st.data(), pvalues)
def test_the_order_of_the_tests_changes_nothing(data, values):
    order = data.draw(st.permutations(range(len(values))))
    shuffled, _ = benjamini_yekutieli([values[i] for i in order])
    adjusted, _ = benjamini_yekutieli(values)
    assert shuffled == tuple(adjusted[i] for i in order)
