"""Everything that is recorded of one case in one run, as plain values."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.errors import InputError
from rag_assets.contracts.kinds import CONTEXT, RETRIEVAL, TYPED
from rag_assets.contracts.paths import cited_value
from rag_assets.evaluation.candidates import CandidateView, VersionView, candidates, conflicts
from rag_assets.evaluation.recorded_sources import recorded_cases
from rag_assets.evaluation.redaction import Redactor, leaks_of
from rag_assets.evaluation.retrieval_valid import state_of
from rag_assets.evaluation.views import JudgmentView, RunView
from rag_assets.evaluation.words import CASE_STAGES, PASSAGE_STAGES, WHOLE_STAGES
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
class CaseView:
    """One case of one run.

    Attributes:
        run_id: the run.
        case: the row of the dataset.
        stages: in the order of a run; the call itself is one where the system is called as a
            whole.
        candidates: the retrieval; None where there is none.
        conflicts: the versions of documents of which several reached the model (or, where no
            context is recorded, were retrieved).
        context: the assembled context as recorded; None where there is none.
        has_output: whether there is an output.
        output: any JSON.
        citations: what stands at the system's citations path, or what it recorded; None where
            there is nothing.
        retrieval_state: `valid`, `empty`, `denied` or `error`; None where nothing is recorded.
        artifacts: kind → what else it recorded, any JSON.
        judgments: in the order of the config.
        samples: the further samples, where there are any; all else is of the first one.
    """

    run_id: str
    case: Mapping[str, Any]
    stages: tuple[StageView, ...]
    candidates: tuple[CandidateView, ...] | None
    conflicts: tuple[VersionView, ...]
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
            "conflicts": [asdict(one) for one in self.conflicts],
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
    output, recorded = payload("generation"), payload("citations")
    execution = payload("execution") or {}
    samples = _Samples(reader, view, case_id)
    cases, unit = recorded_cases(reader, view.record), view.record["relevance_unit"]
    parsed = cases.case(case)
    first = [one for one in (retrieval, context) if one is not None]
    redactor = cases.redactor(parsed, [*first, *samples.artifacts])
    judgments = tuple(view.judgment(row) for row in reader.run_judgments(view.row.id, [case_id]))
    passages = retrieval["candidates"] if context is None and retrieval else ()
    is_whole = "execution" in rows
    stages = WHOLE_STAGES if is_whole else CASE_STAGES
    return CaseView(
        run_id=view.row.id,
        case=redactor.case_record(case),
        stages=tuple(_stage(stage, rows.get(stage), results) for stage in stages),
        candidates=None
        if retrieval is None
        else candidates(redactor.artifact(RETRIEVAL, retrieval), context, parsed, unit),
        conflicts=conflicts(parsed, context["items"] if context else passages),
        context=context and redactor.artifact(CONTEXT, context),
        has_output="generation" in rows and rows["generation"].digest is not None,
        output=redactor.answer(output, found_leaks(judgments)),
        citations=redactor.value(cited(output, recorded, view)),
        retrieval_state=execution.get("state") or state_of(rows.get("retrieval"), retrieval),
        artifacts=redactor.said(free_artifacts(execution)),
        judgments=judgments,
        samples=samples.views(redactor, judgments),
    )


def found_leaks(judgments: Iterable[JudgmentView], sample: int = 0) -> list[Mapping[str, Any]]:
    """What `no_leak` found in the answer of a sample."""
    return [leak for one in judgments for leak in leaks_of(one.detail, sample)]


class _Samples:
    """The further samples of a case."""

    def __init__(self, reader: Reader, view: RunView, case_id: str) -> None:
        self._rows = reader.sample_stages(view.row.id, [case_id])
        identities = [row.identity for row in self._rows if row.identity]
        self._results = reader.stage_results(identities)
        self._payloads = reader.payloads([row.digest for row in self._rows if row.digest])

    @property
    def artifacts(self) -> list[Any]:
        """Their retrievals and contexts, where they have own ones."""
        digests = [row.digest for row in self._rows if row.stage in PASSAGE_STAGES]
        return [json.loads(self._payloads[one]) for one in digests if one in self._payloads]

    def views(
        self, redactor: Redactor, judgments: Sequence[JudgmentView]
    ) -> tuple[SampleView, ...]:
        """What may be shown of them."""
        found: list[SampleView] = []
        for sample in sorted({row.sample for row in self._rows}):
            own = {row.stage: row for row in self._rows if row.sample == sample}
            digest = own["generation"].digest if "generation" in own else None
            output = self._payloads.get(digest or "")
            decoded = None if output is None else json.loads(output)
            shown = redactor.answer(decoded, found_leaks(judgments, sample))
            stages = tuple(_stage(stage, row, self._results) for stage, row in own.items())
            found.append(SampleView(sample, stages, output is not None, shown))
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
