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
    order: Sequence[int] | None = None,
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
        order: 1-based positions of the candidates in the order to take instead of their own; those
            that it leaves out are dropped with the reason `reranker`.

    Returns:
        The context; every entry keeps its 1-based position in the retrieval. Budget drops come
        first, then rank drops, then those of a reranker.
    """
    positions = range(1, len(candidates) + 1) if order is None else order
    ranked = list(positions[:top_k])
    counts: list[int | None] = list(tokens) if token_budget is not None else [None] * len(ranked)
    kept = len(ranked)
    if token_budget is not None:
        kept = _prefix_within(tokens[: len(ranked)], token_budget)
    left_out = sorted(set(range(1, len(candidates) + 1)) - set(positions))

    def fields(position: int, count: int | None = None, **more: Any) -> dict[str, Any]:
        return _fields(candidates[position - 1], position, count) | more

    items = [
        ContextItem.model_construct(**fields(*one))
        for one in zip(ranked[:kept], counts, strict=False)
    ]
    over_budget = [
        DroppedItem.model_construct(**fields(*one, reason="token_budget"))
        for one in zip(ranked[kept:], counts[kept:], strict=True)
    ]
    below_rank, reranked_out = (
        [DroppedItem.model_construct(**fields(one, reason=reason)) for one in dropped]
        for dropped, reason in ((positions[top_k:], "top_k"), (left_out, "reranker"))
    )
    return Context.model_construct(
        items=tuple(items),
        dropped=(*over_budget, *below_rank, *reranked_out),
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
