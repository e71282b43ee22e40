"""From TREC judgments and runs to a project: a topic becomes a case, a run a recorded config."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import Problem
from rag_assets.contracts.text import read_bytes
from rag_assets.formats.project import (
    COMPARE_POLICY_FILE,
    CONFIG_FILE,
    DATASET,
    POLICY_FILE,
    Entry,
    Fact,
    Facts,
    ImportedProject,
    config_text,
    json_lines,
    policy_text,
)
from rag_assets.formats.trec import Judgments, TrecRun, read_judgments, read_run

_LONG = 100
_SHORT_EVENTS = """
# The rankings are long: the Dagster UI shows a line for each topic, and no table.
dagster: {rich_metadata_cases: 0}
"""
NO_ANSWERS = (
    "every metric that needs an answer (contains, exact, token_f1, …): a TREC run holds no answers",
    "every metric that needs a context or citations: a TREC run says nothing of what a model saw",
)


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run with the file that it came from, and its name in the project."""

    name: str
    file: str
    run: TrecRun


def read_trec(
    qrels: Path, runs: Sequence[Path], project: str, problems: list[Problem]
) -> ImportedProject | None:
    """Make a project of a qrels file and runs.

    Args:
        qrels: the judgments.
        runs: at least one file of results.
        project: the label of the project.
        problems: what is wrong with a line of a file is appended here.

    Returns:
        The project, or None when anything was wrong.
    """
    before = len(problems)
    data = read_bytes(qrels, str(qrels), problems)
    judgments = None if data is None else read_judgments(data, str(qrels), problems)
    named = []
    for path, name in zip(runs, run_names(runs), strict=True):
        data = read_bytes(path, str(path), problems)
        if data is not None:
            named.append(NamedRun(name, str(path), read_run(data, str(path), problems)))
    if judgments is None or len(problems) > before:
        return None
    return trec_project(judgments, str(qrels), named, project)


def run_names(runs: Sequence[Path]) -> list[str]:
    """A unique name of ASCII letters, digits and _ for each run: its file's, without the extension.

    Where two would be the same, the extension is part of the name, and where that does not help,
    a number is.
    """
    stems = [_word(path.stem) for path in runs]
    names = [
        stem if stems.count(stem) == 1 else _word(path.name)
        for stem, path in zip(stems, runs, strict=True)
    ]
    found: list[str] = []
    for name in names:
        number, unique = 2, name
        while unique in found:
            number, unique = number + 1, f"{name}_{number}"
        found.append(unique)
    return found


def trec_project(
    judgments: Judgments, qrels: str, runs: Sequence[NamedRun], project: str
) -> ImportedProject:
    """Make a project of what was read.

    Args:
        judgments: the judgments.
        qrels: the file they came from.
        runs: at least one run.
        project: the label of the project.
    """
    lengths = (len(ranking) for one in runs for ranking in one.run.rankings.values())
    deepest = max(lengths, default=1)
    evaluators = _evaluators(deepest)
    settings = _SHORT_EVENTS if deepest > _LONG else ""
    files: dict[str, Any] = {DATASET: json_lines(_cases(judgments, runs))}
    configs: list[str] = []
    labels: list[str] = []
    for one in runs:
        config = f"rag_assets.{one.name}.yaml" if configs else CONFIG_FILE
        label = f"{project}-{one.name}" if len(runs) > 1 else project
        results = f"data/{one.name}.jsonl"
        files[config] = [_config(one, label, results, evaluators, settings)]
        files[results] = json_lines(_results(one.run))
        configs.append(config)
        labels.append(label)
    by_type = {one.keys["type"]: f"{one.keys['type']}_at_{one.keys['k']}" for one in evaluators}
    files[POLICY_FILE] = [policy_text("What a run must show before a release.", _floors(by_type))]
    if len(runs) > 1:
        what = "What `rag-assets compare CANDIDATE BASELINE` decides on the differences, by topic."
        files[COMPARE_POLICY_FILE] = [policy_text(what, _differences(by_type))]
    return ImportedProject(
        sizes=((len(runs), "recorded run"), (len(_topics(judgments, runs)), "topic")),
        configs=tuple(configs),
        labels=tuple(labels),
        files=files,
        facts=(_judged(judgments, qrels), *(_found(one, judgments) for one in runs)),
        left_out=NO_ANSWERS,
    )


