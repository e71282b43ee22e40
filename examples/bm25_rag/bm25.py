"""BM25: how well a document answers to the words of a question.

The weights are those of Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, with
the inverse document frequency that stays above zero, ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

# How soon a repeated word stops to matter, and how much long documents are held back.
K1, B = 1.2, 0.75

# Words that say nothing about the subject of a question.
STOP_WORDS = (
    "a an and any are as at be been but by can do does for from has have how i if in into is it "
    "its me my much of on or our so that the their them then there to us we what when where which "
    "who why will with you your"
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without stop words and without the s of the plural."""
    ignored = STOP_WORDS.split()
    found = (word for word in re.findall(r"\w+", text.lower()) if word not in ignored)
    return [re.sub(r"(?<=\w{3})s$", "", word) for word in found]


class Index:
    """Documents and the weights of their words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Index texts.

        Args:
            texts: document id → text.
        """
        self.counts = {doc_id: Counter(words(text)) for doc_id, text in texts.items()}
        lengths = [counts.total() for counts in self.counts.values()]
        self.mean_length = sum(lengths) / len(lengths)
        self.holders = Counter(word for counts in self.counts.values() for word in counts)

    def rarity(self, word: str) -> float:
        """The inverse document frequency of a word, above 0."""
        holders = self.holders[word]
        return math.log(1 + (len(self.counts) - holders + 0.5) / (holders + 0.5))

    def score(self, question: Sequence[str], doc_id: str) -> float:
        """The score of a document, 0 when it shares no word with the question."""
        counts = self.counts[doc_id]
        length = 1 - B + B * counts.total() / self.mean_length
        return math.fsum(
            self.rarity(word) * counts[word] * (K1 + 1) / (counts[word] + K1 * length)
            for word in dict.fromkeys(question)
            if word in counts
        )

    def search(self, question: str, depth: int) -> list[tuple[str, float]]:
        """Document ids with their scores, the best first; ties go by document id.

        Args:
            question: a text.
            depth: how many at the most; documents that share no word with it are left out.
        """
        asked = words(question)
        scores = {doc_id: self.score(asked, doc_id) for doc_id in self.counts}
        ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        return [(doc_id, score) for doc_id, score in ranked[:depth] if score > 0]
