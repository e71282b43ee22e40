"""The data and the bot of examples/support_rag give the documented structure, case by case."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_assets import Passage

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "support_rag"
TOP_K = 2
EXPECTED_ANSWERS = {
    "refund_annual": "You can claim a full refund of an annual plan within 14 days.",
    "reset_link": "A password reset link works for 30 minutes.",
    "extra_seat": "An extra seat costs 12 USD per month, without a refund.",
    "export_window": "A data export stays available for 7 days.",
    "trial_length": "The free trial lasts 21 days.",
    "invoice_date": (
        "Customers receive the invoice by email on the first of the month, around noon."
    ),
    "sso_protocol": "Single sign-on uses the SAML 2.0 protocol.",
    "rate_limit": "The API accepts 600 requests per minute for each key.",
    "refund_review": (
        "The review of every open refund request of that account then takes three weeks."
    ),
    "money_back": "Sorry, I could not find the answer in our help pages.",
    "security_review": (
        "After each release the security team runs an internal review, "
        "and we share a summary with customers."
    ),
    "deletion_export": "After you delete an account, you can still export its data for 30 days.",
    "seat_count": "The Team plan includes five seats.",
}
FAILED = {"refund_review", "money_back", "security_review", "seat_count"}
TRUNCATED = {
    "export_window",
    "sso_protocol",
    "refund_review",
    "security_review",
    "deletion_export",
    "seat_count",
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"support_rag_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_rows(name: str) -> list[dict[str, Any]]:
    lines = (EXAMPLE / "data" / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


BOT = load("app").SupportBot()
CASES = {row["id"]: row for row in read_rows("support.jsonl")}
DOCUMENTS = {row["doc_id"]: row for row in read_rows("corpus.jsonl")}
GOLDEN = json.loads((ROOT / "tests/golden/end_to_end.json").read_text(encoding="utf-8"))
BASELINE = {row["case"]: row for row in GOLDEN["staged_baseline"]["cases"]}


def retrieve(case_id: str) -> list[Passage]:
    return list(BOT.retrieve(CASES[case_id]["input"], 6).candidates)


def kept(candidates: Sequence[Passage], budget: int, top_k: int = TOP_K) -> list[Passage]:
    """The longest prefix within top_k and budget, written out independently of the package."""
    size, total = 0, 0
    for passage in candidates[:top_k]:
        total += BOT.count_tokens(passage)
        if total > budget:
            break
        size += 1
    return list(candidates[:size])


def dropped(candidates: Sequence[Passage], budget: int) -> list[list[Any]]:
    first = len(kept(candidates, budget))
    positions = range(first + 1, len(candidates) + 1)
    return [[p, "token_budget" if p <= TOP_K else "top_k"] for p in positions]


def answer(case_id: str, context: Sequence[Passage]) -> str:
    return BOT.generate(CASES[case_id]["input"], list(context))["answer"]  # type: ignore[no-any-return]


def is_correct(case_id: str, context: Sequence[Passage]) -> bool:
    return CASES[case_id]["expected"]["answer"] in answer(case_id, context)


def correct_cases(budget: int) -> set[str]:
    return {case_id for case_id in CASES if is_correct(case_id, kept(retrieve(case_id), budget))}


def test_the_suite_has_the_documented_cases_in_order() -> None:
    assert list(CASES) == list(BASELINE)
    assert list(DOCUMENTS) == [f"kb-{number:02d}" for number in range(1, 15)]


@pytest.mark.parametrize("case_id", BASELINE)
def test_case_has_the_documented_structure(case_id: str) -> None:
    golden, case = BASELINE[case_id], CASES[case_id]
    candidates = retrieve(case_id)
    context = kept(candidates, 40)
    relevant = case["expected"]["relevant"][0]["doc_id"]
    positions = [p for p, passage in enumerate(candidates, 1) if passage.doc_id == relevant]

    assert case["metadata"]["topic"] == golden["topic"]
    assert len(candidates) == golden["candidates"]
    assert positions == [p for p in [golden["first_relevant_position"]] if p is not None]
    assert len(context) == golden["in_context"]
    assert dropped(candidates, 40) == golden["dropped"]
    assert answer(case_id, context) == EXPECTED_ANSWERS[case_id]
    assert is_correct(case_id, context) == golden["verdicts"]["answer_correct"]


@pytest.mark.parametrize("case_id", BASELINE)
def test_answer_cites_the_passage_it_quotes(case_id: str) -> None:
    context = kept(retrieve(case_id), 40)
    output = BOT.generate(CASES[case_id]["input"], context)
    sources = [passage.doc_id for passage in context if output["answer"] in (passage.text or "")]
    assert output["citations"] == sources


@pytest.mark.parametrize("case_id", BASELINE)
def test_gold_passage_is_the_text_of_the_relevant_document(case_id: str) -> None:
    expected = CASES[case_id]["expected"]
    [label], [gold] = expected["relevant"], expected["gold_context"]
    assert gold["doc_id"] == label["doc_id"]
    assert gold["text"] == DOCUMENTS[gold["doc_id"]]["text"]


def test_budget_120_changes_the_context_of_the_truncated_cases_and_no_verdict() -> None:
    changed = {
        case_id for case_id in CASES if kept(retrieve(case_id), 120) != kept(retrieve(case_id), 40)
    }
    assert changed == TRUNCATED
    assert correct_cases(120) == correct_cases(40) == set(CASES) - FAILED


def test_budget_12_leaves_two_correct_answers() -> None:
    assert correct_cases(12) == {"reset_link", "trial_length"}


def test_gold_context_recovers_three_of_the_four_failures() -> None:
    recovered = set()
    for case_id in FAILED:
        gold = CASES[case_id]["expected"]["gold_context"]
        passages = [Passage(doc_id=entry["doc_id"], text=entry["text"]) for entry in gold]
        if is_correct(case_id, passages):
            recovered.add(case_id)
    assert recovered == {"refund_review", "money_back", "security_review"}


def test_replays_recover_nothing() -> None:
    shortest_first = load("rerank").shortest_first
    for case_id in FAILED:
        candidates = retrieve(case_id)
        reranked = shortest_first(CASES[case_id]["input"], candidates)
        assert not is_correct(case_id, kept(candidates, 40, top_k=4))
        assert not is_correct(case_id, kept(reranked, 40))


def test_equal_scores_are_ordered_by_document_id() -> None:
    assert [(passage.doc_id, passage.score) for passage in retrieve("extra_seat")] == [
        ("kb-03", 4.0),
        ("kb-10", 2.0),
        ("kb-13", 2.0),
        ("kb-06", 1.0),
        ("kb-08", 1.0),
    ]


def test_further_input_keys_are_ignored() -> None:
    question = CASES["trial_length"]["input"]["question"]
    retrieval = BOT.retrieve({"question": question, "channel": "chat"}, 6)
    assert [passage.doc_id for passage in retrieval.candidates] == ["kb-05"]
