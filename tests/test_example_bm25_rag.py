"""The handbook bot: its data, its search, and what its pages say of it."""

from __future__ import annotations

import importlib.util
import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import EXAMPLES, call, document
from projects import Example, Run

EXAMPLE = EXAMPLES / "bm25_rag"
DAY = "2026-09-16"
SPEC = importlib.util.spec_from_file_location("bm25_of_example", EXAMPLE / "bm25.py")
assert SPEC is not None
assert SPEC.loader is not None
bm25 = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bm25)


def rows(name: str) -> list[dict[str, Any]]:
    lines = (EXAMPLE / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


# Data


def test_the_handbook_and_the_questions_belong_together() -> None:
    pages = {page["doc_id"]: page for page in rows("handbook.jsonl")}
    questions = [(row["id"], reader_of(row), row["expected"]) for row in rows("questions.jsonl")]
    assert {(name, *roles) for _, (name, *roles), _ in questions} == {
        ("owner", "owner"),
        ("tenant", "tenant"),
        ("installer", "installer"),
        ("service", "installer", "service"),
    }
    assert (len(pages), len(questions)) == (100, 60)
    assert Counter(
        expected["behavior"] if expected["behavior"] == "abstain" else len(expected["relevant"])
        for _, _, expected in questions
    ) == {"abstain": 10, 1: 42, 2: 8}
    for name, reader, expected in questions:
        relevant = [label["doc_id"] for label in expected.get("relevant", [])]
        assert set(relevant) <= pages.keys(), name
        if expected["behavior"] == "abstain":
            # What is labelled there says why there is no answer.
            assert expected["reason"] == why_closed([pages[one] for one in relevant], reader), name
            continue
        assert all(is_open(pages[doc_id], reader) for doc_id in relevant), name
        # Each answer stands on a page that is named, and each page that is named has an answer.
        stated = {
            text: {one for one in relevant if text.casefold() in pages[one]["text"].casefold()}
            for text in expected["answers"]
        }
        assert all(stated.values()), name
        assert set().union(*stated.values()) == set(relevant), name
        assert (expected.get("requires") == "all") == (len(relevant) == 2), name


def reader_of(row: dict[str, Any]) -> list[str]:
    """Who asks, by id and roles. All ask on one day: no figure depends on today."""
    assert row["as_of"] == DAY, row["id"]
    return [row["user"]["id"], *row["user"]["roles"]]


def is_open(page: dict[str, Any], reader: list[str]) -> bool:
    access = page.get("access", "all")
    is_allowed = access == "all" or not set(access).isdisjoint(reader)
    is_current = page.get("valid_from", DAY) <= DAY <= page.get("valid_to", DAY)
    return is_allowed and is_current and page.get("status") != "retired"


def why_closed(pages: list[dict[str, Any]], reader: list[str]) -> str:
    if not pages:
        return "source_absent"
    assert not any(is_open(page, reader) for page in pages)
    return "source_retired" if pages[0].get("status") == "retired" else "access_denied"


def test_each_page_that_was_replaced_ended_before_its_successor_began() -> None:
    versions: dict[str, dict[str, dict[str, Any]]] = {}
    for page in rows("handbook.jsonl"):
        if "document" in page:
            versions.setdefault(page["document"], {})[page["version"]] = page
    assert {name: sorted(pages) for name, pages in versions.items()} == {
        "app-pairing": ["1", "2"],
        "filter-interval": ["1", "2"],
        "spare-part-prices": ["2024"],
        "warranty": ["1", "2"],
    }
    for name, pages in versions.items():
        if "2" in pages:
            assert pages["1"]["valid_to"] < pages["2"]["valid_from"] < DAY, name
    # The old warranty is not marked as retired: that it is over, only its date tells.
    assert "status" not in versions["warranty"]["1"]


# Search


def test_scores_of_a_small_index() -> None:
    index = bm25.Index({"a": "pumps and valves", "b": "a pump", "c": "the sieve of the valve"})
    # Two of three texts hold "pump"; their lengths are 2, 1 and 2 words.
    rarity = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    short, long = (1.2 * (0.25 + 0.75 * length / (5 / 3)) for length in (1, 2))
    assert index.search("Which pump?", 10) == [
        ("b", pytest.approx(rarity * 2.2 / (1 + short), abs=1e-12)),
        ("a", pytest.approx(rarity * 2.2 / (1 + long), abs=1e-12)),
    ]
    assert index.search("valve", 1) == [("a", pytest.approx(rarity * 2.2 / (1 + long), abs=1e-12))]
    assert index.search("the of", 10) == []


texts = st.lists(st.sampled_from(["pump", "valve", "sieve", "tank", "heat", "frost"]), max_size=8)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from("abcdef"), texts.map(" ".join), min_size=1), texts)
def test_only_documents_that_share_a_word_are_found(documents, question):
    found = bm25.Index(documents | {"z": "pump"}).search(" ".join(question), 10)
    shared = {name for name, text in documents.items() if set(text.split()) & set(question)}
    assert {name for name, _ in found} - {"z"} == shared
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert all(score > 0 for _, score in found)


# The run


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return Example(tmp_path_factory.mktemp("bm25"), "bm25_rag")


@pytest.fixture(scope="module")
def first(example: Example) -> Run:
    return example.run()


