"""Faults that users of evaluation tools have met, as far as they are about sources and secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from command_line import call
from corpora import labels
from http_service import closed_port
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import load_project
from recorded import RecordedProject

NOT_FOUND = "I could not find that in the sources."


def rows(*values: tuple[str, list[str]]) -> list[dict[str, Any]]:
    return [{"case_id": one, "doc_ids": ids} for one, ids in values]


def asked(case_id: str, *doc_ids: str, **rest: Any) -> dict[str, Any]:
    return {"id": case_id, "input": {"question": "Q?"}, "expected": labels(*doc_ids, **rest)}


def test_a_right_refusal_is_no_zero_over_zero(tmp_path: Path) -> None:
    project = RecordedProject(
        tmp_path,
        [
            asked("c1", behavior="abstain", reason="source_absent"),
            asked("c2", "stair", answer="42"),
            asked("c3", behavior="abstain", reason="source_absent"),
        ],
        [
            {"case_id": "c1", "doc_ids": ["stair"], "answer": NOT_FOUND},
            {"case_id": "c2", "doc_ids": ["stair"], "answer": NOT_FOUND},
            {"case_id": "c3", "doc_ids": ["stair"], "answer": "It was sold in 1911."},
        ],
        [
            '{type: abstention, field: answer, patterns: ["could not find"]}',
            "{type: recall, k: 1}",
            "{type: contains, criterion: correct, field: answer}",
            "{type: task_acceptance, all_of: [abstention, correct]}",
        ],
    )
    run = project.run()
    verdicts = {one: run.judgment(one, "abstention").value for one in ("c1", "c2", "c3")}
    assert verdicts == {"c1": 1.0, "c2": 0.0, "c3": 0.0}
    assert run.judgment("c1", "correct").reason == "no_expected"
    assert run.judgment("c1", "recall_at_1").reason == "no_relevance_labels"
    # What does not apply is left out of what makes a case acceptable.
    accepted = {one: run.judgment(one, "task_acceptance").value for one in ("c1", "c2", "c3")}
    assert accepted == {"c1": 1.0, "c2": 0.0, "c3": 0.0}
    assert run.judgment("c2", "task_acceptance").key is None


def test_the_denominator_of_precision_is_k(tmp_path: Path) -> None:
    project = RecordedProject(
        tmp_path, [asked("p1", "a")], rows(("p1", ["a"])), ["{type: precision, k: 5}"]
    )
    assert project.run().judgment("p1", "precision_at_5").value == 0.2
    shown = call(tmp_path, "check").stdout
    assert "divided by k, also when fewer came back." in shown


def test_queries_without_results_stay_in_the_average(tmp_path: Path) -> None:
    project = RecordedProject(
        tmp_path,
        [asked(f"u{i}", f"d{i}") for i in range(1, 6)],
        rows(("u1", ["d1"]), ("u2", ["d2"]), ("u3", ["d3"]), ("u4", [])),
        ["{type: recall, k: 1}"],
    )
    metric = project.run().metric("recall_at_1")
    assert (metric.estimate, metric.observed, metric.missing) == (0.75, 4, 1)
    assert metric.lower is not None
    assert metric.lower < 0.2


def test_a_case_without_labels_harms_no_other(tmp_path: Path) -> None:
    project = RecordedProject(
        tmp_path,
        [
            asked("n1", "a", answer="x"),
            asked("n2", answer="x"),
            asked("n3", "c", answer="x"),
            asked("n4", "ghost", answer="x"),
        ],
        [
            {"case_id": f"n{i}", "doc_ids": [one], "answer": "x"}
            for i, one in enumerate("abcc", start=1)
        ],
        ["{type: hit_rate, k: 1}", "{type: contains, criterion: correct, field: answer}"],
        corpus=[{"doc_id": one, "text": f"Text {one}."} for one in "abc"],
    )
    checked = call(tmp_path, "check")
    assert checked.exit_code == 0
    warned = " ".join(checked.stderr.split())
    assert 'Case "n4" (line 4): its relevant document "ghost" is not in the manifest' in warned
    run = project.run()
    metric = run.metric("hit_rate_at_1")
    assert (metric.estimate, metric.observed, metric.excluded) == (1.0, 2, 2)
    assert run.judgment("n2", "hit_rate_at_1").reason == "no_relevance_labels"
    assert run.judgment("n4", "hit_rate_at_1").reason == "no_admissible_source"
    assert run.metric("correct").observed == 4


def test_secrets_are_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-7c1f"
    monkeypatch.setenv("RAG_TOKEN", f"{canary}-bearer")
    monkeypatch.setenv("RAG_TOKEN2", f"{canary}-custom")
    project = RecordedProject(
        tmp_path, [asked("one")], [], ["{type: regex, criterion: c, pattern: x}"]
    )
    where = f"127.0.0.1:{closed_port()}/answer"
    url = f"http://user:{canary}-url@{where}?token={canary}-query"
    http = (
        '  version: "1"\n'
        "  http:\n"
        f'    url: "{url}"\n'
        "    retries: {attempts: 1}\n"
        '    headers: {Authorization: "Bearer ${RAG_TOKEN}", X-Custom-Auth: "${RAG_TOKEN2}"}\n'
    )
    project.replace("rag_assets.yaml", "  recorded: {path: results.jsonl}\n", http)
    # A credential in the URL is refused, and not shown; the others come from the environment.
    refused = call(tmp_path, "run", "--json")
    assert refused.exit_code == 2
    assert canary not in refused.output
    project.replace("rag_assets.yaml", url, f"http://{where}")
    texts = [
        call(tmp_path, *command.split()).output
        for command in (
            "check",
            "run",
            "run --json",
            "inspect latest --json",
            "inspect latest --failures",
            "inspect latest --case one --json",
            "export latest",
        )
    ]
    assert "ConnectError" in texts[1]
    assert not any(canary in text for text in texts)
    (tmp_path / "rag_assets.yaml").unlink()  # It names them itself.
    held = [
        name
        for place, _, names in os.walk(tmp_path)
        for name in names
        if canary.encode() in Path(place, name).read_bytes()
    ]
    assert held == []


ADMISSIBLE = tuple(f"{{type: admissible_{one}}}" for one in ("retrieval", "context", "citations"))


def test_a_passage_of_another_tenant(tmp_path: Path) -> None:
    north = {"user": {"id": "u", "roles": ["north"]}}
    cases = [{**asked(f"p{i}", "n1", answer="10"), **north} for i in range(1, 5)]
    both, own = ["n1", "s1"], ["n1"]
    project = RecordedProject(
        tmp_path,
        cases,
        [
            {"case_id": "p1", "doc_ids": both, "context_ids": own, "citations": own},
            {"case_id": "p2", "doc_ids": both, "context_ids": both, "citations": own},
            {"case_id": "p3", "doc_ids": own, "context_ids": own, "citations": both},
            {"case_id": "p4", "doc_ids": ["x7"], "context_ids": ["x7"], "citations": ["x7"]},
        ],
        ADMISSIBLE,
        corpus=[
            {"doc_id": "n1", "access": ["north"]},
            {"doc_id": "s1", "access": ["south"]},
            {"doc_id": "all", "access": ["north", "south"]},
        ],
    )
    project.write(
        "release.yaml",
        "rules:\n"
        "  - {id: none, metric: admissible_context, kind: observed_count, max_failures: 0}\n"
        "  - {id: rate, metric: admissible_context, min: 0.99}\n",
    )
    run = project.run()
    failed = {
        (one.case_id, one.criterion.removeprefix("admissible_"), one.reason)
        for one in run.judgments
        if one.value == 0.0
    }
    assert failed == {
        ("p1", "retrieval", "not permitted"),
        ("p2", "retrieval", "not permitted"),
        ("p2", "context", "not permitted"),
        ("p3", "citations", "not permitted"),
        ("p4", "retrieval", "unknown_source"),
        ("p4", "context", "unknown_source"),
        ("p4", "citations", "unknown_source"),
    }
    assert {one.rule: one.state for one in run.decisions} == {"none": "FAIL", "rate": "FAIL"}
    head = call(tmp_path, "inspect", "latest", "--violations").stdout.splitlines()[0]
    assert head == "7 violations in 4 of 4 cases: 4 not permitted, 3 unknown_source"


def test_a_superseded_document_at_the_date_of_the_question(tmp_path: Path) -> None:
    cases = [
        {**asked("f1", "rule-v2"), "as_of": "2024-06-01"},
        {**asked("f2", "rule-v1"), "as_of": "2024-03-01"},
        {**asked("f3", "memo"), "as_of": "2024-06-01"},
    ]
    corpus = [
        {
            "doc_id": "rule-v1",
            "document": "rule",
            "valid_from": "2023-01-01",
            "valid_to": "2024-05-01T00:00:00Z",
        },
        {"doc_id": "rule-v2", "document": "rule", "valid_from": "2024-05-01T00:00:00+02:00"},
        {"doc_id": "memo"},
    ]
    results = [
        {"case_id": "f1", "doc_ids": ["rule-v1", "rule-v2"], "citations": ["rule-v1"]},
        {"case_id": "f2", "doc_ids": ["rule-v1"], "citations": ["rule-v1"]},
        {"case_id": "f3", "doc_ids": ["memo"], "citations": ["memo"]},
    ]
    evaluators = [ADMISSIBLE[0], ADMISSIBLE[2], "{type: hit_rate, k: 1}"]
    run = RecordedProject(tmp_path, cases, results, evaluators, corpus).run()
    cited = {one: run.judgment(one, "admissible_citations") for one in ("f1", "f2", "f3")}
    assert {one: found.value for one, found in cited.items()} == {"f1": 0.0, "f2": 1.0, "f3": 1.0}
    assert cited["f1"].reason == "expired"
    assert run.judgment("f2", "hit_rate_at_1").value == 1.0
    # The new rule is too new for the question of March.
    RecordedProject(tmp_path, [{**cases[1], "expected": labels("rule-v2")}], [], evaluators, corpus)
    with pytest.raises(InputError, match='"rule-v2" is not yet valid at 2024-03-01'):
        load_project(tmp_path / "rag_assets.yaml")
