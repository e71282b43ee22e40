"""Cases that belong together have one value for each group."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import document, program_in
from projects import SampleProject, relevant
from rag_assets.evaluation.differences import difference
from rag_assets.evaluation.grouping import group_keys, group_values
from rag_assets.evaluation.metrics import measure
from rag_assets.evaluators import Outcome
from rag_assets.statistics import bounded_mean, paired_mixture

PASS, FAIL, CRASHED = Outcome.verdict(True), Outcome.verdict(False), Outcome.missing("timeout")
EXCLUDED = Outcome.excluded("no_expected")


def test_a_case_without_a_group_is_its_own() -> None:
    keys = group_keys([("a", "doc"), ("b", "doc"), ("c", None), ("doc", None)])
    assert keys == (("group", "doc"), ("group", "doc"), ("case", "c"), ("case", "doc"))


def test_groups_of_one_case_change_nothing() -> None:
    assert group_keys([("a", "x"), ("b", "y"), ("c", None)]) is None


def test_missing_cases_stand_at_the_end_of_the_range() -> None:
    keys = [("group", "x")] * 3 + [("case", "c")]
    found = group_values([1.0, None, 0.0, None], keys, (0.0, 1.0))
    assert found.observed == (0.5,)
    assert found.lowest == (pytest.approx(1 / 3), 0.0)
    assert found.highest == (pytest.approx(2 / 3), 1.0)


def test_a_rate_over_groups() -> None:
    outcomes = [PASS, FAIL, PASS, PASS, EXCLUDED, CRASHED]
    keys = [("group", name) for name in ("x", "x", "y", "z", "z", "z")]
    metric = measure("m", "verdict", (0.0, 1.0), outcomes, level=0.95, keys=keys)
    assert (metric.observed, metric.missing, metric.excluded) == (4, 1, 1)
    assert metric.estimate == pytest.approx((0.5 + 1 + 1) / 3)
    assert metric.interval is not None
    assert metric.interval.method == "bounded_mean_mixture@1"
    assert metric.interval.lower == bounded_mean([0.5, 1.0, 0.5]).lower
    assert metric.interval.upper == bounded_mean([0.5, 1.0, 1.0]).upper


def test_a_difference_over_groups() -> None:
    pairs = {"a": (PASS, FAIL), "b": (PASS, PASS), "c": (FAIL, PASS), "d": (CRASHED, PASS)}
    keys = dict(
        zip(pairs, [("group", "x"), ("group", "x"), ("case", "c"), ("case", "d")], strict=True)
    )
    found = difference("m", "verdict", (0.0, 1.0), pairs, keys).bounded(0.95)
    assert found.estimate == pytest.approx((0.5 - 1) / 2)
    assert found.interval is not None
    assert found.interval.method == "paired_mixture@1"
    assert found.interval.lower == paired_mixture([0.5, -1.0, -1.0]).lower
    assert found.interval.upper == paired_mixture([0.5, -1.0, 1.0]).upper
    assert (found.gained, found.lost, found.observed, found.missing) == (("a",), ("c",), 3, 1)


VALUES = st.sampled_from([0.0, 0.5, 1.0, None])


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.tuples(VALUES, st.integers(0, 4)), min_size=1, max_size=12))
def test_a_missing_case_never_narrows(cases: list[tuple[float | None, int]]) -> None:
    values = [value for value, _ in cases]
    keys = [("group", str(group)) for _, group in cases]
    with_missing = group_values(values, keys, (0.0, 1.0)).interval(0.95, (0.0, 1.0))
    for resolved in (0.0, 0.5, 1.0):
        filled = [resolved if value is None else value for value in values]
        complete = group_values(filled, keys, (0.0, 1.0)).interval(0.95, (0.0, 1.0))
        if with_missing is None:
            continue
        assert complete is not None
        assert with_missing.lower is not None
        assert with_missing.upper is not None
        assert complete.lower is not None
        assert complete.upper is not None
        assert with_missing.lower <= complete.lower + 1e-12
        assert complete.upper <= with_missing.upper + 1e-12


@pytest.fixture
def project(sample: SampleProject) -> SampleProject:
    sample.cases(
        *(
            {
                "id": f"c{index}",
                "input": {"question": f"a b{index}"},
                "expected": relevant("a", answer="of a" if index % 4 else "of z"),
                "group": f"doc{index // 2}",
                "metadata": {"half": index % 2},
            }
            for index in range(12)
        )
    )
    config = (sample.root / "rag_assets.yaml").read_text()
    sample.write("rag_assets.yaml", config + "slices: [metadata.half]\nmin_slice_support: 2\n")
    sample.write("release.yaml", "rules:\n  - {id: floor, metric: answer_correct, min: 0.7}\n")
    return sample


def test_a_run_counts_groups(project: SampleProject) -> None:
    program = program_in(project.root)
    called = program("run")
    lines = called.stdout.splitlines()
    # Groups doc0, doc2 and doc4 pass one of two; the other three pass both.
    expected = bounded_mean([0.5, 1.0] * 3)
    row = next(line for line in lines if line.startswith("answer_correct  "))
    assert row.startswith("answer_correct  75.0%  [")
    assert row.endswith("9 / 12 observed · 0 missing · 0 excluded · 6 groups")
    assert any("groups in 50 / 80 / 90 % of such samples" in line for line in lines)
    record = document(program("gate", "latest", "--json"))["decisions"][0]
    assert (record["lower"], record["upper"]) == (expected.lower, expected.upper)
    assert (record["method"], record["groups"]) == ("bounded_mean_mixture@1", 6)
    slices = document(program("inspect", "latest", "--json"))["slices"]
    assert {one["slice"]["mark"] for one in slices} == {None}


def test_a_comparison_counts_groups(project: SampleProject) -> None:
    project.first_run()
    project.run()
    called = program_in(project.root)("compare", "latest", "latest~1")
    row = next(line for line in called.stdout.splitlines() if line.startswith("answer_correct: "))
    assert row.endswith("· 12 paired · 0 missing · 0 excluded · 6 groups")
    same = paired_mixture([0.0] * 6)
    record = document(program_in(project.root)("compare", "latest", "latest~1", "--json"))
    assert record["metrics"][0]["lower"] == same.lower


@pytest.mark.parametrize(
    ("file", "rule", "method"),
    [
        ("release.yaml", "min: 0.7, method: clopper_pearson", "clopper_pearson"),
        ("compare.yaml", "kind: superiority, method: exact_paired", "exact_paired"),
    ],
)
def test_methods_for_independent_cases_are_refused(
    project: SampleProject, file: str, rule: str, method: str
) -> None:
    project.first_run()
    project.run()
    project.write(file, f"rules:\n  - {{id: r, metric: answer_correct, {rule}}}\n")
    program = program_in(project.root)
    called = (
        program("check") if file == "release.yaml" else program("compare", "latest", "latest~1")
    )
    assert called.exit_code == 2
    assert f"{method} needs independent cases, and cases of the dataset share a group" in (
        called.stderr
    )


def test_the_record_says_that_there_are_groups(project: SampleProject) -> None:
    run = project.first_run()
    assert json.loads(run.row.record)["grouped"] is True
