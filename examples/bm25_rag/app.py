"""A bot that answers from the handbook of a heat pump: the RAG system that this project evaluates.

It finds pages by BM25 and answers with sentences of the handbook, which it quotes. It abstains
where no page fits well enough. With the setting `only_admissible`, search leaves out pages that do
not hold on the day of a question, and those that the person who asks may not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bm25 import Index, words

from rag_assets import Passage, Retrieval, current_case, rag_system

HANDBOOK = Path(__file__).parent / "data" / "handbook.jsonl"
NO_ANSWER = "The handbook does not say."


@rag_system(name="handbook-bot", version="1")
class HandbookBot:
    """Quotes one sentence of the handbook for each part of a question."""

    def __init__(self) -> None:
        with HANDBOOK.open(encoding="utf-8") as lines:
            pages = [json.loads(line) for line in lines]
        self.pages = {page["doc_id"]: page for page in pages}
        self.index = Index(
            {name: f"{page['title']}. {page['text']}" for name, page in self.pages.items()}
        )

    def retrieve(self, question_input: Mapping[str, Any], depth: int) -> Retrieval:
        """Return the pages that fit best; whether of all or of the admissible is a setting."""
        question, case = question_input["question"], current_case()
        is_filtered = case.config["only_admissible"]
        day = case.as_of or date.today().isoformat()
        found = [
            Passage(
                doc_id=name,
                score=score,
                text=self.pages[name]["text"],
                metadata={"title": self.pages[name]["title"]},
            )
            for name, score in self.index.search(question, len(self.pages))
            if not is_filtered
            or (may_read(self.pages[name], case.user) and holds(self.pages[name], day))
        ]
        return Retrieval(query=question, depth=depth, candidates=tuple(found[:depth]))

    def generate(
        self, question_input: Mapping[str, Any], context: Sequence[Passage]
    ) -> dict[str, Any]:
        """Quote the handbook for each part of the question. A model would be called here."""
        scores = [passage.score for passage in context if passage.score is not None]
        is_far = bool(scores) and max(scores) < current_case().config["abstain_below"]
        if not context or is_far:
            return {"answer": NO_ANSWER, "citations": [], "abstained": True}
        quoted: dict[str, str] = {}
        for part in question_input["question"].split(" and "):
            quoted.update([self.quote(part, context)])
        citations = list(dict.fromkeys(quoted.values()))
        return {"answer": " ".join(quoted), "citations": citations, "abstained": False}

    def quote(self, part: str, context: Sequence[Passage]) -> tuple[str, str]:
        """The sentence that shares the rarest words with a part of a question, and the next one.

        Returns:
            The two, and the page they stand on.
        """
        asked = set(words(part))
        found: list[tuple[float, str, str]] = []
        for passage in context:
            sentences = re.split(r"(?<=[.;])\s+", passage.text or "")
            for place, sentence in enumerate(sentences):
                fit = sum(self.index.rarity(word) for word in asked & set(words(sentence)))
                found.append((fit, " ".join(sentences[place : place + 2]), passage.doc_id))
        # max() keeps the first of equals, so a tie goes to the page that ranked higher.
        _, text, doc_id = max(found, key=lambda one: one[0])
        return text, doc_id

    def count_tokens(self, passage: Passage) -> int:
        """Count white-space separated words. Use the tokenizer of your model here."""
        return len((passage.text or "").split())


def may_read(page: Mapping[str, Any], user: Mapping[str, Any] | None) -> bool:
    """Whether a page is open to all, or to this user or one of their roles."""
    access = page.get("access", "all")
    names = [user["id"], *user.get("roles", [])] if user else []
    return access == "all" or not set(access).isdisjoint(names)


def holds(page: Mapping[str, Any], day: str) -> bool:
    """Whether a page was not withdrawn, and holds on a day such as 2026-09-16."""
    is_current = page.get("valid_from", day) <= day <= page.get("valid_to", day)
    return is_current and page.get("status") != "retired"
