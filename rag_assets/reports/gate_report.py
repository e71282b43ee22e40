"""What `rag-assets gate` prints."""

from __future__ import annotations

from rag_assets.evaluation.redeciding import Redecided
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.wording import NO_RUN_RULE, cases_text
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, line
from rag_assets.reports.measures import (
    GATE_REASONS,
    STATE_STYLES,
    decision_rows,
    run_heading,
)


def gate_report(view: RunView, found: Redecided, width: int | None) -> list[Line]:
    """The decisions of a policy on a run, with what they rest on.

    Args:
        view: the run.
        found: what the policy decides on it.
        width: columns of the terminal; None for no limit.
    """
    return blocks(
        [
            run_heading(view),
            line(cases_text(view.cases, view.dataset_cases)),
            line(f"policy {found.policy.path.name}, decided again from records"),
        ],
        [*_gate(found), *decision_rows(found.decisions, width, in_full=True)],
    )


def _gate(found: Redecided) -> list[Line]:
    gate = found.gate
    if gate is None:
        return [line(NO_RUN_RULE)]
    return [
        line("Gate: ", Cell(gate.state, STATE_STYLES[gate.state]), f" (exit {gate.exit_code})"),
        *(line(reason, ": ", GATE_REASONS[reason], ".", indent=INDENT) for reason in gate.reasons),
    ]
