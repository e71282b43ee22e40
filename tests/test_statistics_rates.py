"""Clopper-Pearson intervals: known values, exact boundaries and properties."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.statistics import Interval, clopper_pearson

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


def vectors(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("v", vectors("interval_clopper_pearson.json"))
def test_golden_intervals(v):
    found = clopper_pearson(v["successes"], v["n_observed"], v["n_missing"], v["confidence"])
    assert found.estimate == v["estimate"]
    assert (found.lower, found.upper) == (v["lower"], v["upper"])


@pytest.mark.parametrize("v", vectors("stats_method_a.json")["clopper_pearson"])
def test_golden_bounds_of_the_research_tables(v):
    found = clopper_pearson(v["k"], v["n"], v["missing"], v["confidence"])
    assert found.lower == pytest.approx(v["lower"], abs=1e-8)
    assert found.upper == pytest.approx(v["upper"], abs=1e-8)


@pytest.mark.parametrize("v", vectors("gate_run_decisions.json")["rates"])
def test_bounds_that_decide_have_every_digit(v):
    found = clopper_pearson(v["passed"], v["observed"], v["missing"], v["confidence"])
    assert [found.lower, found.upper] == v["interval"]


def test_boundaries_are_exact():
    # Decisions compare bounds with thresholds without a tolerance.
    assert clopper_pearson(30, 30).lower == 0.8842966917779722
    assert clopper_pearson(5, 40).upper == 0.2680329173617204
    assert clopper_pearson(5, 40).lower == 0.04185962613861672


def test_the_whole_value():
    assert clopper_pearson(9, 13, 0, 0.95) == Interval(
        estimate=0.6923076923076923,
        lower=0.38573833824929565,
        upper=0.9090796054279033,
        method="clopper_pearson@1",
        level=0.95,
        observed=13,
        missing=0,
    )


def test_no_cases_have_no_interval():
    found = clopper_pearson(0, 0)
    assert (found.estimate, found.lower, found.upper) == (None, None, None)


def test_only_missing_cases_say_nothing():
    found = clopper_pearson(0, 0, 13)
    assert (found.estimate, found.lower, found.upper) == (None, 0.0, 1.0)
    assert (found.observed, found.missing) == (0, 13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((14, 13), "successes must be at most observed, and 14 is above 13."),
        ((-1, 13), "successes must be at least 0, not -1."),
        ((1, -1), "observed must be at least 0, not -1."),
        ((1, 13, -2), "missing must be at least 0, not -2."),
        ((1.5, 13), "successes must be a whole number, not 1.5."),
        ((1, 13, 0, 1.0), "level must be strictly between 0 and 1, not 1.0."),
        ((1, 13, 0, math.nan), "level must be strictly between 0 and 1, not nan."),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match="must") as caught:
        clopper_pearson(*arguments)
    assert str(caught.value) == message


@st.composite
def counts(draw):
    observed = draw(st.integers(1, 300))
    return draw(st.integers(0, observed)), observed, draw(st.integers(0, 30))


levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


@deterministic
@given(counts(), levels)
def test_bounds_enclose_the_estimate(sample, level):
    found = clopper_pearson(*sample, level)
    assert 0.0 <= found.lower <= found.estimate <= found.upper <= 1.0


@deterministic
@given(counts(), levels)
def test_one_more_pass_never_lowers_a_bound(sample, level):
    successes, observed, missing = sample
    better = clopper_pearson(min(successes + 1, observed), observed, missing, level)
    found = clopper_pearson(successes, observed, missing, level)
    assert better.lower >= found.lower
    assert better.upper >= found.upper


@deterministic
@given(counts(), levels)
def test_a_missing_case_never_narrows(sample, level):
    successes, observed, missing = sample
    found = clopper_pearson(successes, observed, missing, level)
    more = clopper_pearson(successes, observed, missing + 1, level)
    assert more.lower <= found.lower
    assert more.upper >= found.upper


@deterministic
@given(counts(), levels)
def test_any_outcome_of_the_missing_cases_is_enclosed(sample, level):
    successes, observed, missing = sample
    found = clopper_pearson(successes, observed, missing, level)
    for passed in (0, missing // 2, missing):
        resolved = clopper_pearson(successes + passed, observed + missing, 0, level)
        assert found.lower <= resolved.lower
        assert found.upper >= resolved.upper


@deterministic
@given(counts(), levels)
def test_passes_and_failures_mirror_each_other(sample, level):
    successes, observed, missing = sample
    passes = clopper_pearson(successes, observed, missing, level)
    failures = clopper_pearson(observed - successes, observed, missing, level)
    assert failures.lower == pytest.approx(1 - passes.upper, abs=1e-12)


@pytest.mark.parametrize("cases", [1, 2, 5, 13])
def test_coverage_is_kept_at_every_rate(cases):
    """Exact coverage, summed over all outcomes, at every hundredth."""
    bounds = [clopper_pearson(k, cases) for k in range(cases + 1)]
    for hundredth in range(1, 100):
        rate = hundredth / 100
        covered = sum(
            math.comb(cases, k) * rate**k * (1 - rate) ** (cases - k)
            for k, bound in enumerate(bounds)
            if bound.lower <= rate <= bound.upper
        )
        assert covered >= 0.95 - 1e-12


def test_the_import_loads_no_numerical_library():
    script = (
        "import sys, rag_assets.statistics; "
        "print(sorted({'numpy', 'scipy'} & {name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