def counts(run: Run) -> dict[str, tuple[int, int]]:
    """Criterion → passes and observed."""
    return {
        one.criterion: (json.loads(one.payload)["passes"], one.observed)
        for one in run.metrics
        if one.scope == "global"
    }


def test_every_rule_is_decided_and_three_block(first: Run) -> None:
    assert counts(first) == {
        "answer_correct": (40, 50),
        "hit_rate_at_3": (47, 50),
        "evidence_coverage": (44, 50),
        "citations_valid": (60, 60),
        "abstention": (51, 60),
        "admissible_retrieval": (21, 60),
        "admissible_context": (47, 60),
        "no_leak": (55, 60),
        "retrieval_valid": (60, 60),
    }
    assert {one.rule: one.state for one in first.decisions} == {
        "sources-admissible": "FAIL",
        "search-admissible": "FAIL",
        "nothing-leaked": "FAIL",
        "citations-valid": "PASS",
        "answer-floor": "PASS",
        "retrieval-floor": "PASS",
        "knows-its-limits": "PASS",
    }
    assert (first.row.gate, first.row.exit_code) == ("BLOCK", 1)
    interval = first.metric("answer_correct")
    assert (interval.lower, interval.upper) == pytest.approx((0.66282, 0.89969), abs=1e-5)


def test_every_place_of_a_page_that_is_not_admissible_is_listed(
    example: Example, first: Run
) -> None:
    found = document(call(example.root, "inspect", first.row.id, "--violations", "--json"))
    places = Counter((one["stage"], one["reason"]) for one in found["violations"])
    assert places == {
        ("retrieval", "not permitted"): 40,
        ("retrieval", "retired"): 22,
        ("retrieval", "expired"): 2,
        ("assembled_context", "not permitted"): 5,
        ("assembled_context", "retired"): 8,
        ("assembled_context", "expired"): 2,
        ("citations", "not permitted"): 2,
        ("citations", "retired"): 4,
        ("generation", "text in the answer"): 5,
        ("generation", "title in the answer"): 1,
    }
    stale = first.metric("answer_correct", "slice/stale_source=true")
    assert (stale.estimate, stale.observed) == (pytest.approx(4 / 6), 6)


def test_access_depends_on_who_asks(example: Example, first: Run) -> None:
    found = document(call(example.root, "inspect", first.row.id, "--violations", "--json"))
    # A tenant and the service asked the same: the page is kept from one, and right for the other.
    assert [
        (one["user"], one["stage"], one["doc_id"], one["reason"])
        for one in found["violations"]
        if one["case"] in ("hidden_code", "service_code") and one["position"] == 1
    ] == [
        ("tenant", "retrieval", "hb-019", "not permitted"),
        ("tenant", "assembled_context", "hb-019", "not permitted"),
        ("tenant", "citations", "hb-019", "not permitted"),
    ]
    answers = {
        name: call(example.root, "inspect", first.row.id, "--case", name).output
        for name in ("hidden_code", "service_code")
    }
    assert {name: "4827" in text for name, text in answers.items()} == {
        "hidden_code": False,
        "service_code": True,
    }
    assert "answer: [restricted: 103 characters]" in answers["hidden_code"]


def test_each_stage_loses_something(example: Example, first: Run) -> None:
    arguments = ("--intervention", "gold-context", "--criterion", "answer_correct", "--json")
    done = call(example.root, "diagnose", first.row.id, *arguments)
    assert done.exit_code == 0, done.output
    found = {one["id"]: (one["label"], one["best_position"]) for one in document(done)["cases"]}
    assert found == {
        "app_users": ("CONTEXT_ASSEMBLY_LOSS", 3),
        "blue_light": ("GENERATION_FAILURE", 1),
        "child_lock": ("RETRIEVAL_MISS", None),
        "cooling": ("RETRIEVAL_MISS", None),
        "filter_interval": ("UNRESOLVED", 2),
        "noise": ("CONTEXT_ASSEMBLY_LOSS", 3),
        "pressure_low": ("RANKED_OUT", 7),
        "shower_cold": ("RANKED_OUT", 5),
        "type_plate": ("UNRESOLVED", 2),
        "weight": ("UNRESOLVED", 1),
    }


def test_the_repair_passes_and_is_not_worse(example: Example, first: Run) -> None:
    example.replace("rag_assets.yaml", "only_admissible: false", "only_admissible: true")
    second = example.run()
    assert counts(second) == {
        "answer_correct": (42, 50),
        "hit_rate_at_3": (47, 50),
        "evidence_coverage": (45, 50),
        "citations_valid": (60, 60),
        "abstention": (53, 60),
        "admissible_retrieval": (60, 60),
        "admissible_context": (60, 60),
        "no_leak": (60, 60),
        "retrieval_valid": (60, 60),
    }
    found = document(call(example.root, "inspect", second.row.id, "--violations", "--json"))
    assert found["violations"] == []
    assert (second.row.gate, second.row.exit_code) == ("ALLOW", 0)
    compared = document(call(example.root, "compare", second.row.id, first.row.id, "--json"))
    assert {one["rule"]["id"]: one["state"] for one in compared["decisions"]} == {
        "sources-better": "PASS",
        "answers-not-worse": "PASS",
    }
    assert compared["exit_code"] == 0
