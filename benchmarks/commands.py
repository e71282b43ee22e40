"""Runs against other yardsticks: slow models, the UI, and commands that only read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.budgets import Budget, Section
from benchmarks.from_ui import materialize_all
from benchmarks.measuring import DECIDED, RAG_ASSETS, best, measure, printed
from benchmarks.suites import AT_ONCE, CALL_S, make_suite, make_waiting_suite
from benchmarks.whole_runs import SMALL

_READING = (
    ("inspect", "latest"),
    ("inspect", "latest", "--case", "reset_link"),
    ("runs",),
    ("compare", "latest", "latest~1", "--policy", "wide.yaml"),
)
# Decided even by a few pairs, so that no planning lines are worked out.
_WIDE = """
rules:
  - {id: wide, kind: non_inferiority, metric: answer_correct, margin: 0.9}
"""


def waiting(folder: Path, cases: int) -> Section:
    """A model that takes its time, at full concurrency, against calls and nothing else."""
    floor = math.ceil(cases / AT_ONCE) * CALL_S
    config = make_waiting_suite(folder / "waiting", cases)
    process = measure([*RAG_ASSETS, "run"], config.parent, DECIDED).seconds
    found = _dagster_runs(config)
    run, stage = found["seconds"], found["steps"]["generation"]
    work = f"{cases:,} × {CALL_S * 1000:g} ms, {AT_ONCE} at once"
    shown = (
        f" (floor {floor:.1f} s, run {run:.2f} s, its generation alone {stage:.2f} s, "
        f"whole process {process:.2f} s)"
    )
    budget = Budget.at_most(work, 1.08, run / floor, "× the floor", shown)
    return Section("waiting", [], [budget])


def from_ui(folder: Path, cases: int) -> Section:
    """ "Materialize all" in the UI against the command line, both cold."""
    clicked = make_suite(folder / "ui", cases)
    materialize_all(clicked.parent, "support_rag")
    typed = make_suite(folder / "cli", cases)
    measure([*RAG_ASSETS, "run"], typed.parent, DECIDED)
    ui, cli = (_dagster_runs(one)["seconds"] for one in (clicked, typed))
    work = f'"Materialize all" from the UI, {cases:,} cases: its runs'
    more = f" ({ui:.2f} s and {cli:.2f} s)"
    return Section("ui", [], [Budget.at_most(work, 2, ui / cli, "× the run of the CLI", more)])


def _dagster_runs(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed("dagster_runs", config))
    return found


def start_up(folder: Path, unit: float) -> Section:
    """Commands that only read, on two runs of the example."""
    project = make_suite(folder / "reading", SMALL).parent
    (project / "wide.yaml").write_text(_WIDE, encoding="utf-8")
    for _ in range(2):
        measure([*RAG_ASSETS, "run"], project, DECIDED)
    budgets = list(_start_ups(project, unit))
    return Section("start-up", [], budgets)


def _start_ups(project: Path, unit: float) -> Iterator[Budget]:
    for command in _READING:
        whole = best([*RAG_ASSETS, *command], project, 5, DECIDED)
        query = float(printed("second_call", project, *command))
        more = f" ({whole:.2f} s, of which the query {query:.2f} s)"
        share = (whole - query) / unit
        name = f"`{' '.join(command)}` without its query"
        yield Budget.at_most(name, 0.35, share, "imports of dagster", more)
