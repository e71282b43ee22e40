import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.artifacts import Context, Passage
from rag_assets.evaluation.assembly import assemble

GOLDEN = Path(__file__).parent / "golden" / "context_assembly.json"
VECTORS = json.loads(GOLDEN.read_text(encoding="utf-8"))

deterministic = settings(max_examples=80, derandomize=True, deadline=None)


def assembled(
    docs: list[str], tokens: list[int], top_k: int, token_budget: int | None, **more: Any
) -> Context:
    """As a run asks for it: counts of the first `top_k` candidates, none without a budget."""
    counted = [] if token_budget is None else tokens[:top_k]
    passages = [Passage(doc_id=doc) for doc in docs]
    return assemble(passages, top_k=top_k, token_budget=token_budget, tokens=counted, **more)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["tag"] for vector in VECTORS])
def test_known_contexts(vector: dict[str, Any]) -> None:
    context = assembled(
        vector["candidate_doc_ids"],
        vector["candidate_tokens"],
        vector["top_k"],
        vector["token_budget"],
    )
    assert [
        {"doc_id": item.doc_id, "position": item.position, "tokens": item.tokens}
        for item in context.items
    ] == vector["items"]
    assert [
        {
            "doc_id": item.doc_id,
            "position": item.position,
            "tokens": item.tokens,
            "reason": item.reason,
        }
        for item in context.dropped
    ] == vector["dropped"]
    assert context.source == vector["source"]
    assert context.token_budget == vector["token_budget"]
    truncated = any(item.reason == "token_budget" for item in context.dropped)
    assert truncated is vector["context_truncated"]


@pytest.mark.parametrize(
    ("tokens", "top_k", "budget", "kept", "dropped"),
    [
        ([10, 10, 10], 3, 20, [1, 2], [(3, "token_budget")]),
        ([10, 10, 10], 3, 19, [1], [(2, "token_budget"), (3, "token_budget")]),
        (
            [30, 5, 5],
            3,
            20,
            [],
            [(1, "token_budget"), (2, "token_budget"), (3, "token_budget")],
        ),
        ([5, 30, 5], 3, 20, [1], [(2, "token_budget"), (3, "token_budget")]),
        ([0, 0, 25], 3, 20, [1, 2], [(3, "token_budget")]),
        ([18, 24, 10], 2, 40, [1], [(2, "token_budget"), (3, "top_k")]),
        ([5, 5, 5], 2, None, [1, 2], [(3, "top_k")]),
    ],
)
def test_cuts_by_rank_and_by_budget(
    tokens: list[int],
    top_k: int,
    budget: int | None,
    kept: list[int],
    dropped: list[tuple[int, str]],
) -> None:
    context = assembled([f"d{index}" for index in range(len(tokens))], tokens, top_k, budget)
    assert [item.position for item in context.items] == kept
    assert [(item.position, item.reason) for item in context.dropped] == dropped


@deterministic
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=12),
    st.integers(1, 14),
    st.none() | st.integers(0, 40),
)
def test_a_budget_keeps_the_longest_prefix_that_fits(
    candidates: list[tuple[str, int]], top_k: int, budget: int | None
) -> None:
    docs = [doc for doc, _ in candidates]
    tokens = [count for _, count in candidates]
    context = assembled(docs, tokens, top_k, budget)

    by_rank = min(len(docs), top_k)
    kept = len(context.items)
    if budget is None:
        assert kept == by_rank
    else:
        assert sum(tokens[:kept]) <= budget
        assert kept == by_rank or sum(tokens[: kept + 1]) > budget

    # Every candidate stands in exactly one place, under its own position, in rank order.
    assert [item.position for item in context.items] == list(range(1, kept + 1))
    everything = [*context.items, *context.dropped]
    assert [item.position for item in everything] == list(range(1, len(docs) + 1))
    assert [item.doc_id for item in everything] == docs
    reasons = [item.reason for item in context.dropped]
    assert reasons == ["token_budget"] * (by_rank - kept) + ["top_k"] * (len(docs) - by_rank)
    counted = [None] * len(docs) if budget is None else [*tokens[:by_rank], *[None] * len(docs)]
    assert [item.tokens for item in everything] == counted[: len(docs)]
    assert Context.parse(context.record()) == context


def test_passages_go_in_with_chunk_and_text() -> None:
    passages = [
        Passage(doc_id="a", chunk_id="1", score=0.5, text="first", metadata={"k": 1}),
        Passage(doc_id="a", chunk_id="2", text="second"),
    ]
    context = assemble(passages, top_k=1, token_budget=None, tokens=[], source="top_k_replay")
    assert context.record() == {
        "items": [{"doc_id": "a", "chunk_id": "1", "position": 1, "text": "first"}],
        "dropped": [
            {"doc_id": "a", "chunk_id": "2", "position": 2, "text": "second", "reason": "top_k"}
        ],
        "token_budget": None,
        "source": "top_k_replay",
    }
