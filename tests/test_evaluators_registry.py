"""From a config to evaluators: what is refused and how, judging, and what is declared."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluating import build, build_all, case, citations, context, entry, evidence, retrieval
from rag_assets.contracts.config import read_config
from rag_assets.evaluators import (
    COMMON_MISSES,
    Absent,
    Outcome,
    build_evaluators,
    describe,
    judge,
)
from rag_assets.evaluators.answer import Contains

deterministic = settings(derandomize=True, deadline=None, max_examples=60)
PLACE = "rag_assets.yaml"
TYPES = [
    "contains",
    "exact",
    "regex",
    "json_schema",
    "numeric",
    "token_f1",
    "custom",
    "hit_rate",
    "recall",
    "precision",
    "mrr",
    "average_precision",
    "ndcg",
    "citation_validity",
    "evidence_coverage",
    "admissible_context",
    "admissible_retrieval",
    "admissible_citations",
    "no_leak",
    "abstention",
    "behavior",
    "claim_support",
    "fact_coverage",
    "context_support",
    "task_acceptance",
]


def problems(*entries, **project):
    return build_all(*entries, **project)[1]


# Types and keys


def test_an_unknown_type_is_refused_with_the_nearest_one():
    assert problems(entry("hitrate", "hits")) == [
        (
            f"{PLACE}:10: evaluators.0.type: There is no evaluator type hitrate. "
            'Did you mean "hit_rate"? The types are: contains, exact, exact_match, regex, '
            "json_schema, numeric, token_f1, custom, hit_rate, recall, precision, mrr, "
            "average_precision, ndcg, citation_validity, evidence_coverage, admissible_context, "
            "admissible_retrieval, admissible_citations, no_leak, abstention, behavior, "
            "claim_support, fact_coverage, context_support, task_acceptance."
        )
    ]


@pytest.mark.parametrize(
    "later",
    [
        "groundedness_judge",
        "citation_support_judge",
        "rubric_judge",
        "answer_equivalence_judge",
        "claims_judge",
    ],
)
def test_a_type_that_comes_later_says_so(later):
    assert problems(entry(later, provider="any", model="any")) == [
        (
            f"{PLACE}:10: evaluators.0.type: The type {later} is not in this version of "
            "rag-assets; remove this evaluator."
        )
    ]


def test_an_unknown_key_is_refused_with_the_keys_that_the_type_accepts():
    assert problems(entry("hit_rate", relevance_units="doc")) == [
        (
            f"{PLACE}:12: evaluators.0.relevance_units: hit_rate has no key relevance_units. "
            'Did you mean "relevance_unit"? It accepts: type, criterion, k, relevance_unit.'
        )
    ]
    assert problems(entry("json_schema", "valid", schema={}, path="x")) == [
        (
            f"{PLACE}:13: evaluators.0.path: json_schema has no key path. "
            "It accepts: type, criterion, field, schema."
        )
    ]


@pytest.mark.parametrize(
    ("k", "message"),
    [
        ("2", 'k must be an integer, got "2"; write k: 2 without quotes.'),
        (True, "k must be an integer, got true."),
        (2.0, "k must be an integer, got 2.0; write k: 2."),
        (0, "k must be at least 1, got 0."),
        (None, "k must be an integer, got null."),
    ],
)
def test_parameters_are_strict_and_the_fix_is_shown(k, message):
    assert problems(entry("hit_rate", k=k)) == [f"{PLACE}:12: evaluators.0.k: {message}"]


@pytest.mark.parametrize(
    ("made", "key", "message"),
    [
        (
            entry("hit_rate", relevance_unit="chunks"),
            "relevance_unit",
            'relevance_unit must be one of doc, chunk, got "chunks". Did you mean "chunk"?',
        ),
        (
            entry("contains", "a", casefold="yes"),
            "casefold",
            'casefold must be true or false, got "yes"; write casefold: true without quotes.',
        ),
        (entry("contains", "a", field=""), "field", "field must not be empty."),
        (
            entry("contains", "a", field=3),
            "field",
            'field must be a string, got 3; write field: "3" in quotes.',
        ),
    ],
)
def test_wrong_values_are_refused(made, key, message):
    assert problems(made) == [f"{PLACE}:12: evaluators.0.{key}: {message}"]


# Criteria


@pytest.mark.parametrize(
    ("made", "criterion"),
    [
        (entry("hit_rate", k=2), "hit_rate_at_2"),
        (entry("recall"), "recall_at_5"),
        (entry("precision"), "precision_at_5"),
        (entry("mrr"), "mrr_at_10"),
        (entry("average_precision"), "average_precision_at_10"),
        (entry("ndcg", k=6), "ndcg_at_6"),
        (entry("citation_validity"), "citations_valid"),
        (entry("hit_rate", "found", k=2), "found"),
    ],
)
def test_default_criteria(made, criterion):
    built, found = build_all(made)
    assert (built[0].criterion, found) == (criterion, [])


@pytest.mark.parametrize("type", ["contains", "exact", "numeric", "token_f1"])
def test_a_criterion_is_needed_where_there_is_no_default(type):
    assert problems(entry(type)) == [
        (
            f"{PLACE}:11: evaluators.0.criterion: {type} has no default criterion. Name the "
            "metric, for example: criterion: answer_correct."
        )
    ]


def test_a_misspelt_criterion_is_one_problem():
    (problem,) = problems(entry("contains", criteron="right"))
    assert 'contains has no key criteron. Did you mean "criterion"?' in problem


def test_two_evaluators_cannot_share_a_criterion():
    assert problems(entry("hit_rate", k=2, line=3), entry("recall", "hit_rate_at_2", line=8)) == [
        (
            f"{PLACE}:9: evaluators.1.criterion: The criterion hit_rate_at_2 is also that of "
            "evaluators.0 (line 3). Give one of them another criterion."
        )
    ]
    assert problems(entry("hit_rate", k=2), entry("hit_rate", k=3)) == []


# The system and the dataset


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (entry("hit_rate"), "retrieval"),
        (entry("citation_validity"), "citations"),
    ],
)
def test_an_artifact_that_is_never_recorded_cannot_be_read(made, part):
    assert problems(made, recorded=frozenset({"retrieval", "context"} - {part})) == [
        (
            f"{PLACE}:10: evaluators.0.type: {made.type} reads the {part}, and this system never "
            "records one. Let the system record it, or remove this evaluator."
        )
    ]


def test_the_output_is_always_there():
    assert problems(entry("contains", "right"), recorded=frozenset()) == []


def test_all_problems_are_reported_together_and_once():
    rows = [
        case({"answer": ["x"], "relevant": [{"doc_id": "a"}]}, line=1),
        case({"answer": "x", "relevant": [{"doc_id": "b", "chunk_id": "1"}]}, line=2),
    ]
    found = problems(
        entry("recall", k="2", line=10),
        entry("ndcg", k=9, relevance_unit="chunk", line=20),
        entry("mrr", relevance_unit="chunk", line=30),
        entry("contains", "right", field="answer", line=40),
        entry("nothing", line=50),
        cases=rows,
        depth=6,
    )
    assert [problem.split(": ")[:2] for problem in found] == [
        [f"{PLACE}:12", "evaluators.0.k"],
        [f"{PLACE}:22", "evaluators.1.k"],
        [f"{PLACE}:50", "evaluators.4.type"],
        ["cases.jsonl:1", "expected.relevant"],
        ["cases.jsonl:1", "expected.answer"],
    ]


def test_a_wrong_evaluator_is_left_out_and_the_others_are_built():
    built, found = build_all(entry("hit_rate", k=0), entry("recall"), entry("ndcg", k=7), depth=6)
    assert [evaluator.criterion for evaluator in built] == ["recall_at_5", "ndcg_at_7"]
    assert len(found) == 2


def test_without_a_dataset_cases_are_not_checked(tmp_path):
    found = []
    built = build_evaluators(
        [entry("recall", relevance_unit="chunk")],
        file=PLACE,
        depth=None,
        recorded=frozenset({"retrieval"}),
        dataset=None,
        root=tmp_path,
        problems=found,
    )
    assert ([evaluator.kind for evaluator in built], found) == (["score"], [])


CONFIG = """
project: demo
dataset: cases.jsonl
system: {name: s, rag: {object: "app:rag"}}
evaluators:
  - type: numeric
    criterion: price
    tolerance:
      absolute: "1"
  - type: hit_rate
    k: 3
    unit: doc
