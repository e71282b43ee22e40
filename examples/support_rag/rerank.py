"""A reranker to try on recorded candidates, without calling the retriever again.

    rag-assets diagnose latest --intervention reranker \\
        --reranker rerank:shortest_first --criterion answer_correct
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assets import Passage


def shortest_first(
    question_input: Mapping[str, Any], candidates: Sequence[Passage]
) -> list[Passage]:
    """Put short passages first, so that more of them fit into the token budget."""
    return sorted(candidates, key=lambda passage: len((passage.text or "").split()))
