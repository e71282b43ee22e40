"""Memoized execution of one stage: look up, call what is missing, commit as results arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

from rag_assets.contracts.canonical import canonical_json, digest_text
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import ContractError, Problem, RerankerError
from rag_assets.evaluation.restricted import told_call
from rag_assets.evaluation.session import NOT_EXECUTED, CaseResult, Counted, Session
from rag_assets.evaluation.words import Stage
from rag_assets.store import CaseStage, SampleStage, StageResult
from rag_assets.store.reader import Reader
from rag_assets.store.writer import Writer
from rag_assets.systems.calls import Call, CallResult, Failure
from rag_assets.systems.current import CurrentCase

CHUNK = 2000
_FLUSH_ROWS = 2000
FLUSH_S = 0.5


@dataclass(frozen=True, slots=True)
class Work:
    """One case made ready for a stage.

    Attributes:
        identity: what the result is memoized under.
        invoke: calls the user's function.
        accept: checks the returned value and turns it into JSON.
    """

    case: Case
    identity: str
    invoke: Callable[[], Any]
    accept: Callable[[Any], Any]


class Recipe(Protocol):
    """What differs from one stage to another."""

    stage: Stage
    parent: Stage
    kind: str
    asynchronous: bool
    reuses: bool
    """False: executed anew every time; what is memoized then only serves look-ups."""
    counted: tuple[Counted, ...]
    """The counts in which a result of the stage appears."""
    has_contract: bool
    """Whether a malformed artifact made in it breaks the contract; otherwise it is an error."""

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Make cases ready, reading what they need in bulk; all of them have a parent result."""

    def concluded(self, session: Session, case: Case, result: CaseResult) -> None:
        """A case has its result."""


def run_stage(session: Session, recipe: Recipe, *, execute: bool) -> None:
    """Take a stage through all cases of the run.

    Args:
        session: the run; its results are filled in.
        recipe: the stage.
        execute: False only looks up: what is not memoized is then `not_executed`.

    Raises:
        ContractError: an artifact was malformed and `on_malformed` is `stop`. Everything that
            was in flight has finished and is committed.
    """
    stage = _StageRun(session, recipe, execute)
    session.results[recipe.stage] = stage.results
    numbered = session.numbered(recipe.stage)
    session.observer.stage_started(recipe.stage, len(session.cases), numbered)
    window = session.window()
    try:
        settled = len(session.settled.runs)
        session.conclude_settled(recipe.stage, dict.fromkeys(recipe.counted, settled))
        for result in window.run(stage.calls(), asynchronous=recipe.asynchronous):
            if result is not None:
                stage.finish(result)
            elif longest := window.longest():
                session.observer.waiting_for(recipe.stage, *longest)
            for case_id, seconds in window.asked_waits():
                session.observer.asked_to_wait(recipe.stage, case_id, seconds)
            stage.batch.flush_if_due()
            session.beat()
    finally:
        stage.batch.flush()
        session.observer.stage_finished(recipe.stage, numbered)
    if stage.malformed:
        raise ContractError(stage.malformed)


@dataclass
class Batch:
    """Results on their way to the store: committed by number or by age, whichever comes first."""

    session: Session
    stage: Stage
    kind: str
    artifacts: dict[str, str] = field(default_factory=dict)
    results: list[StageResult] = field(default_factory=list)
    rows: list[CaseStage] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def flush_if_due(self) -> None:
        """Commit when enough has gathered, or it has waited long enough."""
        if len(self.rows) >= _FLUSH_ROWS or time.monotonic() - self.since >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Commit in one transaction, artifacts first."""
        if self.rows or self.artifacts:
            with self.session.store.writing() as writer:
                self.put(writer)
                self.session.take_pending(writer)
        if self.rows:
            self.session.projector.committed(self.stage, [row.case_id for row in self.rows])
        self.artifacts, self.results, self.rows = {}, [], []
        self.since = time.monotonic()

    def put(self, writer: Writer) -> None:
        """Write in a transaction of the caller's, who takes what is pending as well."""
        self.session.pending_results += self.results
        writer.put_artifacts(self.kind, self.artifacts)
        writer.add(self.rows if self.session.sample == 0 else self._sample_rows())

    def _sample_rows(self) -> list[SampleStage]:
        return [SampleStage(**asdict(row), sample=self.session.sample) for row in self.rows]


