"""The staged example end to end: every documented figure, through the real Dagster job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import call, document
from golden_runs import GOLDEN, assert_decided, assert_measured, assert_recorded
from projects import Example, Run

BASELINE = GOLDEN["staged_baseline"]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def first(example: Example) -> Run:
    return example.run()


def test_the_run_decides(first: Run) -> None:
    assert_decided(first, BASELINE)


def test_metrics_and_slices(first: Run) -> None:
    assert_measured(first, BASELINE)
    assert first.summary["slices_too_few"] is True


def test_each_case(first: Run) -> None:
    for golden in BASELINE["cases"]:
        case = golden["case"]
        for criterion, value in golden["verdicts"].items():
            judged = first.judgment(case, criterion)
            assert judged.status == "observed"
            assert judged.value == pytest.approx(float(value), abs=1e-12), (case, criterion)


def test_what_was_recorded_of_each_case(example: Example, first: Run) -> None:
    assert_recorded(example, first, BASELINE)


def test_first_run_counts(first: Run) -> None:
    assert first.counts == {
        "execution": {"miss": 13},
        "judgment": {"miss": 65},
        "retrieve": {"miss": 13},
        "generate": {"miss": 13},
    }


def test_repeated_run_hits(example: Example, first: Run) -> None:
    again = example.run()
    assert again.counts == {
        "execution": {"hit": 13},
        "judgment": {"hit": 65},
        "retrieve": {"hit": 13},
        "generate": {"hit": 13},
    }
    assert values(again) == values(first)


@pytest.mark.parametrize(
    "where",
    [
        ("rag_assets.yaml", "token_budget: 40", "token_budget: 120"),
        ("app.py", 'version="1")', 'version="1", token_budget=120)'),
    ],
    ids=["config", "decorator"],
)
def test_token_budget_120(tmp_path: Path, first: Run, where: tuple[str, str, str]) -> None:
    example = Example(tmp_path)
    example.run()
    if where[0] == "app.py":
        example.replace("rag_assets.yaml", "    token_budget: 40\n", "")
    example.replace(*where)
    run = example.run()
    assert run.counts["execution"] == {"miss": 13}
    assert run.counts["retrieve"] == {"hit": 13}
    assert run.counts["generate"] == {"hit": 7, "miss": 6}
    assert values(run) == values(first)


def test_token_budget_12_fails_the_gate(tmp_path: Path) -> None:
    example = Example(tmp_path)
    example.replace("rag_assets.yaml", "token_budget: 40", "token_budget: 12")
    run = example.run()
    answer = run.metric("answer_correct")
    assert (answer.observed, json.loads(answer.payload)["passes"]) == (13, 2)
    assert answer.estimate == pytest.approx(2 / 13)
    assert {one.rule: one.state for one in run.decisions}["answer-floor"] == "FAIL"
    assert (run.row.gate, run.row.exit_code) == ("BLOCK", 1)


def test_without_labels_a_case_is_excluded(tmp_path: Path) -> None:
    example = Example(tmp_path)
    path = example.root / "data" / "support.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["id"] == "money_back":
            del row["expected"]["relevant"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    hit_rate = example.run().metric("hit_rate_at_2")
    assert (hit_rate.estimate, hit_rate.observed, hit_rate.excluded) == (1.0, 12, 1)
    assert json.loads(hit_rate.payload)["excluded_reasons"] == {"no_relevance_labels": 1}


@pytest.fixture(scope="module")
def diagnosed(example: Example, first: Run) -> dict[str, Any]:
    return diagnosis_of(example, first)


def diagnosis_of(example: Example, run: Run, *arguments: str) -> dict[str, Any]:
    called = call(
        *(example.root, "diagnose", run.row.id, "--criterion", "answer_correct", "--json"),
        *arguments,
    )
    assert called.exit_code == 0, called.output
    return document(called)


def test_the_four_failures_are_diagnosed(diagnosed: dict[str, Any]) -> None:
    recovered = "intervention_recovery"
    dropped = ("CONTEXT_ASSEMBLY_LOSS", "relevant_dropped_from_context", recovered, 2)
    assert {
        one["id"]: (one["label"], one["reason"], one["strength"], one["best_position"])
        for one in diagnosed["cases"]
    } == {
        "money_back": ("RETRIEVAL_MISS", "relevant_not_retrieved", recovered, None),
        "refund_review": dropped,
        "security_review": dropped,
        "seat_count": (
            *("GENERATION_FAILURE", "fails_with_gold_context", "intervention_non_recovery"),
            1,
        ),
    }
    assert (diagnosed["control_passed"], diagnosed["recovered"]) == (0, 3)
    assert diagnosed["implicated"] == [
        {
            "factor": "context budget",
            "cases": 2,
            "of": 3,
            "among": "recovered",
            "experiments": ["a larger token budget", "smaller chunks"],
        }
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--intervention", "top-k", "--top-k", "4"),
        ("--intervention", "reranker", "--reranker", "rerank:shortest_first"),
    ],
)
def test_no_replay_recovers_a_case(
    example: Example, first: Run, diagnosed: dict[str, Any], arguments: tuple[str, ...]
) -> None:
    found = diagnosis_of(example, first, *arguments)
    assert found["recovered"] == 0
    assert found["gold"]["diagnosis"] == diagnosed["diagnosis"]
    assert (found["gold"]["confirmed"], found["gold"]["confirmable"]) == (0, 0)


def test_without_gold_passages_a_failure_is_excluded(tmp_path: Path) -> None:
    example = Example(tmp_path)
    path = example.root / "data" / "support.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["id"] in ("money_back", "seat_count"):
            del row["expected"]["gold_context"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = diagnosis_of(example, example.run())
    assert found["selection"]["selected"] == ["refund_review", "security_review"]
    assert found["selection"]["without_gold"] == ["money_back", "seat_count"]
    assert found["recovered"] == 2


def values(run: Run) -> dict[tuple[str, str], Any]:
    return {(one.case_id, one.criterion): one.value for one in run.judgments}
