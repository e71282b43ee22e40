"""What `rag-assets inspect RUN` shows of a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rag_assets.evaluation.agreement import Agreement
from rag_assets.evaluation.constraints import Violated
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.wording import NO_RUN_RULE, cases_text, time_text
from rag_assets.reports.agreement_list import agreement_lines
from rag_assets.reports.layout import Line, block, blocks, line
from rag_assets.reports.measures import (
    decision_rows,
    failure_lines,
    gate_lines,
    has_failures,
    metric_rows,
    run_heading,
)
from rag_assets.reports.violation_list import violation_lines


def run_detail(
    view: RunView,
    named: str,
    width: int | None,
    violated: Sequence[Violated] = (),
    agreed: Sequence[Agreement] = (),
) -> list[Line]:
    """State, decisions and metrics of a run, as they were recorded.

    Args:
        view: the run.
        named: what names it on the command line, for the command to type next.
        width: columns of the terminal; None for no limit.
        violated: the cases that failed a hard constraint.
        agreed: how far pairs of reviewers agree.
    """
    return blocks(
        [
            run_heading(view),
            line(cases_text(view.cases, view.dataset_cases)),
            line(_when(view)),
            line(_what(view)),
        ],
        block(view.error, style="red") if view.error else [],
        failure_lines(view),
        [*_gate(view), *decision_rows(view.decisions, width, in_full=True)],
        metric_rows(view.metrics, width, in_full=True),
        violation_lines(violated, named, width, in_full=True),
        agreement_lines(agreed),
        [line(f"Next: rag-assets inspect {named} --failures")] if has_failures(view) else [],
    )


def _gate(view: RunView) -> list[Line]:
    lines = gate_lines(view)
    return [line(NO_RUN_RULE)] if not lines and view.state == "DECIDED" else lines


def _when(view: RunView) -> str:
    text = f"started {time_text(view.row.created_at)}"
    if view.row.finished_at is None:
        return text
    began, ended = map(datetime.fromisoformat, (view.row.created_at, view.row.finished_at))
    return f"{text}, took {(ended - began).total_seconds():.1f} s"


def _what(view: RunView) -> str:
    record, system = view.record, view.record["system"]
    parts = [f"system {system['name']}"]
    if system["version"]:
        parts.append(f"version {system['version']}")
    if system.get("index_version"):
        parts.append(f"index_version {system['index_version']}")
    parts.append(f"policy {record['policy']['file']}" if record["policy"] else "no policy")
    return ", ".join(parts)
