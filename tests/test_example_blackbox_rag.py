"""The example of a system that is called as a whole, end to end: every documented figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from blackboxes import serving_example
from command_line import call, document
from golden_runs import GOLDEN, assert_decided, assert_measured, assert_recorded, verdicts
from projects import Example, Run

BASELINE = GOLDEN["blackbox_baseline"]
CANDIDATE = GOLDEN["blackbox_candidate"]


def expected(golden: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["case"]: row["verdicts"] for row in golden["cases"]}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("example"), "blackbox_rag")


@pytest.fixture(scope="module")
def first(example: Example) -> Run:
    return example.run()


@pytest.fixture(scope="module")
def again(example: Example, first: Run) -> Run:
    return example.run()


@pytest.fixture(scope="module")
def over_http(example: Example, first: Run) -> tuple[Run, Result]:
    """The first run over HTTP, and the command that ran it again with the service gone."""
    config = "rag_assets.http.yaml"
    with serving_example(example.root) as url:
        example.replace(config, "http://127.0.0.1:8766/answer", url)
        run = example.run(config=config)
    return run, call(example.root, "run", "--config", config)


@pytest.fixture(scope="module")
def expanded(example: Example, again: Run, over_http: Any) -> Run:
    example.replace("app.py", "EXPAND_QUERY = False", "EXPAND_QUERY = True")
    return example.run()


@pytest.fixture(scope="module")
def comparison(example: Example, again: Run, expanded: Run) -> dict[str, Any]:
    return document(call(example.root, "compare", expanded.row.id, again.row.id, "--json"))


def test_the_first_run(first: Run) -> None:
    assert_decided(first, BASELINE)
    assert_measured(first, BASELINE)
    assert verdicts(first) == expected(BASELINE)
    assert first.counts == {"execution": {"miss": 15}, "judgment": {"miss": 56}}


def test_a_repeated_run_hits(first: Run, again: Run) -> None:
    assert again.counts == {"execution": {"hit": 15}, "judgment": {"hit": 56}}
    assert verdicts(again) == verdicts(first)
    assert [one.payload for one in again.metrics] == [one.payload for one in first.metrics]


def test_what_was_recorded_of_each_case(example: Example, first: Run) -> None:
    assert_recorded(example, first, BASELINE)


def test_http_gives_the_same_results(first: Run, over_http: tuple[Run, Result]) -> None:
    run, _ = over_http
    assert_decided(run, BASELINE)
    assert_measured(run, BASELINE)
    stages = ("retrieval", "assembled_context", "citations", "generation")
    of = [
        {(one.case_id, one.stage): one.digest for one in found.stages if one.stage in stages}
        for found in (first, run)
    ]
    assert of[0] == of[1]
    assert len(of[0]) == 60
    # Judgments are memoized by what they read, whichever system made it.
    assert run.counts == {"execution": {"miss": 15}, "judgment": {"hit": 56}}


def test_cached_answers_of_a_service_are_pointed_out(over_http: tuple[Run, Result]) -> None:
    _, repeated = over_http
    assert repeated.exit_code == 1
    lines = repeated.stdout.splitlines()
    assert "Cache: execution 15 hit/0 miss; judgment 56 hit/0 miss" in lines
    assert not any(line.startswith("Stages:") for line in lines)
    note = "0 calls made; if the service was redeployed, change system.version"
    assert note in repeated.stderr.splitlines()
    assert lines[-1] == "Next: rag-assets inspect latest --config rag_assets.http.yaml --failures"


def test_the_two_configs_are_compared_by_id(
    example: Example, first: Run, over_http: tuple[Run, Result]
) -> None:
    run, _ = over_http
    done = call(example.root, "compare", run.row.id, first.row.id)
    assert done.exit_code == 3
    same = "answer_correct: +0.0 points [-29.9, +29.9] · 15 paired · 0 missing · 0 excluded"
    assert same in done.stdout.splitlines()
    listed = call(example.root, "runs", "--all", "--config", "rag_assets.http.yaml").stdout
    assert f"{first.row.id}  " in listed
    assert listed.count("(project blackbox_rag)") == listed.count("run_") - 2


def test_with_synonyms(expanded: Run) -> None:
    assert_decided(expanded, CANDIDATE)
    assert_measured(expanded, CANDIDATE)
    assert verdicts(expanded) == expected(CANDIDATE)
    assert expanded.counts["execution"] == {"miss": 15}


def test_the_comparison(example: Example, again: Run, expanded: Run) -> None:
    done = call(example.root, "compare", expanded.row.id, again.row.id)
    assert done.exit_code == 3
    lines = done.stdout.splitlines()
    for line in (
        "answer_correct: +6.7 points [-26.5, +40.8] · 15 paired · 0 missing · 0 excluded",
        "hit_rate_at_2: +7.7 points [-29.8, +45.5] · 13 paired · 0 missing · 2 excluded",
        "recall_at_2: +7.7 points [-29.8, +45.5] · 13 paired · 0 missing · 2 excluded",
        "citations_valid: +6.7 points [-26.5, +40.8] · 15 paired · 0 missing · 0 excluded",
        "  no_relevance_labels: 2",
        "  gained 1: money_back; lost 0",
        "20 exploratory slice differences not shown; add --slices to list them",
        "Gate: BLOCK (exit 3)",
    ):
        assert line in lines


def test_the_comparison_decides(comparison: dict[str, Any]) -> None:
    assert {one["rule"]["id"]: one["state"] for one in comparison["decisions"]} == dict.fromkeys(
        ("answers-not-worse", "citations-not-worse"), "INSUFFICIENT_EVIDENCE"
    )
    assert (comparison["gate"]["state"], comparison["exit_code"]) == ("BLOCK", 3)


@pytest.mark.parametrize("name", ["relevant_position", "context_truncated"])
def test_slices_by_position_are_refused(tmp_path: Path, name: str) -> None:
    example = Example(tmp_path, "blackbox_rag")
    example.replace("rag_assets.yaml", "  - metadata.topic", f"  - {name}")
    done = call(example.root, "run")
    assert done.exit_code == 2
    assert "which only a staged system (system.rag) declares" in done.stderr


def test_an_answer_can_be_looked_at(example: Example, first: Run) -> None:
    done = call(example.root, "inspect", first.row.id, "--case", "money_back", "--json")
    found = document(done)
    assert {one["stage"]: one["state"] for one in found["stages"]} == dict.fromkeys(
        (
            *("cases", "execution", "retrieval", "assembled_context", "generation"),
            "judgments",
        ),
        "OK",
    )
    execution = found["stages"][1]
    assert (execution["attempts"], execution["source"]) == (1, "miss")
    assert (found["retrieval"], found["retrieval_state"], found["citations"]) == ([], "empty", [])


def test_what_is_called_as_a_whole_cannot_be_diagnosed(tmp_path: Path) -> None:
    example = Example(tmp_path, "blackbox_rag")
    first = example.run()
    arguments = ("diagnose", first.row.id, "--criterion", "answer_correct")
    found = document(call(example.root, *arguments, "--json"))
    assert len(found["cases"]) == 4
    assert {(one["label"], one["reason"], one["strength"]) for one in found["cases"]} == {
        ("UNRESOLVED", "intervention_unsupported", "none")
    }
    called = call(example.root, *arguments)
    assert called.exit_code == 0
    assert "Selected: 4 failed cases (observed; no population claim)" in called.stdout
    assert "UNRESOLVED: 4 of 4, the system is not staged, so nothing was re-executed" in (
        called.stdout
    )
    replay = call(example.root, *arguments, "--intervention", "top-k", "--top-k", "4")
    assert replay.exit_code == 0
    assert "UNRESOLVED: 4 of 4" in replay.stdout
    with example.store.reading() as reader:
        assert not [row for row in reader.runs() if row.parent is not None]
