"""What the Dagster UI shows of each case, of the metrics and of the gate."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from rag_assets.assets.plot import interval_plot
from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.kinds import CONTEXT, RETRIEVAL
from rag_assets.contracts.paths import cited_value
from rag_assets.evaluation.concluding import Conclusion, RunMetrics
from rag_assets.evaluation.matching import Unit, relevant_grade
from rag_assets.evaluation.metrics import MetricValue
from rag_assets.evaluation.places import config_argument
from rag_assets.evaluation.redaction import Redactor
from rag_assets.evaluation.session import CaseResult, Session
from rag_assets.evaluation.wording import (
    counted,
    cut,
    decided_interval_text,
    denominator_text,
    estimate_text,
    interval_text,
    number_format,
    rule_words,
    samples_text,
    sources_text,
)
from rag_assets.evaluation.words import Stage
from rag_assets.evaluators import Outcome

_DETAIL_EXCERPT = 300
# Enough to know a passage again; the last column of a table in the UI is narrow.
_PASSAGE_EXCERPT = 60
Metadata = dict[str, Any]

SHOWN_OF: Mapping[Stage, tuple[Stage, ...]] = {
    "retrieval": ("retrieval",),
    "assembled_context": ("retrieval", "assembled_context"),
    "generation": ("generation", "citations"),
}
"""Stage → the stages whose content is shown of a case."""


def short_metadata(session: Session, stage: Stage, case: Case, result: CaseResult) -> Metadata:
    """One line about a case, for suites whose events must stay small."""
    result = _executed(session, stage, case, result)
    took = [f"{result.latency_ms:.1f} ms"] if result.latency_ms else []
    return {"case": " · ".join([_cache(session, stage, case), *took, _inspect(session, case)])}


def case_metadata(
    session: Session,
    stage: Stage,
    case: Case,
    result: CaseResult,
    contents: Mapping[Stage, Any],
    outcomes: Mapping[str, Outcome],
    redactor: Redactor,
) -> Metadata:
    """Everything worth seeing of one case in one stage, what is looked for first.

    Args:
        session: the run.
        stage: a case stage.
        case: the case.
        result: what the stage came to.
        contents: the stored content of the stages in `SHOWN_OF`, where there is any.
        outcomes: criterion → outcome, for judgments.
        redactor: takes out what the user of the case may not see.
    """
    if result.failure is not None:
        metadata: Metadata = {"not recorded": result.failure.message}
    else:
        metadata = _content(session, stage, case, contents, outcomes, redactor)
        metadata["cache"] = _cache(session, stage, case)
    result = _executed(session, stage, case, result)
    # Neither reading the cases nor judging is timed.
    if result.latency_ms:
        metadata["latency_ms"] = round(result.latency_ms, 3)
    if result.usage is not None:
        metadata["usage"] = _json(json.loads(result.usage))
    return metadata | {"inspect": _inspect(session, case), "identity": result.identity or ""}


def _cache(session: Session, stage: Stage, case: Case) -> str:
    """Where the results of a stage came from, over all samples that have one of their own."""
    results = (found.get(case.id) for found in session.sampled(stage))
    return sources_text([one.source for one in results if one is not None])


def _executed(session: Session, stage: Stage, case: Case, result: CaseResult) -> CaseResult:
    """What says how long a stage took, and what it used: a system that is called as a whole is
    called for its answer."""
    if stage != "generation":
        return result
    return session.results.get("execution", {}).get(case.id, result)


def _content(
    session: Session,
    stage: Stage,
    case: Case,
    contents: Mapping[Stage, Any],
    outcomes: Mapping[str, Outcome],
    redactor: Redactor,
) -> Metadata:
    unit = session.project.relevance_unit
    if stage == "cases":
        shown = redactor.case_record({"expected": case.expected})
        return {"input": _json(case.input), "expected": _json(shown["expected"])}
    if stage == "retrieval":
        retrieval = redactor.artifact(RETRIEVAL, contents[stage])
        return {"candidates": _retrieval_table(case, retrieval, unit)}
    if stage == "assembled_context":
        found = contents.get("retrieval", {"candidates": ()})
        context = redactor.artifact(CONTEXT, contents[stage])
        return {"passages": _context_table(case, found, context, unit)}
    if stage == "generation":
        output = redactor.answer(contents[stage])
        if session.project.is_whole:
            ids = contents.get("citations", {}).get("ids")
        else:
            ids = cited_value(output, session.project.system.citations_path).get("value")
        return {"output": _json(output), "citations": _json(ids)}
    return {"judgments": _judgment_table(outcomes)}


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
        "inspect": _inspect(session),
    }


def gate_metadata(session: Session, conclusion: Conclusion) -> Metadata:
    """The decisions as a table, and the intervals with their thresholds."""
    gate = conclusion.gate
    rows = [["rule", "state", "estimate", "interval", "asks for", "metric", "reasons"]]
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
                decision.state,
                estimate,
                interval,
                rule_words(rule, decision.metric.kind),
                decision.rule.metric,
                ", ".join(decision.reasons),
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
        "inspect": _inspect(session),
    }
    if decided:
        metadata["intervals"] = _image(interval_plot(decided, thresholds))
    return metadata


def _inspect(session: Session, case: Case | None = None) -> str:
    """The command that shows the run, or one of its cases, from the folder of the project."""
    config = session.project.config
    one = "" if case is None else f" --case {shlex.quote(case.id)}"
    return f"rag-assets inspect {session.run_id}{one}{config_argument(config.path, config.root)}"


def _retrieval_table(case: Case, retrieval: Mapping[str, Any], unit: Unit) -> dg.MetadataValue:
    return _passage_table(
        {"position": position, **_passage(case, one, unit), "score": one.get("score")}
        for position, one in enumerate(retrieval["candidates"], start=1)
    )


def _context_table(
    case: Case, retrieval: Mapping[str, Any], context: Mapping[str, Any], unit: Unit
) -> dg.MetadataValue:
    # A system that is called as a whole need not say where a passage stood, and may be wrong.
    scores = {place: one.get("score") for place, one in enumerate(retrieval["candidates"], start=1)}
    entries = [*context["items"], *context["dropped"]]
    return _passage_table(
        {
            "position": one.get("position"),
            **_passage(case, one, unit),
            "score": scores.get(one.get("position")),
            "context": _fate(one),
        }
        for one in sorted(entries, key=lambda one: int(one.get("position", len(scores) + 1)))
    )


def _passage(case: Case, passage: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    return {
        "document": passage["doc_id"],
        "chunk": passage.get("chunk_id"),
        "relevant": _relevance(case, passage, unit),
        "admissible": case.sources and (case.sources.reason(passage["doc_id"]) or "yes"),
        "text": cut(passage.get("text") or "", _PASSAGE_EXCERPT),
    }


def _fate(entry: Mapping[str, Any]) -> str:
    fate = f"dropped: {entry['reason']}" if "reason" in entry else "in context"
    tokens = entry.get("tokens")
    return fate if tokens is None else f"{fate} ({counted(tokens, 'token')})"


def _passage_table(records: Iterable[Mapping[str, Any]]) -> dg.MetadataValue:
    """One row a passage; its text last, and without the columns in which none has anything."""
    rows = list(records)
    names = ("position", "document", "chunk", "score", "relevant", "admissible", "context", "text")
    columns = [name for name in names if any(row.get(name) is not None for row in rows)]
    return _table(columns, [{name: row.get(name) for name in columns} for row in rows])


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
            else cut(canonical_json(outcome.detail), _DETAIL_EXCERPT),
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


def _denominator(metric: MetricValue) -> str:
    passes = metric.passes if metric.samples == 1 else None
    text = denominator_text(passes, metric.observed, metric.missing, metric.excluded)
    return text if metric.samples == 1 else text + samples_text(metric.samples, metric.flaky)


def _texts(metric: MetricValue) -> tuple[str, str, str]:
    form = number_format(metric.kind, metric.value_range)
    interval = metric.interval
    bounds = (interval.lower, interval.upper) if interval else (None, None)
    return (
        estimate_text(form, metric.estimate),
        interval_text(form, *bounds),
        _denominator(metric),
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
