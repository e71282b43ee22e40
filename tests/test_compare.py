"""`compare` on the staged example and on small projects, end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from command_line import Program, document, program_in
from projects import Run, SampleProject, relevant
from rag_assets.contracts.canonical import digest
from rag_assets.evaluation.comparison_view import comparison_view
from rag_assets.reports.comparison_report import comparison_report
from rag_assets.store import ComparisonRow

EXAMPLE = Path(__file__).parent.parent / "examples" / "support_rag"
NO_CHANGE = "+0.0 points [-33.6, +33.6] · 13 paired · 0 missing · 0 excluded"


class Example(SampleProject):
    def __init__(self, root: Path) -> None:
        self.root = root
        ignore = shutil.ignore_patterns("__pycache__", ".rag_assets")
        shutil.copytree(EXAMPLE, root, ignore=ignore)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Example, dict[int, Run]]:
    """The example, run with token budgets of 40 (as shipped), 120 and 12."""
    example = Example(tmp_path_factory.mktemp("compare") / "support_rag")
    found = {40: example.run()}
    for before, after in ((40, 120), (120, 12)):
        old, new = (f"token_budget: {budget}" for budget in (before, after))
        example.replace("rag_assets.yaml", old, new)
        found[after] = example.run()
    return example, found


@pytest.fixture
def program(
    runs: tuple[Example, dict[int, Run]],
) -> Program:
    return program_in(runs[0].root)


def test_a_larger_budget_changes_no_verdict(
    runs: tuple[Example, dict[int, Run]], program: Program
) -> None:
    ids = {budget: run.row.id for budget, run in runs[1].items()}
    called = program("compare", ids[120], ids[40])
    assert called.exit_code == 3
    lines = called.stdout.splitlines()
    assert lines[0].startswith("Comparison sha256:")
    assert lines[0].endswith(f" of {ids[120]} against {ids[40]} · 13 paired cases")
    assert "token_budget differs: 120 against 40" in lines
    for metric in ("answer_correct", "hit_rate_at_2", "recall_at_2", "citations_valid"):
        assert f"{metric}: {NO_CHANGE}" in lines
    assert ("ndcg_at_6: +0.000 [-0.336, +0.336] · 13 paired · 0 missing · 0 excluded") in lines
    assert "45 exploratory slice differences not shown; add --slices to list them" in lines
    assert (
        "answers-not-worse  answer_correct  non-inferiority, margin 5.0 points  "
        "INSUFFICIENT_EVIDENCE  interval_overlaps_margin"
    ) in lines
    assert (
        "    PASS at 107 / 107 / 107 cases in 50 / 80 / 90 % of such samples, if future cases "
        "follow the observed distribution (gained 0.0 %, lost 0.0 % of pairs); "
        "with method: exact_paired: 72 instead of 107"
    ) in lines
    assert lines[-1] == "Gate: BLOCK (exit 3)"


def test_the_shipped_settings_are_better_than_a_small_budget(
    runs: tuple[Example, dict[int, Run]], program: Program
) -> None:
    called = program("compare", "latest~2", "latest")
    assert called.exit_code == 3
    lines = called.stdout.splitlines()
    assert (
        "answer_correct: +53.8 points [-2.6, +88.0] · 13 paired · 0 missing · 0 excluded"
    ) in lines
    assert (
        "  gained 7: refund_annual, extra_seat, export_window, invoice_date, sso_protocol, "
        "rate_limit, deletion_export; lost 0"
    ) in lines
    assert (
        "answers-not-worse  answer_correct  non-inferiority, margin 5.0 points  PASS  "
        "lower_bound_above_margin"
    ) in lines


def test_the_same_comparison_has_the_same_id(program: Program) -> None:
    first, second = (program("compare", "latest~1", "latest~2", "--json") for _ in range(2))
    assert first.stdout == second.stdout
    record = dict(document(first))
    name = record.pop("comparison")
    assert name == f"sha256:{digest(record)}"
    with_slices = program("compare", "latest~1", "latest~2", "--slices", "--json")
    assert document(with_slices)["comparison"] == name


def test_a_stored_comparison_is_printed_again(program: Program) -> None:
    made = program("compare", "latest~1", "latest~2")
    name = made.stdout.split()[1]
    for reference in (name, name[:15]):
        again = program("inspect", reference)
        assert (again.exit_code, again.stdout) == (0, made.stdout)
    # Long enough to be the beginning of no digest.
    other = "sha256:000000000000"
    unknown = program("inspect", other)
    assert unknown.exit_code == 2
    assert f'There is no comparison or diagnosis "{other}". The newest' in unknown.stderr


def test_what_differs_inside_a_setting_is_named(program: Program) -> None:
    record = document(program("compare", "latest~1", "latest~2", "--json"))
    http = {"url": "u", "headers": {"A": "1", "B": "2"}, "body": None}
    pairs = {
        "config": ({"model": {"name": "large", "t": 0.5}, "k": 1}, {"model": {"name": "small"}}),
        "recorded": (
            {"map": {"answer": "a"}, "content": "0" * 64},
            {"map": {"answer": "a"}, "content": "1" * 64},
        ),
        "http": (http, None),
        "text": ("x" * 200, "y"),
    }
    record["differs"] = [
        {"what": what, "candidate": ours, "baseline": theirs}
        for what, (ours, theirs) in pairs.items()
    ]
    row = ComparisonRow("sha256:0", "", "", "", None, 0, json.dumps(record))
    lines = [one.plain for one in comparison_report(comparison_view(row), None)]
    assert [one for one in lines if " differs: " in one] == [
        "config.model.name differs: large against small",
        "config.model.t differs: 0.5 against none",
        "config.k differs: 1 against none",
        f"recorded.content differs: {'0' * 12} against {'1' * 12}",
        "http differs: url, headers, body against none",
        f"text differs: {'x' * 160}… (200 characters) against y",
    ]


def test_slices_follow_the_baselines_membership(program: Program) -> None:
    called = program("compare", "latest~2", "latest", "--slices")
    rows = [line.split("  ")[0] for line in called.stdout.splitlines()]
    assert "context_truncated=true" in rows
    assert "too few cases to mark anything" in called.stdout.splitlines()
    record = document(program("compare", "latest~2", "latest", "--json"))
    truncated = {
        tuple(row["slice"]): row["support"]
        for row in record["slices"]["rows"]
        if row["criterion"] == "answer_correct"
    }
    # With a budget of 12 ten cases lose a passage; with 40 it would be six.
    assert truncated["context_truncated", "true"] == 10
    assert truncated["metadata.topic", "billing"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("latest", "latest"), "Both references name run_"),
        (("latest", "run_X"), 'There is no run "run_X".'),
        (
            ("latest", "latest~1", "--policy", "release.yaml"),
            "release.yaml has no rule for a comparison.",
        ),
    ],
)
def test_what_cannot_be_compared(
    program: Program, arguments: tuple[str, ...], message: str
) -> None:
    called = program("compare", *arguments)
    assert called.exit_code == 2
    assert message in called.stderr


def test_a_rule_on_an_unknown_metric_is_refused(program: Program, tmp_path: Path) -> None:
    policy = tmp_path / "strict.yaml"
    policy.write_text("rules:\n  - {id: r, metric: answer_corect, kind: superiority}\n")
    called = program("compare", "latest", "latest~1", "--policy", str(policy))
    assert called.exit_code == 2
    assert 'No evaluator yields the metric "answer_corect". Did you mean "answer_correct"?' in (
        called.stderr
    )


def test_check_reads_the_policy_for_comparisons_too(sample: SampleProject) -> None:
    sample.write("compare.yaml", "rules:\n  - {id: r, metric: answers, kind: superiority}\n")
    called = program_in(sample.root)("check")
    assert called.exit_code == 2
    assert 'compare.yaml:2: rules.0.metric: No evaluator yields the metric "answers".' in (
        called.stderr
    )


POLICY = """
rules:
  - {id: not-worse, metric: answer_correct, kind: non_inferiority, margin: 0.1}
  - {id: floor, metric: answer_correct, min: 0.5}