def _word(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "run"


def _topics(judgments: Judgments, runs: Sequence[NamedRun]) -> list[str]:
    """Those of the judgments, then those that only runs have; in the order of the files."""
    topics = dict.fromkeys(judgments.grades)
    for one in runs:
        topics |= dict.fromkeys(one.run.rankings)
    return list(topics)


def _cases(judgments: Judgments, runs: Sequence[NamedRun]) -> Iterator[dict[str, Any]]:
    for topic in _topics(judgments, runs):
        labels = [
            {"doc_id": doc_id, "grade": max(grade, 0)}
            for doc_id, grade in judgments.grades.get(topic, {}).items()
        ]
        # The question itself is in neither file.
        yield {"id": topic, "input": {"topic": topic}, "expected": {"relevant": labels}}


def _results(run: TrecRun) -> Iterator[dict[str, Any]]:
    for topic, ranking in run.rankings.items():
        yield {"case_id": topic, "doc_ids": [one._asdict() for one in ranking]}


def _evaluators(deepest: int) -> list[Entry]:
    """The measures of `trec_eval` that are looked at first, down to where any run reaches."""
    ten, hundred = min(10, deepest), min(100, deepest)
    return [
        Entry(f"{name} of trec_eval", {"type": kind, "k": k})
        for name, kind, k in (
            ("map", "average_precision", deepest),
            ("recip_rank", "mrr", deepest),
            (f"ndcg_cut_{ten}", "ndcg", ten),
            (f"P_{ten}", "precision", ten),
            (f"recall_{hundred}", "recall", hundred),
            (f"success_{ten}", "hit_rate", ten),
        )
    ]


def _config(
    one: NamedRun, project: str, results: str, evaluators: Sequence[Entry], settings: str
) -> str:
    return config_text(
        what=f"The results of a TREC run, {Path(one.file).name}, against the judgments of its "
        "topics.",
        project=project,
        system={"name": one.name, "config": {"run_tag": one.run.tag}},
        recorded="    # Results that are there already: no code runs. A topic without a row is\n"
        f"    # missing (not_recorded), never an empty list.\n    path: {results}\n",
        evaluators=evaluators,
        left_out=NO_ANSWERS,
        settings=settings,
    )


def _floors(metrics: Mapping[str, str]) -> list[Entry]:
    return [
        Entry(
            "The share of topics with something relevant near the top.",
            {"id": "found-something", "metric": metrics["hit_rate"], "min": 0.8},
        ),
        Entry(
            "How good the order near the top is, on average.",
            {"id": "ranking-floor", "metric": metrics["ndcg"], "min": 0.3},
        ),
    ]


def _differences(metrics: Mapping[str, str]) -> list[Entry]:
    return [
        Entry(
            "The candidate ranks better.",
            {
                "id": "better-ranking",
                "kind": "superiority",
                "metric": metrics["average_precision"],
            },
        ),
        Entry(
            "The share of topics with something relevant near the top dropped by less than 5 "
            "points.",
            {
                "id": "finds-not-less",
                "kind": "non_inferiority",
                "metric": metrics["hit_rate"],
                "margin": 0.05,
            },
        ),
    ]


def _judged(judgments: Judgments, qrels: str) -> Facts:
    grades = [grade for judged in judgments.grades.values() for grade in judged.values()]
    without = sum(all(grade <= 0 for grade in one.values()) for one in judgments.grades.values())
    return Facts(
        f"Judgments of {qrels}",
        (
            Fact(len(judgments.grades), "judged topics"),
            Fact(len(grades), "judged documents"),
            Fact(sum(grade > 0 for grade in grades), "of them relevant: the grade is above 0"),
            Fact(sum(grade < 0 for grade in grades), "with a negative grade, kept as grade 0"),
            Fact(judgments.repeated, "repeated lines, counted once"),
            Fact(without, f"topics without a relevant document: {_EXCLUDED}"),
        ),
    )


def _found(one: NamedRun, judgments: Judgments) -> Facts:
    rankings, grades = one.run.rankings, judgments.grades
    unjudged = sum(
        ranked.doc_id not in grades[topic]
        for topic, ranking in rankings.items()
        if topic in grades
        for ranked in ranking
    )
    return Facts(
        f"Results of {one.file}, run {one.name}",
        (
            Fact(len(rankings), "topics with results"),
            Fact(sum(map(len, rankings.values())), "results"),
            Fact(unjudged, "of them not judged for their topic: they count as not relevant"),
            Fact(one.run.repeated, "repeat a document of their topic: they keep their position"),
            Fact(one.run.disagreeing, "topics whose ranks contradict the scores: scores decide"),
            Fact(one.run.tied, "of them only where scores are equal: the document id decides"),
            Fact(
                len(grades.keys() - rankings.keys()),
                "judged topics without a result: missing, not_recorded",
            ),
            Fact(len(rankings.keys() - grades.keys()), f"topics without a judgment: {_EXCLUDED}"),
        ),
    )


_EXCLUDED = "excluded, no_relevance_labels"
