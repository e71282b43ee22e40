"""A reranker to try in a diagnosis: rag-assets diagnose … --reranker rerank:shortest_first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assets import Passage


def shortest_first(
    question_input: Mapping[str, Any], candidates: Sequence[Passage]
) -> list[Passage]:
    """Put short passages first: more of them fit into a token budget."""
    return sorted(candidates, key=lambda passage: len((passage.text or "").split()))
