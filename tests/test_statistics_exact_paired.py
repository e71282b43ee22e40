"""The exact interval for paired verdicts: known values, its definition, coverage, properties."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv, ndtri

from rag_assets.statistics import exact_paired, paired_mixture

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=40)
# How far a bound may stop before the exact one, for differences of any size.
STEP = 2e-4


def vectors(name, key):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))[key]


@pytest.mark.parametrize("v", vectors("stats_exact_paired.json", "vectors"))
def test_golden_bounds(v):
    found = exact_paired(v["b"], v["c"], v["n"], v["missing"], v["confidence"])
    if v["lower"] is None:
        assert (found.estimate, found.lower, found.upper) == (None, None, None)
        return
    estimate = (v["b"] - v["c"]) / v["n"]
    assert found.estimate == estimate
    below = 5e-4 * (estimate - v["lower"]) + 1e-6
    above = 5e-4 * (v["upper"] - estimate) + 1e-6
    assert v["lower"] - below <= found.lower <= v["lower_achieved"] + 1e-6
    assert v["upper_achieved"] - 1e-6 <= found.upper <= v["upper"] + above


def test_the_fewest_unchanged_pairs_for_five_points():
    # 72 is the least number that any method can have: 0.95 ** 71 is still above 0.025.
    assert exact_paired(0, 0, 72).lower >= -0.05
    assert exact_paired(0, 0, 71).lower < -0.05


def test_one_gain_in_thirteen_pairs():
    found = exact_paired(1, 0, 13)
    assert found.estimate == 1 / 13
    assert found.lower == pytest.approx(-0.2001, abs=1e-4)
    assert found.upper == pytest.approx(0.3604, abs=1e-4)
    assert (found.method, found.level) == ("exact_paired@1", 0.95)
    assert (found.observed, found.missing) == (13, 0)


def test_every_pair_lost():
    found = exact_paired(0, 5, 5)
    assert (found.estimate, found.lower) == (-1.0, -1.0)
    # Under q gained all five are lost with probability (1 − q) ** 5, which is 0.025 at 0.522.
    assert found.upper == pytest.approx(0.0439, abs=2e-4)


def test_ten_thousand_pairs():
    found = exact_paired(500, 480, 10_000)
    assert found.lower == pytest.approx(-0.0041426, abs=3e-6)
    assert found.upper == pytest.approx(0.0081471, abs=3e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((6, 0, 5), "gained must be at most pairs, and 6 is above 5."),
        ((3, 3, 5), "lost must be at most pairs less gained, and 3 is above 2."),
        ((0, -1, 5), "lost must be at least 0, not -1."),
        ((0, 0, 5, -1), "missing must be at least 0, not -1."),
        ((0, 0, 5, 0, 1.5), "level must be strictly between 0 and 1, not 1.5."),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match="must") as caught:
        exact_paired(*arguments)
    assert str(caught.value) == message


def score(b, c, n, d):
    """Tango's statistic, written out plainly."""
    linear = -b - c + (2 * n - b + c) * d
    x = (math.sqrt(max(linear**2 + 8 * n * c * d * (1 - d), 0)) - linear) / (4 * n)
    variance = n * (2 * x + d * (1 - d))
    return (b - c - n * d) / math.sqrt(variance) if variance > 1e-14 else math.inf * (b - c - n * d)


def limit_by_brute_force(b, c, n, tail=0.025):
    """The definition on dense grids of shares; a little above the exact limit."""
    z = -ndtri(tail)
    low, high = -1.0 + 1e-12, (b - c) / n
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if score(b, c, n, middle) >= z else (low, middle)
    tables = [(i, j) for i in range(n + 1) for j in range(n - i + 1)]
    region = [(i, j) for i, j in tables if score(i, j, n, low) >= z - 1e-9]
    gained, lost = np.array(region).T[:, :, None]
    ways = np.array([math.comb(n, i) * math.comb(n - i, j) for i, j in region])[:, None]
    least = betaincinv(b, n - b + 1, tail * 5e-4) if b else 0.0
    most = betaincinv(c + 1, n - c, 1 - tail * 5e-4)

    def smallest(q):
        def above(r):
            rest = np.maximum(1 - q - r, 0) ** (n - gained - lost)
            return (ways * q**gained * r**lost * rest).sum(0) > tail * 0.999

        inside, outside = np.zeros_like(q), np.minimum(most, 1 - q)
        possible, everything = above(inside), above(outside)
        for _ in range(40):
            middle = (inside + outside) / 2
            holds = above(middle)
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        limits = q - np.where(everything, np.minimum(most, 1 - q), inside)
        return np.where(possible, limits, np.inf)

    q = np.linspace(least, 1, 401)
    place = smallest(q).argmin()
    return smallest(np.linspace(q[max(place - 1, 0)], q[min(place + 1, 400)], 401)).min()


