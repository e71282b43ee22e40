"""Forbidden texts that look like names of documents or fields garble no record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import call, document
from corpora import labels
from sourced import SourcedProject, case

FORBIDDEN = ["doc", "text", "a", "1", "4", "retired", "position"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sourced = SourcedProject(tmp_path_factory.mktemp("names"))
    sourced.without("quoting")
    sourced.cases(case("c", "desk alarm old", expected=labels("desk", forbidden=FORBIDDEN)))
    assert call(sourced.root, "run").exit_code == 0
    return sourced.root


def test_what_is_inspected(ran: Path) -> None:
    shown = document(call(ran, "inspect", "latest", "--case", "c", "--json"))
    assert [one["doc_id"] for one in shown["retrieval"]] == ["desk", "alarm", "old"]
    assert [one["fate"] for one in shown["retrieval"]] == ["context"] * 3
    assert [one["position"] for one in shown["context"]["items"]] == [1, 2, 3]
    assert shown["citations"] == ["desk", "alarm", "old"]
    assert shown["case"]["expected"]["relevant"] == [{"doc_id": "desk"}]
    details = {one["criterion"]: one["detail"] for one in shown["judgments"]}
    assert details["admissible_context"] == {
        "doc_id": "alarm",
        "position": 2,
        "inadmissible": 2,
        "unknown": 0,
    }
    assert {one["at"] for one in details["no_leak"]["leaks"]} >= {"answer"}
    listed = document(call(ran, "inspect", "latest", "--violations", "--json"))["violations"]
    retrieved = [one["doc_id"] for one in listed if one["stage"] == "retrieval"]
    assert retrieved == ["alarm", "old"]


def test_what_is_exported(ran: Path) -> None:
    call(ran, "export", "latest", "--out", "bundle")
    (row,) = (ran / "bundle" / "cases.jsonl").read_text().splitlines()
    (retrieval,) = json.loads(row)["retrieval"]
    assert [one["inadmissible"] for one in retrieval["candidates"]] == [
        None,
        "not permitted",
        "retired",
    ]