class _StageRun:
    """One pass of a stage over the cases of a run."""

    def __init__(self, session: Session, recipe: Recipe, execute: bool) -> None:
        self.session = session
        self.recipe = recipe
        self.execute = execute
        self.results: dict[str, CaseResult] = {}
        self.batch = Batch(session, recipe.stage, recipe.kind)
        self.malformed: list[Problem] = []
        self._works: dict[str, Work] = {}
        self._leaders: dict[str, str] = {}
        self._followers: dict[str, list[Case]] = {}

    def calls(self) -> Iterator[Call]:
        """The calls to make, a chunk of cases at a time; hits are concluded on the way."""
        cases = self.session.unsettled()
        while chunk := list(islice(cases, CHUNK)):
            ready = [case for case in chunk if not self._blocked(case)]
            with self.session.store.reading() as reader:
                works = list(self.recipe.prepare(self.session, reader, ready))
                known = self._known(reader, works)
            if self.execute:
                starting = [work.case.id for work in works if work.identity not in known]
                self.session.projector.starting(self.recipe.stage, starting)
            for work in works:
                call = self._conclude_or_call(work, known)
                if call is not None:
                    yield call
                self.batch.flush_if_due()

    def finish(self, call: CallResult) -> None:
        """Take in the result of a call, and of the cases that share it."""
        work = self._works.pop(call.key)
        call = told_call(self.session, work.case, call)
        usage = canonical_json(dict(call.usage)) if call.usage else None
        if call.failure is not None:
            result = CaseResult(
                "error",
                work.identity,
                failure=call.failure,
                latency_ms=call.latency_ms,
                attempts=call.attempts,
                usage=usage,
            )
            self._note_malformed(work.case, call.failure)
        else:
            content = canonical_json(call.value)
            digest = digest_text(content)
            # A single good attempt says nothing that is not said without it.
            attempts = call.attempts if len(call.attempts) > 1 else ()
            result = CaseResult(
                "miss", work.identity, digest, None, call.latency_ms, attempts, usage
            )
            self.session.keep_payload(digest, content)
            self.batch.artifacts[digest] = content
            self.batch.results.append(
                StageResult(
                    work.identity,
                    self.recipe.stage,
                    digest,
                    self.session.run_id,
                    call.latency_ms,
                    usage,
                )
            )
        self._conclude(work.case, result)
        for case in self._followers.pop(call.key, []):
            self._conclude(case, self._shared(result))

    def _blocked(self, case: Case) -> bool:
        parent = self.session.results[self.recipe.parent][case.id]
        if parent.digest is not None:
            return False
        self._conclude(case, CaseResult("blocked", failure=parent.failure))
        return True

    def _known(self, reader: Reader, works: Sequence[Work]) -> Mapping[str, StageResult]:
        if self.execute and not (self.session.use_cache and self.recipe.reuses):
            return {}
        return reader.stage_results([work.identity for work in works])

    def _conclude_or_call(self, work: Work, known: Mapping[str, StageResult]) -> Call | None:
        case, identity = work.case, work.identity
        # Before the cache: what this run has executed itself may be in there by now.
        leader = self._leaders.get(identity)
        if leader is not None and leader in self.results:
            self._conclude(case, self._shared(self.results[leader]))
            return None
        if leader is not None:
            self._followers.setdefault(leader, []).append(case)
            return None
        if identity in known:
            result = CaseResult("hit", identity, known[identity].digest)
            self._conclude(case, result)
            return None
        if not self.execute:
            self._conclude(case, CaseResult("none", identity, failure=NOT_EXECUTED))
            return None
        self._leaders[identity] = case.id
        self._works[case.id] = work
        project = self.session.project
        current = CurrentCase(
            project.evaluated.config,
            case.asker,
            case.as_of,
            sample=self.session.sample,
            records=project.is_whole,
        )
        has_contract = self.recipe.has_contract
        return Call(case.id, work.invoke, work.accept, current, has_contract=has_contract)

    def _shared(self, result: CaseResult) -> CaseResult:
        if result.digest is None:
            return replace(result, is_shared=True)
        return CaseResult("shared", result.identity, result.digest, is_shared=True)

    def _conclude(self, case: Case, result: CaseResult) -> None:
        self.results[case.id] = result
        self.batch.rows.append(case_stage_row(self.session, case, self.recipe.stage, result))
        self.recipe.concluded(self.session, case, result)
        if result.source == "error" and result.failure is not None:
            self.session.observer.failed(self.recipe.stage, case.id, result.failure)
        self.session.observer.advanced(self.recipe.stage, 1)

    def _note_malformed(self, case: Case, failure: Failure) -> None:
        if failure.reason != "malformed_artifact":
            return
        # A reranker is tried out; a case that it loses would say nothing of it.
        is_reranker = failure.type == RerankerError.__name__
        if not is_reranker and self.session.project.config.system.on_malformed == "missing":
            return
        self.session.stop.set()
        self.malformed.append(
            Problem(
                f"case {case.id}",
                0,
                f"{self.recipe.stage}",
                failure.message
                if is_reranker
                else f"the system returned a malformed artifact: {failure.message}. "
                "Correct it, or set system.on_malformed to missing to lose only such cases.",
            )
        )


def case_stage_row(session: Session, case: Case, stage: Stage, result: CaseResult) -> CaseStage:
    """The row that records what a stage of a case came to."""
    failure = attempts = None
    if result.failure is not None:
        failure = canonical_json(
            {
                "reason": result.failure.reason,
                "type": result.failure.type,
                "message": result.failure.message,
                "traceback": result.failure.traceback,
            }
        )
    if result.failure is not None or len(result.attempts) > 1:
        attempts = canonical_json(
            [
                {
                    "state": one.state,
                    "error": one.error,
                    "duration_ms": one.duration_ms,
                    "status": one.status,
                }
                for one in result.attempts
            ]
        )
    return CaseStage(
        session.run_id,
        case.id,
        stage,
        result.identity,
        result.digest,
        result.source,
        result.latency_ms,
        failure,
        attempts,
        result.usage,
    )
