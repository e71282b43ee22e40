"""BM25 on the Cranfield collection, as a staged system, beside an independent library.

python -m benchmarks --only cranfield

1,400 abstracts of aerodynamics and 225 questions with relevance judgments of 1967. Nothing in the
files says how questions and judgments belong together: judgments count questions from 1 to 225 in
the order of their file, where the numbers in the file itself run from 1 to 365. A join by those
numbers finds 152 pairs, nearly all of them wrong.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.budgets import Section, table
from benchmarks.data import data_folder
from benchmarks.independent import Ranking, mean, values_of
from rag_assets.assets.running import run_suite
from rag_assets.contracts.errors import Problem
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.session import Silent
from rag_assets.formats.trec import read_judgments
from rag_assets.store import Store

APP = Path(__file__).parent / "bm25_app.py"
DEPTH = 100
MEASURES = {
    "ndcg_at_10": "nDCG@10",
    "mrr_at_10": "RR@10",
    "average_precision_at_100": "AP@100",
    "recall_at_100": "R@100",
}
"""Criterion → the same measure of the library."""
CONFIG = """\
project: cranfield
dataset: cases.jsonl
system:
  name: bm25
  rag: {{object: "app:Bm25", depth: {depth}, top_k: 3, index_version: "1"}}
evaluators:
{evaluators}"""
RANKING = """\
  - {type: ndcg, k: 10}
  - {type: mrr, k: 10}
  - {type: average_precision, k: 100}
  - {type: recall, k: 100}
"""


@dataclass(frozen=True)
class Collection:
    """Documents, questions and judgments.

    Attributes:
        documents: id → text; two are empty.
        questions: their texts, in the order of the file.
        numbers: their numbers in the file, which the judgments do not use.
        grades: place of a question, counted from 1, as text → document → grade.
    """

    documents: Mapping[str, str]
    questions: Sequence[str]
    numbers: Sequence[str]
    grades: Mapping[str, Mapping[str, int]]

    @property
    def places(self) -> list[str]:
        """The names of the questions in the judgments."""
        return [str(place) for place in range(1, len(self.questions) + 1)]


def load_collection(folder: Path) -> Collection:
    """Read the collection, and make sure that it is what this benchmark was written for."""
    # A sequence of elements without one around them.
    text = (folder / "cran.all.1400.xml").read_text(encoding="utf-8")
    documents = ElementTree.fromstring(f"<all>{text}</all>")
    topics = ElementTree.parse(folder / "cran.qry.xml").getroot()
    problems: list[Problem] = []
    name = "cranqrel.trec.txt"
    judgments = read_judgments((folder / name).read_bytes(), name, problems)
    found = Collection(
        documents={_text(one, "docno"): _text(one, "text") for one in documents},
        questions=[_text(one, "title") for one in topics],
        numbers=[_text(one, "num") for one in topics],
        grades=judgments.grades,
    )
    judged = {doc_id for grades in found.grades.values() for doc_id in grades}
    assert not problems, problems
    assert len(found.documents) == 1400
    assert list(found.grades) == found.places
    assert judged <= found.documents.keys()
    return found


def _text(element: ElementTree.Element, name: str) -> str:
    return " ".join((element.findtext(name) or "").split())


def write_project(
    folder: Path,
    collection: Collection,
    cases: int,
    *,
    depth: int,
    evaluators: str,
    is_different: bool = True,
) -> Path:
    """Write a project with so many cases.

    Args:
        folder: where to; what is there is deleted.
        collection: its questions repeat, in their order, as often as it takes.
        cases: how many.
        depth: of the retrieval.
        evaluators: the entries, as YAML.
        is_different: whether a repeated question has an input of its own. Equal inputs are executed
            once.

    Returns:
        The config file.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(APP, folder / "app.py")
    config = folder / "rag_assets.yaml"
    config.write_text(CONFIG.format(depth=depth, evaluators=evaluators), encoding="utf-8")
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as file:
        for doc_id, text in collection.documents.items():
            file.write(json.dumps({"doc_id": doc_id, "text": text}) + "\n")
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        for index in range(cases):
            file.write(json.dumps(_case(collection, index, is_different)) + "\n")
    return config


def _case(collection: Collection, index: int, is_different: bool) -> dict[str, object]:
    turn, place = divmod(index, len(collection.questions))
    name = collection.places[place]
    labels = [
        {"doc_id": doc_id, "grade": grade} for doc_id, grade in collection.grades[name].items()
    ]
    question = {"question": collection.questions[place]}
    return {
        "id": name if turn == 0 else f"{name}-{turn}",
        "input": {**question, "turn": turn} if turn and is_different else question,
        "expected": {"relevant": labels},
    }


def cranfield(folder: Path) -> Section:
    """Run all questions, and compare metrics and library on the same rankings."""
    collection = load_collection(data_folder("cranfield"))
    questions = len(collection.questions)
    project = load_project(
        write_project(folder / "cranfield", collection, questions, depth=DEPTH, evaluators=RANKING)
    )
    run_id = run_suite(project, cases=None, use_cache=True, observer=Silent())
    rankings = {
        case_id: [one["doc_id"] for one in candidates]
        for case_id, candidates in recorded_candidates(project.store, run_id).items()
    }
    theirs = values_of(collection.grades, rankings, list(MEASURES.values()))
    with project.store.reading() as reader:
        metrics = {one.criterion: one for one in reader.metrics(run_id) if one.scope == "global"}
        judged = reader.run_judgments(run_id)
    rows = []
    for criterion, measure in MEASURES.items():
        metric = metrics[criterion]
        ours = {one.case_id: one.value for one in judged if one.criterion == criterion}
        gap = max(abs((ours[place] or 0) - theirs[measure][place]) for place in ours)
        rows.append(
            (
                f"`{criterion}`",
                f"{metric.estimate:.4f}",
                f"[{metric.lower:.4f}, {metric.upper:.4f}]",
                f"{metric.observed} / {metric.missing} / {metric.excluded}",
                measure,
                f"{mean(theirs[measure]):.4f}",
                f"{gap:.0e}",
            )
        )
    wrong = _joined_by_number(collection, rankings)
    header = ("metric", "estimate", "95 % interval", "observed / missing / excluded")
    lines = table((*header, "`ir_measures`", "value", "largest gap of a question"), rows)
    trap = (
        f"Joined by the numbers in the file of questions, {len(wrong)} questions would have "
        f"judgments, and AP@100 would be {mean(wrong):.4f}."
    )
    return Section("cranfield", [*lines, "", trap])


def recorded_candidates(store: Store, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """Case → candidates as the run recorded them."""
    with store.reading() as reader:
        digests = reader.stage_digests(run_id, "retrieval")
        payloads = reader.payloads(list(set(digests.values())))
    return {
        case_id: json.loads(payloads[digest])["candidates"] for case_id, digest in digests.items()
    }


def _joined_by_number(
    collection: Collection, rankings: Mapping[str, Ranking]
) -> Mapping[str, float]:
    renamed = {
        number: rankings[place]
        for number, place in zip(collection.numbers, collection.places, strict=True)
        if number in collection.grades
    }
    return values_of(collection.grades, renamed, ["AP@100"])["AP@100"]
