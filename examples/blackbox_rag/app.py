"""A support service that is called as a whole, and the adapter that rag-assets calls.

`support_api` is the application: it searches, builds its prompt and answers, and knows nothing of
rag-assets. `run` calls it and reports what happened inside, in the words of rag-assets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_assets import current_case, system

CORPUS = Path(__file__).parent / "data" / "corpus.jsonl"
SOURCES = 6
PROMPT_SOURCES = 2
PROMPT_TOKENS = 40

# The change to try: True also searches for what customers call differently than the help pages.
EXPAND_QUERY = False
SYNONYMS = {"money": "refund"}

# Words that say nothing about the subject of a question.
STOP_WORDS = (
    "a an and are as at be by can do does for from how i in is it its me my of on or our "
    "that the then to us we what when where which who will with you your"
)
NO_ANSWER = "Sorry, I could not find the answer in our help pages."

with CORPUS.open(encoding="utf-8") as lines:
    DOCUMENTS = [json.loads(line) for line in lines]


def support_api(question: str) -> dict[str, Any]:
    """Answer a question with a sentence of the help pages. A real service would ask its model.

    Returns:
        answer: the text; cited: ids of the pages it stands on; sources: what the search found,
        best first; prompt_sources: those that went into the prompt; skipped: those that did not.
    """
    words = query_words(question)
    sources = search(words)
    prompt_sources, skipped = fill_prompt(sources)
    answer, cited = write_answer(words, prompt_sources)
    return {
        "answer": answer,
        "cited": cited,
        "sources": sources,
        "prompt_sources": prompt_sources,
        "skipped": skipped,
    }


def query_words(question: str) -> set[str]:
    """What to search for."""
    words = content_words(question)
    if EXPAND_QUERY:
        words |= {SYNONYMS[word] for word in words if word in SYNONYMS}
    return words


def search(words: set[str]) -> list[dict[str, Any]]:
    """The pages that hold most of the words; ties go by id."""
    scored = [(shared(words, page["text"]), page) for page in DOCUMENTS]
    found = sorted(
        ((score, page) for score, page in scored if score > 0),
        key=lambda pair: (-pair[0], pair[1]["doc_id"]),
    )
    return [
        {"id": page["doc_id"], "score": float(score), "text": page["text"]}
        for score, page in found[:SOURCES]
    ]


def fill_prompt(
    sources: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The first sources as long as they fit, and the others with the reason."""
    prompt: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    free, why = PROMPT_TOKENS, "no room"
    for rank, source in enumerate(sources, start=1):
        tokens = len(source["text"].split())
        if rank > PROMPT_SOURCES:
            why = "rank"
        elif not skipped and tokens <= free:
            free -= tokens
            prompt.append({**source, "rank": rank, "tokens": tokens})
            continue
        skipped.append({"id": source["id"], "rank": rank, "why": why})
    return prompt, skipped


def write_answer(words: set[str], prompt_sources: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """A sentence of the best source, and the id of that source."""
    if not prompt_sources:
        return NO_ANSWER, []
    # max() keeps the first of equals, so a tie goes to the source that ranked higher.
    best = max(prompt_sources, key=lambda source: shared(words, source["text"]))
    sentence = max(sentences(best["text"]), key=lambda sentence: shared(words, sentence))
    return sentence, [best["id"]]


def content_words(text: str) -> set[str]:
    """The words of a text in lower case, without stop words."""
    return set(re.findall(r"\w+", text.lower())) - set(STOP_WORDS.split())


def shared(words: set[str], text: str) -> int:
    """How many of the words stand in the text."""
    return len(words & content_words(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop inside a number ends none."""
    return re.split(r"(?<=[.!?])\s+", text)


# The adapter

REASONS = {"rank": "top_k", "no room": "token_budget"}


@system(version="1", records=["retrieval/v1", "context/v1", "citations/v1"])
def run(case_input: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one case, and report what the application did on the way."""
    question = case_input["question"]
    reply = support_api(question)
    found = evidence(question, reply)
    case = current_case()
    case.retrieval(found["retrieval"])
    case.context(found["context"])
    case.citations(found["citations"])
    return result(reply)


def result(reply: Mapping[str, Any]) -> dict[str, Any]:
    """What customers see of a reply."""
    return {"answer": reply["answer"]}


def evidence(question: str, reply: Mapping[str, Any]) -> dict[str, Any]:
    """What happened inside, as `retrieval/v1`, `context/v1` and `citations/v1`."""
    return {
        "retrieval": {
            "query": question,
            "depth": SOURCES,
            "candidates": [
                {"doc_id": source["id"], "score": source["score"], "text": source["text"]}
                for source in reply["sources"]
            ],
        },
        "context": {
            "items": [
                {
                    "doc_id": source["id"],
                    "position": source["rank"],
                    "tokens": source["tokens"],
                    "text": source["text"],
                }
                for source in reply["prompt_sources"]
            ],
            "dropped": [
                {
                    "doc_id": source["id"],
                    "position": source["rank"],
                    "reason": REASONS[source["why"]],
                }
                for source in reply["skipped"]
            ],
            "token_budget": PROMPT_TOKENS,
        },
        "citations": reply["cited"],
    }
