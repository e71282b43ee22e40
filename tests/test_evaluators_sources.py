"""Evaluators that ask what is admissible, what is abstained from, and what is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpora import against, corpus_of, labels
from evaluating import build, build_all, citations, context, entry, evidence, problems_of, retrieval
from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.corpus import Corpus
from rag_assets.evaluators import Evidence, Outcome, judge

SECRET = "At night the alarm is disarmed with 7714 at the side entrance of the store."
ANN = {"id": "ann", "roles": ["member"]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_of(
        tmp_path_factory.mktemp("corpus"),
        {"doc_id": "open", "text": "The desk is open until noon."},
        {
            "doc_id": "old",
            "status": "retired",
            "text": "The desk is open until three in the morning.",
        },
        {"doc_id": "alarm", "access": ["staff"], "title": "Alarm code", "text": SECRET},
        {"doc_id": "soon", "valid_from": "2027-01-01"},
    )


def asked(corpus: Corpus, **row: Any) -> Case:
    return against(corpus, **{"user": ANN, "as_of": "2026-09-16", **row})


@pytest.mark.parametrize("part", ["retrieval", "context", "citations"])
def test_every_document_has_to_be_admissible(corpus: Corpus, part: str) -> None:
    make = {"retrieval": retrieval, "context": context, "citations": citations}[part]
    evaluator = build(f"admissible_{part}")

    def outcome(*ids: str, **row: Any) -> Outcome:
        return judge(evaluator, evidence(asked(corpus, **row), **{part: make(*ids)}))

    assert outcome("open") == Outcome.verdict(True)
    assert outcome() == Outcome.verdict(True)
    assert outcome("open", "alarm", "old", "nowhere") == Outcome.verdict(
        False,
        "not permitted",
        {"doc_id": "alarm", "position": 2, "inadmissible": 2, "unknown": 1},
    )
    assert outcome("nowhere").reason == "unknown_source"
    assert outcome("soon").reason == "not yet valid"
    assert outcome("soon", as_of="2027-01-01") == Outcome.verdict(True)
    assert outcome("alarm", user={"id": "bob", "roles": ["staff"]}) == Outcome.verdict(True)
    assert outcome("alarm", user="ann").reason == "not permitted"
    absent = judge(evaluator, evidence(asked(corpus)))
    assert absent == Outcome.missing("artifact_absent")


def test_a_chunk_stands_for_its_document(corpus: Corpus) -> None:
    evaluator = build("admissible_citations")
    found = judge(evaluator, evidence(asked(corpus), citations=citations("open#3", "alarm#1")))
    assert found.detail["doc_id"] == "alarm"


def test_a_judgment_reads_what_decides_about_its_user(corpus: Corpus, tmp_path: Path) -> None:
    evaluator = build("admissible_context")
    one = evaluator.reads_of_case(asked(corpus))
    assert evaluator.reads_of_case(asked(corpus, input="another", as_of="2026-10-01")) == one
    assert evaluator.reads_of_case(asked(corpus, user={"id": "bob", "roles": ["member"]})) == one
    assert evaluator.reads_of_case(asked(corpus, user="staff")) != one
    assert evaluator.reads_of_case(asked(corpus, as_of="2027-02-01")) != one
    rows = [{"doc_id": one.doc_id, "access": one.access} for one in corpus.documents.values()]
    assert evaluator.reads_of_case(asked(corpus_of(tmp_path, *rows))) != one


@pytest.mark.parametrize("kind", ["context", "retrieval", "citations"])
def test_without_a_manifest_nothing_is_known_to_be_admissible(kind: str) -> None:
    made = entry(f"admissible_{kind}")
    assert build_all(made, has_corpus=False)[1] == [
        (
            f"rag_assets.yaml:10: evaluators.0.type: admissible_{kind} reads the manifest, and "
            "this config declares none. Name it with the key corpus, or remove this evaluator."
        )
    ]


# Leaks


def leaks(corpus: Corpus, output: Any, **row: Any) -> Outcome:
    return judge(build("no_leak"), evidence(asked(corpus, **row), output))


def test_no_leak(corpus: Corpus) -> None:
    assert leaks(corpus, "The desk is open until noon.") == Outcome.verdict(True)
    assert leaks(corpus, None) == Outcome.verdict(True)
    found = leaks(corpus, {"answer": f"Well. {SECRET[:45]}"})
    assert (found.value, found.reason) == (0.0, "text leaked")
    assert found.detail == {
        "leaks": [{"at": "answer", "what": "text", "doc_id": "alarm", "offset": 6, "length": 45}]
    }
    assert leaks(corpus, {"answer": SECRET}, user={"id": "bob", "roles": ["staff"]}).value == 1.0
    retired = leaks(corpus, ["x", {"y": "THE DESK IS OPEN UNTIL THREE IN THE MORNING"}])
    assert [(one["at"], one["doc_id"]) for one in retired.detail["leaks"]] == [("1.y", "old")]
    assert leaks(corpus, "Ask for the alarm  code.").reason == "title leaked"


def test_forbidden_texts_are_leaks_with_and_without_a_manifest(corpus: Corpus) -> None:
    expected = {"forbidden": ["30 days", "three  weeks"]}
    found = leaks(corpus, "It takes Three weeks.", expected=expected)
    assert (found.value, found.reason) == (0.0, "forbidden leaked")
    plain = parse_case({"id": "c", "input": "Q?", "expected": expected})
    alone, problems = build_all(entry("no_leak"), cases=[plain], has_corpus=False)
    assert problems == []
    assert judge(alone[0], evidence(plain, "30 DAYS")).value == 0.0
    assert judge(alone[0], evidence(plain, "14 days")).value == 1.0


def test_no_leak_with_nothing_to_look_for_is_refused() -> None:
    plain = parse_case({"id": "c", "input": "Q?"})
    (problem,) = build_all(entry("no_leak"), cases=[plain], has_corpus=False)[1]
    assert "no_leak would find nothing" in problem


def test_the_length_of_a_run_is_a_parameter(corpus: Corpus) -> None:
    text = f"He said: {SECRET[:20]}"
    case = asked(corpus)
    assert judge(build("no_leak"), evidence(case, text)).value == 1.0
    assert judge(build("no_leak", min_chars=15), evidence(case, text)).value == 0.0


def test_leaks_read_texts_as_well(corpus: Corpus, tmp_path: Path) -> None:
    other = corpus_of(
        tmp_path, *[one.model_dump(exclude_none=True) for one in corpus.documents.values()]
    )
    key = build("no_leak").reads_of_case
    assert key(asked(other)) == key(asked(corpus))
    rows = [one.model_dump(exclude_none=True) for one in corpus.documents.values()]
    rows[0]["text"] = "The desk is closed."
    assert key(asked(corpus_of(tmp_path, *rows))) != key(asked(corpus))


# The reference set


def test_all_relevant_documents_or_nothing() -> None:
    case = parse_case({"id": "c", "input": "Q?", "expected": labels("a", "b")})
    at_retrieval, at_context = build("evidence_coverage"), build("evidence_coverage", at="context")
    assert judge(at_retrieval, evidence(case, retrieval=retrieval("b", "x", "a"))).value == 1.0
    partly = judge(at_retrieval, evidence(case, retrieval=retrieval("b", "x")))
    assert (partly.value, partly.detail) == (0.0, {"absent": ["a"]})
    assert judge(at_retrieval, evidence(case, retrieval=retrieval())).value == 0.0
    shown = evidence(case, retrieval=retrieval("a", "b"), context=context("a"))
    assert (judge(at_retrieval, shown).value, judge(at_context, shown).value) == (1.0, 0.0)
    assert judge(at_context, evidence(case, retrieval=retrieval("a"))).status == "missing"


@pytest.mark.parametrize("type", ["evidence_coverage", "recall", "precision", "hit_rate", "ndcg"])
def test_nothing_admissible_is_another_reason_than_nothing_labelled(
    corpus: Corpus, type: str
) -> None:
    evaluator = build(type)

    def reason(**row: Any) -> str | None:
        case = asked(corpus, **row)
        return judge(evaluator, evidence(case, retrieval=retrieval(depth=10))).reason

    abstains = {"behavior": "abstain"}
    assert reason() == "no_relevance_labels"
    assert reason(expected=labels("alarm", **abstains)) == "no_admissible_source"
    assert reason(expected=labels("nowhere", **abstains)) == "no_admissible_source"
    assert reason(expected=labels("open", "alarm", **abstains)) is None


def test_only_admissible_documents_are_relevant(corpus: Corpus) -> None:
    case = asked(corpus, expected=labels("open", "alarm", behavior="abstain"))
    assert [label.doc_id for label in case.relevant] == ["open"]
    assert [(one.doc_id, why) for one, why in case.inadmissible] == [("alarm", "not permitted")]
    found = judge(build("recall", k=2), evidence(case, retrieval=retrieval("alarm", "open")))
    assert found.value == 1.0
    same = asked(corpus, expected=labels("open"))
    assert build("recall").reads_of_case(case) == build("recall").reads_of_case(same)


def test_a_label_of_grade_0_needs_no_source(corpus: Corpus) -> None:
    graded = {"relevant": [{"doc_id": "alarm", "grade": 0}, {"doc_id": "open"}]}
    assert asked(corpus, expected=graded).inadmissible == ()


# Abstention and behavior


def conduct(type: str, output: Any, behavior: str | None = None, **parameters: Any) -> Outcome:
    expected = {} if behavior is None else {"expected": {"behavior": behavior}}
    case = parse_case({"id": "c", "input": "Q?", **expected})
    return judge(build(type, **parameters), evidence(case, output))


@pytest.mark.parametrize(
    ("behavior", "abstained", "passed"),
    [
        ("abstain", True, True),
        ("abstain", False, False),
        ("answer", False, True),
        ("answer", True, False),
        (None, True, False),
    ],
)
def test_abstention(behavior: str | None, abstained: bool, passed: bool) -> None:
    output = {"abstained": abstained}
    assert conduct("abstention", output, behavior, field="abstained") == Outcome.verdict(passed)
    text = {"answer": "I could NOT find it." if abstained else "It has 42 steps."}
    patterns = ["never", "(?i)not find"]
    assert conduct("abstention", text, behavior, patterns=patterns) == Outcome.verdict(passed)
    named = conduct("abstention", text, behavior, patterns=patterns, field="answer")
    assert named == Outcome.verdict(passed)


def test_what_is_no_abstention_is_not_guessed() -> None:
    for behavior in ("clarify", "report_error"):
        found = conduct("abstention", {"abstained": True}, behavior, field="abstained")
        assert found == Outcome.excluded("behavior_not_comparable")
    assert conduct("abstention", {}, field="abstained") == Outcome.missing("field_absent")
    for value in (None, "true", 1):
        found = conduct("abstention", {"abstained": value}, field="abstained")
        assert found == Outcome.missing("not_a_boolean")


@pytest.mark.parametrize("type", ["abstention", "behavior"])
def test_how_conduct_is_recognised_has_to_be_declared(type: str) -> None:
    assert problems_of(type) == [
        (
            f"rag_assets.yaml:10: evaluators.0.type: {type} needs to know how it is recognised: "
            "name a field of the output (field), or what the text of the answer holds (patterns)."
        )
    ]


def test_a_pattern_that_is_none_is_refused() -> None:
    (problem,) = problems_of("abstention", patterns=["("])
    assert "is not a regular expression" in problem
    (problem,) = problems_of("behavior", patterns={"refuse": ["no"]})
    assert 'The key "refuse" is not known.' in problem
    (problem,) = problems_of("abstention", patterns=[])
    assert problem.endswith("patterns: patterns must hold at least one entry.")


@pytest.mark.parametrize("behavior", ["answer", "abstain", "clarify", "report_error"])
def test_behavior(behavior: str) -> None:
    assert conduct("behavior", {"did": behavior}, behavior, field="did") == Outcome.verdict(True)
    other = "abstain" if behavior == "answer" else "answer"
    found = conduct("behavior", {"did": other}, behavior, field="did")
    assert found == Outcome.verdict(False, detail={"observed": other})
    assert conduct("behavior", {"did": "refuse"}, behavior, field="did").status == "missing"
    patterns = {"abstain": ["cannot say"], "clarify": ["Which"], "report_error": ["went wrong"]}
    texts = {
        "answer": "14 days.",
        "abstain": "I cannot say.",
        "clarify": "Which plan?",
        "report_error": "Something went wrong.",
    }
    assert conduct("behavior", texts[behavior], behavior, patterns=patterns).value == 1.0


# Acceptance


def acceptance(*parts: Outcome, word: str = "all_of") -> Outcome:
    names = [f"p{index}" for index in range(len(parts))]
    simple = [entry("regex", name, pattern="x") for name in names]
    made = entry("task_acceptance", **{word: names})
    built, problems = build_all(*simple, made)
    assert problems == []
    case = parse_case({"id": "c", "input": "Q?"})
    shown = evidence(case)
    outcomes = dict(zip(names, parts, strict=True))
    return judge(
        built[-1],
        Evidence(case, shown.output, shown.retrieval, shown.context, shown.citations, outcomes),
    )


PASS, FAIL = Outcome.verdict(True), Outcome.verdict(False)
LOST, LEFT_OUT = Outcome.missing("timeout"), Outcome.excluded("no_expected")


@pytest.mark.parametrize(
    ("parts", "all_of", "any_of"),
    [
        ((PASS, PASS), 1.0, 1.0),
        ((PASS, FAIL), 0.0, 1.0),
        ((FAIL, FAIL), 0.0, 0.0),
        ((PASS, LOST), "timeout", 1.0),
        ((FAIL, LOST), 0.0, "timeout"),
        ((PASS, LEFT_OUT), 1.0, 1.0),
        ((FAIL, LEFT_OUT), 0.0, 0.0),
        ((LOST, LEFT_OUT), "timeout", "timeout"),
        ((LEFT_OUT, LEFT_OUT), "all_parts_excluded", "all_parts_excluded"),
    ],
)
def test_acceptance(parts: tuple[Outcome, ...], all_of: Any, any_of: Any) -> None:
    for word, wanted in (("all_of", all_of), ("any_of", any_of)):
        found = acceptance(*parts, word=word)
        assert (found.value if found.value is not None else found.reason) == wanted
    assert acceptance(PASS, FAIL, LOST).detail == {"failed": ["p1"], "missing": ["p2"]}


def test_acceptance_names_verdicts_of_other_evaluators() -> None:
    simple = [entry("regex", "fine", pattern="x"), entry("ndcg", "score")]

    def problems(**parameters: Any) -> list[str]:
        made = entry("task_acceptance", line=30, **parameters)
        return [one.split(": ", 1)[1] for one in build_all(*simple, made)[1]]

    assert problems(all_of=["fine"]) == []
    assert problems(all_of=["fin", "score", "fine", "fine"]) == [
        (
            'evaluators.2.all_of.0: "fin" is no criterion of verdicts of another evaluator. Did '
            'you mean "fine"?'
        ),
        (
            'evaluators.2.all_of.1: "score" is no criterion of verdicts of another evaluator. '
            "Those are fine."
        ),
        'evaluators.2.all_of.3: "fine" stands here twice; keep one.',
    ]
    either = "evaluators.2.type: task_acceptance takes either all_of or any_of, a list of criteria."
    assert problems() == [either]
    assert problems(all_of=["fine"], any_of=["fine"]) == [either]


def test_a_changed_criterion_changes_the_contract() -> None:
    def identity(pattern: str) -> str:
        made = entry("task_acceptance", all_of=["fine"])
        built, _ = build_all(entry("regex", "fine", pattern=pattern), made)
        return built[1].identity

    assert identity("a") == identity("a")
    assert identity("a") != identity("b")
