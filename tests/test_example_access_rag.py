"""The example with recorded results of one user over eight documents: every figure it shows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from command_line import Program, document, program_in
from projects import Example, Run

# How all claims together stand beside the mean over cases.
POOLED = "(75.0% of all, no interval) · mean of 2 observed · 1 missing · 3 excluded"
# Parts of what only staff may read; digits alone could stand in any digest.
RESTRICTED = ("disarmed", "side entrance")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("example"), "access_rag")


@pytest.fixture(scope="module")
def ran(example: Example) -> Run:
    return example.run()


@pytest.fixture(scope="module")
def rag_assets(example: Example, ran: Run) -> Program:
    return program_in(example.root)


def counts(run: Run, criterion: str, scope: str = "global") -> tuple[float | None, int, int, int]:
    metric = run.metric(criterion, scope)
    return metric.estimate, metric.observed, metric.missing, metric.excluded


def test_figures(ran: Run) -> None:
    assert counts(ran, "retrieval_valid") == (pytest.approx(5 / 6), 6, 0, 0)
    assert counts(ran, "precision_at_3") == (pytest.approx(0.5), 2, 1, 3)
    assert counts(ran, "recall_at_3") == (1.0, 2, 1, 3)
    assert counts(ran, "evidence_coverage") == (1.0, 2, 1, 3)
    assert counts(ran, "claim_support") == (0.75, 2, 1, 3)
    assert counts(ran, "fact_coverage") == (0.75, 2, 1, 3)
    assert counts(ran, "abstention", "slice/admissible_source=absent") == (1.0, 3, 0, 0)
    assert [ran.judgment(one, "precision_at_3").value for one in ("R01", "R02")] == [
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    ]
    assert ran.metric("abstention", "slice/admissible_source=absent").lower is not None


def test_what_is_excluded_and_what_is_missing(ran: Run) -> None:
    reasons = {one: ran.judgment(one, "precision_at_3").reason for one in ("R03", "R04", "R05")}
    assert reasons == {
        "R03": "no_relevance_labels",
        "R04": "no_admissible_source",
        "R05": "no_admissible_source",
    }
    missing = ran.judgment("R06", "recall_at_3")
    assert (missing.status, missing.reason) == ("missing", "timeout")
    assert ran.judgment("R06", "abstention").reason == "behavior_not_comparable"


def test_rows_are_printed_so(rag_assets: Program) -> None:
    rows = rag_assets("inspect", "latest").stdout.splitlines()
    for begins, ends in (
        ("retrieval_valid  83.3%  ", "5 / 6 observed · 0 missing · 0 excluded"),
        ("precision_at_3  0.500  ", "mean of 2 observed · 1 missing · 3 excluded"),
        ("evidence_coverage  100.0%  ", "2 / 2 observed · 1 missing · 3 excluded"),
        ("claim_support  0.750  ", f"3 / 4 claims {POOLED}"),
        ("fact_coverage  0.750  ", f"3 / 4 facts {POOLED}"),
    ):
        assert [row for row in rows if row.startswith(begins) and row.endswith(ends)], begins


def test_the_gate(ran: Run) -> None:
    assert (ran.row.gate, ran.row.exit_code) == ("BLOCK", 3)
    assert {one.rule: one.state for one in ran.decisions} == {
        "nothing-inadmissible-read": "INSUFFICIENT_EVIDENCE",
        "nothing-leaked": "INSUFFICIENT_EVIDENCE",
        "abstains-as-it-should": "PASS",
        "coverage": "INSUFFICIENT_EVIDENCE",
    }


def test_one_answer_adds_something_and_leaves_something_out(ran: Run) -> None:
    claims, facts = (ran.judgment("R02", one) for one in ("claim_support", "fact_coverage"))
    assert json.loads(claims.detail or "")["not_supported"] == [
        {"unit": "G1", "label": "unsupported"}
    ]
    assert json.loads(facts.detail or "")["not_covered"] == ["F4"]
    reasons = {one: ran.judgment(one, "claim_support").reason for one in ("R03", "R04", "R05")}
    assert set(reasons.values()) == {"no_claims"}


def test_states(rag_assets: Program) -> None:
    found = {
        one: document(rag_assets("inspect", "latest", "--case", one, "--json"))["retrieval_state"]
        for one in ("R01", "R02", "R03", "R04", "R05", "R06")
    }
    assert list(found.values()) == ["valid", "valid", "empty", "denied", "empty", "error"]
    assert rag_assets("inspect", "latest", "--violations").stdout == (
        "0 violations in 0 of 6 cases\n"
    )


def test_nothing_but_the_manifest_holds_the_restricted_text(
    example: Example, rag_assets: Program
) -> None:
    texts = [
        rag_assets(*command.split()).output
        for command in (
            "check",
            "run --slices",
            "run --json",
            "inspect latest --json",
            "inspect latest --failures --json",
            "inspect latest --case R04 --json",
            "export latest",
        )
    ]
    held = [
        Path(place, name).relative_to(example.root).as_posix()
        for place, _, names in os.walk(example.root)
        for name in names
        if any(part.encode() in Path(place, name).read_bytes() for part in RESTRICTED)
    ]
    assert held == ["data/corpus.jsonl"]
    assert not any(part in text for part in RESTRICTED for text in texts)


def test_the_data_say_what_they_should(example: Example) -> None:
    rows = (example.root / "data" / "corpus.jsonl").read_text().splitlines()
    documents = {one["doc_id"]: one for one in map(json.loads, rows)}
    facts = {name: one["facts"] for name, one in documents.items() if "facts" in one}
    assert facts == {"A-v2": ["F1"], "B-v1": ["F2"], "C-v1": ["F3", "F4"]}
    retired = [name for name, one in documents.items() if one.get("status") == "retired"]
    assert (len(documents), retired) == (8, ["A-v1", "S-v1"])
