"""A staged project with a corpus: it serves the passages that a question names, to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpora import lines
from projects import SampleProject

SECRET = "At night the alarm of the store is disarmed with 7714 at the side entrance."

APP = """
import json
from pathlib import Path
from rag_assets import Passage, Retrieval, current_case, rag_system

HERE = Path(__file__).parent
ROWS = map(json.loads, (HERE / "served.jsonl").read_text().splitlines())
TEXTS = {row["doc_id"]: row["text"] for row in ROWS}


@rag_system(name="sample", depth=4, top_k=3)
class Sample:
    def retrieve(self, input, depth):
        words = input["question"].split()
        if words[0] == "denied":
            current_case().denied()
            words = words[1:]
        passages = [Passage(doc_id=w, text=TEXTS[w], metadata={"says": TEXTS[w]}) for w in words]
        return Retrieval(query=input["question"], candidates=passages)

    def generate(self, input, context):
        if input.get("fails"):
            raise ValueError("cannot answer from: " + " ".join(p.text for p in context))
        return {
            "answer": "It is so. " + " ".join(p.text for p in context),
            "citations": [p.doc_id for p in context],
        }


def quotes(context):
    return {"value": False, "reason": "it read: " + " ".join(p.text for p in context.items)}
"""

CONFIG = """
project: sample
dataset: cases.jsonl
corpus: corpus.jsonl
system:
  name: sample
  rag:
    object: app:Sample
    index_version: v1
evaluators:
  - {type: contains, criterion: answer_correct, field: answer}
  - {type: hit_rate, k: 2}
  - {type: admissible_retrieval}
  - {type: admissible_context}
  - {type: admissible_citations}
  - {type: no_leak}
  - {type: custom, criterion: quoting, object: "app:quotes", kind: verdict}
"""

DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"doc_id": "desk", "text": "The desk is open from nine in the morning until noon, every day."},
    {"doc_id": "alarm", "access": ["staff"], "title": "Night alarm procedure", "text": SECRET},
    {
        "doc_id": "old",
        "document": "rules",
        "version": "1",
        "status": "retired",
        "text": "A power tool may be kept for three days, and not a single day longer than that.",
    },
    {
        "doc_id": "new",
        "document": "rules",
        "version": "2",
        "authority": 5,
        "text": "A power tool may be kept for seven days, and not a single day longer than that.",
    },
)
MEMBER = {"id": "ann", "roles": ["member"]}
STAFF = {"id": "bob", "roles": ["staff"]}


class SourcedProject(SampleProject):
    """A project folder whose files a test may change between runs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write("app.py", APP)
        self.write("rag_assets.yaml", CONFIG)
        self.write("served.jsonl", lines(*DOCUMENTS))
        self.manifest(*DOCUMENTS)

    def manifest(self, *documents: Mapping[str, Any]) -> None:
        self.write("corpus.jsonl", lines(*documents))

    def without(self, *types: str) -> None:
        """Take evaluators out of the config."""
        text = (self.root / "rag_assets.yaml").read_text()
        rows = [row for row in text.splitlines(keepends=True) if not any(t in row for t in types)]
        self.write("rag_assets.yaml", "".join(rows))


def case(case_id: str, question: str, user: Any = MEMBER, **rest: Any) -> dict[str, Any]:
    return {"id": case_id, "input": {"question": question}, "user": user, **rest}
