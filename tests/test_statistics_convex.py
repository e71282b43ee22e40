"""The convex interval for bounded means."""

import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import bounded_mean
from rag_assets.statistics.convex import BELOW

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=40)
RECORDED = json.loads((GOLDEN / "stats_bounded_mean_convex.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("v", RECORDED["vectors"], ids=lambda v: v["name"])
def test_golden_intervals(v):
    found = bounded_mean(v["values"], v["missing"], v["confidence"], method="convex")
    assert [found.lower, found.upper] == pytest.approx(v["convex_A_grid"], abs=1e-6)


def test_the_counts_that_are_tried_are_fixed():
    assert list(BELOW) == RECORDED["truncation_candidates"]


def test_five_perfect_values_have_the_exact_bound():
    # Five passes out of five refute a mean m with probability m ** 5, and nothing does better.
    found = bounded_mean([1.0] * 5, method="convex")
    assert found.lower == pytest.approx(0.025 ** (1 / 5), abs=1e-8)
    assert found.upper == 1.0
    assert found.method == "bounded_mean_convex@1"


def test_all_values_at_the_floor():
    found = bounded_mean([0.0] * 10, method="convex")
    assert found.lower == 0.0
    assert found.upper == pytest.approx(1 - 0.025 ** (1 / 10), abs=1e-8)


def test_many_perfect_values_are_not_mistaken_for_more():
    # The capital of ten thousand values is rounded; it must not look larger than possible.
    found = bounded_mean([1.0] * 10_000, method="convex")
    assert found.lower == pytest.approx(0.025 ** (1 / 10_000), abs=1e-6)


def test_nothing_observed_has_no_interval():
    found = bounded_mean([], missing=3, method="convex")
    assert (found.estimate, found.lower, found.upper) == (None, None, None)


shares = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0))
samples = st.lists(shares, min_size=1, max_size=40)


@deterministic
@given(samples, st.integers(0, 3), st.sampled_from([0.9, 0.95, 0.99]))
def test_it_is_never_wider_than_the_default(values, missing, level):
    default = bounded_mean(values, missing, level)
    found = bounded_mean(values, missing, level, method="convex")
    assert default.lower <= found.lower <= found.estimate + 1e-12
    assert default.upper >= found.upper >= found.estimate - 1e-12


@deterministic
@given(st.data(), samples)
def test_the_order_of_the_cases_changes_nothing(data, values):
    shuffled = data.draw(st.permutations(values))
    assert bounded_mean(shuffled, method="convex") == bounded_mean(values, method="convex")


@deterministic
@given(samples, shares)
def test_a_better_case_never_lowers_a_bound(values, replacement):
    found = bounded_mean(values, method="convex")
    better = bounded_mean([max(values[0], replacement), *values[1:]], method="convex")
    assert better.lower >= found.lower - 1e-8
    assert better.upper >= found.upper - 1e-8


@deterministic
@given(samples)
def test_a_missing_case_never_narrows(values):
    found = bounded_mean(values, method="convex")
    more = bounded_mean(values, 1, method="convex")
    assert more.lower <= found.lower + 1e-8
    assert more.upper >= found.upper - 1e-8


@pytest.mark.parametrize("zero", [0.05, 0.3, 0.5, 0.7, 0.95])
def test_coverage_is_kept_on_values_of_zero_half_and_one(zero):
    """Exact coverage at five cases, for the share `zero` of zeros."""
    chances = {0.0: zero, 0.5: (1 - zero) / 2, 1.0: (1 - zero) / 2}
    mean = sum(value * chance for value, chance in chances.items())
    covered = 0.0
    for sample in itertools.combinations_with_replacement(chances, 5):
        ways = math.factorial(5) / math.prod(math.factorial(sample.count(v)) for v in chances)
        found = bounded_mean(sample, method="convex")
        if found.lower <= mean <= found.upper:
            covered += ways * math.prod(chances[value] for value in sample)
    assert covered >= 0.95
