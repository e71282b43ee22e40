"""What `rag-assets compare` prints, and `inspect` prints again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_assets.evaluation.comparison_view import ComparisonView, DifferenceView
from rag_assets.evaluation.views import DecisionView
from rag_assets.evaluation.wording import (
    NO_POLICY,
    NONE,
    OPERATIONAL,
    counted,
    cut,
    estimate_text,
    interval_text,
    number_format,
    rule_words,
    value_text,
)
from rag_assets.reports.comparison_slices import slice_lines
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, heading, line, rows
from rag_assets.reports.measures import GATE_REASONS, STATE_STYLES, planning_lines, state_cell
from rag_assets.reports.planning import difference_format, difference_text

# Ids of one list that are shown; the others are counted. `--json` has all of them.
IDS_SHOWN = 20
NO_COMPARISON_RULE = "The policy has no rule for a comparison: nothing was decided."

_UNPAIRED = {
    "added": "in the candidate only",
    "removed": "in the baseline only",
    "input_changed": "another input under the same id",
    "expected_changed": "another expectation for the same input",
}
_REMEDIES = {
    "evaluator_changed": "its definition differs: run both systems with the same config of it",
    "only_in_candidate": "run the baseline's system with this evaluator in its config",
    "only_in_baseline": "run the candidate's system with this evaluator in its config",
}


def comparison_report(
    view: ComparisonView, width: int | None, *, all_slices: bool = False
) -> list[Line]:
    """The report of a comparison, in blocks.

    Args:
        view: the comparison.
        width: columns of the terminal; None for no limit.
        all_slices: also the differences of slices.
    """
    record = view.record
    return blocks(
        [
            line(
                "Comparison ",
                Cell(view.id, "bold"),
                f" of {record['candidate']['run']} against {record['baseline']['run']} · "
                f"{counted(record['pairs'], 'paired case')}",
            )
        ],
        list(_what_differs(record)),
        [part for metric in view.metrics for part in _metric(metric, record)],
        list(_side_by_side(record)),
        list(_not_compared(record)),
        slice_lines(view, width, everything=all_slices),
        _decisions(view, width),
        _gate(view),
    )


def ids_text(ids: Sequence[str]) -> str:
    """Ids of cases, as many as can be read."""
    more = len(ids) - IDS_SHOWN
    return ", ".join(ids[:IDS_SHOWN]) + (f" … and {more} more" if more > 0 else "")


def _what_differs(record: Mapping[str, Any]) -> Iterator[Line]:
    """Everything that makes the two runs unlike, before any number."""
    for role in ("candidate", "baseline"):
        run = record[role]
        if run["completeness"] != "COMPLETE":
            state = "/".join(filter(None, (run["state"], run["completeness"])))
            yield line(Cell(f"The {role} is {state}, not complete.", "yellow"))
    for one in record["differs"]:
        is_file = one["what"] in ("dataset", "manifest", "labels")
        what = one["what"].capitalize() if is_file else one["what"]
        verb = "differ" if one["what"] == "labels" else "differs"
        for name, ours, theirs in _leaves(what, one["candidate"], one["baseline"]):
            yield line(f"{name} {verb}: {_setting(ours)} against {_setting(theirs)}")
    for one in record["denominators"]:
        ours, theirs = (_counts(one[role]) for role in ("candidate", "baseline"))
        yield line(f"Denominator of {one['metric']} differs: {ours} against {theirs}")
    for reason, ids in record["unpaired"].items():
        if ids:
            words = f"{counted(len(ids), 'case')} not paired, {reason} ({_UNPAIRED[reason]})"
            yield line(f"{words}: {ids_text(ids)}")


def _leaves(name: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """(dotted key, candidate's, baseline's) of all that differs inside a setting."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        yield name, ours, theirs
        return
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        if ours.get(key) != theirs.get(key):
            yield from _leaves(f"{name}.{key}", ours.get(key), theirs.get(key))


def _setting(value: Any) -> str:
    """A setting; of a mapping the keys, and digests in short."""
    if isinstance(value, dict) and value:
        return ", ".join(value)
    text = NONE if value is None else value_text(value)
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return text[:12] if is_digest else cut(text)


def _counts(counts: Mapping[str, int]) -> str:
    return " · ".join(
        f"{counts[status]} {status}" for status in ("observed", "missing", "excluded")
    )


