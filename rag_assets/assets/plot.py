"""A small plot of intervals, as SVG text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from rag_assets.evaluation.metrics import MetricValue

_LEFT, _WIDTH, _ROW, _RIGHT = 190, 420, 26, 20
_INK, _LINE, _THRESHOLD = "#1f2937", "#2563eb", "#b45309"


def interval_plot(metrics: Sequence[MetricValue], thresholds: Mapping[str, float]) -> str:
    """One row for each metric: its interval, its estimate, and its threshold where it has one.

    Args:
        metrics: their values are drawn on their own range, lowest on the left.
        thresholds: criterion → threshold of a rule on it.

    Returns:
        An SVG document.
    """
    height = _ROW * (len(metrics) + 1) + 8
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" '
            f'height="{height}" font-family="sans-serif" font-size="12">'
        ),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for index, metric in enumerate(metrics):
        parts += _row(metric, thresholds.get(metric.criterion), index * _ROW + 20)
    bottom = len(metrics) * _ROW + 12
    parts.append(f'<path d="M{_LEFT} {bottom}h{_WIDTH}" stroke="{_INK}" stroke-width="1"/>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = _LEFT + share * _WIDTH
        parts.append(f'<path d="M{at} {bottom}v4" stroke="{_INK}"/>')
        parts.append(
            f'<text x="{at}" y="{bottom + 17}" text-anchor="{anchor}" fill="{_INK}">'
            f"{_scale(metrics, share)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _row(metric: MetricValue, threshold: float | None, y: float) -> list[str]:
    low, high = metric.value_range

    def x(value: float) -> float:
        return round(_LEFT + (value - low) / (high - low) * _WIDTH, 1)

    parts = [
        (
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end" fill="{_INK}">'
            f"{escape(metric.criterion[:28])}</text>"
        ),
        f'<path d="M{_LEFT} {y}h{_WIDTH}" stroke="#e5e7eb"/>',
    ]
    interval = metric.interval
    if interval is not None and interval.lower is not None and interval.upper is not None:
        left, right = x(interval.lower), x(interval.upper)
        parts.append(
            f'<path d="M{left} {y - 5}v10M{left} {y}H{right}M{right} {y - 5}v10" '
            f'stroke="{_LINE}" stroke-width="2" fill="none"/>'
        )
    if threshold is not None:
        at = x(threshold)
        parts.append(
            f'<path d="M{at} {y - 9}v18" stroke="{_THRESHOLD}" stroke-width="2" '
            'stroke-dasharray="3 2"/>'
        )
    if metric.estimate is not None:
        parts.append(f'<circle cx="{x(metric.estimate)}" cy="{y}" r="4" fill="{_LINE}"/>')
    return parts


def _scale(metrics: Sequence[MetricValue], share: float) -> str:
    """What stands at a place of the axis; only metrics of one range share a scale."""
    ranges = {metric.value_range for metric in metrics}
    if len(ranges) != 1:
        return {0.0: "lowest", 0.5: "", 1.0: "highest"}[share]
    ((low, high),) = ranges
    return f"{low + share * (high - low):g}"
