"""Violations of hard constraints, in a report of a run and as a list of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_assets.evaluation.constraints import Violated
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.wording import counted
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, grid, heading, line, rows

if TYPE_CHECKING:
    from rag_assets.evaluation.violations import Violation

NOBODY = "-"
_SHOWN = 10


def violation_list(
    view: RunView,
    found: Sequence[Violation],
    reasons: Mapping[str, int],
    limit: int | None,
    width: int | None,
) -> list[Line]:
    """What `rag-assets inspect RUN --violations` shows.

    Args:
        view: the run.
        found: its violations.
        reasons: reason → number of them.
        limit: the most to show; None for all.
        width: columns of the terminal; None for no limit.
    """
    cases = len({one.case for one in found})
    head = f"{counted(len(found), 'violation')} in {cases} of {counted(view.cases, 'case')}"
    if found:
        parts = (f"{number} {reason}" for reason, number in reasons.items())
        head += f": {', '.join(parts)}"
    remark = "The run had no manifest: it is not known which documents are admissible."
    header = ["case", "user", "stage", "position", "document", "reason"]
    table: list[list[Cell | str]] = [
        [
            Cell(_case(one), "bold"),
            one.user or NOBODY,
            one.stage,
            str(one.position) if one.stage != "generation" else f"character {one.position}",
            one.doc_id or NOBODY,
            Cell(one.reason, "red"),
        ]
        for one in found[:limit]
    ]
    more = 0 if limit is None else len(found) - limit
    return blocks(
        [line(head)],
        [] if view.record.get("manifest") else [line(remark)],
        grid(header, table, width) if table else [],
        [line(f"… and {more} more (--limit {len(found)})")] if more > 0 else [],
    )


def violation_lines(
    found: Sequence[Violated], reference: str, width: int | None, *, in_full: bool = False
) -> list[Line]:
    """The cases that failed a hard constraint, beside the means of a report.

    Args:
        found: these cases.
        reference: how to name the run, for the command to type next.
        width: columns of the terminal; None for no limit.
        in_full: all of them, and not the first few only.
    """
    if not found:
        return []
    shown = len(found) if in_full else _SHOWN
    table = [
        (Cell(f"{'':{INDENT}}{one.case}"), one.criterion, one.doc_id or "", Cell(one.reason, "red"))
        for one in found[:shown]
    ]
    more = len(found) - shown
    last = f"{f'… and {more} more: ' if more > 0 else 'All about them: '}"
    command = f"rag-assets inspect {reference} --violations"
    return [
        heading(f"Violations: {counted(len(found), 'judgment')}"),
        *rows(table, width),
        line(last + command, indent=INDENT),
    ]


def _case(one: Violation) -> str:
    return one.case if one.sample == 0 else f"{one.case} (sample {one.sample})"
