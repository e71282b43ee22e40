"""Peak memory of whole commands on suites with long passages: it follows the batch, not the suite.

python -m benchmarks.memory [--sizes 2000,8000,20000]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.measuring import DECIDED, RAG_ASSETS, measure

PASSAGES = 10
CHARACTERS = 2000
APP = f'''
import random
from rag_assets import Passage, Retrieval, rag_system


@rag_system(name="long", depth={PASSAGES}, top_k={PASSAGES})
class Long:
    """Retrieves passages of {CHARACTERS:,} characters that no two cases share."""

    def retrieve(self, input, depth):
        texts = random.Random(input)
        return Retrieval(
            query=input,
            candidates=[
                Passage(doc_id=f"d{{place}}", text=texts.randbytes({CHARACTERS // 2}).hex())
                for place in range(depth)
            ],
        )

    def generate(self, input, context):
        return {{"answer": context[0].text[:100], "citations": [context[0].doc_id]}}
'''
CONFIG = """
project: long
dataset: cases.jsonl
system:
  name: long
  rag: {object: "app:Long", index_version: v1}
evaluators:
  - {type: hit_rate, k: 5}
  - {type: citation_validity}
"""


def make_long_suite(folder: Path, cases: int) -> None:
    """Write a project with so many cases of `PASSAGES` passages."""
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "rag_assets.yaml").write_text(CONFIG, encoding="utf-8")
    rules = "rules:\n  - {id: hits, metric: hit_rate_at_5, min: 0.9}\n"
    (folder / "release.yaml").write_text(rules, encoding="utf-8")
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        for index in range(cases):
            labels = {"relevant": [{"doc_id": "d0"}]}
            row = {"id": f"c{index:05}", "input": f"q{index}", "expected": labels}
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Measure, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="2000,8000,20000")
    options = parser.parse_args()
    commands = (
        ("run",),
        ("run", "--json"),
        ("inspect", "latest", "--json"),
        ("gate", "latest"),
        ("compare", "latest", "latest~1"),
        ("export", "latest"),
    )
    folder = Path(tempfile.mkdtemp(prefix="rag-assets-memory-"))
    print("| cases | passages | command | seconds | peak memory |\n|---|---|---|---|---|")
    for size in (int(size) for size in options.sizes.split(",")):
        make_long_suite(folder / str(size), size)
        megabytes = size * PASSAGES * CHARACTERS / 1e6
        for command in commands:
            done = measure([*RAG_ASSETS, *command], folder / str(size), DECIDED)
            print(
                f"| {size:,} | {megabytes:.0f} MB | `{' '.join(command)}` | {done.seconds:.1f} "
                f"| {done.peak_mb:.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
