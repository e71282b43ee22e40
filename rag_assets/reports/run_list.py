"""The list of runs."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.evaluation.listing import ListedRun
from rag_assets.evaluation.wording import time_text
from rag_assets.reports.layout import INDENT, Cell, Line, packed, rows
from rag_assets.reports.measures import STATE_STYLES, run_state_cell, state_cell


def run_list(runs: Sequence[ListedRun], project: str | None, width: int | None) -> list[Line]:
    """One row for each run: id, time, state, gate, then per rule its state.

    On a terminal the rules stand below the row.

    Args:
        runs: newest first.
        project: the name of this project; a run of another one is marked with its name.
        width: columns of the terminal; None for no limit.
    """
    if width is None:
        return rows([[*_head(run), *_rules(run, project)] for run in runs], None)
    below = [packed(_rules(run, project), width, INDENT) for run in runs]
    return rows([_head(run) for run in runs], width, below=below)


def _head(run: ListedRun) -> list[Cell]:
    return [
        Cell(run.row.id, "bold"),
        Cell(time_text(run.row.created_at)),
        run_state_cell(run.state, run.completeness),
        state_cell(run.row.gate) if run.row.gate else Cell("no gate", "dim"),
    ]


def _rules(run: ListedRun, project: str | None) -> list[Cell]:
    marks = [Cell(f"{rule} {state}", STATE_STYLES[state]) for rule, state in run.rules]
    if run.row.origin != "run":
        marks.insert(0, Cell(f"({run.row.origin})"))
    if run.row.parent is not None:
        marks.insert(0, Cell(f"(child of {run.row.parent})"))
    if project is not None and run.row.project != project:
        marks.insert(0, Cell(f"(project {run.row.project})"))
    return marks
