"""A suite of 10,000 cases over real text: wall time, memory and store, against their budgets.

python -m benchmarks --only "real text"
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.budgets import Section
from benchmarks.cranfield import Collection, load_collection, write_project
from benchmarks.data import data_folder
from benchmarks.whole_runs import LARGE, WholeRuns, disk, whole_runs

DEPTH = 10
EVALUATORS = """\
  - {type: ndcg, k: 10}
  - {type: mrr, k: 10}
  - {type: average_precision, k: 10}
  - {type: recall, k: 10}
  - {type: citation_validity}
"""


def real_text(folder: Path) -> Section:
    """Run Cranfield's questions over and over, once each with an input of its own."""
    collection = load_collection(data_folder("cranfield"))
    runs = WholeRuns(folder / "different", partial(_make, collection, is_different=True))
    time, size = whole_runs(runs, (LARGE,)), disk(runs, (LARGE,))
    equal = WholeRuns(folder / "equal", partial(_make, collection, is_different=False))
    cost = equal.cold(LARGE)
    shared = (
        f"Where equal questions are equal inputs, {len(collection.questions)} are executed and the "
        f"others share their results: {cost.cold.seconds:.2f} s, {cost.cold.peak_mb:.0f} MB, "
        f"store {cost.store.file / 1e6:.1f} MB."
    )
    lines = [*time.lines, "", *size.lines, "", shared]
    return Section("real text", lines, [*time.budgets, *size.budgets])


def _make(collection: Collection, folder: Path, cases: int, *, is_different: bool) -> Path:
    return write_project(
        folder,
        collection,
        cases,
        depth=DEPTH,
        evaluators=EVALUATORS,
        is_different=is_different,
    )
