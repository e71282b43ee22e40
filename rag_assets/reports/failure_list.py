"""What `rag-assets inspect RUN --failures` shows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rag_assets.evaluation.failures import FailedCase, to_diagnose
from rag_assets.evaluation.views import JudgmentView, RunView
from rag_assets.evaluation.wording import counted, cut, plain_number, value_text
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, line


def failure_list(view: RunView, failed: Sequence[FailedCase], named: str, limit: int) -> list[Line]:
    """The cases that failed, with what failed.

    Args:
        view: the run.
        failed: its failed cases.
        named: what names the run on the command line, for the command to type next.
        limit: the most cases to show.
    """
    head = f"{len(failed)} of {counted(view.cases, 'case')} failed, errored or stayed unfinished"
    more = len(failed) - limit
    last = [line(f"… and {more} more (--limit {len(failed)})")] if more > 0 else []
    if failed:
        example = failed[0].case_id
        last.append(line(f"Next: rag-assets inspect {named} --case {shlex.quote(example)}"))
    if (criterion := to_diagnose(view, failed)) is not None:
        last.append(line(f"Next: rag-assets diagnose {named} --criterion {shlex.quote(criterion)}"))
    return blocks([line(head)], *(_case(case) for case in failed[:limit]), last)


def _case(case: FailedCase) -> list[Line]:
    facts = [
        line(Cell(f"{name:<8}", style), text, indent=INDENT) for name, text, style in _facts(case)
    ]
    return [line(Cell(case.case_id, "bold")), *facts]


def _facts(case: FailedCase) -> Iterator[tuple[str, str, str]]:
    """(word, text, style of the word) of everything that is known of a failed case."""
    for number, output in case.samples:
        yield "output", f"sample {number}: {cut(value_text(output))}", "dim"
    if case.has_output and not case.samples:
        yield "output", cut(value_text(case.output)), "dim"
    for error in case.errors:
        sample = f" of sample {error['sample']}" if "sample" in error else ""
        yield "error", f"{error['stage']}{sample}: {error['type']}: {cut(error['message'])}", "red"
    if case.unfinished:
        yield "stopped", f"{case.unfinished} was not executed", "yellow"
    for judgment in case.failed:
        yield "failed", _with_reason(judgment, " "), "red"
    for one in case.below:
        floor = plain_number(one.floor)
        yield "below", f"{one.criterion} {one.value:.5f} < {floor} ({one.rule})", "red"
    for judgment in case.missing:
        yield "missing", _with_reason(judgment, ": "), "yellow"


def _with_reason(judgment: JudgmentView, before: str) -> str:
    return judgment.criterion + (f"{before}{judgment.reason}" if judgment.reason else "")
