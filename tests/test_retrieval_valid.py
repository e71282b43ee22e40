"""What came of retrievals: valid, empty, denied and error, kept apart; and how many there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import call, document
from corpora import labels
from projects import Run, SampleProject
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import load_project
from recorded import RecordedProject
from sourced import SourcedProject, case

IDS = ("valid", "empty", "denied", "error", "timeout", "unrecorded")
EVALUATORS = (
    "{type: recall, k: 1}",
    "{type: evidence_coverage}",
    "{type: evidence_coverage, at: context, criterion: context_coverage}",
    "{type: citation_validity}",
)
POLICY = """
rules:
  - {id: enough, metric: retrieval_valid, min: 0.1}
  - {id: all, metric: retrieval_valid, kind: observed_count, max_failures: 2}
  - {id: same, metric: retrieval_valid, kind: non_inferiority, margin: 0.05}
"""


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> RecordedProject:
    project = RecordedProject(
        tmp_path_factory.mktemp("states"),
        [{"id": one, "input": "Q?", "expected": labels("a")} for one in IDS],
        [
            {"case_id": "valid", "state": "valid", "doc_ids": ["a"], "context_ids": ["a"]},
            {"case_id": "empty", "state": "empty", "context_ids": []},
            {"case_id": "denied", "state": "denied"},
            {"case_id": "error", "state": "error", "error": "it broke"},
            {"case_id": "timeout", "state": "timeout", "error": "30 s"},
        ],
        EVALUATORS[:3],
    )
    project.write("release.yaml", POLICY)
    return project


@pytest.fixture(scope="module")
def ran(states: RecordedProject) -> Run:
    return states.run()


def test_coverage_is_measured_where_a_retrieval_is_recorded(ran: Run) -> None:
    metric = ran.metric("retrieval_valid")
    assert (metric.kind, metric.estimate) == ("verdict", 0.5)
    assert (metric.observed, metric.missing, metric.excluded) == (6, 0, 0)
    assert (metric.lower, metric.upper) == pytest.approx((0.1181172, 0.8818828))
    assert [one.state for one in ran.decisions] == ["PASS", "FAIL"]


def test_everywhere_else_an_error_is_missing(ran: Run) -> None:
    for criterion in ("recall_at_1", "evidence_coverage", "context_coverage"):
        metric = ran.metric(criterion)
        assert (metric.observed, metric.missing, metric.excluded) == (3, 3, 0)
        # An empty retrieval and a denied one are observed: denying everybody does not pay.
        assert {one: ran.judgment(one, criterion).value for one in IDS} == {
            "valid": 1.0,
            "empty": 0.0,
            "denied": 0.0,
            "error": None,
            "timeout": None,
            "unrecorded": None,
        }
    reasons = [ran.judgment(one, "recall_at_1").reason for one in IDS[3:]]
    assert reasons == ["execution_error", "timeout", "not_recorded"]


def test_it_is_no_judgment(ran: Run) -> None:
    assert {one.criterion for one in ran.judgments} == {
        "recall_at_1",
        "evidence_coverage",
        "context_coverage",
    }
    assert ran.counts["judgment"] == {"miss": 8, "shared": 1}


def test_states_are_shown(states: RecordedProject, ran: Run) -> None:
    shown = {
        one: document(call(states.root, "inspect", ran.row.id, "--case", one, "--json"))
        for one in IDS
    }
    assert {one: view["retrieval_state"] for one, view in shown.items()} == {
        "valid": "valid",
        "empty": "empty",
        "denied": "denied",
        "error": "error",
        "timeout": "error",
        "unrecorded": "error",
    }
    text = call(states.root, "inspect", ran.row.id, "--case", "timeout").stdout
    assert "Retrieval\n    an error: there is no retrieval\n" in text
    call(states.root, "export", ran.row.id)
    rows = (states.root / "bundles" / ran.row.id / "cases.jsonl").read_text().splitlines()
    found = {row["id"]: [one["state"] for one in row["retrieval"]] for row in map(json.loads, rows)}
    assert found["denied"] == ["denied"]
    assert found["empty"] == ["empty"]


def test_it_is_decided_and_compared_from_records(states: RecordedProject, ran: Run) -> None:
    again = call(states.root, "gate", ran.row.id, "--policy", "release.yaml", "--json")
    assert [(one["rule"]["id"], one["state"]) for one in document(again)["decisions"]] == [
        ("enough", "PASS"),
        ("all", "FAIL"),
    ]
    assert "has changed" not in again.stderr
    text = (states.root / "results.jsonl").read_text()
    broken = '"state": "error", "error": "it broke"'
    assert broken in text
    states.write("results.jsonl", text.replace(broken, '"state": "valid", "doc_ids": ["b"]'))
    states.run()
    result = call(states.root, "compare", "latest", ran.row.id)
    assert "retrieval_valid: +16.7 points" in result.stdout
    assert "gained 1: error; lost 0" in result.stdout
    (row,) = [line for line in result.stdout.splitlines() if line.startswith("same")]
    assert "INSUFFICIENT_EVIDENCE" in row


def test_what_is_not_executed_is_missing_here_too(sample: SampleProject) -> None:
    run = sample.run(["one", "two"])
    assert (run.metric("retrieval_valid").observed, run.metric("retrieval_valid").missing) == (2, 0)


def test_the_name_is_taken(sample: SampleProject) -> None:
    sample.replace("rag_assets.yaml", "answer_correct", "retrieval_valid")
    with pytest.raises(InputError) as raised:
        load_project(sample.root / "rag_assets.yaml")
    assert [str(one) for one in raised.value.problems] == [
        (
            'rag_assets.yaml:10: evaluators.0.criterion: "retrieval_valid" is the metric that '
            "every run with a retrieval has anyway. Take another name."
        )
    ]


def test_a_stage_may_report_that_access_was_denied(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.cases(case("no", "denied", expected=labels("desk")), case("yes", "desk"))
    sourced.without("quoting", "custom")
    run = sourced.run()
    assert run.metric("retrieval_valid").estimate == 1.0
    assert run.judgment("no", "hit_rate_at_2").value == 0.0
    assert run.judgment("no", "admissible_context").value == 1.0
    shown = document(call(tmp_path, "inspect", "latest", "--case", "no", "--json"))
    assert (shown["retrieval_state"], shown["retrieval"]) == ("denied", [])
    # From the cache as well.
    assert sourced.run().counts["retrieve"] == {"hit": 2}
    again = document(call(tmp_path, "inspect", "latest", "--case", "no", "--json"))
    assert again["retrieval_state"] == "denied"
    sourced.cases(case("no", "denied desk", expected=labels("desk")))
    stopped = sourced.run()
    assert (stopped.row.state, stopped.row.exit_code) == ("STOPPED", 2)
    assert "candidates: must be empty, because the system reported" in str(stopped.row.error)
