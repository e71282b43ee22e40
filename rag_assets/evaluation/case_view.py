"""Everything that is recorded of one case in one run, as plain values."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.cases import parse_case
from rag_assets.contracts.errors import InputError
from rag_assets.contracts.kinds import TYPED
from rag_assets.contracts.paths import cited_value
from rag_assets.evaluation.matching import relevant_grade
from rag_assets.evaluation.views import JudgmentView, RunView
from rag_assets.evaluation.words import CASE_STAGES, WHOLE_STAGES
from rag_assets.store import CaseStage, StageResult
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class StageView:
    """What one stage of the case came to.

    Attributes:
        stage: its name.
        state: OK, ERROR, TIMEOUT, BLOCKED (an earlier stage has no result), NOT_RECORDED (by a
            system that is called as a whole) or NOT_EXECUTED.
        source: hit, miss, shared, …, as recorded; None where the run never came to it.
        attempts: how many were made in this run; 0 when the result was there already.
        latency_ms: of the attempt that made the result, in whichever run that was.
        executed_in: the run that executed it; None where there is no result.
        usage: tokens and money that the stage reported, None where it reported nothing.
        failure: reason, type, message and traceback; None where the stage did not fail.
        attempt_errors: the error text of each attempt, where there was more than one.
    """

    stage: str
    state: str
    source: str | None
    attempts: int
    latency_ms: float | None
    executed_in: str | None
    usage: Mapping[str, float] | None
    failure: Mapping[str, str] | None
    attempt_errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SampleView:
    """A further sample of the case, numbered from 1.

    Attributes:
        stages: those that were executed for it anew.
        has_output: whether there is an output.
        output: any JSON.
    """

    sample: int
    stages: tuple[StageView, ...]
    has_output: bool
    output: Any

    def as_json(self) -> dict[str, Any]:
        """One object; `output` is absent where there is none."""
        return {
            "sample": self.sample,
            "stages": [asdict(stage) for stage in self.stages],
            **({"output": self.output} if self.has_output else {}),
        }


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One retrieved candidate.

    Attributes:
        position: 1-based, as it was retrieved.
        relevant: None where the case has no labels.
        fate: `context` for one that the model saw, else why it was dropped; None where no
            context was assembled.
        tokens: as counted for the budget, where they were.
    """

    position: int
    doc_id: str
    chunk_id: str | None
    score: float | None
    relevant: bool | None
    fate: str | None
    tokens: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case of one run.

    Attributes:
        run_id: the run.
        case: the row of the dataset.
        stages: in the order of a run; the call itself is one where the system is called as a
            whole.
        candidates: the retrieval; None where there is none.
        context: the assembled context as recorded; None where there is none.
        has_output: whether there is an output.
        output: any JSON.
        citations: what stands at the system's citations path, or what it recorded; None where
            there is nothing.
        retrieval_state: `valid`, `empty` or `denied`, where the system is called as a whole.
        artifacts: kind → what else it recorded, any JSON.
        judgments: in the order of the config.
        samples: the further samples, where there are any; all else is of the first one.
    """

    run_id: str
    case: Mapping[str, Any]
    stages: tuple[StageView, ...]
    candidates: tuple[CandidateView, ...] | None
    context: Mapping[str, Any] | None
    has_output: bool
    output: Any
    citations: Any
    retrieval_state: str | None
    artifacts: Mapping[str, Any]
    judgments: tuple[JudgmentView, ...]
    samples: tuple[SampleView, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """One object; `output` is absent where there is none."""
        return {
            "run": self.run_id,
            "case": dict(self.case),
            "stages": [asdict(stage) for stage in self.stages],
            "retrieval": None if self.candidates is None else [asdict(c) for c in self.candidates],
            "context": self.context,
            **({"output": self.output} if self.has_output else {}),
            "citations": self.citations,
            "retrieval_state": self.retrieval_state,
            "artifacts": dict(self.artifacts),
            "judgments": [judgment.as_json() for judgment in self.judgments],
            "samples": [sample.as_json() for sample in self.samples],
        }


def case_view(reader: Reader, view: RunView, case_id: str) -> CaseView:
    """Read everything that is recorded of a case.

    Args:
        reader: the open store.
        view: the run.
        case_id: the case.

    Raises:
        InputError: the run has no such case; the nearest ids are listed.
    """
    rows = {row.stage: row for row in reader.case_stages(view.row.id, [case_id])}
    if not rows:
        raise InputError(_no_case(reader, view, case_id))
    results = reader.stage_results([row.identity for row in rows.values() if row.identity])
    payloads = reader.payloads([row.digest for row in rows.values() if row.digest])

    def payload(stage: str) -> Any:
        row = rows.get(stage)
        found = payloads.get(row.digest) if row and row.digest else None
        return None if found is None else json.loads(found)

    case, retrieval, context = (
        payload(stage) for stage in ("cases", "retrieval", "assembled_context")
    )
    output = payload("generation")
    execution = payload("execution") or {}
    is_whole = "execution" in rows
    stages = WHOLE_STAGES if is_whole else CASE_STAGES
    return CaseView(
        run_id=view.row.id,
        case=case,
        stages=tuple(_stage(stage, rows.get(stage), results) for stage in stages),
        candidates=None if retrieval is None else candidates(retrieval, context, case, view),
        context=context,
        has_output="generation" in rows and rows["generation"].digest is not None,
        output=output,
        citations=cited(output, payload("citations"), view),
        retrieval_state=execution.get("state"),
        artifacts=free_artifacts(execution),
        judgments=tuple(view.judgment(row) for row in reader.run_judgments(view.row.id, [case_id])),
        samples=_samples(reader, view.row.id, case_id),
    )


def _samples(reader: Reader, run_id: str, case_id: str) -> tuple[SampleView, ...]:
    rows = reader.sample_stages(run_id, [case_id])
    results = reader.stage_results([row.identity for row in rows if row.identity])
    payloads = reader.payloads([row.digest for row in rows if row.digest])
    found: list[SampleView] = []
    for sample in sorted({row.sample for row in rows}):
        own = {row.stage: row for row in rows if row.sample == sample}
        output = payloads.get((own["generation"].digest if "generation" in own else None) or "")
        stages = (_stage(stage, row, results) for stage, row in own.items())
        decoded = None if output is None else json.loads(output)
        found.append(SampleView(sample, tuple(stages), output is not None, decoded))
    return tuple(found)


def _no_case(reader: Reader, view: RunView, case_id: str) -> str:
    near = difflib.get_close_matches(case_id, reader.case_ids(view.row.id), n=3, cutoff=0.3)
    hint = f" The nearest ids are {', '.join(near)}." if near else ""
    return f'{view.row.id} has no case "{case_id}".{hint}'


def _stage(stage: str, row: CaseStage | None, results: Mapping[str, StageResult]) -> StageView:
    if row is None:
        return StageView(stage, "NOT_EXECUTED", None, 0, None, None, None, None, ())
    attempts = json.loads(row.attempts) if row.attempts else []
    result = results.get(row.identity) if row.identity else None
    failure = _failure(row)
    # What this run executed itself stands in its own row; a hit was executed by an earlier one.
    is_ours = failure is not None or row.source == "miss"
    # Judging is not timed.
    ours = row.latency_ms or None
    latency = ours if is_ours else result.latency_ms if result else None
    usage = row.usage if is_ours else result.usage if result else None
    attempted = len(attempts) or int(result is not None and row.source == "miss")
    if result is not None and result.stage == "execution" and stage != result.stage:
        # It stands for a part of an execution, which took all the time.
        latency = usage = None
        attempted = 0
    return StageView(
        stage=stage,
        state=stage_state(row),
        source=row.source,
        attempts=attempted,
        latency_ms=latency,
        executed_in=_executed_in(row, result if not is_ours else None),
        usage=None if usage is None else json.loads(usage),
        failure=failure,
        attempt_errors=tuple(one["error"] for one in attempts),
    )


def _executed_in(row: CaseStage, earlier: StageResult | None) -> str | None:
    if row.digest is None:
        return None
    return row.run_id if earlier is None else earlier.run_id


def _failure(row: CaseStage) -> Any:
    return json.loads(row.failure) if row.failure and row.source == "error" else None


def stage_state(row: CaseStage) -> str:
    """OK, ERROR, TIMEOUT, BLOCKED, NOT_RECORDED or NOT_EXECUTED."""
    failure = _failure(row)
    if failure is not None:
        return "TIMEOUT" if failure["reason"] == "timeout" else "ERROR"
    states = {"blocked": "BLOCKED", "absent": "NOT_RECORDED", "none": "NOT_EXECUTED"}
    return states.get(row.source, "OK")


def candidates(
    retrieval: Mapping[str, Any],
    context: Mapping[str, Any] | None,
    case: Mapping[str, Any],
    view: RunView,
) -> tuple[CandidateView, ...]:
    """The candidates of a retrieval, each with its relevance and what became of it.

    Args:
        retrieval, case: as recorded.
        context: what was assembled of it; None where nothing was.
        view: the run.
    """
    parsed, unit = parse_case(case), view.record["relevance_unit"]
    is_labelled = any(label.grade > 0 for label in parsed.relevant)
    fates = _fates(context)
    found: list[CandidateView] = []
    for position, candidate in enumerate(retrieval["candidates"], start=1):
        doc_id, chunk_id = candidate["doc_id"], candidate.get("chunk_id")
        is_relevant = relevant_grade(parsed, doc_id, chunk_id, unit) > 0
        fate, tokens = fates.get(position) or fates.get((doc_id, chunk_id)) or (None, None)
        found.append(
            CandidateView(
                position=position,
                doc_id=doc_id,
                chunk_id=chunk_id,
                score=candidate.get("score"),
                relevant=is_relevant if is_labelled else None,
                fate=fate,
                tokens=tokens,
                text=candidate.get("text"),
            )
        )
    return tuple(found)


_Place = int | tuple[str, str | None]
"""A position; document and chunk where a system that is called as a whole reports no position."""


def _fates(context: Mapping[str, Any] | None) -> dict[_Place, tuple[str, int | None]]:
    """Place → what became of the candidate, and its tokens."""
    if context is None:
        return {}
    entries = [*context["items"], *context["dropped"]]
    return {_place(one): (one.get("reason", "context"), one.get("tokens")) for one in entries}


def _place(entry: Mapping[str, Any]) -> _Place:
    return entry.get("position") or (entry["doc_id"], entry.get("chunk_id"))


def cited(output: Any, recorded: Mapping[str, Any] | None, view: RunView) -> Any:
    """What an answer cites; None where it cites nothing.

    Args:
        output: as recorded.
        recorded: the citations that a system that is called as a whole reported, where it did.
        view: the run, whose system may declare the path at which the citations stand in an output.
    """
    if recorded is not None:
        return recorded["ids"]
    path = view.record["system"].get("citations_path")
    if path is None or output is None:
        return None
    return cited_value(output, path).get("value")


def free_artifacts(execution: Mapping[str, Any]) -> dict[str, Any]:
    """Kind → artifact, for the kinds of an execution that stand for no stage."""
    artifacts = execution.get("artifacts", {})
    return {kind: artifacts[kind] for kind in sorted(artifacts) if kind not in TYPED}
