"""What the records of a run say, as plain values: for reports and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from rag_assets.evaluation.owner import DIED, is_alive
from rag_assets.store import Metric, RunJudgment, RunRow
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class Measure:
    """The numbers of a metric, unrounded.

    Attributes:
        kind: `verdict`, `score`, or the source of an operational metric.
        range: lowest and highest value; infinite for an operational metric.
        estimate, lower, upper: None where there is none.
        observed, missing, excluded: numbers of cases.
        passes: of a verdict metric, else None.
        method, level: of the interval, else None.
        quantile: which quantile an operational metric is, else None.
        groups: number of groups, where cases belong together, else None.
        samples: how many samples of a case its value is the mean of.
        flaky: cases whose samples disagree.
        pooled: of a ratio `part`, `whole` and `unit` over all cases together, else None.
    """

    kind: str
    range: tuple[float, float]
    estimate: float | None
    lower: float | None
    upper: float | None
    observed: int
    missing: int
    excluded: int
    passes: int | None
    method: str | None
    level: float | None
    quantile: float | None = None
    groups: int | None = None
    samples: int = 1
    flaky: int = 0
    pooled: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """One object; JSON has no infinity, so a range without an end has none."""
        ends = [end if math.isfinite(end) else None for end in self.range]
        return asdict(self) | {"range": ends}

    @property
    def cases(self) -> int:
        """All cases that were looked at."""
        return self.observed + self.missing + self.excluded


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """Which slice value a metric is of, and how it compares with the rest of the run."""

    name: str
    value: str
    support: int
    p_value: float | None
    p_adjusted: float | None
    mark: str | None


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric of a run, over all its cases or over one slice value.

    `missing_reasons` and `excluded_reasons` map a reason to its number of cases.
    """

    criterion: str
    measure: Measure
    missing_reasons: Mapping[str, int]
    excluded_reasons: Mapping[str, int]
    slice: SliceFacts | None

    def as_json(self) -> dict[str, Any]:
        """One flat object."""
        found: dict[str, Any] = {"metric": self.criterion, **self.measure.as_json()}
        found["missing_reasons"] = dict(self.missing_reasons)
        found["excluded_reasons"] = dict(self.excluded_reasons)
        found["slice"] = asdict(self.slice) if self.slice else None
        return found


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What one rule decided.

    Attributes:
        rule: the fields of the policy rule that were set.
        state, reasons: the decision.
        measure: the metric, or the difference, that it rests on.
        plan: what would decide it, as recorded; None where there is nothing to plan.
    """

    rule: Mapping[str, Any]
    state: str
    reasons: tuple[str, ...]
    measure: Measure
    plan: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """One flat object; the rule as it stood in the policy is under `definition`."""
        return {
            "rule": self.rule["id"],
            "metric": self.rule["metric"],
            "state": self.state,
            "reasons": list(self.reasons),
            "definition": dict(self.rule),
            **self.measure.as_json(),
            "plan": self.plan,
        }


@dataclass(frozen=True, slots=True)
class JudgmentView:
    """The outcome of one case under one criterion.

    Attributes:
        status: observed, excluded or missing.
        value: true or false for a verdict, a number for a score; None unless observed.
        reason: why it is excluded, missing or (where the evaluator says so) failed.
        detail: more about it, any JSON.
        source: hit, miss or none.
    """

    case: str
    criterion: str
    kind: str
    status: str
    value: bool | float | None
    reason: str | None
    detail: Any
    source: str

    def as_json(self) -> dict[str, Any]:
        """One object."""
        return asdict(self)


@dataclass(frozen=True)
class RunView:
    """A run and what it came to.

    Attributes:
        row: the stored row.
        state: the row's, or INTERRUPTED where the process of the run is gone.
        completeness: COMPLETE or PARTIAL; None while the run goes on.
        record: what the run froze at its start.
        summary: what it came to; empty while it goes on.
        metrics: over all cases, in the order of the config.
        slices: over slice values, in the order of the config.
        decisions: in the order of the policy.
    """

    row: RunRow
    state: str
    completeness: str | None
    record: Mapping[str, Any]
    summary: Mapping[str, Any]
    metrics: tuple[MetricView, ...]
    slices: tuple[MetricView, ...]
    decisions: tuple[DecisionView, ...]

    @property
    def system_kind(self) -> str:
        """`rag`, or how the system is called as a whole: `callable`, `http`, `recorded`."""
        return str(self.record["system"].get("kind", "rag"))

    @property
    def cases(self) -> int:
        """Number of cases that the run is about."""
        selection = self.record["selection"]
        return self.dataset_cases if selection is None else len(selection)

    @property
    def dataset_cases(self) -> int:
        """Number of cases of the whole dataset."""
        return int(self.record["dataset"]["cases"])

    @property
    def exit_code(self) -> int | None:
        """Of the command that made the run; None while it goes on."""
        return 130 if self.state == "INTERRUPTED" else self.row.exit_code

    @property
    def error(self) -> str | None:
        """What stopped the run, for people; None where nothing did."""
        return DIED if _is_dead(self.row) else self.row.error

    def judgment(self, row: RunJudgment) -> JudgmentView:
        """A stored outcome of this run, with what its kind says about the value."""
        kind = self._kinds[row.criterion]
        # The mean over several samples may lie between a pass and a fail.
        is_verdict = kind == "verdict" and row.value in (0.0, 1.0)
        value = row.value == 1.0 if is_verdict else row.value
        detail = None if row.detail is None else json.loads(row.detail)
        return JudgmentView(
            case=row.case_id,
            criterion=row.criterion,
            kind=kind,
            status=row.status,
            value=value,
            reason=row.reason,
            detail=detail,
            source=row.source,
        )

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """Criterion → `verdict` or `score`."""
        return {one["criterion"]: one["kind"] for one in self.record["evaluators"]}

    def as_json(self) -> dict[str, Any]:
        """The whole run as one object."""
        row = self.row
        return {
            "run": row.id,
            "project": row.project,
            "origin": row.origin,
            "parent": row.parent,
            "created_at": row.created_at,
            "finished_at": row.finished_at,
            "state": self.state,
            "completeness": self.completeness,
            "gate": row.gate,
            "exit_code": self.exit_code,
            "error": self.error,
            "dagster_run_id": row.dagster_run_id,
            "record": dict(self.record),
            "summary": dict(self.summary),
            "decisions": [decision.as_json() for decision in self.decisions],
            "metrics": [metric.as_json() for metric in self.metrics],
            "slices": [metric.as_json() for metric in self.slices],
        }


def run_view(reader: Reader, row: RunRow) -> RunView:
    """Read what a run came to."""
    metrics = [_metric(metric) for metric in reader.metrics(row.id)]
    return RunView(
        row=row,
        state=state_of(row),
        completeness=completeness_of(row),
        record=json.loads(row.record),
        summary=json.loads(row.summary) if row.summary else {},
        metrics=tuple(metric for metric in metrics if metric.slice is None),
        slices=tuple(metric for metric in metrics if metric.slice is not None),
        decisions=tuple(
            decision_view(decision.state, json.loads(decision.payload))
            for decision in reader.decisions(row.id)
        ),
    )


def state_of(row: RunRow) -> str:
    """The state of a run; a run whose process has died is INTERRUPTED, marked so or not."""
    return "INTERRUPTED" if _is_dead(row) else row.state


def completeness_of(row: RunRow) -> str | None:
    """COMPLETE or PARTIAL; None while the run goes on, and for single stages or cases."""
    return "PARTIAL" if _is_dead(row) and row.origin == "run" else row.completeness


def _is_dead(row: RunRow) -> bool:
    return row.state == "RUNNING" and not is_alive(row.owner, row.heartbeat)


def _metric(metric: Metric) -> MetricView:
    payload = json.loads(metric.payload)
    facts = None
    if "slice" in payload:
        name, value = payload["slice"]
        compared = (payload[key] for key in ("support", "p_value", "p_adjusted", "mark"))
        facts = SliceFacts(name, value, *compared)
    return MetricView(
        criterion=metric.criterion,
        measure=_measure({**payload, **asdict(metric)}),
        missing_reasons=payload["missing_reasons"],
        excluded_reasons=payload["excluded_reasons"],
        slice=facts,
    )


def decision_view(state: str, record: Mapping[str, Any]) -> DecisionView:
    """What a rule decided, from its record."""
    return DecisionView(
        rule=record["rule"],
        state=state,
        reasons=tuple(record["reasons"]),
        measure=_measure({"passes": None, **record}),
        plan=record.get("plan"),
    )


def _measure(numbers: Mapping[str, Any]) -> Measure:
    low, high = (math.inf if end is None else end for end in numbers["range"])
    defaults = {"quantile": None, "groups": None, "samples": 1, "flaky": 0, "pooled": None}
    numbers = {**defaults, **numbers}
    rest = {field.name: numbers[field.name] for field in fields(Measure) if field.name != "range"}
    return Measure(range=(low, high), **rest)
