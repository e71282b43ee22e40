"""A staged system with a switch for each way to fail, and a dataset that turns each of them on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from projects import SampleProject

APP = '''
import json
from pathlib import Path
from rag_assets import Passage, Retrieval, rag_system

HERE = Path(__file__).parent


def log(stage, question):
    with (HERE / "calls.log").open("a") as file:
        file.write(f"{stage} {question}\\n")


def times(question):
    """How often a question was generated before."""
    path = HERE / "times.json"
    seen = json.loads(path.read_text()) if path.exists() else {}
    before = seen.get(question, 0)
    path.write_text(json.dumps(seen | {question: before + 1}))
    return before


@rag_system(name="switches", depth=4, top_k=2, token_budget=10, index_version="v1")
class Switches:
    """Retrieves what a case lists; answers "right" when the context holds what it needs."""

    def retrieve(self, input, depth):
        log("retrieve", input["question"])
        found = []
        for name in input["retrieved"]:
            doc, _, words = name.partition(":")
            doc_id, _, chunk = doc.partition("#")
            text = " ".join([f"fact-{doc}", *["word"] * (int(words or 3) - 1)])
            found.append(Passage(doc_id=doc_id, chunk_id=chunk or None, text=text))
        return Retrieval(query=input["question"], depth=depth, candidates=found)

    def generate(self, input, context):
        log("generate", input["question"])
        mode, before = input.get("mode"), times(input["question"])
        if mode == "raises later" and before:
            raise RuntimeError("the model is gone")
        if mode == "raises under gold" and len(context) == 1 and context[0].doc_id == "r":
            raise RuntimeError("the gold passage is too much")
        facts = {word for passage in context for word in passage.text.split()}
        knows = all(f"fact-{doc}" in facts for doc in input["needs"])
        if mode == "distracted" and any(passage.doc_id == "x" for passage in context):
            knows = False
        if mode == "flaky":
            knows = before > 0
        if mode == "ignores":
            knows = False
        return {"answer": "right" if knows else "wrong", "citations": []}

    def count_tokens(self, passage):
        return len(passage.text.split())
'''

CONFIG = """
project: switches
dataset: cases.jsonl
concurrency: {system: 1}
system:
  name: switches
  rag: {object: "app:Switches"}
evaluators:
  - {type: contains, criterion: answer_correct, field: answer}
  - {type: token_f1, criterion: answer_f1, field: answer}
  - {type: hit_rate, k: 2}
"""

RERANK = """
import asyncio


def last_first(input, candidates):
    return candidates[::-1]


async def last_first_later(input, candidates):
    await asyncio.sleep(0)
    return tuple(candidates[::-1])


def only_relevant(input, candidates):
    return [one for one in candidates if one.doc_id in ("r", "s")]


def adding(input, candidates):
    return [*candidates, {"doc_id": "new"}]


def doubling(input, candidates):
    return [candidates[0], candidates[0]]


def counting(input, candidates):
    return len(candidates)


def failing(input, candidates):
    if input["question"] == "ranked_out":
        raise OSError("no reranker today")
    return candidates
