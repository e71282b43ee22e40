"""How many cases a rule needs: known sizes and what they promise."""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import (
    Sizes,
    cases_for_floor,
    clopper_pearson,
    exact_paired,
    paired_mixture,
    pairs_for_margin,
    predicted_cases_for_floor,
)
from rag_assets.statistics.planning import SIZES, SPAN
from rag_assets.statistics.planning_pairs import Plan, fewest_by_mixture, fewest_exactly

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=15)
METHODS = {"A": "paired_mixture", "B": "exact_paired"}


planned = cache(pairs_for_margin)


def vectors(name, key):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))[key]


@pytest.mark.parametrize("v", vectors("stats_planning.json", "floors"))
def test_golden_floors(v):
    passing = cases_for_floor(v["rate"], v["floor"])
    failing = cases_for_floor(1 - v["rate"], 1 - v["floor"])
    assert passing == Sizes(v["pass_50"], v["pass_80"], v["pass_90"])
    assert failing == Sizes(v["fail_50"], v["fail_80"], v["fail_90"])


@pytest.mark.parametrize("v", vectors("planning_sizes.json", "rate"))
def test_golden_sizes_of_rates(v):
    assert (
        cases_for_floor(v["assumed_rate"], v["threshold"], v["confidence"]).at_50 == (v["cases_50"])
    )


@pytest.mark.parametrize("v", vectors("planning_sizes.json", "paired"))
def test_golden_sizes_of_pairs(v):
    found = pairs_for_margin(v["share_gained"], v["share_lost"], v["margin"], level=v["confidence"])
    assert found.at_50 == v["cases_50"]


@pytest.mark.parametrize("v", vectors("stats_planning.json", "paired"))
def test_golden_sizes_of_pairs_by_assurance(v):
    found = planned(v["p10"], v["p01"], v["margin"], METHODS[v["method"]])
    sizes = {"any": found.at_50, 0.5: found.at_50, 0.8: found.at_80, 0.9: found.at_90}
    assert sizes[v["assurance"]] == v["cases"]


@pytest.mark.parametrize("v", vectors("stats_planning.json", "power_points"))
def test_golden_chances(v):
    plan = Plan(v["p10"], v["p01"], v["margin"], 0.025, equivalence=False)
    lost = plan.losses(v["n"])
    fewest = fewest_by_mixture(plan, v["n"], lost)
    if v["method"] == "B":
        pairs = zip(lost.tolist(), fewest.tolist(), strict=True)
        fewest = np.array([fewest_exactly(plan, v["n"], c, guess) for c, guess in pairs])
    assert plan.chance(v["n"], lost, fewest) == pytest.approx(v["power"], abs=1e-6)
    recorded = dict(map(tuple, v["min_b_for_c"]))
    found = dict(zip(lost.tolist(), fewest.tolist(), strict=True))
    assert {c: found[c] for c in recorded} == recorded


@pytest.mark.parametrize("v", vectors("stats_planning.json", "power_points"))
def test_the_fewest_gains_are_those_of_the_interval(v):
    def lower(b, c):
        if v["method"] == "B":
            return exact_paired(b, c, v["n"]).lower
        return paired_mixture([1.0] * b + [-1.0] * c + [0.0] * (v["n"] - b - c)).lower

    for c, b in v["min_b_for_c"][:3]:
        assert lower(b, c) >= -v["margin"]
        assert b == 0 or lower(b - 1, c) < -v["margin"]


@pytest.mark.parametrize("v", vectors("stats_planning.json", "predictive_jeffreys"))
def test_golden_predictions(v):
    found = predicted_cases_for_floor(v["k"], v["n"], v["floor"])
    assert found.reachable == pytest.approx(v["limit"], abs=1e-6)
    assert found.sizes == Sizes(v["size_50"], v["size_80"], v["size_90"])


@pytest.mark.parametrize(
    ("floor", "rate", "sizes"),
    [
        (0.8, 1.0, Sizes(17, 17, 17)),
        (0.85, 12 / 13, Sizes(102, 169, 217)),
        (0.95, 0.97, Sizes(465, 855, 1100)),
        (0.8, 0.8, Sizes(None, None, None)),
        (1.0, 1.0, Sizes(None, None, None)),
    ],
)
def test_known_floors(floor, rate, sizes):
    assert cases_for_floor(rate, floor) == sizes


@pytest.mark.parametrize(
    ("margin", "size"), [(0.2, 25), (0.1, 52), (0.05, 107), (0.02, 271), (0.01, 545)]
)
def test_known_sizes_without_a_changed_pair(margin, size):
    assert pairs_for_margin(0.0, 0.0, margin) == Sizes(size, size, size)


