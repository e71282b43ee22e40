"""Context assembly: which candidates reach the model, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_assets.contracts.artifacts import Context, ContextItem, DroppedItem, Passage


def assemble(
    candidates: Sequence[Passage],
    *,
    top_k: int,
    token_budget: int | None,
    tokens: Sequence[int],
    source: str = "retrieval",
) -> Context:
    """Cut the candidates at `top_k`, then at `token_budget`.

    The budget keeps a prefix: the first passage that does not fit drops everything behind it,
    even passages that would fit. An exact fit is kept.

    Args:
        candidates: all candidates, in the order of the retrieval.
        top_k: how many may stay by rank, ≥ 1.
        token_budget: the most tokens that the kept passages may sum to; None for no limit.
        tokens: counts of the first min(n, top_k) candidates; unused without a budget.
        source: where the passages came from.

    Returns:
        The context; every entry keeps its 1-based position, budget drops come first.
    """
    ranked = list(candidates[:top_k])
    counts: list[int | None] = list(tokens) if token_budget is not None else [None] * len(ranked)
    kept = len(ranked)
    if token_budget is not None:
        kept = _prefix_within(tokens[: len(ranked)], token_budget)
    items = [
        ContextItem.model_construct(**_fields(passage, position, counts[position - 1]))
        for position, passage in enumerate(ranked[:kept], start=1)
    ]
    over_budget = [
        DroppedItem.model_construct(
            **_fields(passage, position, counts[position - 1]), reason="token_budget"
        )
        for position, passage in enumerate(ranked[kept:], start=kept + 1)
    ]
    below_rank = [
        DroppedItem.model_construct(**_fields(passage, position, None), reason="top_k")
        for position, passage in enumerate(candidates[top_k:], start=top_k + 1)
    ]
    return Context.model_construct(
        items=tuple(items),
        dropped=(*over_budget, *below_rank),
        token_budget=token_budget,
        source=source,
    )


def _prefix_within(tokens: Sequence[int], budget: int) -> int:
    total = 0
    for index, count in enumerate(tokens):
        total += count
        if total > budget:
            return index
    return len(tokens)


def _fields(passage: Passage, position: int, tokens: int | None) -> dict[str, Any]:
    return {
        "doc_id": passage.doc_id,
        "chunk_id": passage.chunk_id,
        "position": position,
        "tokens": tokens,
        "text": passage.text,
    }
