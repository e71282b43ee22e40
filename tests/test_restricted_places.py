"""Restricted texts where nobody expects them: in keys, numbers, citations, other passages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from command_line import call, document
from rag_assets.contracts.paths import texts_in, with_texts
from recorded import RecordedProject

SECRET = "The band of senior engineers ranges from 91000 to 118000 crowns a year."
HIDDEN = f"[restricted: {len(SECRET)} characters]"
CORPUS = (
    {"doc_id": "pay", "access": ["board"], "text": SECRET, "title": "Bands"},
    {"doc_id": "desk", "text": "The desk is open from nine to noon."},
)
RESULTS: Mapping[str, Mapping[str, Any]] = {
    "cited": {"answer": "No.", "citations": [SECRET, f"desk#{SECRET}"], "doc_ids": ["desk"]},
    "key": {"answer": {SECRET: "x", "open": 4711}, "citations": [], "doc_ids": ["desk"]},
    "tagged": {
        "answer": "No.",
        "citations": [],
        "doc_ids": [{"doc_id": "desk", "text": f"By the way: {SECRET}"}],
        "context_ids": [{"doc_id": "desk", "text": f"By the way: {SECRET}"}],
    },
    "told": {"answer": "No.", "citations": [], "doc_ids": ["desk"]},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> RecordedProject:
    expected = {"note": f"Never say: {SECRET}", "forbidden": ["4711"]}
    made = RecordedProject(
        tmp_path_factory.mktemp("places"),
        [
            {"id": one, "input": "Q?", "user": "ann", "expected": expected}
            | {"metadata": {"source": SECRET}}
            for one in RESULTS
        ],
        [{"case_id": one, **row} for one, row in RESULTS.items()],
        ["{type: no_leak}", "{type: admissible_citations}", "{type: claim_support}"],
        corpus=CORPUS,
    )
    made.run()
    return made


@pytest.mark.parametrize("case_id", RESULTS)
def test_no_command_shows_it(project: RecordedProject, case_id: str) -> None:
    shown = call(project.root, "inspect", "latest", "--case", case_id)
    as_json = call(project.root, "inspect", "latest", "--case", case_id, "--json")
    assert "91000" not in shown.stdout + as_json.stdout
    case = document(as_json)["case"]
    assert case["expected"]["note"] == f"Never say: {HIDDEN}"
    assert case["metadata"] == {"source": HIDDEN}


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "latest", "--failures"),
        ("inspect", "latest", "--violations"),
        ("inspect", "latest", "--violations", "--json"),
        ("labels", "export", "latest", "--criterion", "claim_support"),
        ("compare", "latest", "latest"),
    ],
)
def test_no_list_shows_it(project: RecordedProject, arguments: tuple[str, ...]) -> None:
    assert "91000" not in call(project.root, *arguments).output


def test_a_bundle_holds_nothing_of_it(project: RecordedProject) -> None:
    call(project.root, "export", "latest", "--out", "bundle")
    held = [path.name for path in (project.root / "bundle").rglob("*") if path.is_file()]
    assert "cases.jsonl" in held
    text = (project.root / "bundle" / "cases.jsonl").read_text()
    assert "91000" not in text
    assert text.count(HIDDEN) > len(RESULTS)


def test_keys_and_numbers_are_looked_at(project: RecordedProject) -> None:
    view = document(call(project.root, "inspect", "latest", "--case", "key", "--json"))
    (judgment,) = (one for one in view["judgments"] if one["criterion"] == "no_leak")
    assert [(one["at"], one["what"]) for one in judgment["detail"]["leaks"]] == [
        ("answer#keys", "text"),
        ("answer.open", "forbidden"),
    ]
    assert view["output"]["answer"] == {HIDDEN: "x", "open": "[restricted: 4 characters]"}


def test_citations_are_free_text(project: RecordedProject) -> None:
    found = document(call(project.root, "inspect", "latest", "--violations", "--json"))
    assert [
        (one["stage"], one["position"], one["doc_id"], one["reason"])
        for one in found["violations"]
        if one["case"] == "cited"
    ] == [("citations", 1, HIDDEN, "unknown_source")]


def test_texts_of_json() -> None:
    value = {"a": [1, True, None, "x"], "b": {"c": 2.5}}
    assert list(texts_in(value)) == [
        ("#keys", "a"),
        ("#keys", "b"),
        ("a.0", "1"),
        ("a.3", "x"),
        ("b#keys", "c"),
        ("b.c", "2.5"),
    ]
    assert with_texts(value, lambda place, text: text) == value
    changed = with_texts(value, lambda place, text: f"{place}={text}" if place else text.upper())
    assert changed == {"A": ["a.0=1", True, None, "a.3=x"], "B": {"C": "b.c=2.5"}}
    assert json.dumps(with_texts(value, lambda _, text: text)) == json.dumps(value)