def test_known_sizes_of_the_exact_method():
    assert planned(0.035, 0.035, 0.05, "exact_paired") == Sizes(138, 256, 335)
    assert planned(1 / 15, 0.0, 0.05, "exact_paired") == Sizes(35, 44, 52)
    assert pairs_for_margin(0.0, 0.0, 0.02, "exact_paired").at_50 == 185


def test_superiority_needs_a_gain():
    assert pairs_for_margin(0.0, 0.0, 0.0).at_50 is None
    assert pairs_for_margin(0.3, 0.1, 0.0, "exact_paired").at_50 == 38


@pytest.mark.parametrize("method", ["paired_mixture", "exact_paired"])
def test_equivalence_needs_more_pairs_than_one_bound(method):
    one = pairs_for_margin(0.035, 0.035, 0.2, method)
    both = pairs_for_margin(0.035, 0.035, 0.2, method, equivalence=True)
    assert both.at_50 > one.at_50
    assert both.at_90 >= one.at_90


def test_equivalence_without_a_changed_pair_is_decided_by_one_bound():
    assert pairs_for_margin(0.0, 0.0, 0.05, equivalence=True) == Sizes(107, 107, 107)


def test_equivalence_does_not_depend_on_the_direction():
    gained = pairs_for_margin(0.05, 0.02, 0.2, "exact_paired", equivalence=True)
    lost = pairs_for_margin(0.02, 0.05, 0.2, "exact_paired", equivalence=True)
    assert gained == lost


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cases_for_floor(1.2, 0.8), "rate must lie between 0 and 1, and 1.2 does not."),
        (lambda: cases_for_floor(0.9, 0.0), "floor must be above 0 and at most 1, not 0.0."),
        (
            lambda: cases_for_floor(0.9, 0.8, 1.0),
            "level must be strictly between 0 and 1, not 1.0.",
        ),
        (
            lambda: predicted_cases_for_floor(3, 2, 0.8),
            "passes must be at most cases, and 3 is above 2.",
        ),
        (
            lambda: pairs_for_margin(0.7, 0.4, 0.1),
            "gain and loss must be shares of one whole, not 0.7 and 0.4.",
        ),
        (
            lambda: pairs_for_margin(0.1, 0.1, 1.0),
            "margin must be strictly between -1 and 1, not 1.0.",
        ),
        (
            lambda: pairs_for_margin(0.1, 0.1, 0.1, "mcnemar"),
            'method must be "paired_mixture" or "exact_paired", not \'mcnemar\'.',
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="must") as caught:
        call()
    assert str(caught.value) == message


def chance_to_pass(cases, rate, floor):
    return sum(
        math.comb(cases, k) * rate**k * (1 - rate) ** (cases - k)
        for k in range(cases + 1)
        if clopper_pearson(k, cases).lower >= floor
    )


@deterministic
@given(st.floats(0.3, 0.9), st.floats(0.06, 0.3))
def test_planned_floors_pass_as_often_as_promised(floor, distance):
    rate = min(floor + distance, 1.0)
    size = cases_for_floor(rate, floor).at_50
    if size is None or size > 150:
        return
    span = [n for n in SIZES if size <= n <= SPAN * size]
    assert all(chance_to_pass(n, rate, floor) >= 0.5 for n in span)
    if size > 1:
        before = SIZES[SIZES.index(size) - 1]
        span = [n for n in SIZES if before <= n <= SPAN * before]
        assert any(chance_to_pass(n, rate, floor) < 0.5 for n in span)


@deterministic
@given(st.floats(0.0, 0.2), st.floats(0.0, 0.1), st.sampled_from([0.1, 0.2]))
def test_more_assurance_needs_at_least_as_many_pairs(gain, loss, margin):
    found = pairs_for_margin(gain, loss, margin)
    sizes = [math.inf if n is None else n for n in (found.at_50, found.at_80, found.at_90)]
    assert sizes == sorted(sizes)


@settings(derandomize=True, deadline=None, max_examples=6)
@given(st.floats(0.0, 0.1), st.floats(0.0, 0.1), st.sampled_from([0.1, 0.2]))
def test_the_exact_method_needs_at_most_as_many_pairs(gain, loss, margin):
    default = pairs_for_margin(gain, loss, margin).at_80
    exact = pairs_for_margin(gain, loss, margin, "exact_paired").at_80
    assert default is None or (exact is not None and exact <= default)
