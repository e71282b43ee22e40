"""The mixture interval for bounded means: known values and properties."""

import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import bounded_mean

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=60)
NDCG = [1.0] * 10 + [0.6309297535714575] * 2 + [0.0]


def vectors(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("v", vectors("interval_bounded_mean.json"), ids=lambda v: v["tag"])
def test_golden_intervals(v):
    value_range = (v["range"][0], v["range"][1])
    found = bounded_mean(v["values"], v["n_missing"], v["confidence"], value_range)
    if v["lower"] is None:
        assert (found.estimate, found.lower, found.upper) == (None, None, None)
    else:
        assert found.estimate == pytest.approx(v["estimate"], abs=1e-12)
        assert found.lower == pytest.approx(v["lower"], abs=1e-9)
        assert found.upper == pytest.approx(v["upper"], abs=1e-9)


@pytest.mark.parametrize("v", vectors("stats_method_a.json")["bounded_mean_A"])
def test_golden_bounds_of_the_research_tables(v):
    values = v["values"]
    if isinstance(values, dict):
        values = [values["repeat"]] * values["times"]
    found = bounded_mean(values, v["missing"], v["confidence"])
    assert found.lower == pytest.approx(v["lower"], abs=1e-8)
    assert found.upper == pytest.approx(v["upper"], abs=1e-8)


@pytest.mark.parametrize("v", vectors("gate_run_decisions.json")["means"], ids=lambda v: v["tag"])
def test_bounds_that_decide(v):
    value_range = (v["range"][0], v["range"][1])
    found = bounded_mean(v["values"], v["missing"], v["confidence"], value_range)
    if v["interval"] is None:
        assert (found.lower, found.upper) == (None, None)
    else:
        assert [found.lower, found.upper] == pytest.approx(v["interval"], abs=1e-9)


def test_thirteen_ndcg_values():
    found = bounded_mean(NDCG)
    assert found.estimate == pytest.approx(0.8662968851648396, abs=1e-12)
    assert found.lower == pytest.approx(0.5062829581352943, abs=1e-9)
    assert found.upper == pytest.approx(0.9895517936531166, abs=1e-9)
    assert (found.method, found.level) == ("bounded_mean_mixture@1", 0.95)
    assert (found.observed, found.missing) == (13, 0)


def test_one_case_has_the_bounds_that_can_be_worked_out_by_hand():
    # Against the mean m the capital of one 1.0 is (1 + 1/m) / 2, which reaches 40 at m = 1/79.
    found = bounded_mean([1.0])
    assert found.lower == pytest.approx(1 / 79, abs=1e-10)
    assert found.upper == 1.0


def test_all_values_at_the_floor_have_it_as_their_bound():
    found = bounded_mean([0.0] * 13)
    assert found.lower == 0.0
    assert found.upper == pytest.approx(0.33502340800303565, abs=1e-9)


def test_nothing_observed_has_no_interval():
    found = bounded_mean([], missing=3)
    assert (found.estimate, found.lower, found.upper) == (None, None, None)
    assert (found.observed, found.missing) == (0, 3)


def test_one_success_in_a_million_keeps_a_lower_bound_of_zero():
    # Even the smallest bet loses everything on the other cases.
    found = bounded_mean([1.0] + [0.0] * 999_999)
    assert found.lower == 0.0
    assert found.upper == pytest.approx(7.751708e-06, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 1.5],), "values must lie between 0.0 and 1.0, and 1.5 does not."),
        (([0.5, math.nan],), "values must lie between 0.0 and 1.0, and nan does not."),
        (([0.5], -1), "missing must be at least 0, not -1."),
        (([0.5], 0, 0.0), "level must be strictly between 0 and 1, not 0.0."),
        (
            ([0.5], 0, 0.95, (1.0, 1.0)),
            "value_range must be two finite, rising numbers, not (1.0, 1.0).",
        ),
        (
            ([0.5], 0, 0.95, (0.0, 1.0), "normal"),
            'method must be "mixture" or "convex", not \'normal\'.',
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match="must") as caught:
        bounded_mean(*arguments)
    assert str(caught.value) == message


