"""A support bot over a small knowledge base: the RAG system that this project evaluates.

rag-assets calls the two stages one after the other. In between it assembles the context
itself: it cuts what `retrieve` returned at `top_k` and at `token_budget`, records what was
kept and what was dropped, and hands the kept passages to `generate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_assets import Passage, Retrieval, rag_system

CORPUS = Path(__file__).parent / "data" / "corpus.jsonl"

# Words that say nothing about the subject of a question.
STOP_WORDS = (
    "a an and are as at be by can do does for from how i in is it its me my of on or our "
    "that the then to us we what when where which who will with you your"
)

NO_ANSWER = "Sorry, I could not find the answer in our help pages."


@rag_system(name="support-bot", version="1")
class SupportBot:
    """Answers a question with one sentence of the knowledge base, and cites its document."""

    def __init__(self) -> None:
        with CORPUS.open(encoding="utf-8") as lines:
            self.documents = [json.loads(line) for line in lines]

    def retrieve(self, question_input: Mapping[str, Any], depth: int) -> Retrieval:
        """Rank the documents by the question words that they hold; ties go by document id."""
        question = question_input["question"]
        scored = [(shared_words(question, doc["text"]), doc) for doc in self.documents]
        found = [(score, doc) for score, doc in scored if score > 0]
        found.sort(key=lambda pair: (-pair[0], pair[1]["doc_id"]))
        candidates = [
            Passage(
                doc_id=doc["doc_id"],
                score=float(score),
                text=doc["text"],
                metadata={"title": doc["title"]},
            )
            for score, doc in found[:depth]
        ]
        return Retrieval(query=question, depth=depth, candidates=tuple(candidates))

    def generate(
        self, question_input: Mapping[str, Any], context: Sequence[Passage]
    ) -> dict[str, Any]:
        """Quote the best sentence of the best passage. A real bot would call its model here."""
        if not context:
            return {"answer": NO_ANSWER, "citations": []}
        question = question_input["question"]
        # max() keeps the first of equals, so a tie goes to the passage that ranked higher.
        passage = max(context, key=lambda passage: shared_words(question, passage.text or ""))
        answer = max(
            sentences(passage.text or ""), key=lambda sentence: shared_words(question, sentence)
        )
        return {"answer": answer, "citations": [passage.doc_id]}

    def count_tokens(self, passage: Passage) -> int:
        """Count white-space separated words. Use your model's own tokenizer here."""
        return len((passage.text or "").split())


def shared_words(question: str, text: str) -> int:
    """How many different words of the question stand in the text."""
    return len(content_words(question) & content_words(text))


def content_words(text: str) -> set[str]:
    """The words of a text in lower case, without stop words."""
    return set(re.findall(r"\w+", text.lower())) - set(STOP_WORDS.split())


def sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop inside a number ends none."""
    return re.split(r"(?<=[.!?])\s+", text)