@pytest.mark.parametrize(
    ("b", "c", "n"),
    [(0, 0, 1), (1, 0, 1), (0, 0, 7), (3, 1, 7), (7, 0, 7), (1, 5, 7), (2, 1, 13), (6, 6, 13)],
)
def test_bounds_are_those_of_the_definition(b, c, n):
    exact = limit_by_brute_force(b, c, n)
    assert exact - 3e-4 <= exact_paired(b, c, n).lower <= exact


@pytest.mark.parametrize("n", [1, 5, 10])
def test_coverage_is_kept_at_every_pair_of_shares(n):
    """Exact coverage, summed over all tables."""
    tables = [(b, c) for b in range(n + 1) for c in range(n - b + 1)]
    found = [exact_paired(b, c, n) for b, c in tables]
    for q, r in itertools.product([0.0, 0.02, 0.1, 0.25, 0.4, 0.6, 0.9], repeat=2):
        if q + r > 1:
            continue
        chances = [
            math.comb(n, b) * math.comb(n - b, c) * q**b * r**c * max(1 - q - r, 0) ** (n - b - c)
            for b, c in tables
        ]
        above = sum(p for p, f in zip(chances, found, strict=True) if f.lower > q - r)
        below = sum(p for p, f in zip(chances, found, strict=True) if f.upper < q - r)
        assert above <= 0.025
        assert below <= 0.025


def test_it_is_never_wider_than_the_default_method():
    n = 13
    for b in range(n + 1):
        for c in range(n - b + 1):
            exact = exact_paired(b, c, n)
            default = paired_mixture([1.0] * b + [-1.0] * c + [0.0] * (n - b - c))
            assert exact.upper - exact.lower <= default.upper - default.lower


@st.composite
def tables(draw):
    pairs = draw(st.one_of(st.integers(1, 20), st.integers(1, 400)))
    gained = draw(st.integers(0, pairs))
    return gained, draw(st.integers(0, pairs - gained)), pairs


levels = st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.9999])


@deterministic
@given(tables(), levels)
def test_bounds_enclose_the_estimate(table, level):
    found = exact_paired(*table, level=level)
    assert -1.0 <= found.lower <= found.estimate <= found.upper <= 1.0


@deterministic
@given(tables(), levels)
def test_exchanging_the_systems_mirrors_the_interval(table, level):
    gained, lost, pairs = table
    found = exact_paired(gained, lost, pairs, level=level)
    exchanged = exact_paired(lost, gained, pairs, level=level)
    assert (exchanged.lower, exchanged.upper) == (-found.upper, -found.lower)


@deterministic
@given(tables(), levels)
def test_a_better_pair_never_lowers_a_bound(table, level):
    gained, lost, pairs = table
    found = exact_paired(gained, lost, pairs, level=level)
    if gained + lost < pairs:
        better = exact_paired(gained + 1, lost, pairs, level=level)
    else:
        better = exact_paired(gained, max(lost - 1, 0), pairs, level=level)
    assert better.lower >= found.lower - STEP
    assert better.upper >= found.upper - STEP


@deterministic
@given(tables(), levels, st.integers(0, 5))
def test_a_missing_pair_never_narrows(table, level, missing):
    found = exact_paired(*table, missing, level)
    more = exact_paired(*table, missing + 1, level)
    assert more.lower <= found.lower + STEP
    assert more.upper >= found.upper - STEP


@deterministic
@given(tables(), st.integers(1, 5), st.integers(0, 5))
def test_any_outcome_of_the_missing_pairs_is_enclosed(table, missing, gained_later):
    gained, lost, pairs = table
    found = exact_paired(gained, lost, pairs, missing)
    later = min(gained_later, missing)
    resolved = exact_paired(gained + later, lost + missing - later, pairs + missing)
    assert found.lower <= resolved.lower + STEP
    assert found.upper >= resolved.upper - STEP
