"""Projects with systems that are called as a whole: `check`, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import call
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import load_project
from rag_assets.systems.blackbox import BlackBox

APP = """
from rag_assets import current_case, system

@system(records=["retrieval/v1", "trace"])
def run(question):
    current_case().retrieval(query=question, depth=3, candidates=[])
    return "A"
"""
CONFIG = """\
project: whole
dataset: cases.jsonl
system:
  name: bot
  callable: app:run
evaluators:
  - {type: contains, criterion: answer_correct, expected_field: answer}
  - {type: hit_rate, k: 7}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text(
        '{"id": "c1", "input": "Q?", "expected": {"answer": "A", "relevant": [{"doc_id": "a"}]}}\n',
        encoding="utf-8",
    )
    return tmp_path


def load(root: Path, config: str) -> BlackBox:
    (root / "rag_assets.yaml").write_text(config, encoding="utf-8")
    found = load_project(root / "rag_assets.yaml").evaluated
    assert isinstance(found, BlackBox)
    return found


def refused(root: Path, config: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(root, config)
    return [str(problem) for problem in caught.value.problems]


def with_kind(lines: str) -> str:
    return CONFIG.replace("  callable: app:run\n", lines)


HTTP = with_kind(
    "  version: \"1\"\n  http: {url: 'http://127.0.0.1:9/', artifacts: {retrieval/v1: r}}\n"
)


def test_every_kind_is_checked(root: Path) -> None:
    (root / "r.csv").write_text("case_id,doc_ids,answer\nc1,a,A\n", encoding="utf-8")
    found = [load(root, text) for text in (CONFIG, HTTP, with_kind("  recorded: {path: r.csv}\n"))]
    assert [one.kind for one in found] == ["callable", "http", "recorded"]
    assert all("retrieval/v1" in one.records for one in found)


def test_k_is_not_bound_by_a_depth_that_nobody_declares(root: Path) -> None:
    load(root, CONFIG)
    project = load_project(root / "rag_assets.yaml")
    assert str(project.evaluators[1]) == "hit_rate(k=7, relevance_unit=doc)"
    assert project.warnings == ()


@pytest.mark.parametrize("config", [CONFIG, HTTP], ids=["callable", "http"])
def test_an_evaluator_of_what_is_never_recorded_is_refused(root: Path, config: str) -> None:
    both = config + "  - {type: citation_validity}\n"
    line = both.count("\n")
    assert refused(root, both) == [
        f"rag_assets.yaml:{line}: evaluators.2.type: citation_validity reads the {part}, and this "
        "system never records one. Let the system record it, or remove this evaluator."
        for part in ("context", "citations")
    ]


def test_a_recorded_file_without_ids_has_no_retrieval(root: Path) -> None:
    (root / "r.csv").write_text("case_id,answer\nc1,A\n", encoding="utf-8")
    (problem,) = refused(root, with_kind("  recorded: {path: r.csv}\n"))
    assert problem.startswith("rag_assets.yaml:8: evaluators.1.type: hit_rate reads the retrieval")


@pytest.mark.parametrize("name", ["relevant_position", "context_truncated"])
def test_slices_by_position_need_a_staged_system(root: Path, name: str) -> None:
    assert refused(root, f"{CONFIG}slices: [metadata.topic, {name}]\n") == [
        (
            f"rag_assets.yaml:9: slices.1: {name} compares positions with top_k, which only a "
            "staged system (system.rag) declares. Remove this slice."
        )
    ]


def test_rows_of_unknown_cases_are_refused_with_their_line(root: Path) -> None:
    (root / "r.csv").write_text("case_id,doc_ids\nc1,a\nc2,a\n", encoding="utf-8")
    assert refused(root, with_kind("  recorded: {path: r.csv}\n")) == [
        'r.csv:3: case_id: The dataset has no case "c2".'
    ]


def test_check_says_what_is_called_and_recorded(root: Path) -> None:
    load(root, CONFIG)
    done = call(root, "check")
    assert done.exit_code == 0
    assert "system   bot  callable  records retrieval/v1, trace" in done.stdout.splitlines()


def test_an_unset_variable_ends_check_with_2(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOT_TOKEN", raising=False)
    headers = "headers: {Authorization: 'Bearer ${BOT_TOKEN}'}, artifacts"
    assert refused(root, HTTP.replace("artifacts", headers)) == [
        (
            "rag_assets.yaml:6: system.http.headers.Authorization: needs the environment variable "
            "BOT_TOKEN, which is not set or empty."
        )
    ]
