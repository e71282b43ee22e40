"""Retrieval metrics: the golden vectors, the table of the rules, and properties."""

import json
import warnings
from math import log2
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluating import build, case, evidence, problems_of, retrieval
from rag_assets.contracts.artifacts import Retrieval
from rag_assets.contracts.cases import parse_case
from rag_assets.contracts.errors import ArtifactError, InputError
from rag_assets.evaluators import Absent, Outcome, judge, recall_kind

GOLDEN = Path(__file__).parent / "golden"
METRICS = ("hit_rate", "recall", "precision", "mrr", "average_precision", "ndcg")
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


def golden(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def value(metric, candidates, relevant, k, unit="doc"):
    evaluator = build(metric, k=k, relevance_unit=unit)
    shown = evidence(case(relevant=relevant), retrieval=retrieval(*candidates))
    outcome = judge(evaluator, shown)
    assert outcome.status == "observed"
    return outcome.value


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("v", golden("retrieval_metrics.json"), ids=lambda v: v["tag"])
def test_golden_vectors(v, metric):
    evaluator = build(metric, k=v["k"], relevance_unit=v["relevance_unit"])
    shown = evidence(
        case(relevant=v["relevant"]), retrieval=retrieval(*v["candidates"], depth=v["depth"])
    )
    outcome, expected = judge(evaluator, shown), v["expected"][metric]
    assert (outcome.status, outcome.reason) == (expected["status"], expected.get("reason"))
    if outcome.status == "observed":
        right = expected.get("score", expected.get("passed"))
        assert outcome.value == pytest.approx(float(right), abs=1e-12)
    else:
        assert outcome.value is None


@pytest.mark.parametrize("v", golden("recall_kind.json"), ids=lambda v: v["tag"])
def test_recall_kind_is_decided_from_all_cases(v):
    cases = [case(relevant=labels or []) for labels in v["relevant_per_case"]]
    assert recall_kind(cases, v["relevance_unit"]) == v["kind"]
    evaluator = build("recall", relevance_unit=v["relevance_unit"], cases=cases)
    assert evaluator.kind == v["kind"]


def test_two_chunks_of_a_document_are_one_unit_under_doc():
    labels = [{"doc_id": "a", "chunk_id": "1"}, {"doc_id": "a", "chunk_id": "2"}]
    assert recall_kind([case(relevant=labels)], "doc") == "verdict"
    assert recall_kind([case(relevant=labels)], "chunk") == "score"


TABLE = """
b a c        | a             | 2 doc   | 1 | 1 | 0.5 | 0.5 | 0.5 | 0.6309297535714575
b c a        | a             | 2 doc   | 0 | 0 | 0 | 0 | 0 | 0
b c a        | a             | 6 doc   | 1 | 1 | 0.16666666666666666 | 0.3333333333333333 \
    | 0.3333333333333333 | 0.5
a a a b      | b             | 3 doc   | 0 | 0 | 0 | 0 | 0 | 0
a a a b      | b             | 4 doc   | 1 | 1 | 0.25 | 0.25 | 0.25 | 0.43067655807339306
a a b        | a b           | 3 doc   | 1 | 1 | 0.6666666666666666 | 1 | 0.8333333333333333 \
    | 0.9197207891481876
c b a d      | a:3 b:2 c:1   | 4 doc   | 1 | 1 | 0.75 | 1 | 1 | 0.7899980042460358
a x b        | a:3 b:2 c:1   | 2 doc   | 1 | 0.3333333333333333 | 0.5 | 1 | 0.3333333333333333 \
    | 0.7039180890341347
a b          | a:0.5 b:2.5   | 2 doc   | 1 | 1 | 1 | 1 | 1 | 0.737826424707602
a b          | a:1 a:3       | 2 doc   | 1 | 1 | 0.5 | 1 | 1 | 1
a#1 a#2 b#1  | a#2           | 2 chunk | 1 | 1 | 0.5 | 0.5 | 0.5 | 0.6309297535714575
a#1 a#2 b#1  | a#2 a#1:2 b#9 | 3 chunk | 1 | 0.6666666666666666 | 0.6666666666666666 | 1 \
    | 0.6666666666666666 | 0.8403030283801005
a b c d e f  | a b c d e f g h | 6 doc | 1 | 0.75 | 1 | 1 | 0.75 | 1
             | a             | 2 doc   | 0 | 0 | 0 | 0 | 0 | 0
"""


@pytest.mark.parametrize("row", TABLE.strip("\n").splitlines())
def test_table(row):
    candidates, labels, setting, *expected = (part.strip() for part in row.split("|"))
    relevant = []
    for label in labels.split():
        name, _, grade = label.partition(":")
        doc, _, chunk = name.partition("#")
        relevant.append({"doc_id": doc, "chunk_id": chunk or None, "grade": grade or 1})
    k, unit = setting.split()
    found = [value(metric, candidates.split(), relevant, int(k), unit) for metric in METRICS]
    assert found == pytest.approx([float(text) for text in expected], abs=1e-12)


# Known faults of tools of this kind


def test_a_label_that_is_there_twice_does_not_inflate_the_ideal_order():
    twice = parse_case(
        {"id": "l1", "input": "Q?", "expected": {"relevant": [{"doc_id": "a"}, {"doc_id": "a"}]}}
    )
    shown = evidence(twice, retrieval=retrieval("a", "z"))
    assert judge(build("ndcg", k=2), shown) == Outcome.score(1.0)
    assert judge(build("recall", k=2), shown) == Outcome.score(1.0)


def test_conflicting_grades_of_one_document_are_refused():
    labels = [{"doc_id": "b", "grade": 1}, {"doc_id": "b", "grade": 2}]
    with pytest.raises(InputError) as refused:
        parse_case({"id": "l2", "input": "Q?", "expected": {"relevant": labels}}, line=2)
    assert [problem.line for problem in refused.value.problems] == [2]


def test_the_ideal_order_comes_from_the_labels():
    labels = [{"doc_id": "a"}, {"doc_id": "b"}]
    assert value("ndcg", ["a", "z"], labels, 10) == pytest.approx(1 / (1 + 1 / log2(3)), abs=1e-12)
    assert value("ndcg", ["a", "z"], labels, 10) == pytest.approx(0.6131471927654584, abs=1e-12)
    assert value("recall", ["a", "z"], labels, 10) == 0.5

    many = [{"doc_id": f"r{number}"} for number in range(12)]
    first = [f"r{number}" for number in range(10)]
    assert value("ndcg", first, many, 10) == 1.0
    assert value("recall", first, many, 10) == pytest.approx(10 / 12, abs=1e-12)


def test_precision_is_divided_by_k_when_fewer_came_back():
    assert value("precision", ["a"], [{"doc_id": "a"}], 5) == 0.2


def test_a_recorded_depth_below_k_is_missing_and_says_why():
    shown = evidence(case(relevant=[{"doc_id": "a"}]), retrieval=retrieval("a", depth=5))
    assert judge(build("precision", k=20), shown) == Outcome.missing(
        "retrieval_too_shallow", "k=20 but retrieval was recorded to depth 5."
    )


def test_an_empty_list_is_observed_and_an_unexecuted_case_is_missing():
    recall = build("recall", k=5)
    outcomes = [
        judge(recall, evidence(case(relevant=[{"doc_id": f"d{i}"}]), retrieval=found))
        for i, found in enumerate(
            [
                retrieval("d0"),
                retrieval("d1"),
                retrieval("d2"),
                retrieval(),
                Absent("not_executed"),
            ]
        )
    ]
    assert [outcome.value for outcome in outcomes] == [1.0, 1.0, 1.0, 0.0, None]
    assert outcomes[4] == Outcome.missing("not_executed")


def test_a_case_without_labels_is_excluded_and_leaves_the_others_alone():
    hit_rate = build("hit_rate", k=1)
    rows = [([{"doc_id": "a"}], "a"), ([], "b"), ([{"doc_id": "c"}], "c")]
    outcomes = [
        judge(hit_rate, evidence(case(relevant=labels), retrieval=retrieval(found)))
        for labels, found in rows
    ]
    assert outcomes == [
        Outcome.verdict(True),
        Outcome.excluded("no_relevance_labels"),
        Outcome.verdict(True),
    ]


def test_exclusion_wins_over_a_failed_execution():
    shown = evidence(case(relevant=[]), retrieval=Absent("execution_error"))
    assert judge(build("mrr", k=3), shown) == Outcome.excluded("no_relevance_labels")


@pytest.mark.parametrize("scores", [(0.0, 0.0), (-3.5, -7.0), (None, None), (1.0, 2.0)])
def test_scores_of_candidates_decide_nothing(scores):
    found = Retrieval(
        query="Q?",
        candidates=[
            {"doc_id": "a", "score": scores[0]},
            {"doc_id": "b", "score": scores[1]},
        ],
    )
    shown = evidence(case(relevant=[{"doc_id": "a"}, {"doc_id": "b"}]), retrieval=found)
    assert judge(build("recall", k=2), shown) == Outcome.score(1.0)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_scores_that_are_no_number_are_malformed(score):
    with pytest.raises(ArtifactError):
        Retrieval(query="Q?", candidates=[{"doc_id": "a", "score": score}])


def test_ids_are_compared_exactly_and_must_be_strings():
    assert value("recall", ["7"], [{"doc_id": "007"}], 1) == 0.0
    assert value("recall", ["007"], [{"doc_id": "007"}], 1) == 1.0
    with pytest.raises(InputError, match="doc_id must be a"):
        parse_case({"id": "m1", "input": "Q?", "expected": {"relevant": [{"doc_id": 7}]}})
    with pytest.raises(ArtifactError, match="white space"):
        Retrieval(query="Q?", candidates=[{"doc_id": " 007"}])


# Settings


def test_defaults_and_how_an_evaluator_prints_itself():
    assert str(build("hit_rate", k=2)) == "hit_rate(k=2, relevance_unit=doc)"
    assert [str(build(metric)) for metric in METRICS] == [
        "hit_rate(k=5, relevance_unit=doc)",
        "recall(k=5, relevance_unit=doc)",
        "precision(k=5, relevance_unit=doc)",
        "mrr(k=10, relevance_unit=doc)",
        "average_precision(k=10, relevance_unit=doc)",
        "ndcg(k=10, relevance_unit=doc)",
    ]


@pytest.mark.parametrize(
    ("metric", "criterion"),
    [
        ("hit_rate", "hit_rate_at_5"),
        ("average_precision", "average_precision_at_6"),
        ("ndcg", "ndcg_at_6"),
    ],
)
def test_the_default_k_is_never_above_the_declared_depth(metric, criterion):
    assert build(metric, None, depth=6).criterion == criterion


def test_k_above_the_declared_depth_is_refused_with_its_line():
    assert problems_of("ndcg", k=7, depth=6) == [
        (
            "rag_assets.yaml:12: evaluators.0.k: k is 7, and the depth of retrieval is 6. "
            "Write k: 6 or less, or raise system.rag.depth."
        )
    ]


def test_chunk_unit_needs_a_chunk_on_every_label():
    labelled = case(
        {"relevant": [{"doc_id": "a", "chunk_id": "1"}, {"doc_id": "b"}]},
        line=4,
    )
    message = (
        'cases.jsonl:4: expected.relevant: The label of document "b" has no chunk_id, which '
        "relevance_unit: chunk needs on every label. Add it, or write relevance_unit: doc."
    )
    assert problems_of("recall", relevance_unit="chunk", cases=[labelled]) == [message]
    assert problems_of("recall", relevance_unit="doc", cases=[labelled]) == []


def test_what_is_read_of_a_case_is_its_relevant_units():
    one = case(
        {
            "answer": "x",
            "relevant": [
                {"doc_id": "b", "chunk_id": "1", "grade": 2},
                {"doc_id": "a", "chunk_id": "1"},
                {"doc_id": "z", "chunk_id": "1", "grade": 0},
            ],
        }
    )
    assert build("ndcg").reads_of_case(one) == [["a", 1.0], ["b", 2.0]]
    assert build("ndcg", relevance_unit="chunk").reads_of_case(one) == [
        [("a", "1"), 1.0],
        [("b", "1"), 2.0],
    ]


def test_the_identity_holds_the_settings_and_not_the_criterion_or_the_kind():
    two = case(relevant=[{"doc_id": "a"}, {"doc_id": "b"}])
    base = build("recall", "first", k=2)
    assert build("recall", "second", k=2).identity == base.identity
    assert build("recall", k=2, relevance_unit="doc").identity == base.identity
    assert build("recall", k=2, cases=[two]).identity == base.identity
    assert build("recall", k=3).identity != base.identity
    assert build("hit_rate", k=2).identity != base.identity
    assert build("recall").identity == build("recall", k=5).identity


# Properties

names = st.sampled_from("abcdefgh")
rankings = st.lists(names, max_size=10)
labels = st.dictionaries(names, st.sampled_from([0.5, 1, 2, 3]), min_size=1, max_size=5)
ks = st.integers(1, 8)


def as_labels(grades):
    return [{"doc_id": doc, "grade": grade} for doc, grade in grades.items()]


@deterministic
@given(rankings, labels, ks, st.sampled_from(METRICS))
def test_values_stay_in_the_declared_range(ranking, grades, k, metric):
    assert 0.0 <= value(metric, ranking, as_labels(grades), k) <= 1.0


@deterministic
@given(st.permutations("abcdefgh"), labels, ks, st.integers(0, 6))
def test_moving_a_better_passage_up_lowers_nothing(ranking, grades, k, place):
    upper, lower = ranking[place], ranking[place + 1]
    if grades.get(lower, 0) < grades.get(upper, 0):
        upper, lower = lower, upper
    better = [*ranking[:place], lower, upper, *ranking[place + 2 :]]
    worse = [*ranking[:place], upper, lower, *ranking[place + 2 :]]
    for metric in METRICS:
        gain = value(metric, better, as_labels(grades), k) - value(
            metric, worse, as_labels(grades), k
        )
        assert gain >= -1e-12


@deterministic
@given(rankings, labels, ks)
def test_later_duplicates_add_nothing(ranking, grades, k):
    seen = set()
    blanked = []
    for number, name in enumerate(ranking):
        blanked.append(f"other{number}" if name in seen else name)
        seen.add(name)
    for metric in METRICS:
        assert value(metric, ranking, as_labels(grades), k) == value(
            metric, blanked, as_labels(grades), k
        )


@deterministic
@given(rankings, labels, ks)
def test_names_decide_nothing(ranking, grades, k):
    renamed = {doc: f"Z{ord('h') - ord(doc)}" for doc in "abcdefgh"}
    for metric in METRICS:
        before = value(metric, ranking, as_labels(grades), k)
        moved = as_labels({renamed[doc]: grade for doc, grade in grades.items()})
        assert value(metric, [renamed[doc] for doc in ranking], moved, k) == before


@deterministic
@given(
    st.lists(names, unique=True, min_size=1, max_size=8),
    st.dictionaries(names, st.integers(1, 4), min_size=1, max_size=6),
    st.sampled_from([1, 2, 3, 5, 10]),
)
def test_agreement_with_ir_measures(ranking, grades, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures

        theirs = {
            "hit_rate": "Success",
            "recall": "R",
            "precision": "P",
            "mrr": "RR",
            "average_precision": "AP",
            "ndcg": "nDCG",
        }
        measures = {
            metric: ir_measures.parse_measure(f"{name}@{k}") for metric, name in theirs.items()
        }
        qrels = [ir_measures.Qrel("q", doc, grade) for doc, grade in grades.items()]
        run = [ir_measures.ScoredDoc("q", doc, float(-place)) for place, doc in enumerate(ranking)]
        expected = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    for metric, measure in measures.items():
        found = value(metric, ranking, as_labels(grades), k)
        assert found == pytest.approx(expected[measure], abs=1e-9)


def test_grades_of_any_size_give_a_value():
    labels = [{"doc_id": "a", "grade": 1.7e308}, {"doc_id": "b", "grade": 1.7e308}]
    assert value("ndcg", ["b", "a"], labels, 2) == 1.0
    assert value("ndcg", ["b"], labels, 1) == 1.0
