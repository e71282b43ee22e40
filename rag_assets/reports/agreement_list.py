"""How far reviewers agree, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.evaluation.agreement import Agreement, Disagreement
from rag_assets.evaluation.wording import counted
from rag_assets.reports.layout import INDENT, Line, heading, line
from rag_assets.statistics.display import RATE, score_format

_SHOWN = 20
_KAPPA = score_format(1.0)


def agreement_lines(found: Sequence[Agreement]) -> list[Line]:
    """Raw agreement and kappa of each pair of reviewers, and where they differ; nothing without."""
    if not found:
        return []
    lines = [heading("Agreement of reviewers")]
    for one in found:
        lines.append(line(_text(one)))
        lines += [line(_difference(other), indent=INDENT) for other in one.disagreements[:_SHOWN]]
        more = len(one.disagreements) - _SHOWN
        if more > 0:
            lines.append(line(f"… and {more} more; --json has all of them", indent=INDENT))
    return lines


def _text(one: Agreement) -> str:
    who = " and ".join(one.reviewers)
    share = RATE.estimate(one.agreed / one.labels)
    kappa = (
        "kappa is not defined: both gave one label to all"
        if one.kappa is None
        else f"kappa {_KAPPA.estimate(one.kappa)}"
    )
    labels = counted(one.labels, "label")
    return f"{one.criterion}: {who} agree on {one.agreed} of {labels} ({share}), {kappa}"


def _difference(one: Disagreement) -> str:
    what = f"{one.about} {one.unit}".rstrip()
    by = ", ".join(f"{reviewer}: {label}" for reviewer, label in one.by.items())
    return f"{one.case}  {what}  {by}"
