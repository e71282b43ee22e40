"""Ranking metrics against the published outputs of trec_eval, and against its library."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import call
from evaluating import build, case, evidence, retrieval
from projects import SampleProject
from rag_assets.evaluators import judge
from rag_assets.formats.trec import Judgments, TrecRun, read_judgments, read_run
from shared_data import shared_data

Values = Mapping[tuple[str, str], float]
DEEPEST = 1000
# What trec_eval prints has four decimals.
PRINTED = 5e-5 + 1e-9
CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
MEASURES = {
    "map": ("average_precision", DEEPEST),
    "recip_rank": ("mrr", DEEPEST),
    "ndcg": ("ndcg", DEEPEST),
    "set_P": ("precision", 500),
    "set_recall": ("recall", DEEPEST),
    **{f"P_{k}": ("precision", k) for k in CUTS},
    **{f"recall_{k}": ("recall", k) for k in CUTS},
    **{f"map_cut_{k}": ("average_precision", k) for k in CUTS},
    **{f"ndcg_cut_{k}": ("ndcg", k) for k in CUTS},
    **{f"success_{k}": ("hit_rate", k) for k in (1, 5, 10)},
}
"""Measure of trec_eval → evaluator and k that give the same value."""


def read(qrels: str, results: str) -> tuple[Judgments, TrecRun]:
    folder, problems = shared_data("trec_eval"), []
    judgments = read_judgments((folder / qrels).read_bytes(), qrels, problems)
    run = read_run((folder / results).read_bytes(), results, problems)
    assert problems == []
    return judgments, run


def published(output: str) -> Values:
    """(measure, topic or all) → what an output of trec_eval says."""
    text = (shared_data("trec_eval") / output).read_text(encoding="utf-8")
    rows = [row.split("\t") for row in text.splitlines()]
    return {
        (measure.strip(), topic): float(value)
        for measure, topic, value in rows
        if measure.strip() in MEASURES
    }


def values(grades: Mapping[str, int], ranking: list[str], names: list[str]) -> dict[str, float]:
    """Measure → value of one topic."""
    labels = [{"doc_id": doc, "grade": max(grade, 0)} for doc, grade in grades.items()]
    shown = evidence(case(relevant=labels), retrieval=retrieval(*ranking))
    found = {}
    for name in names:
        kind, k = MEASURES[name]
        outcome = judge(build(kind, k=k), shown)
        assert outcome.value is not None
        found[name] = outcome.value
    return found


def values_of_run(judgments: Judgments, run: TrecRun) -> dict[tuple[str, str], float]:
    """(measure, topic) → value, for the topics that have results."""
    return {
        (name, topic): value
        for topic, ranking in run.rankings.items()
        for name, value in values(
            judgments.grades[topic], [one.doc_id for one in ranking], list(MEASURES)
        ).items()
    }


def test_every_measure_of_every_topic_is_what_trec_eval_published() -> None:
    judgments, run = read("qrels.test", "results.test")
    found, output = values_of_run(judgments, run), published("out.test.aq")
    single = {key: value for key, value in output.items() if key[1] != "all"}
    # What it prints for one topic only, or for all of them only.
    assert {name for name, _ in single} == set(MEASURES)
    assert found == pytest.approx(single, abs=PRINTED)
    means = {
        name: sum(found[name, topic] for topic in run.rankings) / len(run.rankings)
        for name in MEASURES
    }
    both = {name: published("out.test.a")[name, "all"] for name in MEASURES}
    assert means == pytest.approx(both, abs=PRINTED)


def test_a_topic_without_results_counts_as_zero_for_trec_eval_only() -> None:
    """With -c it is a zero there; here it has no value, and the denominator says so."""
    judgments, run = read("qrels.test", "results.trunc")
    assert set(judgments.grades) - set(run.rankings) == {"302"}
    found, output = values_of_run(judgments, run), published("out.test.aqc")
    for topic in run.rankings:
        # The list of one topic is shorter than 500.
        measures = [name for name in MEASURES if name != "set_P" or topic == "301"]
        ours = {name: found[name, topic] for name in measures}
        theirs = {name: output[name, topic] for name in measures if (name, topic) in output}
        assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=PRINTED)
    for name in ("map", "recip_rank", "P_10", "ndcg_cut_10", "recall_100", "success_10"):
        total = sum(found[name, topic] for topic in run.rankings)
        assert total / 3 == pytest.approx(output[name, "all"], abs=PRINTED)


def test_an_imported_run_shows_the_published_means(tmp_path: Path) -> None:
    folder = shared_data("trec_eval")
    arguments = [str(folder / name) for name in ("qrels.test", "results.test")]
    imported = call(tmp_path, "import", "trec", *arguments, "--out", "made")
    assert imported.exit_code == 0, imported.output
    made = object.__new__(SampleProject)
    made.root = tmp_path / "made"
    output = published("out.test.a")
    estimates = {one.criterion: one.estimate for one in made.run().metrics}
    assert estimates == pytest.approx(
        {
            "average_precision_at_500": output["map", "all"],
            "mrr_at_500": output["recip_rank", "all"],
            "ndcg_at_10": output["ndcg_cut_10", "all"],
            "precision_at_10": output["P_10", "all"],
            "recall_at_100": output["recall_100", "all"],
            "hit_rate_at_10": output["success_10", "all"],
            "retrieval_valid": 1.0,
        },
        abs=PRINTED,
    )


@cache
def library_of_trec_eval():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pytrec_eval

        return pytrec_eval


def values_of_library(grades: Mapping[str, int], scores: Mapping[str, float]) -> dict[str, float]:
    cuts = ",".join(map(str, CUTS))
    asked = {"map", "recip_rank", "ndcg", "set_P", "set_recall", "success.1,5,10"}
    asked |= {f"{name}.{cuts}" for name in ("P", "recall", "map_cut", "ndcg_cut")}
    evaluator = library_of_trec_eval().RelevanceEvaluator({"q": dict(grades)}, asked)
    found = evaluator.evaluate({"q": dict(scores)})["q"]
    assert set(found) == set(MEASURES)
    return found


@pytest.mark.parametrize(
    ("qrels", "results"),
    [("qrels.rel_level", "results.test"), ("qrels-302.test", "results-302.test")],
)
def test_graded_judgments_agree_with_the_library(qrels: str, results: str) -> None:
    judgments, run = read(qrels, results)
    for topic in judgments.grades:
        ranking = run.rankings[topic]
        grades = judgments.grades[topic]
        theirs = values_of_library(grades, {one.doc_id: one.score for one in ranking})
        ours = values(grades, [one.doc_id for one in ranking], list(MEASURES))
        assert ours == pytest.approx(theirs, abs=1e-9)


documents = st.integers(0, 99).map("d{:02}".format)
some_grades = st.dictionaries(documents, st.integers(0, 4), min_size=1, max_size=20).filter(
    lambda grades: any(grades.values())
)


@settings(derandomize=True, deadline=None, max_examples=500)
@given(
    ranking=st.lists(documents, unique=True, min_size=1, max_size=60),
    grades=some_grades,
    seed=st.integers(0, 2**32),
)
def test_random_rankings_agree_with_the_library(ranking, grades, seed):
    scores = sorted(random.Random(seed).sample(range(100_000), len(ranking)), reverse=True)
    theirs = values_of_library(grades, dict(zip(ranking, map(float, scores), strict=True)))
    names = [name for name in MEASURES if name != "set_P"]
    ours = values(grades, ranking, names)
    assert ours == pytest.approx({name: theirs[name] for name in names}, abs=1e-9)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(scores=st.dictionaries(documents, st.integers(0, 3), min_size=1), grades=some_grades)
def test_a_run_with_ties_is_ordered_as_the_library_orders_it(scores, grades):
    lines = "".join(f"q Q0 {doc} 1 {score} tag\n" for doc, score in scores.items())
    ranking = [one.doc_id for one in read_run(lines.encode(), "run", []).rankings["q"]]
    theirs = values_of_library(grades, {doc: float(score) for doc, score in scores.items()})
    names = [name for name in MEASURES if name != "set_P"]
    ours = values(grades, ranking, names)
    assert ours == pytest.approx({name: theirs[name] for name in names}, abs=1e-9)
