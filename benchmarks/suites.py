"""Suites of any size: the example's cases repeated with distinct ids and inputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

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
