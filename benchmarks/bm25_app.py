"""The system of the benchmarks on real text: BM25 over `documents.jsonl` beside it.

It is copied into each project as its `app.py`, and needs the extra `bench`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np

from rag_assets import Passage, Retrieval, current_case, rag_system

DOCUMENTS = Path(__file__).parent / "documents.jsonl"


@rag_system(name="bm25", version="1")
class Bm25:
    """Ranks documents by BM25 (Lucene's variant, k1 1.5, b 0.75), equal scores by their place."""

    def __init__(self) -> None:
        with DOCUMENTS.open(encoding="utf-8") as lines:
            self.documents = [json.loads(line) for line in lines]
        self.index = bm25s.BM25()
        texts = [document["text"] for document in self.documents]
        words = bm25s.tokenize(texts, stopwords="en", show_progress=False)
        self.index.index(words, show_progress=False)

    def retrieve(self, input: Mapping[str, Any], depth: int) -> Retrieval:
        """Return the documents that share a word with the question."""
        question = input["question"]
        (words,) = bm25s.tokenize([question], stopwords="en", return_ids=False, show_progress=False)
        scores = self.index.get_scores(words) if words else np.zeros(len(self.documents))
        best = np.lexsort((np.arange(len(scores)), -scores))[:depth]
        candidates = [
            Passage(
                doc_id=self.documents[place]["doc_id"],
                score=float(scores[place]),
                text=self.documents[place]["text"],
            )
            for place in best
            if scores[place] > 0
        ]
        return Retrieval(query=question, depth=depth, candidates=tuple(candidates))

    def generate(self, input: Mapping[str, Any], context: Sequence[Passage]) -> dict[str, Any]:
        """Quote the first passage."""
        if not context:
            return {"answer": "", "citations": []}
        return {"answer": context[0].text, "citations": [context[0].doc_id]}

    def count_tokens(self, passage: Passage) -> int:
        """Count words."""
        return len((passage.text or "").split())


@rag_system(name="abstaining-bm25", version="1")
class AbstainingBm25(Bm25):
    """The same, but it abstains when no passage has the score `config.abstain_below`."""

    def generate(self, input: Mapping[str, Any], context: Sequence[Passage]) -> dict[str, Any]:
        """Quote the first passage, or abstain."""
        least = current_case().config["abstain_below"]
        kept = context if context and (context[0].score or 0.0) >= least else ()
        return {**super().generate(input, kept), "abstained": not kept}
