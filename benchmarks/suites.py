"""Suites of any size: the example's cases repeated, and cases that wait for a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

# Seconds that each call of the waiting suite takes, and how many of them go on at once.
CALL_S = 0.2
AT_ONCE = 32
_WAITING = f'''
import time

from rag_assets import Passage, Retrieval, rag_system


@rag_system(name="waiting", depth=1, top_k=1)
class Waiting:
    """Waits for its model and does nothing else."""

    def retrieve(self, input, depth):
        return Retrieval(query=input, candidates=[Passage(doc_id="d", text=input)])

    def generate(self, input, context):
        time.sleep({CALL_S})
        return {{"answer": input}}
'''
_WAITING_CONFIG = f"""
project: waiting
dataset: cases.jsonl
concurrency: {{system: {AT_ONCE}}}
system:
  name: waiting
  rag: {{object: "app:Waiting", index_version: v1}}
evaluators:
  - {{type: contains, field: answer, criterion: answer_correct}}
"""
EXAMPLE = Path(__file__).parent.parent / "examples" / "support_rag"


def make_suite(folder: Path, cases: int) -> Path:
    """Write a project with so many cases; returns its config file."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".rag_assets"))
    dataset = folder / "data" / "support.jsonl"
    rows = [json.loads(line) for line in dataset.read_text(encoding="utf-8").splitlines()]
    if cases != len(rows):
        with dataset.open("w", encoding="utf-8") as file:
            for index in range(cases):
                row = dict(rows[index % len(rows)])
                row["id"] = f"{row['id']}-{index:05d}"
                row["input"] = {**row["input"], "number": index}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return folder / "rag_assets.yaml"


def make_waiting_suite(folder: Path, cases: int) -> Path:
    """Write a project whose every answer takes `CALL_S` seconds; returns its config file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(_WAITING, encoding="utf-8")
    config = folder / "rag_assets.yaml"
    config.write_text(_WAITING_CONFIG, encoding="utf-8")
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        for index in range(cases):
            row = {"id": f"c{index:05}", "input": f"q{index}", "expected": {"answer": f"q{index}"}}
            file.write(json.dumps(row) + "\n")
    return config
