"""The judgments stage: every evaluator looks at every case, memoized by exactly what it reads."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rag_assets.contracts.artifacts import Citations, Context, Retrieval
from rag_assets.contracts.canonical import canonical_json, digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.identities import judgment_key
from rag_assets.contracts.paths import cited_value
from rag_assets.evaluation.judged import (
    Judged,
    looking_at,
    may_quote,
    of_all_samples,
    told,
    with_composed,
)
from rag_assets.evaluation.memo import CHUNK, FLUSH_S, case_stage_row
from rag_assets.evaluation.redaction import may_hide
from rag_assets.evaluation.session import NOT_EXECUTED, CaseResult, Session
from rag_assets.evaluation.settled import settled_base, settled_case
from rag_assets.evaluation.words import CASE_STAGES, Stage
from rag_assets.evaluators import Absent, Evaluator, Evidence, Outcome, judge
from rag_assets.evaluators.base import Part
from rag_assets.store import CaseStage, Judgment, RunJudgment, SettledCase
from rag_assets.store.reader import Reader
from rag_assets.systems.calls import Failure

STAGE_OF: Mapping[Part, Stage] = {
    "output": "generation",
    "retrieval": "retrieval",
    "context": "assembled_context",
    "citations": "citations",
}
_EVIDENCE: tuple[Stage, ...] = ("retrieval", "assembled_context", "citations", "generation")


@dataclass(slots=True)
class _Chunk:
    """What is read for some cases.

    Attributes:
        payloads: digest → stored content.
        settled: (case, criterion) → excluded or missing, before anything is judged.
        keys: (case, criterion) → judgment key, for all others.
        known: key → memoized judgment.
        unjudged: the cases with a judgment that is not memoized.
        quoting: the cases of which a memoized judgment may quote what their users may not see.
        evidence: case → what evaluators look at, once it is needed.
    """

    payloads: Mapping[str, str]
    settled: dict[tuple[str, str], Judged] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    known: Mapping[str, Judgment] = field(default_factory=dict)
    unjudged: list[str] = field(default_factory=list)
    quoting: set[str] = field(default_factory=set)
    evidence: dict[str, Evidence] = field(default_factory=dict)


@dataclass
class _Batch:
    """Judgments on their way to the store."""

    session: Session
    base: str | None
    fresh: list[Judgment] = field(default_factory=list)
    settled: list[SettledCase] = field(default_factory=list)
    rows: list[RunJudgment] = field(default_factory=list)
    stages: list[CaseStage] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def take(self, case: Case, judged: Mapping[str, Judged]) -> None:
        """Take in the judgments of a case: of one of its samples, the first one last."""
        session = self.session
        session.observer.advanced("judgments", 1)
        self.fresh += [
            _memo(one.key, one.outcome)
            for one in judged.values()
            if one.source == "miss" and one.key is not None
        ]
        place = session.places[case.id]
        if session.sample == 0:
            judged = of_all_samples(session, place, judged)
        for criterion, one in judged.items():
            session.outcomes[criterion][place] = one.outcome
        if session.sample > 0:
            return
        result = session.results["judgments"][case.id] = _result(session, case, judged)
        self.stages.append(case_stage_row(session, case, "judgments", result))
        if self.base is not None and _is_settled(session, case, judged):
            facts = session.facts_of(case.id)
            self.settled.append(settled_case(self.base, session.run_id, case, facts))
        self.rows += [_row(session.run_id, case.id, name, one) for name, one in judged.items()]

    def flush(self) -> None:
        """Commit in one transaction."""
        if self.fresh or self.stages:
            with self.session.store.writing() as writer:
                writer.put_judgments(self.fresh, replace=not self.session.use_cache)
                writer.add(self.rows)
                writer.add(self.stages)
                writer.put_settled(self.settled, replace=not self.session.use_cache)
                self.session.take_pending(writer)
            self.session.projector.committed("judgments", [row.case_id for row in self.stages])
        self.fresh, self.settled, self.rows, self.stages = [], [], [], []
        self.since = time.monotonic()


def judge_cases(session: Session, *, execute: bool) -> None:
    """Judge all cases of the run, or those before it was asked to stop.

    Args:
        session: the run; its outcomes and results are filled in.
        execute: False only looks up: what is not memoized is then `not_executed`.
    """
    evaluators = looking_at(session)
    unjudged = Outcome.missing(NOT_EXECUTED.reason)
    criteria = session.project.criteria
    session.outcomes = {one.criterion: [unjudged] * len(session.cases) for one in criteria}
    session.results["judgments"] = {}
    numbered = session.numbered("judgments")
    session.observer.stage_started("judgments", len(session.cases), numbered)
    # A replay has no say in what later runs take as settled.
    batch = _Batch(session, None if session.replay else settled_base(session.project))
    cases = session.unsettled()
    try:
        _take_settled(session)
        while chunk_cases := list(islice(cases, CHUNK)):
            chunk = _read(session, chunk_cases, execute)
            session.projector.starting("judgments", chunk.unjudged)
            for case in chunk_cases:
                if session.stop.is_set():
                    return
                judged = {
                    one.criterion: _judge(session, chunk, case, one, execute) for one in evaluators
                }
                if case.id in chunk.quoting:
                    _evidence(session, chunk, case)
                evidence = chunk.evidence.get(case.id)
                shown = {
                    one.criterion: told(session, case, one, judged[one.criterion], evidence)
                    for one in evaluators
                }
                batch.take(case, with_composed(session, case, shown))
                # Parsed evidence is large, and nobody looks at it again.
                chunk.evidence.pop(case.id, None)
                if time.monotonic() - batch.since >= FLUSH_S:
                    batch.flush()
            batch.flush()
    finally:
        batch.flush()
        session.observer.stage_finished("judgments", numbered)


def _take_settled(session: Session) -> None:
    """Conclude the cases about which nothing has changed, with the outcomes that they had."""
    for criterion, outcomes in session.settled.outcomes.items():
        listed = session.outcomes[criterion]
        for case_id, outcome in outcomes.items():
            listed[session.places[case_id]] = outcome
    session.conclude_settled("judgments", {"judgment": session.settled.judged})


def _judge(
    session: Session, chunk: _Chunk, case: Case, evaluator: Evaluator, execute: bool
) -> Judged:
    place = (case.id, evaluator.criterion)
    if place in chunk.settled:
        return chunk.settled[place]
    key = chunk.keys[place]
    if key in session.judged:
        session.count("judgment", "shared")
        return Judged(session.judged[key], "shared", key)
    if key in chunk.known:
        session.count("judgment", "hit")
        known = chunk.known[key]
        outcome = Outcome.recall(known.status, known.value, known.reason, known.detail)
        return Judged(outcome, "hit", key)
    if not execute:
        return Judged(Outcome.missing(NOT_EXECUTED.reason), "none", key)
    session.count("judgment", "miss")
    outcome = judge(evaluator, _evidence(session, chunk, case))
    if outcome.status == "missing":
        # A missing judgment is a failure of some kind, and failures are never memoized.
        return Judged(outcome, "miss")
    session.judged[key] = outcome
    return Judged(outcome, "miss", key)


def _read(session: Session, cases: Sequence[Case], execute: bool) -> _Chunk:
    """Everything that a chunk needs, in one opening of the store."""
    with session.store.reading() as reader:
        chunk = _Chunk(_citing_payloads(session, reader, cases))
        for case in cases:
            for evaluator in looking_at(session):
                _settle_or_key(session, chunk, case, evaluator)
        if session.use_cache or not execute:
            chunk.known = reader.judgments(list(chunk.keys.values()))
        unknown = {
            case_id
            for (case_id, _), key in chunk.keys.items()
            if execute and key not in chunk.known and key not in session.judged
        }
        chunk.unjudged = [one.id for one in cases if one.id in unknown]
        chunk.quoting = _quoting(session, chunk, cases)
        digests = [
            found
            for case_id in unknown | chunk.quoting
            for stage in _EVIDENCE
            if (found := _digest(session, case_id, stage)) is not None
        ]
        chunk.payloads = {**chunk.payloads, **session.payloads(reader, digests)}
    return chunk


def _quoting(session: Session, chunk: _Chunk, cases: Sequence[Case]) -> set[str]:
    """The cases to which a judgment comes that was, or will be, made for another one as well."""
    found: set[str] = set()
    if not any(map(may_hide, cases)):
        return found
    makers: dict[str, str] = {}
    looking = [one for one in looking_at(session) if not one.is_constraint]
    for case in cases:
        for one in looking:
            key = chunk.keys.get((case.id, one.criterion))
            if key is None:
                continue
            known = chunk.known.get(key) or session.judged.get(key)
            is_shared = makers.setdefault(key, case.id) != case.id
            if may_quote(case, one, known) if known else is_shared and may_hide(case):
                found.add(case.id)
    return found


def _settle_or_key(session: Session, chunk: _Chunk, case: Case, evaluator: Evaluator) -> None:
    place = (case.id, evaluator.criterion)
    reason = evaluator.exclusion(case)
    if reason is not None:
        chunk.settled[place] = Judged(Outcome.excluded(reason), "none")
        return
    for part in evaluator.reads:
        stage = _stage_of(session, part)
        if _digest(session, case.id, stage) is None:
            failure = _failure(session, case.id, stage)
            detail = f"{failure.type}: {failure.message}".strip(": ")
            chunk.settled[place] = Judged(Outcome.missing(failure.reason, detail), "none")
            return
    case_part = evaluator.reads_of_case(case)
    if evaluator.reads_labels:
        answer = _digest(session, case.id, STAGE_OF["output"])
        case_part = [case_part, evaluator.reads_of_labels(case, answer or "")]
    chunk.keys[place] = judgment_key(
        evaluator.criterion,
        evaluator.identity,
        case_part,
        [_read_digest(session, chunk, case, part) for part in evaluator.reads],
    )


def _stage_of(session: Session, part: Part) -> Stage:
    """Where a part is read from: the citations of a staged system stand in its output."""
    in_output = part == "citations" and not session.project.is_whole
    return "generation" if in_output else STAGE_OF[part]


def _citing_payloads(session: Session, reader: Reader, cases: Sequence[Case]) -> Mapping[str, str]:
    """Outputs, where an evaluator reads the citations in them."""
    is_read = any("citations" in evaluator.reads for evaluator in session.project.evaluators)
    if session.project.is_whole or not is_read:
        return {}
    found = (_digest(session, case.id, "generation") for case in cases)
    return session.payloads(reader, (one for one in found if one is not None))


def _failure(session: Session, case_id: str, stage: Stage) -> Failure:
    """Why a stage of a case has no result."""
    result = session.results.get(stage, {}).get(case_id)
    return (result.failure if result else None) or NOT_EXECUTED


def _digest(session: Session, case_id: str, stage: Stage) -> str | None:
    result = session.results.get(stage, {}).get(case_id)
    return result.digest if result else None


def _read_digest(session: Session, chunk: _Chunk, case: Case, part: Part) -> str:
    stage = _stage_of(session, part)
    found = _digest(session, case.id, stage)
    assert found is not None
    if part == "citations" and stage == "generation":
        path = session.project.system.citations_path
        return digest(cited_value(json.loads(chunk.payloads[found]), path))
    return found


def read_citations(output: Any, path: str | None) -> Citations | Absent:
    """The citations in an output.

    Returns:
        The citations; absent with `artifact_absent` where the path leads nowhere, or with
        `malformed_citations` where it does not lead to a list of non-empty strings.
    """
    cited = cited_value(output, path)
    if not cited:
        return Absent("artifact_absent")
    ids = cited["value"]
    if isinstance(ids, list) and all(isinstance(one, str) and one for one in ids):
        return Citations(ids=tuple(ids))
    return Absent("malformed_citations", canonical_json(ids))


def _evidence(session: Session, chunk: _Chunk, case: Case) -> Evidence:
    if case.id not in chunk.evidence:
        parts: dict[str, Any] = {}
        for stage in _EVIDENCE:
            found = _digest(session, case.id, stage)
            if found is not None:
                parts[stage] = json.loads(chunk.payloads[found])
            else:
                failure = _failure(session, case.id, stage)
                parts[stage] = Absent(failure.reason, failure.message)
        retrieval, context, cited, output = (parts[stage] for stage in _EVIDENCE)
        if not session.project.is_whole:
            path = session.project.system.citations_path
            cited = output if isinstance(output, Absent) else read_citations(output, path)
        elif not isinstance(cited, Absent):
            cited = Citations(ids=tuple(cited["ids"]))
        chunk.evidence[case.id] = Evidence(
            case=case,
            output=output,
            retrieval=retrieval if isinstance(retrieval, Absent) else Retrieval.recall(retrieval),
            context=context if isinstance(context, Absent) else Context.recall(context),
            citations=cited,
        )
    return chunk.evidence[case.id]


def _memo(key: str, outcome: Outcome) -> Judgment:
    return Judgment(key, outcome.status, outcome.value, outcome.reason, _json(outcome.detail))


def _row(run_id: str, case_id: str, criterion: str, judged: Judged) -> RunJudgment:
    outcome = judged.outcome
    return RunJudgment(
        run_id,
        case_id,
        criterion,
        judged.key,
        judged.source,
        outcome.status,
        outcome.value,
        outcome.reason,
        _json(outcome.detail),
    )


def _is_settled(session: Session, case: Case, judged: Mapping[str, Judged]) -> bool:
    """Whether the case came through all stages, so that nothing of it is left to be tried."""
    if session.others:
        return False
    through = all(_digest(session, case.id, stage) is not None for stage in CASE_STAGES)
    return through and all(one.outcome.status != "missing" for one in judged.values())


def _json(detail: Any) -> str | None:
    return None if detail is None else canonical_json(detail)


def _result(session: Session, case: Case, judged: Mapping[str, Judged]) -> CaseResult:
    """The judgments of one case as one result: none when a stage before them has none."""
    content = digest(
        {
            criterion: [one.outcome.status, one.outcome.value, one.outcome.reason]
            for criterion, one in judged.items()
        }
    )
    generations = (one.get(case.id) for one in session.sampled("generation"))
    if not any(one is not None and one.digest is not None for one in generations):
        return CaseResult("blocked", failure=_failure(session, case.id, "generation"))
    sources = {one.source for one in judged.values()}
    return CaseResult("miss" if "miss" in sources else "hit", content, content)