def _metric(metric: DifferenceView, record: Mapping[str, Any]) -> Iterator[Line]:
    estimate = (
        NONE
        if metric.estimate is None
        else difference_text(metric.kind, metric.range, metric.estimate)
    )
    counts = f"{metric.observed} paired · {metric.missing} missing · {metric.excluded} excluded"
    if metric.groups is not None:
        counts += f" · {counted(metric.groups, 'group')}"
    form = difference_format(metric.kind, metric.range)
    has_interval = metric.lower is not None or metric.upper is not None
    interval = form.interval(metric.lower, metric.upper) if has_interval else NONE
    yield line(Cell(metric.criterion, "bold"), f": {estimate} {interval} · {counts}")
    for reasons in (metric.missing_reasons, metric.excluded_reasons):
        for reason, number in reasons.items():
            yield line(f"{reason}: {number}", indent=2)
    if metric.gained or metric.lost:
        flips = (("gained", metric.gained), ("lost", metric.lost))
        texts = [f"{word} {len(ids)}: {ids_text(ids)}".rstrip(": ") for word, ids in flips]
        yield line("; ".join(texts), indent=2)
    for one in record["denominators"]:
        if one["metric"] == metric.criterion:
            sides = (f"{role}: {_whole(metric, one[role])}" for role in ("candidate", "baseline"))
            yield line(f"not over the same cases: {', '.join(sides)}", indent=2)


def _whole(metric: DifferenceView, side: Mapping[str, Any]) -> str:
    """What one run came to over all of its own cases."""
    form = number_format(metric.kind, metric.range)
    return f"{estimate_text(form, side.get('estimate'))} of {side['observed']} observed"


def _side_by_side(record: Mapping[str, Any]) -> Iterator[Line]:
    """Operational metrics, which have no difference."""
    for one in record["operational"]:
        form = OPERATIONAL[one["source"]]
        texts = [
            f"{estimate_text(form, side['estimate'])} "
            f"{interval_text(form, side['lower'], side['upper'])}"
            for side in (one["candidate"], one["baseline"])
        ]
        yield line(
            Cell(one["metric"], "bold"), f": {' against '.join(texts)} (no difference is computed)"
        )


def _not_compared(record: Mapping[str, Any]) -> Iterator[Line]:
    for one in record["not_compared"]:
        reason = one["reason"]
        yield line(
            Cell(one["criterion"], "bold"), f": not compared, {reason}: {_REMEDIES[reason]}."
        )


def _decisions(view: ComparisonView, width: int | None) -> list[Line]:
    if not view.decisions:
        return []
    table = [
        (
            Cell(one.rule["id"], "bold"),
            one.rule["metric"],
            rule_words(one.rule, one.measure.kind),
            state_cell(one.state),
            ", ".join(one.reasons),
        )
        for one in view.decisions
    ]
    below = [list(_below(view, one)) for one in view.decisions]
    return [heading("Decisions"), *rows(table, width, below=below, align_piped=False)]


def _below(view: ComparisonView, decision: DecisionView) -> Iterator[Line]:
    """The interval where it is not the one that is shown above, and the planning line."""
    shown = next((one for one in view.metrics if one.criterion == decision.rule["metric"]), None)
    measure = decision.measure
    if shown is not None and measure.method != shown.method:
        yield line(f"{measure.method}: {_decided_on(decision)}", indent=INDENT)
    yield from planning_lines(decision)


def _decided_on(decision: DecisionView) -> str:
    """Estimate and interval; a bound that just misses its limit has one more decimal."""
    measure, margin = decision.measure, decision.rule.get("margin", 0.0)
    estimate = (
        NONE
        if measure.estimate is None
        else difference_text(measure.kind, measure.range, measure.estimate)
    )
    if measure.lower is None or measure.upper is None:
        return f"{estimate} {NONE}"
    form = difference_format(measure.kind, measure.range)
    lower = form.lower(measure.lower, -margin if measure.lower < -margin else None)
    upper = form.upper(measure.upper, margin if measure.upper > margin else None)
    return f"{estimate} [{lower}, {upper}]"


def _gate(view: ComparisonView) -> list[Line]:
    if view.gate is None:
        return [line(NO_COMPARISON_RULE if view.record["policy"] else NO_POLICY)]
    return [
        line("Gate: ", Cell(view.gate, STATE_STYLES[view.gate]), f" (exit {view.exit_code})"),
        *(
            line(reason, ": ", GATE_REASONS[reason], ".", indent=INDENT)
            for reason in view.record["gate"]["reasons"]
        ),
    ]
