"""What `rag-assets run` prints when a run has ended."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.evaluation.agreement import Agreement
from rag_assets.evaluation.constraints import Violated
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.wording import (
    NO_RUN_RULE,
    cache_line,
    cases_text,
    counted,
    reasons_text,
    redeployed_note,
    speaks_for,
    stages_line,
)
from rag_assets.evaluation.words import UNLABELLED
from rag_assets.reports.agreement_list import agreement_lines
from rag_assets.reports.layout import Line, blocks, line
from rag_assets.reports.measures import (
    decision_rows,
    failure_lines,
    gate_lines,
    has_failures,
    metric_rows,
    run_heading,
)
from rag_assets.reports.slices import slice_table
from rag_assets.reports.violation_list import violation_lines


def run_report(
    view: RunView,
    width: int | None,
    *,
    all_slices: bool,
    named: str = "latest",
    violated: Sequence[Violated] = (),
    agreed: Sequence[Agreement] = (),
) -> list[Line]:
    """The report of a run, in blocks.

    Args:
        view: the run.
        width: columns of the terminal; None for no limit.
        all_slices: also slice values with too little support.
        named: what names the run on the command line, for the command to type next.
        violated: the cases that failed a hard constraint.
        agreed: how far pairs of reviewers agree.
    """
    counts = view.summary.get("counts", {})
    is_staged = view.system_kind == "rag"
    return blocks(
        [run_heading(view), line(cases_text(view.cases, view.dataset_cases))],
        failure_lines(view),
        [*gate_lines(view), *decision_rows(view.decisions, width), *_nothing_executed(view)],
        metric_rows(view.metrics, width),
        violation_lines(violated, named, width),
        agreement_lines(agreed),
        [line(speaks_for(view.record["suite"], view.cases))] if view.metrics else [],
        slice_table(view, width, everything=all_slices),
        [line(cache_line(counts)), *([line(stages_line(counts))] if is_staged else [])],
        [line(_next(view, named))] if view.state == "DECIDED" else [],
    )


def notes(view: RunView, command: str, named: str) -> list[str]:
    """What else there is to say about a run, for stderr.

    Args:
        view: the run.
        command: what was typed to make it.
        named: what names it on the command line.
    """
    found: list[str] = []
    if view.state == "STOPPED":
        found.append(f"{view.row.error}\n{_again(view, command)}")
    if view.state == "INTERRUPTED":
        found.append(f"Interrupted. {_again(view, command)}")
    if view.state == "DECIDED" and view.record["policy"] and view.row.gate is None:
        found.append(NO_RUN_RULE)
    skipped = view.summary.get("skipped_rules", 0)
    if skipped:
        decides = "it decides" if skipped == 1 else "they decide"
        rules = counted(skipped, "rule")
        found.append(f"{rules} skipped: {decides} on comparisons, not on one run.")
    executions = view.summary.get("counts", {}).get("execution", {})
    if view.system_kind == "http" and executions.get("hit"):
        found.append(redeployed_note(executions.get("miss", 0)))
    for metric in view.metrics:
        if metric.measure.missing:
            reasons = reasons_text(metric.missing_reasons)
            found.append(f"{metric.criterion}: {metric.measure.missing} missing ({reasons})")
    unlabelled = (one for one in view.metrics if UNLABELLED & one.missing_reasons.keys())
    if (first := next(unlabelled, None)) is not None:
        export = f"rag-assets labels export {named} --criterion {first.criterion}"
        found.append(f"To label what is not labelled yet: {export} --out to-label.csv")
    return found


def _nothing_executed(view: RunView) -> list[Line]:
    """Why the exit code is 3 although the gate does not block."""
    if view.exit_code != 3 or view.row.gate == "BLOCK":
        return []
    return [line("Every case failed: there is no output, and the exit code is 3.")]


def _again(view: RunView, command: str) -> str:
    if view.record["use_cache"]:
        return f"What has finished is kept in the cache; to continue: {command}"
    return (
        "What has finished is kept in the cache, which --no-cache does not read; to start anew: "
        f"{command}"
    )


def _next(view: RunView, named: str) -> str:
    return f"Next: rag-assets inspect {named}{' --failures' if has_failures(view) else ''}"
