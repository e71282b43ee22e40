"""What the Dagster UI shows of each case, of the metrics and of the gate."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from rag_assets.assets.plot import interval_plot
from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.paths import cited_value
from rag_assets.evaluation.concluding import Conclusion, RunMetrics
from rag_assets.evaluation.matching import Unit, relevant_grade
from rag_assets.evaluation.metrics import MetricValue
from rag_assets.evaluation.session import CaseResult, Session
from rag_assets.evaluation.wording import (
    cut,
    decided_interval_text,
    denominator_text,
    estimate_text,
    interval_text,
    number_format,
    rule_words,
)
from rag_assets.evaluation.words import Stage
from rag_assets.evaluators import Outcome

_EXCERPT = 300
Metadata = dict[str, Any]


def short_metadata(session: Session, case: Case, result: CaseResult) -> Metadata:
    """One line about a case, for suites whose events must stay small."""
    where = _inspect(session, case)
    return {"case": f"{result.source} · {result.latency_ms:.1f} ms · {where}"}


def case_metadata(
    session: Session,
    stage: Stage,
    case: Case,
    result: CaseResult,
    payload: str,
    outcomes: Mapping[str, Outcome],
) -> Metadata:
    """Everything worth seeing of one case in one stage.

    Args:
        session: the run.
        stage: a case stage.
        case: the case.
        result: what the stage came to.
        payload: its stored content, JSON; unused for judgments.
        outcomes: criterion → outcome, for judgments.
    """
    metadata: Metadata = {
        "cache": result.source,
        "latency_ms": round(result.latency_ms, 3),
        "inspect": _inspect(session, case),
        "identity": result.identity or "",
    }
    unit = session.project.relevance_unit
    if result.usage is not None:
        metadata["usage"] = _json(json.loads(result.usage))
    if stage == "cases":
        metadata |= {"input": _json(case.input), "expected": _json(case.expected)}
    elif stage == "retrieval":
        metadata["candidates"] = _retrieval_table(case, json.loads(payload), unit)
    elif stage == "assembled_context":
        metadata["passages"] = _context_table(case, json.loads(payload), unit)
    elif stage == "generation":
        output = json.loads(payload)
        cited = cited_value(output, session.project.system.citations_path)
        metadata |= {"output": _json(output), "citations": _json(cited.get("value"))}
    else:
        metadata["judgments"] = _judgment_table(outcomes)
    return metadata


def metrics_metadata(session: Session, metrics: RunMetrics) -> Metadata:
    """Table, plot and one number for each metric."""
    rows = [["metric", "estimate", "interval", "denominator"]]
    rows += [[metric.criterion, *_texts(metric)] for metric in metrics.whole]
    numbers = {
        metric.criterion: float(metric.estimate)
        for metric in metrics.whole
        if metric.estimate is not None
    }
    return {
        "metrics": dg.MetadataValue.md(_markdown(rows)),
        "intervals": _image(interval_plot(metrics.whole, {})),
        **numbers,
        "cases": len(session.cases),
        "run_id": session.run_id,
        "inspect": f"rag-assets inspect {session.run_id}",
    }


def gate_metadata(session: Session, conclusion: Conclusion) -> Metadata:
    """The decisions as a table, and the intervals with their thresholds."""
    gate = conclusion.gate
    rows = [["rule", "metric", "asks for", "state", "reasons", "estimate", "interval"]]
    for decision in conclusion.decisions:
        rule = decision.rule.model_dump(mode="json", exclude_none=True)
        estimate, _, _ = _texts(decision.metric)
        bounds = decision.metric.interval
        interval = decided_interval_text(
            number_format(decision.metric.kind, decision.metric.value_range),
            bounds.lower if bounds else None,
            bounds.upper if bounds else None,
            rule,
        )
        rows.append(
            [
                decision.rule.id,
                decision.rule.metric,
                rule_words(rule, decision.metric.kind),
                decision.state,
                ", ".join(decision.reasons),
                estimate,
                interval,
            ]
        )
    thresholds = {
        decision.rule.metric: decision.rule.threshold
        for decision in conclusion.decisions
        if decision.rule.threshold is not None
    }
    decided = [metric for metric in conclusion.metrics.whole if metric.criterion in thresholds]
    metadata: Metadata = {
        "gate": gate.state if gate else "no policy: nothing was decided",
        "exit_code": conclusion.exit_code,
        "decisions": dg.MetadataValue.md(_markdown(rows)),
        "run_id": session.run_id,
        "inspect": f"rag-assets inspect {session.run_id}",
    }
    if decided:
        metadata["intervals"] = _image(interval_plot(decided, thresholds))
    return metadata


def _inspect(session: Session, case: Case) -> str:
    return f"rag-assets inspect {session.run_id} --case {shlex.quote(case.id)}"


def _retrieval_table(case: Case, retrieval: Mapping[str, Any], unit: Unit) -> dg.MetadataValue:
    columns = ["position", "document", "chunk", "score", "relevant", "text"]
    records = [
        {
            "position": position,
            "document": one["doc_id"],
            "chunk": one.get("chunk_id"),
            "score": one.get("score"),
            "relevant": _relevance(case, one, unit),
            "text": cut(one.get("text") or "", _EXCERPT),
        }
        for position, one in enumerate(retrieval["candidates"], start=1)
    ]
    return _table(columns, records)


def _context_table(case: Case, context: Mapping[str, Any], unit: Unit) -> dg.MetadataValue:
    columns = ["position", "document", "chunk", "relevant", "tokens", "in context", "text"]
    entries = [*context["items"], *context["dropped"]]
    records = [
        {
            "position": one.get("position"),
            "document": one["doc_id"],
            "chunk": one.get("chunk_id"),
            "relevant": _relevance(case, one, unit),
            "tokens": one.get("tokens"),
            "in context": f"dropped: {one['reason']}" if "reason" in one else "yes",
            "text": cut(one.get("text") or "", _EXCERPT),
        }
        for one in sorted(entries, key=lambda one: one.get("position") or 0)
    ]
    return _table(columns, records)


def _judgment_table(outcomes: Mapping[str, Outcome]) -> dg.MetadataValue:
    columns = ["criterion", "status", "value", "reason", "detail"]
    records = [
        {
            "criterion": criterion,
            "status": outcome.status,
            "value": outcome.value,
            "reason": outcome.reason,
            "detail": None
            if outcome.detail is None
            else cut(canonical_json(outcome.detail), _EXCERPT),
        }
        for criterion, outcome in outcomes.items()
    ]
    return _table(columns, records)


def _relevance(case: Case, passage: Mapping[str, Any], unit: Unit) -> str:
    grade = relevant_grade(case, passage["doc_id"], passage.get("chunk_id"), unit)
    return f"{grade:g}" if grade > 0 else ""


def _table(columns: Sequence[str], records: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "any") for name in columns])
    shown = [
        dg.TableRecord({name: "" if value is None else value for name, value in one.items()})
        for one in records
    ]
    return dg.MetadataValue.table(records=shown, schema=schema)


def _texts(metric: MetricValue) -> tuple[str, str, str]:
    form = number_format(metric.kind, metric.value_range)
    interval = metric.interval
    bounds = (interval.lower, interval.upper) if interval else (None, None)
    return (
        estimate_text(form, metric.estimate),
        interval_text(form, *bounds),
        denominator_text(metric.passes, metric.observed, metric.missing, metric.excluded),
    )


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def _image(svg: str) -> dg.MetadataValue:
    encoded = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return dg.MetadataValue.md(f"![intervals](data:image/svg+xml;base64,{encoded})")


def _json(value: Any) -> Any:
    """JSON as Dagster shows it; a scalar has to be wrapped."""
    if isinstance(value, (dict, list)):
        return dg.MetadataValue.json(value)
    return "" if value is None else str(value)
