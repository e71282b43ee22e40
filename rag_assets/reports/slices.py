"""The slices of a run as one compact table: slice values as rows, metrics as columns."""

from __future__ import annotations

from rag_assets.evaluation.views import MetricView, RunView
from rag_assets.evaluation.wording import (
    TOO_FEW,
    counted,
    estimate_text,
    interval_text,
    number_format,
)
from rag_assets.reports.layout import Cell, Line, blocks, grid, line

MARK_STYLES = {"worse": "red", "better": "green"}
_Row = dict[str, MetricView]


def slice_table(view: RunView, width: int | None, *, everything: bool) -> list[Line]:
    """The slices; nothing when the run has none.

    Args:
        view: the run.
        width: columns of the terminal; None for no limit.
        everything: also the rows with too little support, and how many cases support each row.
    """
    table: dict[str, _Row] = {}
    for metric in view.slices:
        if metric.slice is not None:
            name = f"{metric.slice.name}={metric.slice.value}"
            table.setdefault(name, {})[metric.criterion] = metric
    if not table:
        return []
    shown = {name: row for name, row in table.items() if everything or _tells(row)}
    found: list[Line] = []
    remarks: list[Line] = []
    if shown:
        sliced = {metric.criterion for metric in view.slices}
        criteria = [one.criterion for one in view.metrics if one.criterion in sliced]
        header = ["Slices", *(["support"] if everything else []), *criteria]
        body = [_cells(name, row, criteria, with_support=everything) for name, row in shown.items()]
        found += grid(header, body, width)
    hidden = len(table) - len(shown)
    if hidden:
        noun = counted(hidden, "slice row")
        least = view.record["min_slice_support"]
        remarks.append(line(f"{noun} below support {least} not shown (--slices)"))
    if view.summary.get("slices_too_few"):
        remarks.append(line(TOO_FEW))
    return blocks(found, remarks)


def _tells(row: _Row) -> bool:
    """Whether a row has an interval or a mark."""
    return any(
        metric.measure.lower is not None
        or metric.measure.upper is not None
        or (metric.slice is not None and metric.slice.mark in MARK_STYLES)
        for metric in row.values()
    )


def _cells(name: str, row: _Row, criteria: list[str], *, with_support: bool) -> list[Cell]:
    support = [Cell(_support(row))] if with_support else []
    return [Cell(name), *support, *(_cell(row.get(criterion)) for criterion in criteria)]


def _cell(metric: MetricView | None) -> Cell:
    if metric is None or metric.slice is None:
        return Cell("")
    measure, facts = metric.measure, metric.slice
    form = number_format(measure.kind, measure.range)
    parts = [estimate_text(form, measure.estimate)]
    if measure.lower is not None or measure.upper is not None:
        parts.append(interval_text(form, measure.lower, measure.upper))
    style = ""
    if facts.mark in MARK_STYLES:
        style = MARK_STYLES[facts.mark]
        parts.append(f"{facts.mark} (p {facts.p_adjusted:.2g})")
    return Cell(" ".join(parts), style)


def _support(row: _Row) -> str:
    """Number of cases that support a row; a range where the metrics differ."""
    counts = [metric.slice.support for metric in row.values() if metric.slice is not None]
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"