"""


def case(
    name: str,
    retrieved: str,
    *,
    mode: str | None = None,
    relevant: str = "r",
    needs: str = "r",
    gold: str | None = None,
    requires: str = "any",
) -> dict[str, Any]:
    """A row of the dataset.

    Args:
        name: its id and its question.
        retrieved: what is retrieved, as "doc" or "doc:number of tokens" (3 without a number).
        mode: which switch of the model is turned on.
        relevant: the labelled documents.
        needs: the documents whose facts an answer needs.
        gold: the documents whose facts the gold passages hold; those needed when None.
        requires: whether one or all of the labelled documents are required.
    """
    facts = (needs if gold is None else gold).split()
    return {
        "id": name,
        "input": {
            "question": name,
            "retrieved": retrieved.split(),
            "needs": needs.split(),
            **({"mode": mode} if mode else {}),
        },
        "expected": {
            "answer": "right",
            "relevant": [{"doc_id": one} for one in relevant.split()],
            "gold_context": [{"doc_id": one, "text": f"fact-{one}"} for one in facts],
            "requires": requires,
        },
    }


CASES: tuple[Mapping[str, Any], ...] = (
    case("passes", "r a"),
    case("never_retrieved", "a b c"),
    case("nothing_retrieved", ""),
    case("ranked_out", "a b r"),
    case("ranked_last", "a b c r"),
    # Its own length is too much for what the budget leaves.
    case("dropped_by_budget", "a:5 r:6"),
    # It would fit, but the long passage before it drops everything behind it.
    case("dropped_behind_long", "a:11 r"),
    case("ignores_context", "r a", mode="ignores"),
    case("flaky", "r a", mode="flaky"),
    case("raises_later", "a b", mode="raises later"),
    case("raises_under_gold", "a b", mode="raises under gold"),
    case("distracted", "r x", mode="distracted"),
    case("gold_insufficient", "a b", gold="z"),
    case("one_of_two_lost", "r:6 s:6", relevant="r s", needs="r s", requires="all"),
    case("one_of_two_never", "r a b", relevant="r s", needs="r s", requires="all"),
    case("one_of_two_below", "r a s", relevant="r s", needs="r s", requires="all"),
    # Two factors at once: the first that applies is named, and a replay shows whether it sufficed.
    case("below_and_too_long", "a:5 b r:9"),
    case("missed_and_ignored", "a b", mode="ignores"),
    case("unlabelled", "a b", relevant=""),
)
"""Every way to fail; `expected_labels` says what each of them comes to."""

EXPECTED: Mapping[str, tuple[str, str, str, int | None]] = {
    "never_retrieved": ("RETRIEVAL_MISS", "relevant_not_retrieved", "recovery", None),
    "nothing_retrieved": ("RETRIEVAL_MISS", "relevant_not_retrieved", "recovery", None),
    "ranked_out": ("RANKED_OUT", "relevant_ranked_below_top_k", "recovery", 3),
    "ranked_last": ("RANKED_OUT", "relevant_ranked_below_top_k", "recovery", 4),
    "dropped_by_budget": (
        *("CONTEXT_ASSEMBLY_LOSS", "relevant_dropped_from_context", "recovery"),
        2,
    ),
    "dropped_behind_long": (
        *("CONTEXT_ASSEMBLY_LOSS", "relevant_dropped_from_context", "recovery"),
        2,
    ),
    "ignores_context": ("GENERATION_FAILURE", "fails_with_gold_context", "non_recovery", 1),
    "flaky": ("UNRESOLVED", "unstable_under_control", "none", 1),
    "raises_later": ("UNRESOLVED", "control_error", "none", None),
    "raises_under_gold": ("UNRESOLVED", "intervention_error", "none", None),
    "distracted": ("UNRESOLVED", "recovered_with_relevant_in_context", "none", 1),
    "gold_insufficient": ("GENERATION_FAILURE", "fails_with_gold_context", "non_recovery", None),
    "one_of_two_lost": (
        *("CONTEXT_ASSEMBLY_LOSS", "relevant_dropped_from_context", "recovery"),
        2,
    ),
    "one_of_two_never": ("RETRIEVAL_MISS", "relevant_not_retrieved", "recovery", None),
    "one_of_two_below": ("RANKED_OUT", "relevant_ranked_below_top_k", "recovery", 3),
    "below_and_too_long": ("RANKED_OUT", "relevant_ranked_below_top_k", "recovery", 3),
    "missed_and_ignored": ("GENERATION_FAILURE", "fails_with_gold_context", "non_recovery", None),
    "unlabelled": ("UNRESOLVED", "no_relevance_labels", "none", None),
}
"""Case → label, reason, strength (without "intervention_") and best relevant position."""


class Switches(SampleProject):
    """The project in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("app.py", APP)
        self.write("rerank.py", RERANK)
        self.write("rag_assets.yaml", CONFIG)
        self.cases(*CASES)
