"""Intervals for paired differences by the mixture method."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import bounded_mean, paired_mixture

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=50)


def vectors(name, key):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))[key]


def differences_of(gained, lost, tied):
    return [1.0] * gained + [-1.0] * lost + [0.0] * tied


def same(found, v, tolerance=1e-9):
    if v["lower"] is None:
        return (found.estimate, found.lower, found.upper) == (None, None, None)
    return [found.lower, found.upper] == pytest.approx([v["lower"], v["upper"]], abs=tolerance)


@pytest.mark.parametrize("v", vectors("interval_paired_difference.json", "verdicts"))
def test_golden_verdicts(v):
    sample = differences_of(v["candidate_only"], v["baseline_only"], v["concordant"])
    found = paired_mixture(sample, v["n_missing"], v["confidence"])
    assert found.estimate == v["estimate"]
    assert same(found, v)


@pytest.mark.parametrize("v", vectors("interval_paired_difference.json", "scores"))
def test_golden_scores(v):
    value_range = (v["range"][0], v["range"][1])
    found = paired_mixture(v["differences"], v["n_missing"], v["confidence"], value_range)
    assert found.estimate == pytest.approx(v["estimate"], abs=1e-12)
    assert same(found, v)


@pytest.mark.parametrize("v", vectors("stats_method_a.json", "paired_A"))
def test_golden_bounds_of_the_research_tables(v):
    sample = differences_of(v["b"], v["c"], v["n"] - v["b"] - v["c"])
    found = paired_mixture(sample, v["missing"], v["confidence"])
    assert same(found, v, tolerance=1e-8)


@pytest.mark.parametrize("v", vectors("gate_comparison_decisions.json", "verdict_metrics"))
def test_bounds_that_decide_on_verdicts(v):
    sample = differences_of(v["candidate_only"], v["baseline_only"], v["concordant"])
    found = paired_mixture(sample, v["missing"], v["confidence"])
    bounds = v["interval"] or [None, None]
    assert same(found, {"lower": bounds[0], "upper": bounds[1]})


@pytest.mark.parametrize("v", vectors("gate_comparison_decisions.json", "score_metrics"))
def test_bounds_that_decide_on_scores(v):
    value_range = (v["range"][0], v["range"][1])
    found = paired_mixture(v["differences"], v["missing"], v["confidence"], value_range)
    bounds = v["interval"] or [None, None]
    assert same(found, {"lower": bounds[0], "upper": bounds[1]})


def test_one_gain_in_fifteen_pairs():
    found = paired_mixture(differences_of(1, 0, 14))
    assert found.estimate == pytest.approx(1 / 15)
    assert found.lower == pytest.approx(-0.264280204736848, abs=1e-9)
    assert found.upper == pytest.approx(0.4079601698507359, abs=1e-9)
    assert (found.method, found.level) == ("paired_mixture@1", 0.95)
    assert (found.observed, found.missing) == (15, 0)


def test_a_difference_outside_of_its_range_is_refused():
    with pytest.raises(ValueError, match=r"^values must lie between -1.0 and 1.0, and 2.0 does"):
        paired_mixture([0.0, 2.0])


samples = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60)


@deterministic
@given(samples, st.integers(0, 4))
def test_exchanging_the_systems_mirrors_the_interval(sample, missing):
    found = paired_mixture(sample, missing)
    exchanged = paired_mixture([-difference for difference in sample], missing)
    assert exchanged.lower == pytest.approx(-found.upper, abs=1e-9)
    assert exchanged.upper == pytest.approx(-found.lower, abs=1e-9)


@deterministic
@given(samples)
def test_a_missing_pair_never_narrows(sample):
    found, more = paired_mixture(sample), paired_mixture(sample, 1)
    assert more.lower <= found.lower
    assert more.upper >= found.upper


@deterministic
@given(samples)
def test_it_is_the_interval_of_a_mean(sample):
    mean = bounded_mean(sample, value_range=(-1.0, 1.0))
    found = paired_mixture(sample)
    assert (found.estimate, found.lower, found.upper) == (mean.estimate, mean.lower, mean.upper)
