"""The slices of a comparison as one compact table."""

from __future__ import annotations

from rag_assets.evaluation.comparison_view import ComparisonView, SliceDifference
from rag_assets.evaluation.wording import NONE, TOO_FEW, counted
from rag_assets.reports.layout import Cell, Line, blocks, grid, line
from rag_assets.reports.planning import difference_format
from rag_assets.reports.slices import MARK_STYLES

_EXPLORATORY = "Slices are exploratory: they say where to look, and no rule decides on them."


def slice_lines(view: ComparisonView, width: int | None, *, everything: bool) -> list[Line]:
    """The differences of slices, or how many there are.

    Args:
        view: the comparison.
        width: columns of the terminal; None for no limit.
        everything: False only counts them.
    """
    slices = view.record["slices"]
    if not everything:
        if not view.slices:
            return []
        noun = counted(len(view.slices), "exploratory slice difference")
        return [line(f"{noun} not shown; add --slices to list them")]
    remarks = [
        line(f"Slice {name} is declared in the {role} only.")
        for role in ("candidate", "baseline")
        for name in slices[f"only_in_{role}"]
    ]
    if view.slices:
        remarks.append(line(f"No interval below {counted(slices['min_support'], 'pair')}."))
        if slices["too_few"]:
            remarks.append(line(TOO_FEW))
        remarks.append(line(_EXPLORATORY))
    return blocks(_table(view, width), remarks)


def _table(view: ComparisonView, width: int | None) -> list[Line]:
    if not view.slices:
        return []
    table: dict[str, dict[str, SliceDifference]] = {}
    for one in view.slices:
        table.setdefault(f"{one.facts.name}={one.facts.value}", {})[one.criterion] = one
    sliced = {row["criterion"] for row in view.record["slices"]["rows"]}
    criteria = [one.criterion for one in view.metrics if one.criterion in sliced]
    body = [
        [Cell(name), *(_cell(view, row.get(criterion)) for criterion in criteria)]
        for name, row in table.items()
    ]
    return grid(["Slices", *criteria], body, width)


def _cell(view: ComparisonView, one: SliceDifference | None) -> Cell:
    if one is None:
        return Cell("")
    metric = next(metric for metric in view.metrics if metric.criterion == one.criterion)
    form = difference_format(metric.kind, metric.range)
    parts = [NONE if one.estimate is None else form.estimate(one.estimate)]
    if one.lower is not None or one.upper is not None:
        parts.append(form.interval(one.lower, one.upper))
    parts.append(f"({one.facts.support})")
    style = MARK_STYLES.get(one.facts.mark or "", "")
    if style:
        parts.append(f"{one.facts.mark} (p {one.facts.p_adjusted:.4f})")
    return Cell(" ".join(parts), style)
