"""Small corpora for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.corpus import Corpus, read_corpus
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.reference_set import ReferenceSets

TODAY = date(2026, 9, 16)


def lines(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def corpus_of(folder: Path, *rows: Mapping[str, Any]) -> Corpus:
    """The corpus of a manifest that must be right."""
    problems: list[Problem] = []
    path = folder / "corpus.jsonl"
    path.write_text(lines(*rows), encoding="utf-8")
    corpus = read_corpus(path, problems, name="corpus.jsonl")
    assert problems == []
    assert corpus is not None
    return corpus


def against(corpus: Corpus, today: date = TODAY, **row: Any) -> Case:
    """A case with its reference set."""
    return ReferenceSets(corpus, today).of(parse_case({"id": "c1", "input": "Q?", **row}))


def labels(*doc_ids: str, **rest: Any) -> dict[str, Any]:
    return {"relevant": [{"doc_id": one} for one in doc_ids], **rest}