shares = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0))
samples = st.lists(shares, min_size=1, max_size=40)
levels = st.sampled_from([0.8, 0.9, 0.95, 0.99])


@deterministic
@given(samples, levels)
def test_bounds_enclose_the_estimate(values, level):
    found = bounded_mean(values, level=level)
    assert 0.0 <= found.lower <= found.estimate + 1e-12
    assert found.estimate - 1e-12 <= found.upper <= 1.0


@deterministic
@given(st.data(), samples, levels)
def test_the_order_of_the_cases_changes_nothing(data, values, level):
    assert bounded_mean(data.draw(st.permutations(values)), level=level) == bounded_mean(
        values, level=level
    )


@deterministic
@given(samples, levels, shares)
def test_a_better_case_never_lowers_a_bound(values, level, replacement):
    found = bounded_mean(values, level=level)
    better = bounded_mean([max(values[0], replacement), *values[1:]], level=level)
    assert better.lower >= found.lower - 1e-12
    assert better.upper >= found.upper - 1e-12


@deterministic
@given(samples, levels, st.integers(0, 5))
def test_a_missing_case_never_narrows(values, level, missing):
    found = bounded_mean(values, missing, level)
    more = bounded_mean(values, missing + 1, level)
    assert more.lower <= found.lower + 1e-12
    assert more.upper >= found.upper - 1e-12


@deterministic
@given(samples, levels, st.lists(shares, min_size=1, max_size=5))
def test_any_values_of_the_missing_cases_are_enclosed(values, level, absent):
    found = bounded_mean(values, len(absent), level)
    resolved = bounded_mean(values + absent, 0, level)
    assert found.lower <= resolved.lower + 1e-12
    assert found.upper >= resolved.upper - 1e-12


@deterministic
@given(samples, levels)
def test_mirrored_values_have_the_mirrored_interval(values, level):
    found = bounded_mean(values, level=level)
    mirrored = bounded_mean([1 - value for value in values], level=level)
    assert mirrored.lower == pytest.approx(1 - found.upper, abs=1e-9)


@deterministic
@given(samples, levels, st.floats(-50, 50), st.floats(0.5, 100))
def test_the_range_only_moves_and_stretches(values, level, low, width):
    found = bounded_mean(values, level=level)
    moved = bounded_mean(
        [min(low + width * value, low + width) for value in values],
        level=level,
        value_range=(low, low + width),
    )
    assert moved.lower == pytest.approx(low + width * found.lower, abs=1e-8)
    assert moved.upper == pytest.approx(low + width * found.upper, abs=1e-8)


@deterministic
@given(samples)
def test_a_higher_level_is_never_narrower(values):
    narrow, wide = bounded_mean(values, level=0.9), bounded_mean(values, level=0.95)
    assert wide.lower <= narrow.lower
    assert wide.upper >= narrow.upper


def test_it_holds_at_small_sizes():
    """Exact coverage for a value that is 0, 0.5 or 1, at sizes 1, 2 and 4."""
    chances = {0.0: 0.2, 0.5: 0.1, 1.0: 0.7}
    for size in (1, 2, 4):
        covered = 0.0
        for sample in itertools.product(chances, repeat=size):
            found = bounded_mean(sample)
            if found.lower <= 0.75 <= found.upper:
                covered += math.prod(chances[value] for value in sample)
        assert covered >= 0.95


def test_ten_thousand_distinct_values():
    # Values that fill the range evenly; more distinct values than one block of the computation.
    found = bounded_mean([i / 9999 for i in range(10_000)])
    assert found.lower == pytest.approx(1 - found.upper, abs=1e-9)
    assert found.lower == pytest.approx(0.4892968060166273, abs=1e-9)