"""


def test_problems_of_a_config_file_carry_its_lines(tmp_path):
    (tmp_path / "cases.jsonl").write_text('{"id": "1", "input": "Q?"}\n', encoding="utf-8")
    (tmp_path / PLACE).write_text(CONFIG.lstrip("\n"), encoding="utf-8")
    found = []
    config = read_config(tmp_path / PLACE, found, name=PLACE)
    assert found == []
    _, lines = build_all(*config.evaluators, root=tmp_path)
    assert lines == [
        (
            f"{PLACE}:8: evaluators.0.tolerance.absolute: "
            'absolute must be a finite number, got "1"; write absolute: 1 without quotes.'
        ),
        (
            f"{PLACE}:11: evaluators.1.unit: hit_rate has no key unit. "
            "It accepts: type, criterion, k, relevance_unit."
        ),
    ]


keys = st.sampled_from(["k", "field", "casefold", "tolerance", "schema", "range", "unit"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 30) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@deterministic
@given(
    st.sampled_from([*TYPES, "exact_match", "unknown", "no_leak"]),
    st.dictionaries(keys, values, max_size=3),
)
def test_whatever_is_written_gives_an_evaluator_or_problems_at_its_lines(type, parameters):
    made = entry(type, "named", **parameters)
    built, found = build_all(made)
    assert bool(built) != bool(found)
    for problem in found:
        file, line, key, message = problem.split(":", 3)
        assert (file, key.strip().split(".")[:2]) == (PLACE, ["evaluators", "0"])
        assert 10 <= int(line) <= 16
        assert message.strip()


# Judging


class Raising(Contains):
    home = Path(__file__).parent

    def __init__(self, error):
        super().__init__("raising", Contains.accepts())
        self.error = error

    def exclusion(self, case):
        return None

    def evaluate(self, evidence):
        raise self.error


@pytest.mark.parametrize("error", [ValueError("no \ud800 value"), SystemExit(3)])
def test_an_error_of_an_evaluator_is_missing_with_its_traceback(error):
    outcome = judge(Raising(error), evidence(case("x"), "x"))
    assert (outcome.status, outcome.value, outcome.reason) == ("missing", None, "evaluator_error")
    assert outcome.detail["error"].startswith(type(error).__name__)
    assert "raise self.error" in outcome.detail["traceback"]
    assert "judging.py" not in outcome.detail["traceback"]
    assert json.dumps(outcome.detail, ensure_ascii=False).encode("utf-8")


def test_an_interruption_is_not_an_outcome():
    with pytest.raises(KeyboardInterrupt):
        judge(Raising(KeyboardInterrupt()), evidence(case("x"), "x"))


def test_outcomes():
    assert Outcome.verdict(True) == Outcome("observed", 1.0, None, None)
    assert Outcome.verdict(False, "why", [1]) == Outcome("observed", 0.0, "why", [1])
    assert Outcome.score(0.25, {"a": 1}) == Outcome("observed", 0.25, None, {"a": 1})
    assert Outcome.excluded("why") == Outcome("excluded", None, "why", None)
    assert Outcome.missing("why", "more") == Outcome("missing", None, "why", "more")
    with pytest.raises(FrozenInstanceError):
        Outcome.score(1.0).value = 0.0


@pytest.mark.parametrize("reason", ["execution_error", "timeout", "malformed_artifact"])
def test_a_retrieval_metric_needs_only_the_retrieval(reason):
    failed = evidence(
        case(relevant=[{"doc_id": "a"}]),
        Absent(reason),
        retrieval=retrieval("a"),
        context=Absent(reason),
        citations=Absent(reason),
    )
    assert judge(build("hit_rate"), failed) == Outcome.verdict(True)
    assert judge(build("citation_validity"), failed) == Outcome.missing(reason)


# What is declared


def test_every_type_declares_itself_completely():
    declared = {item["type"]: item for item in describe()}
    assert list(declared) == TYPES
    for item in declared.values():
        assert item["description"].endswith(".")
        assert item["when_empty"].endswith(".")
        assert item["formula_source"].endswith(".")
        assert all(parameter["description"] for parameter in item["parameters"])
        assert set(COMMON_MISSES) <= set(item["missing"])
        assert set(item["reads"]) <= {"output", "retrieval", "context", "citations"}
    assert json.loads(json.dumps(list(declared.values()))) == list(declared.values())


def test_the_declaration_of_one_type():
    declared = {item["type"]: item for item in describe()}["hit_rate"]
    assert declared["criterion"] == "hit_rate_at_<k>"
    assert (declared["kind"], declared["range"]) == ("verdict", [0.0, 1.0])
    assert declared["reads"] == ["retrieval"]
    assert declared["case_reads"] == ["expected.relevant", "user", "as_of", "corpus"]
    assert declared["excluded"] == {
        "no_relevance_labels": "the case labels nothing with a grade above 0",
        "no_admissible_source": "nothing that the case labels is admissible for its user and date",
    }
    assert next(iter(declared["missing"])) == "retrieval_too_shallow"
    assert declared["parameters"] == [
        {
            "name": "k",
            "type": "integer",
            "required": False,
            "default": 5,
            "description": "how many candidates count; at most the depth",
        },
        {
            "name": "relevance_unit",
            "type": "doc or chunk",
            "required": False,
            "default": "doc",
            "description": "whether a document or one chunk of it is what is relevant",
        },
    ]


def test_types_and_defaults_of_parameters():
    parameters = {
        (item["type"], parameter["name"]): (parameter["type"], parameter["default"])
        for item in describe()
        for parameter in item["parameters"]
    }
    assert parameters["exact", "strip"] == ("boolean", True)
    assert parameters["contains", "strip"] == ("boolean", False)
    assert parameters["contains", "normalize"] == ("none or nfkc", "none")
    assert parameters["contains", "field"] == ("string", None)
    assert parameters["numeric", "tolerance"] == (
        "mapping of absolute, relative",
        {"absolute": 0.0, "relative": 0.0},
    )
    assert parameters["json_schema", "schema"] == ("mapping or string", None)
    assert parameters["custom", "range"] == ("list of number", None)
    assert parameters["custom", "kind"] == ("verdict or score", None)
    assert parameters["ndcg", "k"] == ("integer", 10)
    assert parameters["citation_validity", "require_citations"] == ("boolean", False)
    assert parameters["evidence_coverage", "at"] == ("retrieval or context", "retrieval")
    assert parameters["abstention", "patterns"] == ("list of string", None)
    assert parameters["behavior", "patterns"] == (
        "mapping of abstain, clarify, report_error, answer",
        None,
    )


def test_judging_costs_little():
    """10,000 cases with five evaluators stay far below the cost of storing them."""
    found = retrieval("a", "b#1", "c", "d", "e", "f#2")
    shown = evidence(
        case({"answer": "14 days", "relevant": [{"doc_id": "b", "grade": 2}, {"doc_id": "f"}]}),
        {"answer": "It takes 14 days."},
        retrieval=found,
        context=context("a", "b#1"),
        citations=citations("a", "b#1"),
    )
    evaluators = [
        build("contains", field="answer"),
        build("hit_rate", k=2),
        build("recall", k=2),
        build("ndcg", k=6),
        build("citation_validity"),
    ]
    start = process_time()
    for _ in range(1_000):
        for evaluator in evaluators:
            judge(evaluator, shown)
    assert process_time() - start < 0.1
