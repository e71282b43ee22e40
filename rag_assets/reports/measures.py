"""Metrics, decisions and the gate as lines, the same in every report."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.evaluation.views import DecisionView, Measure, MetricView, RunView
from rag_assets.evaluation.wording import (
    NO_POLICY,
    counted,
    decided_interval_text,
    denominator_text,
    estimate_text,
    failure_line,
    interval_text,
    number_format,
    plain_number,
    pooled_text,
    reasons_text,
    rule_words,
    samples_text,
)
from rag_assets.reports.layout import INDENT, Cell, Line, line, rows
from rag_assets.reports.planning import planning_line

STATE_STYLES = {
    "PASS": "green",
    "ALLOW": "green",
    "DECIDED": "green",
    "WARN": "yellow",
    "INSUFFICIENT_EVIDENCE": "yellow",
    "MANUAL_REVIEW": "yellow",
    "RUNNING": "cyan",
    "INTERRUPTED": "yellow",
    "FAIL": "bold red",
    "BLOCK": "bold red",
    "STOPPED": "bold red",
}

GATE_REASONS = {
    "missing_evidence": "too little was observed for a rule, which blocks whatever block_on says",
    "partial_run": "not every case of the dataset was run",
}


def state_cell(state: str) -> Cell:
    """A state in its colour."""
    return Cell(state, STATE_STYLES[state])


def run_state_cell(state: str, completeness: str | None) -> Cell:
    """The state of a run, with its completeness once it has one."""
    return Cell(f"{state}/{completeness}" if completeness else state, STATE_STYLES[state])


def run_heading(view: RunView) -> Line:
    """Which run, and how it ended."""
    state = run_state_cell(view.state, view.completeness)
    return line("Run ", Cell(view.row.id, "bold"), " [", state, "]")


def failure_lines(view: RunView) -> list[Line]:
    """Failures of the run that are alike, counted."""
    return [
        line(Cell(failure_line(one["cases"], one["stage"], one["type"], one["message"]), "red"))
        for one in view.summary.get("failures", [])
    ]


def has_failures(view: RunView) -> bool:
    """Whether `inspect --failures` may have a case to show, as far as the metrics tell."""
    if view.state != "DECIDED" or view.summary.get("failures"):
        return True
    floored = {one.rule["metric"] for one in view.decisions if one.rule["kind"] == "min"}
    return any(_has_failures(one, one.criterion in floored) for one in view.metrics)


def _has_failures(metric: MetricView, has_floor: bool) -> bool:
    measure = metric.measure
    if measure.missing or measure.passes is not None:
        return bool(measure.missing) or (measure.passes or 0) < measure.observed
    # Below a floor stands a single case, however high the mean is.
    is_score = measure.kind == "score" and measure.estimate is not None
    return has_floor and is_score and (measure.estimate or 0.0) < measure.range[1]


def gate_lines(view: RunView) -> list[Line]:
    """The gate with its reasons; the sentence without a policy; nothing where nothing decided."""
    if view.row.gate is None:
        return _no_policy(view) if view.record["policy"] is None else []
    gate = Cell(view.row.gate, STATE_STYLES[view.row.gate])
    reasons = view.summary.get("gate_reasons", [])
    return [
        line("Gate: ", gate, f" (exit {view.exit_code})"),
        *(line(reason, ": ", GATE_REASONS[reason], ".", indent=INDENT) for reason in reasons),
    ]


def _no_policy(view: RunView) -> list[Line]:
    """That nothing was decided, and what the state above says all the same."""
    told = "DECIDED says that the run came to its end. The rules of a policy would decide on it."
    return [line(NO_POLICY), *([line(told, indent=INDENT)] if view.state == "DECIDED" else [])]


def decision_rows(
    decisions: Sequence[DecisionView], width: int | None, *, in_full: bool = False
) -> list[Line]:
    """One row for each rule.

    Args:
        decisions: in the order of the policy.
        width: columns of the terminal; None for no limit.
        in_full: with the numbers that each rule decided on below it.
    """
    return rows(
        [
            (
                Cell(decision.rule["id"], "bold"),
                decision.rule["metric"],
                rule_words(decision.rule, decision.measure.kind),
                state_cell(decision.state),
                ", ".join(decision.reasons),
            )
            for decision in decisions
        ],
        width,
        below=[
            [
                *(_decided_on(decision) if in_full else []),
                *_failures_counted(decision),
                *planning_lines(decision),
            ]
            for decision in decisions
        ],
        align_piped=False,
    )


def _failures_counted(decision: DecisionView) -> list[Line]:
    """How many failures a rule that counts them has found, where there are any."""
    measure = decision.measure
    if decision.rule["kind"] != "observed_count" or measure.passes is None:
        return []
    failures = measure.observed - measure.passes
    if not failures and not measure.missing:
        return []
    missing = f" and {measure.missing} missing" if measure.missing else ""
    limit = decision.rule["max_failures"]
    return [line(f"{counted(failures, 'failure')}{missing}, at most {limit}", indent=INDENT)]


def planning_lines(decision: DecisionView) -> list[Line]:
    """What would decide an undecided rule, on one line; nothing where that cannot be said."""
    text = planning_line(decision)
    return [] if text is None else [line(text, indent=INDENT)]


def _decided_on(decision: DecisionView) -> list[Line]:
    measure = decision.measure
    form = number_format(measure.kind, measure.range)
    estimate = estimate_text(form, measure.estimate)
    interval = decided_interval_text(form, measure.lower, measure.upper, decision.rule)
    method = measure.method or "no method"
    cases = f"{measure.observed} of {counted(measure.cases, 'case')}"
    return [line(f"{estimate}, {interval}, {method}; {cases}", indent=INDENT)]


def metric_rows(
    metrics: Sequence[MetricView], width: int | None, *, in_full: bool = False
) -> list[Line]:
    """One row for each metric.

    Args:
        metrics: in the order of the config.
        width: columns of the terminal; None for no limit.
        in_full: with the reasons of missing and excluded cases below it.
    """
    return rows(
        [(Cell(metric.criterion, "bold"), *measure_texts(metric.measure)) for metric in metrics],
        width,
        below=[_reasons(metric) for metric in metrics] if in_full else (),
        align_piped=False,
    )


def _reasons(metric: MetricView) -> list[Line]:
    kinds = {"missing": metric.missing_reasons, "excluded": metric.excluded_reasons}
    return [
        line(f"{kind}: {reasons_text(reasons)}", indent=INDENT)
        for kind, reasons in kinds.items()
        if reasons
    ]


def measure_texts(measure: Measure) -> tuple[str, str, str]:
    """Estimate, interval and denominator of a metric."""
    form = number_format(measure.kind, measure.range)
    return (
        estimate_text(form, measure.estimate),
        interval_text(form, measure.lower, measure.upper),
        _denominator(measure),
    )


def _denominator(measure: Measure) -> str:
    passes = measure.passes if measure.samples == 1 else None
    text = denominator_text(passes, measure.observed, measure.missing, measure.excluded)
    if measure.pooled is not None and measure.observed:
        text = f"{pooled_text(**measure.pooled)} · {text}"
    if measure.quantile is not None:
        text = text.replace("mean of", f"p{plain_number(100 * measure.quantile)} of")
    if measure.groups is not None:
        text += f" · {counted(measure.groups, 'group')}"
    return text if measure.samples == 1 else text + samples_text(measure.samples, measure.flaky)
