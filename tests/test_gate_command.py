"""`gate`: decided again from records, and recomputed by a second person with scipy alone."""

from __future__ import annotations

import json
import shutil
from copy import copy
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from command_line import Program, document, program_in
from projects import SampleProject, relevant

POLICY = """
confidence_level: {level}
rules:
  - {{id: floor, metric: answer_correct, min: 0.5}}
  - {{id: ceiling, metric: answer_correct, max: 0.99}}
  - {{id: ranks, metric: ndcg_at_4, min: 0.9}}
  - {{id: count, metric: citations_valid, kind: observed_count, max_failures: 0}}
  - {{id: same, metric: answer_correct, kind: non_inferiority, margin: 0.05}}
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> SampleProject:
    """A project with one run, to be copied."""
    sample = SampleProject(tmp_path_factory.mktemp("gate"))
    sample.replace("rag_assets.yaml", "  - {type: hit_rate, k: 2}", "  - {type: ndcg, k: 4}")
    sample.cases(
        *(
            {
                "id": f"c{index:02}",
                "input": {"question": "a b c" if index % 4 else "b c a"},
                "expected": relevant("a", answer="of a" if index % 5 else "of z"),
            }
            for index in range(30)
        )
    )
    sample.run()
    return sample


@pytest.fixture
def project(prepared: SampleProject, tmp_path: Path) -> SampleProject:
    shutil.copytree(prepared.root, tmp_path, dirs_exist_ok=True)
    copied = copy(prepared)
    copied.root = tmp_path
    return copied


@pytest.fixture
def program(project: SampleProject) -> Program:
    return program_in(project.root)


def write_policy(project: SampleProject, level: float) -> None:
    project.write("strict.yaml", POLICY.format(level=level))


def recomputed(record: dict[str, Any], values: list[float]) -> tuple[str, float, float]:
    """State and bounds of a threshold rule, from the counts or values and the textbook alone."""
    alpha, n, m = 1 - record["level"], record["observed"], record["missing"]
    if record["method"] == "clopper_pearson@1":
        k = record["passes"]
        lower = stats.beta.ppf(alpha / 2, k, n + m - k + 1) if k else 0.0
        upper = stats.beta.ppf(1 - alpha / 2, k + m + 1, n - k) if k < n else 1.0
    else:
        assert record["method"] == "bounded_mean_mixture@1"
        bets = np.arange(1, 21)[:, None] / 21

        def bound(y: list[float]) -> float:
            def excess(mean: float) -> float:
                capital = np.prod(1 - bets + bets * np.array(y) / mean, axis=1).mean()
                return log(capital) - log(2 / alpha)

            return float(optimize.brentq(excess, 1e-6, sum(y) / len(y), xtol=1e-13))

        lower = bound([*values, *[0.0] * m])
        upper = 1 - bound([1 - one for one in [*values, *[1.0] * m]])
    rule = record["rule"]
    if rule["kind"] == "min":
        passed, failed = lower >= rule["threshold"], upper < rule["threshold"]
    else:
        passed, failed = upper <= rule["threshold"], lower > rule["threshold"]
    state = "PASS" if passed else "FAIL" if failed else "INSUFFICIENT_EVIDENCE"
    return state, float(lower), float(upper)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_a_second_person_can_recompute_every_decision(
    project: SampleProject, program: Program, level: float
) -> None:
    write_policy(project, level)
    called = program("gate", "latest", "--policy", "strict.yaml", "--json")
    with project.store.reading() as reader:
        judgments = reader.run_judgments(reader.run_ids()[0])
    records = {one["rule"]["id"]: one for one in document(called)["decisions"]}
    assert set(records) == {"floor", "ceiling", "ranks", "count"}
    for name in ("floor", "ceiling", "ranks"):
        record = records[name]
        values = [
            one.value
            for one in judgments
            if one.criterion == record["rule"]["metric"] and one.value is not None
        ]
        state, lower, upper = recomputed(record, values)
        assert record["state"] == state
        assert (record["lower"], record["upper"]) == pytest.approx((lower, upper), abs=1e-8)
        assert (record["level"], record["policy_digest"]) == (
            level,
            document(called)["policy_digest"],
        )
    count = records["count"]
    assert count["state"] == "PASS"
    assert (count["passes"], count["observed"], count["missing"]) == (30, 30, 0)


def tango(b: Any, c: Any, n: int, d: float) -> Any:
    """The score statistic for a difference d of paired shares."""
    linear = -b - c + (2 * n - b + c) * d
    lost = (np.sqrt(linear**2 + 8 * n * c * d * (1 - d)) - linear) / (4 * n)
    return (b - c - n * d) / np.sqrt(n * (2 * lost + d * (1 - d)))


def largest_chance(b: int, c: int, n: int, d: float, tail: float) -> float:
    """The largest probability of a table at least as good, over shares whose difference is d."""
    z = stats.norm.isf(tail)
    order = optimize.brentq(lambda x: tango(b, c, n, x) - z, -1 + 1e-9, (b - c) / n - 1e-12)
    gained, lost = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    inside = (gained + lost <= n) & (tango(gained, lost, n, order) >= z - 1e-9)
    least = stats.beta.ppf(tail * 0.0005, b, n - b + 1) if b else 0.0
    most = stats.beta.ppf(1 - tail * 0.0005, c + 1, n - c) if c < n else 1.0
    chances = [
        (stats.binom.pmf(gained, n, q) * stats.binom.pmf(lost, n - gained, r / (1 - q)))[inside]
        for q in np.linspace(max(least, d, 0.0), (1 + d) / 2 - 1e-9, 200)
        for r in [q - d]
        if 0 <= r <= most
    ]
    return max(float(one.sum()) for one in chances)


def test_a_stored_comparison_can_be_recomputed_too(
    project: SampleProject, program: Program
) -> None:
    """The exact bound by its definition: what lies below is refuted, what lies above is not."""
    project.write(
        "compare.yaml",
        "rules:\n  - {id: same, metric: answer_correct, kind: non_inferiority, margin: 0.2, "
        "method: exact_paired}\n",
    )
    project.replace(
        "app.py", "return answer_of(context)", 'return {"answer": "text of a", "citations": []}'
    )
    project.run()
    record = document(program("compare", "latest", "latest~1", "--json"))["decisions"][0]
    b, c, n = record["gained"], record["lost"], record["observed"]
    assert (b, c, n, record["missing"]) == (6, 0, 30, 0)
    tail = (1 - record["level"]) / 2
    assert largest_chance(b, c, n, record["lower"] - 1e-3, tail) < tail
    assert largest_chance(b, c, n, record["lower"] + 1e-3, tail) > tail * 0.999
    assert largest_chance(c, b, n, -record["upper"] - 1e-3, tail) < tail
    assert largest_chance(c, b, n, -record["upper"] + 1e-3, tail) > tail * 0.999
    assert record["state"] == "PASS"
    assert record["lower"] >= -record["rule"]["margin"]


def test_the_run_keeps_its_own_decisions(project: SampleProject, program: Program) -> None:
    project.write("release.yaml", "rules:\n  - {id: low, metric: answer_correct, min: 0.1}\n")
    project.run()
    write_policy(project, 0.95)
    called = program("gate", "latest", "--policy", "strict.yaml")
    assert called.exit_code == 3
    assert "Gate: BLOCK (exit 3)" in called.stdout.splitlines()
    assert "min 10.0%" not in called.stdout
    shown = document(program("inspect", "latest", "--json"))
    assert [one["rule"] for one in shown["decisions"]] == ["low"]


def test_nothing_is_said_right_after_a_run(project: SampleProject, program: Program) -> None:
    write_policy(project, 0.95)
    called = program("gate", "latest", "--policy", "strict.yaml")
    assert "has changed" not in called.stderr


def test_what_changed_since_the_run_is_named(project: SampleProject, program: Program) -> None:
    write_policy(project, 0.95)
    project.replace("rag_assets.yaml", "field: answer}", "field: answer, casefold: true}")
    project.replace("app.py", "top_k=2", "top_k=1")
    project.cases(
        {"id": "other", "input": {"question": "a"}, "expected": relevant("a", answer="a")}
    )
    called = program("gate", "latest", "--policy", "strict.yaml")
    assert called.exit_code == 3
    assert (
        "the project has changed since this run: system, evaluator answer_correct, dataset"
    ) in called.stderr.splitlines()


def test_a_project_that_cannot_be_loaded_is_no_obstacle(
    project: SampleProject, program: Program
) -> None:
    write_policy(project, 0.95)
    project.write("app.py", "raise RuntimeError('half written')\n")
    called = program("gate", "latest", "--policy", "strict.yaml")
    assert called.exit_code == 3
    assert "what changed since this run is not known" in called.stderr


def test_required_cases_are_found_in_the_records(project: SampleProject, program: Program) -> None:
    project.write(
        "strict.yaml",
        "required_cases: [c00]\nrules:\n  - {id: low, metric: answer_correct, min: 0.1}\n",
    )
    assert program("gate", "latest", "--policy", "strict.yaml").exit_code == 0
    project.run(cases=["c01", "c02"])
    called = program("gate", "latest", "--policy", "strict.yaml")
    assert called.exit_code == 3
    assert "required_case_missing" in called.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules:\n  - {id: r, metric: answers, min: 0.1}\n", "No evaluator yields the metric"),
        (
            "required_cases: [x*]\nrules:\n  - {id: r, metric: answer_correct, min: 0.1}\n",
            '"x*" matches no case of the dataset.',
        ),
    ],
)
def test_a_policy_that_does_not_fit_the_run(
    project: SampleProject, program: Program, text: str, message: str
) -> None:
    project.write("strict.yaml", text)
    called = program("gate", "latest", "--policy", "strict.yaml")
    assert called.exit_code == 2
    assert message in called.stderr


def test_a_sharper_method_is_used_where_it_is_named(
    project: SampleProject, program: Program
) -> None:
    bounds = {}
    for method in ("bounded_mean_mixture", "bounded_mean_convex"):
        project.write(
            "strict.yaml", f"rules:\n  - {{id: r, metric: ndcg_at_4, min: 0.6, method: {method}}}\n"
        )
        called = program("gate", "latest", "--policy", "strict.yaml", "--json")
        record = document(called)["decisions"][0]
        assert record["method"] == f"{method}@1"
        bounds[method] = record["lower"]
    assert bounds["bounded_mean_convex"] > bounds["bounded_mean_mixture"]


def test_the_decision_of_a_run_holds_its_plan(project: SampleProject) -> None:
    project.write("release.yaml", "rules:\n  - {id: r, metric: answer_correct, min: 0.7}\n")
    run = project.run()
    record = json.loads(run.decisions[0].payload)
    assert (record["passes"], record["observed"]) == (18, 30)
    assert record["plan"]["methods"][0]["method"] == "clopper_pearson"


def test_without_a_policy_nothing_says_what_to_decide(
    project: SampleProject, program: Program
) -> None:
    (project.root / "release.yaml").unlink(missing_ok=True)
    called = program("gate", "latest")
    assert (called.exit_code, called.stderr) == (
        2,
        (
            "There is no release.yaml beside rag_assets.yaml, so nothing says what to decide. "
            "Write one, or name a policy with --policy.\n"
        ),
    )