"""


@pytest.fixture
def sample_program(sample: SampleProject) -> Program:
    return program_in(sample.root)


def case(case_id: str, question: str, answer: str, **more: Any) -> dict[str, Any]:
    return {"id": case_id, "input": {"question": question}, **more} | {
        "expected": relevant(question[0], answer=answer)
    }


def test_an_edited_dataset_is_paired_as_far_as_it_agrees(
    sample: SampleProject, sample_program: Program
) -> None:
    sample.cases(
        case("kept", "a", "of a"),
        case("relabelled", "b", "of b", metadata={"topic": "x"}),
        case("asked_anew", "c", "of c"),
        case("asked_by_another", "c", "of c", user={"id": "ann", "roles": ["staff"]}),
        case("asked_later", "c", "of c", as_of="2026-01-15"),
        case("answered_anew", "d", "of d"),
        case("dropped", "e", "of e"),
    )
    sample.run()
    sample.cases(
        case("new", "f", "of f"),
        case("kept", "a", "of a"),
        case("relabelled", "b", "of b", metadata={"topic": "y"}),
        case("asked_anew", "c g", "of c"),
        case("asked_by_another", "c", "of c", user={"id": "ann", "roles": []}),
        case("asked_later", "c", "of c", as_of="2026-02-15"),
        case("answered_anew", "d", "of another"),
    )
    sample.run()
    called = sample_program("compare", "latest", "latest~1")
    assert called.exit_code == 0
    lines = called.stdout.splitlines()
    assert lines[0].endswith("· 2 paired cases")
    assert lines[2].startswith("Dataset differs: ")
    assert "1 case not paired, added (in the candidate only): new" in lines
    assert "1 case not paired, removed (in the baseline only): dropped" in lines
    assert (
        "3 cases not paired, input_changed (another input under the same id): asked_anew, "
        "asked_by_another, asked_later"
    ) in lines
    assert (
        "1 case not paired, expected_changed (another expectation for the same input): "
        "answered_anew"
    ) in lines
    assert (
        "Denominator of answer_correct differs: 7 observed · 0 missing · 0 excluded against "
        "7 observed · 0 missing · 0 excluded"
    ) not in lines
    assert lines[-1] == "No policy: nothing was decided."


def test_metrics_that_are_not_comparable_are_listed(
    sample: SampleProject, sample_program: Program
) -> None:
    sample.first_run()
    sample.replace(
        "rag_assets.yaml",
        "field: answer}\n  - {type: hit_rate, k: 2}",
        "field: answer, casefold: true}\n  - {type: hit_rate, k: 1}",
    )
    sample.write("compare.yaml", POLICY)
    sample.run()
    called = sample_program("compare", "latest", "latest~1")
    assert called.exit_code == 3
    lines = called.stdout.splitlines()
    assert (
        "answer_correct: not compared, evaluator_changed: its definition differs: run both "
        "systems with the same config of it."
    ) in lines
    assert any(line.startswith("hit_rate_at_1: not compared, only_in_candidate") for line in lines)
    assert any(line.startswith("hit_rate_at_2: not compared, only_in_baseline") for line in lines)
    assert (
        "not-worse  answer_correct  non-inferiority, margin 10.0 points  INSUFFICIENT_EVIDENCE  "
        "no_observations, interval_unavailable"
    ) in lines
    assert "1 rule skipped: decides on one run, not on a comparison." in called.stderr


def test_a_default_policy_without_a_comparison_rule_decides_nothing(
    sample: SampleProject, sample_program: Program
) -> None:
    sample.write("release.yaml", "rules:\n  - {id: floor, metric: answer_correct, min: 0.1}\n")
    sample.run()
    sample.run()
    called = sample_program("compare", "latest", "latest~1")
    assert called.exit_code == 0
    assert (
        called.stdout.splitlines()[-1]
        == "The policy has no rule for a comparison: nothing was decided."
    )


def test_a_partial_run_blocks(sample: SampleProject, sample_program: Program) -> None:
    sample.write("compare.yaml", POLICY)
    sample.run()
    sample.run(cases=["one"])
    called = sample_program("compare", "latest", "latest~1")
    lines = called.stdout.splitlines()
    assert "The candidate is DECIDED/PARTIAL, not complete." in lines
    assert "2 cases not paired, removed (in the baseline only): two, far" in lines
    assert called.exit_code == 3
    assert any(line.startswith("    partial_run: ") for line in lines)


def test_a_crash_is_a_missing_pair(sample: SampleProject, sample_program: Program) -> None:
    sample.first_run()
    sample.replace(
        "app.py",
        "return answer_of(context)",
        'if "c" in input["question"]:\n            raise ValueError("boom")\n'
        "        return answer_of(context)",
    )
    sample.run()
    called = sample_program("compare", "latest", "latest~1")
    lines = called.stdout.splitlines()
    assert "code of generate differs: " in called.stdout
    assert (
        "Denominator of answer_correct differs: 2 observed · 1 missing · 0 excluded against "
        "3 observed · 0 missing · 0 excluded"
    ) in lines
    place = next(i for i, line in enumerate(lines) if line.startswith("answer_correct: "))
    assert lines[place].endswith("· 2 paired · 1 missing · 0 excluded")
    assert lines[place + 1] == "  execution_error: 1"
