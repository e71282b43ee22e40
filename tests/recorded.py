"""Small projects of recorded results, run through the real Dagster job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora import lines
from projects import SampleProject

CONFIG = """\
project: sample
dataset: cases.jsonl
system:
  name: desk
  recorded: {path: results.jsonl}
"""


class RecordedProject(SampleProject):
    """A project folder with rows of results."""

    def __init__(
        self,
        root: Path,
        cases: Sequence[Mapping[str, Any]],
        results: Sequence[Mapping[str, Any]],
        evaluators: Sequence[str],
        corpus: Sequence[Mapping[str, Any]] = (),
        more: str = "",
    ) -> None:
        self.root = root
        self.cases(*cases)
        self.write("results.jsonl", lines(*results))
        config = CONFIG + "".join(["evaluators:\n", *(f"  - {one}\n" for one in evaluators)])
        if corpus:
            self.write("corpus.jsonl", lines(*corpus))
            config += "corpus: corpus.jsonl\n"
        self.write("rag_assets.yaml", config + more)
