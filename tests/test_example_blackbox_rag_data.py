"""The service of examples/blackbox_rag gives the documented figures, called and over HTTP."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from blackboxes import called, serving_example
from rag_assets.contracts.artifacts import Citations, Context, Retrieval
from rag_assets.evaluation.project import Project, load_project
from rag_assets.evaluators import Evidence, judge
from rag_assets.systems.blackbox import BlackBox, Execution

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "blackbox_rag"
GOLDEN = json.loads((ROOT / "tests/golden/end_to_end.json").read_text(encoding="utf-8"))
EXPANDED = ("EXPAND_QUERY = False", "EXPAND_QUERY = True")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example")).resolve()


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def executions(project: Project) -> dict[str, Execution]:
    assert isinstance(project.evaluated, BlackBox)
    found = called(project.evaluated, project.dataset.cases)
    return {case_id: result.value.complete() for case_id, result in found.items()}


def verdicts(project: Project) -> dict[str, dict[str, Any]]:
    """Case → criterion → verdict, or "excluded:reason"."""
    found: dict[str, dict[str, Any]] = {}
    for case_id, execution in executions(project).items():
        case = next(case for case in project.dataset.cases if case.id == case_id)
        parts = execution.artifacts
        evidence = Evidence(
            case,
            execution.output,
            Retrieval.recall(parts["retrieval/v1"]),
            Context.recall(parts["context/v1"]),
            Citations(ids=parts["citations/v1"]["ids"]),
        )
        outcomes = {one.criterion: judge(one, evidence) for one in project.evaluators}
        found[case_id] = {
            criterion: f"excluded:{one.reason}" if one.status == "excluded" else one.value == 1.0
            for criterion, one in outcomes.items()
        }
    return found


def expected(name: str) -> dict[str, dict[str, Any]]:
    return {row["case"]: row["verdicts"] for row in GOLDEN[name]["cases"]}


def passed(found: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Criterion → passed, observed."""
    criteria = next(iter(found.values()))
    observed = {
        criterion: [one[criterion] for one in found.values() if isinstance(one[criterion], bool)]
        for criterion in criteria
    }
    return {criterion: (sum(values), len(values)) for criterion, values in observed.items()}


def test_the_callable_gives_the_documented_verdicts(example: Path) -> None:
    project = load_project(example / "rag_assets.yaml")
    found = verdicts(project)
    assert found == expected("blackbox_baseline")
    assert found.keys() == {case.id for case in project.dataset.cases}
    assert passed(found) == {
        "answer_correct": (11, 15),
        "hit_rate_at_2": (12, 13),
        "recall_at_2": (12, 13),
        "citations_valid": (14, 15),
    }


def test_synonyms_find_answer_and_cite_money_back(example: Path) -> None:
    base = load_project(example / "rag_assets.yaml")
    replace(example / "app.py", *EXPANDED)
    project = load_project(example / "rag_assets.yaml")
    assert project.evaluated.identity != base.evaluated.identity
    found = verdicts(project)
    assert found == expected("blackbox_candidate")
    assert passed(found) == {
        "answer_correct": (12, 15),
        "hit_rate_at_2": (13, 13),
        "recall_at_2": (13, 13),
        "citations_valid": (15, 15),
    }


@pytest.mark.parametrize("name", ["blackbox_baseline", "blackbox_candidate"])
def test_every_case_has_the_documented_structure(example: Path, name: str) -> None:
    if name == "blackbox_candidate":
        replace(example / "app.py", *EXPANDED)
    project = load_project(example / "rag_assets.yaml")
    found = executions(project)
    for row in GOLDEN[name]["cases"]:
        case = next(case for case in project.dataset.cases if case.id == row["case"])
        retrieval = found[case.id].artifacts["retrieval/v1"]
        context = found[case.id].artifacts["context/v1"]
        relevant = {label.doc_id for label in case.relevant}
        ids = [one["doc_id"] for one in retrieval["candidates"]]
        positions = [place for place, doc_id in enumerate(ids, start=1) if doc_id in relevant]
        assert case.metadata["topic"] == row["topic"]
        assert len(ids) == row["candidates"]
        assert (positions or [None])[0] == row["first_relevant_position"]
        assert len(context["items"]) == row["in_context"]
        dropped = [[one["position"], one["reason"]] for one in context["dropped"]]
        assert dropped == row["dropped"]
        assert context["token_budget"] == 40
        assert sum(one["tokens"] for one in context["items"]) <= 40


def test_the_service_is_that_of_support_rag(example: Path) -> None:
    for name in ("corpus.jsonl", "support.jsonl"):
        own = (example / "data" / name).read_text(encoding="utf-8")
        theirs = (ROOT / "examples/support_rag/data" / name).read_text(encoding="utf-8")
        assert own.startswith(theirs)
        assert own.count("\n") - theirs.count("\n") == (2 if name == "support.jsonl" else 0)


def test_http_gives_the_same_executions(example: Path) -> None:
    called_in_process = load_project(example / "rag_assets.yaml")
    with serving_example(example) as url:
        replace(example / "rag_assets.http.yaml", "http://127.0.0.1:8766/answer", url)
        over_http = load_project(example / "rag_assets.http.yaml")
        assert executions(over_http) == executions(called_in_process)
    assert over_http.evaluated.records == called_in_process.evaluated.records
    assert [str(one) for one in over_http.evaluators] == [
        str(one) for one in called_in_process.evaluators
    ]


def test_the_service_refuses_what_is_no_question(example: Path) -> None:
    with serving_example(example) as url:
        path = example / "rag_assets.http.yaml"
        replace(path, "http://127.0.0.1:8766/answer", url)
        replace(path, 'body: {question: "{{ input.question }}"}', 'body: {ask: "{{ case.id }}"}')
        project = load_project(path)
        assert isinstance(project.evaluated, BlackBox)
        (result,) = called(project.evaluated, project.dataset.cases[:1]).values()
    assert result.failure is not None
    assert result.failure.message == 'status 400: {"error": "send {\\"question\\": \\"...\\"}"}'
