"""Faults of retrieval that users of tools of this kind have met."""

from __future__ import annotations

import pytest

from command_line import call
from projects import SampleProject, relevant

CORPUS = {
    "k1": "measurement of tank level by sound and echo",
    "k2": "paint for tanks",
    "k3": "valves of rubber for gas pipes",
    "k4": "noise in amplifiers with two stages",
    "k5": "heat loss through double windows",
    "k6": "bearings that need no oil",
    "k7": "radio waves above the polar circle",
    "k8": "drying of timber with steam",
}
APP = f"""
from rag_assets import Passage, Retrieval, rag_system

CORPUS = {CORPUS!r}


@rag_system(name="search", depth=3, top_k=1)
class Search:
    def retrieve(self, input, depth):
        words = set(input["question"].split())
        shared = {{doc: len(words & set(text.split())) for doc, text in CORPUS.items()}}
        ranked = sorted((doc for doc in CORPUS if shared[doc]), key=lambda doc: -shared[doc])
        passages = [Passage(doc_id=doc, text=CORPUS[doc]) for doc in ranked[:depth]]
        return Retrieval(query=input["question"], candidates=passages)

    def generate(self, input, context):
        return {{"answer": context[0].text if context else ""}}
"""
CONFIG = """
project: search
dataset: cases.jsonl
system:
  name: search
  rag: {object: "app:Search", index_version: v1}
evaluators:
  - {type: hit_rate, k: 1}
slices: [metadata.letters]
min_slice_support: 5
"""


@pytest.fixture
def search(sample: SampleProject) -> SampleProject:
    """Each document asked for twice: in its own words, and in capital letters."""
    sample.write("app.py", APP)
    sample.write("rag_assets.yaml", CONFIG)
    rules = "rules:\n  - {id: better, metric: hit_rate_at_1, kind: superiority}\n"
    sample.write("compare.yaml", rules)
    sample.cases(
        *(
            {
                "id": f"{doc}-{letters}",
                "input": {"question": text.upper() if letters == "upper" else text},
                "expected": relevant(doc),
                "metadata": {"letters": letters},
            }
            for doc, text in CORPUS.items()
            for letters in ("upper", "lower")
        )
    )
    return sample


def test_a_slice_shows_that_questions_in_capitals_find_nothing(search: SampleProject) -> None:
    first = call(search.root, "run")
    assert first.exit_code == 0
    assert "hit_rate_at_1  50.0%  [24.6%, 75.4%]  8 / 16 observed" in first.stdout
    assert slices(first.stdout) == [
        "metadata.letters=lower  100.0% [63.0%, 100.0%] better (p 0.00016)",
        "metadata.letters=upper  0.0% [0.0%, 37.0%] worse (p 0.00016)",
    ]

    # With the question in small letters, all that was lost is found; the rest stays as it was.
    search.replace("app.py", 'input["question"].split()', 'input["question"].lower().split()')
    second = call(search.root, "run")
    assert slices(second.stdout) == [
        "metadata.letters=lower  100.0% [63.0%, 100.0%]",
        "metadata.letters=upper  100.0% [63.0%, 100.0%]",
    ]
    assert "retrieve 0 hit/16 miss; generate 8 hit/8 miss" in second.stdout
    compared = call(search.root, "compare", "latest", "latest~1").stdout.splitlines()
    assert (
        "hit_rate_at_1: +50.0 points [+2.2, +83.3] · 16 paired · 0 missing · 0 excluded" in compared
    )
    (gained,) = (row for row in compared if row.startswith("  gained "))
    assert gained == f"  gained 8: {', '.join(f'{doc}-upper' for doc in CORPUS)}; lost 0"


def slices(text: str) -> list[str]:
    return [row for row in text.splitlines() if row.startswith("metadata.letters=")]
