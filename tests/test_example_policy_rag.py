"""The example with the answers of two systems to four questions: every figure it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import Program, document, program_in
from projects import Example, Run

FIGURES = {
    "baseline": {
        "evidence_coverage": "2 / 3 observed · 0 missing · 1 excluded",
        "context_support": "2 / 4 observed · 0 missing · 0 excluded",
        "task_acceptance": "1 / 4 observed · 0 missing · 0 excluded",
    },
    "candidate": {
        "evidence_coverage": "3 / 3 observed · 0 missing · 1 excluded",
        "context_support": "3 / 3 observed · 0 missing · 1 excluded",
        "task_acceptance": "4 / 4 observed · 0 missing · 0 excluded",
    },
}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("example"), "policy_rag")


@pytest.fixture(scope="module")
def runs(example: Example) -> dict[str, Run]:
    return {side: example.run(config=f"{side}.yaml") for side in ("baseline", "candidate")}


@pytest.fixture(scope="module")
def rag_assets(example: Example, runs: dict[str, Run]) -> Program:
    return program_in(example.root)


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_figures(side: str, runs: dict[str, Run], rag_assets: Program) -> None:
    shown = rag_assets("inspect", runs[side].row.id, "--config", f"{side}.yaml").stdout
    for criterion, denominator in FIGURES[side].items():
        assert re.search(rf"^{criterion}  .*  {denominator}$", shown, re.MULTILINE), criterion


def test_a_stale_answer_is_supported_and_not_accepted(runs: dict[str, Run]) -> None:
    run = runs["baseline"]
    assert run.judgment("refund", "context_support").value == 1.0
    assert run.judgment("refund", "task_acceptance").value == 0.0
    assert run.judgment("refund", "admissible_context").reason == "retired"
    accepted = [one.case_id for one in run.judgments if one.criterion == "task_acceptance"]
    assert [one for one in accepted if run.judgment(one, "task_acceptance").value] == ["shipping"]


def test_why_the_phone_case_is_excluded(runs: dict[str, Run]) -> None:
    phone = {side: run.judgment("phone", "context_support") for side, run in runs.items()}
    assert phone["baseline"].value == 0.0
    assert phone["candidate"].reason == "not_a_factual_answer"
    assert runs["candidate"].judgment("phone", "evidence_coverage").reason == "no_relevance_labels"


def test_the_gates(runs: dict[str, Run]) -> None:
    found = {side: (run.row.gate, run.row.exit_code) for side, run in runs.items()}
    assert found == {"baseline": ("BLOCK", 1), "candidate": ("ALLOW", 0)}


def test_a_comparison_names_the_denominators_before_the_percentages(
    runs: dict[str, Run], rag_assets: Program
) -> None:
    ids = (runs["candidate"].row.id, runs["baseline"].row.id)
    shown = rag_assets("compare", *ids, "--config", "candidate.yaml").stdout
    parts = (
        (
            "Denominator of context_support differs: 3 observed · 0 missing · 1 excluded against "
            "4 observed · 0 missing · 0 excluded"
        ),
        "context_support: +33.3 points [",
        "3 paired · 0 missing · 1 excluded",
        "  not_a_factual_answer: 1",
        "  gained 1: cancel; lost 0",
        "  not over the same cases: candidate: 100.0% of 3 observed, baseline: 50.0% of 4 observed",
        "task_acceptance: +75.0 points [",
    )
    places = [shown.find(part) for part in parts]
    assert -1 not in places
    assert places[0] < shown.find("%")
    assert [places[0], *places[3:]] == sorted([places[0], *places[3:]])
    # Over the same cases there is nothing to point out.
    assert "Denominator of evidence_coverage" not in shown


def test_both_systems_have_one_dataset_manifest_and_label_file(runs: dict[str, Run]) -> None:
    records = [json.loads(run.row.record) for run in runs.values()]
    for what in ("dataset", "manifest", "labels"):
        assert records[0][what]["digest"] == records[1][what]["digest"]


def test_reviewers_agree(runs: dict[str, Run], rag_assets: Program) -> None:
    where = (runs["baseline"].row.id, "--config", "baseline.yaml")
    assert (
        "reviewer-1 and reviewer-2 agree on 5 of 5 labels (100.0%), kappa 1.000"
        in rag_assets("inspect", *where).stdout
    )
    (found,) = document(rag_assets("inspect", *where, "--json"))["agreement"]
    assert (found["agreed"], found["labels"], found["disagreements"]) == (5, 5, [])


def test_it_can_be_started(tmp_path: Path) -> None:
    result = program_in(tmp_path)("init", "--example", "policy_rag", "mine")
    assert result.exit_code == 0
    assert result.stdout.endswith("Next: cd mine && rag-assets run --config baseline.yaml\n")
