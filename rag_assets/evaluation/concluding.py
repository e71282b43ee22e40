"""From the outcomes of a run to its metrics, decisions and exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.canonical import canonical_json, digest
from rag_assets.contracts.policy import Policy
from rag_assets.evaluation.deciding import (
    decide_on_run,
    finite_range,
    group_count,
    rules_for,
    run_decision_record,
)
from rag_assets.evaluation.gate import GateDecision, RuleDecision, gate_of, required_ids
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluation.operational import measure_quantile, operational_outcomes
from rag_assets.evaluation.replicates import evaluator_errors, sample_reasons
from rag_assets.evaluation.retrieval_valid import NAME as RETRIEVAL_VALID
from rag_assets.evaluation.retrieval_valid import session_outcomes
from rag_assets.evaluation.session import Session
from rag_assets.evaluation.slices import SliceMetric, SliceTable, slice_metrics
from rag_assets.evaluation.words import Completeness
from rag_assets.store import Decision, Metric

DEFAULT_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The metrics of a run: over all its cases in the order of the config, and its slices."""

    whole: tuple[MetricValue, ...]
    slices: SliceTable
    level: float

    def of(self, criterion: str) -> MetricValue:
        """The metric of one criterion over all cases."""
        return next(metric for metric in self.whole if metric.criterion == criterion)

    @property
    def data_version(self) -> str:
        """Digest of every number in it."""
        rows = [metric_row("", metric) for metric in self.whole]
        rows += [slice_row("", row) for row in self.slices.rows]
        return digest(
            [[row.scope, row.criterion, row.estimate, row.observed, row.payload] for row in rows]
        )


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a run came to.

    Attributes:
        completeness: PARTIAL for a selection of cases, else COMPLETE.
        decisions: one for each rule that decides on one run.
        gate: None without a policy, or without a rule for one run.
        skipped_rules: number of rules that decide on comparisons.
        exit_code: of the command that made the run.
    """

    completeness: Completeness
    metrics: RunMetrics
    decisions: tuple[RuleDecision[MetricValue], ...]
    gate: GateDecision | None
    skipped_rules: int
    exit_code: int

    def summary(self) -> dict[str, Any]:
        """What the run's row keeps of it, as JSON."""
        return {
            "gate_reasons": list(self.gate.reasons) if self.gate else [],
            "skipped_rules": self.skipped_rules,
            "slice_tests": self.metrics.slices.tests,
            "slices_too_few": self.metrics.slices.too_few,
        }


def measure_run(session: Session) -> RunMetrics:
    """Measure every criterion over all cases and over every slice, and record it."""
    project = session.project
    level = project.policy.confidence_level if project.policy else DEFAULT_LEVEL
    if any(one.criterion == RETRIEVAL_VALID for one in project.measured):
        session.outcomes[RETRIEVAL_VALID] = session_outcomes(session)
    whole = tuple(
        measure(
            one.criterion,
            one.kind,
            one.value_range,
            session.outcomes[one.criterion],
            level=level,
            keys=session.group_keys,
            samples=one.samples,
            counts=one.counts,
        )
        for one in project.measured
    )
    if project.config.operational_metrics:
        whole += _measure_operational(session, level)
    slices = slice_metrics(
        project.config.slices,
        session.cases,
        session.facts,
        project.criteria,
        session.outcomes,
        top_k=0 if project.is_whole else project.system.top_k,
        min_support=project.config.min_slice_support,
        level=level,
        keys=session.group_keys,
    )
    rows = [metric_row(session.run_id, metric) for metric in whole]
    rows += [slice_row(session.run_id, row) for row in slices.rows]
    with session.store.writing() as writer:
        writer.add(rows)
        session.take_pending(writer)
    session.measured = True
    return RunMetrics(whole, slices, level)


def _measure_operational(session: Session, level: float) -> tuple[MetricValue, ...]:
    metrics = session.project.config.operational_metrics
    with session.store.reading() as reader:
        ids = [case.id for case in session.cases]
        outcomes = operational_outcomes(reader, session.run_id, ids, metrics)
    session.outcomes.update(outcomes)
    return tuple(measure_quantile(metric, outcomes[metric.id], level) for metric in metrics)


