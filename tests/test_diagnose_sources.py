"""Diagnoses of a system with a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from command_line import call, document
from sourced import DOCUMENTS, SourcedProject, case

DIAGNOSE = ("diagnose", "latest", "--intervention", "gold-context", "--criterion")


def relevant(*doc_ids: str, **rest: Any) -> dict[str, Any]:
    return {"relevant": [{"doc_id": one} for one in doc_ids], "answer": "desk is open", **rest}


def test_the_texts_of_the_manifest_are_gold_passages(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.without("quoting")
    sourced.cases(
        case("one", "alarm", expected=relevant("desk")),
        case("both", "alarm", expected=relevant("desk", "new", requires="all")),
        case("chunk", "alarm", expected={**relevant(), "relevant": [CHUNK]}),
        case("none", "alarm", expected={"answer": "desk is open"}),
    )
    call(tmp_path, "run")
    found = document(call(tmp_path, *DIAGNOSE, "answer_correct", "--json"))
    labels = {one["id"]: (one["label"], one["recovered"]) for one in found["cases"]}
    assert labels == {"one": ("RETRIEVAL_MISS", True), "both": ("RETRIEVAL_MISS", True)}
    assert found["selection"]["without_gold"] == ["chunk", "none"]
    shown = document(call(tmp_path, "inspect", found["diagnosis"], "--case", "both", "--json"))
    gold, other = DOCUMENTS[0]["text"], DOCUMENTS[3]["text"]
    assert f"It is so. {gold} {other}" in [one["output"]["answer"] for one in shown["executions"]]


CHUNK = {"doc_id": "desk", "chunk_id": "1"}


def test_what_a_criterion_reads_of_the_manifest_has_not_changed(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.without("quoting")
    contract = "  - {type: task_acceptance, all_of: [no_leak, answer_correct]}\n"
    text = (tmp_path / "rag_assets.yaml").read_text()
    sourced.write("rag_assets.yaml", text + contract)
    sourced.cases(case("c", "desk alarm", expected=relevant("desk")))
    call(tmp_path, "run")
    for criterion in ("no_leak", "task_acceptance"):
        made = call(tmp_path, *DIAGNOSE, criterion)
        assert "Recovered under gold context: 1 of 1" in made.stdout, made.output
    sourced.cases(case("c", "desk alarm", expected=relevant("desk", answer="another")))
    made = call(tmp_path, *DIAGNOSE, "task_acceptance")
    assert "Not selected: 1 case (1 expected_changed)" in made.stdout, made.output