def decide_run(session: Session, metrics: RunMetrics) -> Conclusion:
    """Apply the policy to the metrics of a run, and record the decisions."""
    policy = session.project.policy
    completeness = completeness_of(session)
    rules = rules_for(policy, "run")
    decisions: tuple[RuleDecision[MetricValue], ...] = ()
    gate = None
    if policy is not None and rules:
        required = required_ids(policy, [case.id for case in session.project.dataset.cases])
        ids = [case.id for case in session.cases]
        decisions = decide_on_run(
            policy, required, ids, session.outcomes, metrics.whole, session.group_keys
        )
        gate = gate_of(policy, decisions, completeness)
        rows = [_decision_row(session, policy, decision) for decision in decisions]
        with session.store.writing() as writer:
            writer.add(rows)
    exit_code = gate.exit_code if gate else 0
    if exit_code == 0 and _nothing_executed(session):
        exit_code = 3
    return Conclusion(
        completeness=completeness,
        metrics=metrics,
        decisions=decisions,
        gate=gate,
        skipped_rules=len(policy.rules) - len(rules) if policy else 0,
        exit_code=exit_code,
    )


def completeness_of(session: Session) -> Completeness:
    """COMPLETE when every case of the dataset was executed and judged, or recorded as failed."""
    if len(session.cases) < len(session.project.dataset.cases):
        return "PARTIAL"
    results = (
        one
        for stage in session.results
        for results in session.sampled(stage)
        for one in results.values()
    )
    if any(one.failure is not None and one.failure.reason == "not_executed" for one in results):
        return "PARTIAL"
    outcomes = (one for criterion in session.outcomes.values() for one in criterion)
    lost = any("not_executed" in sample_reasons(one) for one in outcomes)
    return "PARTIAL" if lost else "COMPLETE"


def failure_groups(session: Session) -> list[dict[str, Any]]:
    """Failures of the run that are alike, counted: stage, type and message, most first."""
    groups: Counter[tuple[str, str, str]] = Counter(
        (stage, failure.type, failure.message) for stage, _, failure in session.failures()
    )
    for criterion, outcomes in session.outcomes.items():
        for outcome in outcomes:
            for error in evaluator_errors(outcome):
                name, _, message = error.partition(": ")
                groups[criterion, name, message] += 1
    return [
        {"cases": count, "stage": stage, "type": name, "message": message}
        for (stage, name, message), count in groups.most_common()
    ]


def metric_row(run_id: str, metric: MetricValue, scope: str = "global", **extra: Any) -> Metric:
    """A metric as it is stored."""
    interval = metric.interval
    payload = {
        "method": interval.method if interval else None,
        "level": interval.level if interval else None,
        "range": finite_range(metric),
        "passes": metric.passes,
        "quantile": metric.quantile,
        "groups": group_count(metric),
        "samples": metric.samples,
        "flaky": metric.flaky,
        "pooled": asdict(metric.pooled) if metric.pooled else None,
        "missing_reasons": dict(metric.missing_reasons),
        "excluded_reasons": dict(metric.excluded_reasons),
        **extra,
    }
    return Metric(
        run_id=run_id,
        scope=scope,
        criterion=metric.criterion,
        kind=metric.kind,
        estimate=metric.estimate,
        lower=interval.lower if interval else None,
        upper=interval.upper if interval else None,
        observed=metric.observed,
        missing=metric.missing,
        excluded=metric.excluded,
        payload=canonical_json(payload),
    )


def slice_row(run_id: str, row: SliceMetric) -> Metric:
    """A slice metric as it is stored."""
    return metric_row(
        run_id,
        row.metric,
        f"slice/{row.slice_name}={row.value}",
        slice=[row.slice_name, row.value],
        support=row.metric.eligible,
        p_value=row.p_value,
        p_adjusted=row.p_adjusted,
        mark=row.mark,
    )


def _decision_row(
    session: Session, policy: Policy, decision: RuleDecision[MetricValue]
) -> Decision:
    record = canonical_json(run_decision_record(decision, policy, session.outcomes))
    rule = decision.rule
    return Decision(session.run_id, rule.id, rule.metric, decision.state, record)


def _nothing_executed(session: Session) -> bool:
    return all(
        result.digest is None
        for results in session.sampled("generation")
        for result in results.values()
    )


def decisions_digest(
    decisions: Sequence[RuleDecision[MetricValue]], gate: GateDecision | None
) -> str:
    """Digest of what was decided, for the data version of the gate."""
    return digest(
        {
            "gate": [gate.state, list(gate.reasons)] if gate else None,
            "rules": [[one.rule.id, one.state, list(one.reasons)] for one in decisions],
        }
    )
