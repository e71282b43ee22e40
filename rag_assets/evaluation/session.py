"""What one run knows while it executes: results so far, and payloads at hand."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case
from rag_assets.evaluation.grouping import GroupKey, group_keys
from rag_assets.evaluation.matching import CaseFacts
from rag_assets.evaluation.owner import HEARTBEAT_S, now
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.settled import Settled, recall_settled
from rag_assets.evaluation.words import ANSWERING, CASE_STAGES, Stage
from rag_assets.evaluators import Outcome
from rag_assets.store import Head, StageResult, Store
from rag_assets.store.reader import Reader
from rag_assets.store.records import Source
from rag_assets.store.writer import HeadKey, Writer
from rag_assets.systems.blackbox import BlackBox
from rag_assets.systems.calls import Attempt, CallSettings, CallWindow, EventLoop, Failure

_PAYLOAD_BYTES = 64_000_000
NOT_EXECUTED = Failure("not_executed", "", "nothing is recorded for it, and it was not executed")


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one stage of one case came to.

    Attributes:
        source: hit, miss or shared for a result; error, blocked, absent or none where there is
            none.
        identity: what it is memoized under, where it is known.
        digest: digest of the content; None where there is none.
        failure: why there is none; of an earlier stage when `source` is blocked. What is absent
            was not recorded by a system that is called as a whole, which is no fault.
        latency_ms: how long the execution took; 0 for a hit.
        usage: what the stage reported to have used, as JSON.
        is_shared: another case of the run with the same identity was executed for both.
    """

    source: Source
    identity: str | None = None
    digest: str | None = None
    failure: Failure | None = None
    latency_ms: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    usage: str | None = None
    is_shared: bool = False


class Observer(Protocol):
    """Who is told how a run goes on."""

    def waiting(self, run_id: str, holder: str) -> None:
        """The run waits until another run of the project has ended."""

    def stopping(self) -> None:
        """The run was asked to stop; calls in flight are waited for."""

    def stage_started(self, stage: Stage, cases: int, sample: int | None = None) -> None:
        """A stage begins with so many cases; with the number of the sample where it has several."""

    def advanced(self, stage: Stage, cases: int) -> None:
        """So many more cases of a stage are done."""

    def waiting_for(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Nothing has come for a moment; this case has been executed for longest, so long."""

    def asked_to_wait(self, stage: Stage, case_id: str, seconds: float) -> None:
        """A service asks to wait so long before it is asked again for a case."""

    def failed(self, stage: Stage, case_id: str, failure: Failure) -> None:
        """A case has no result in a stage."""

    def stage_finished(self, stage: Stage, sample: int | None = None) -> None:
        """A stage is done with all of its cases."""


class Silent:
    """An observer that tells nobody."""

    def stopping(self) -> None:
        """Nothing."""

    def waiting(self, run_id: str, holder: str) -> None:
        """Nothing."""

    def stage_started(self, stage: Stage, cases: int, sample: int | None = None) -> None:
        """Nothing."""

    def advanced(self, stage: Stage, cases: int) -> None:
        """Nothing."""

    def waiting_for(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Nothing."""

    def asked_to_wait(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Nothing."""

    def failed(self, stage: Stage, case_id: str, failure: Failure) -> None:
        """Nothing."""

    def stage_finished(self, stage: Stage, sample: int | None = None) -> None:
        """Nothing."""


class Projector(Protocol):
    """Who shows elsewhere what the store holds."""

    def starting(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Cases of a stage are about to be executed."""

    def committed(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Results of a stage are in the store."""


class Unprojected:
    """A projector that shows nothing."""

    def starting(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Nothing."""

    def committed(self, stage: Stage, case_ids: Sequence[str]) -> None:
        """Nothing."""


Counted = Literal["execution", "judgment", "retrieve", "generate"]


@dataclass(frozen=True, slots=True)
class Replay:
    """What a run is that goes through cases of another one again.

    Attributes:
        run_id: that run.
        criterion: what is judged.
        role: `control`, or the name of the intervention.
    """

    run_id: str
    criterion: str
    role: str


@dataclass
class Session:
    """One run while it executes.

    Attributes:
        run_id: the run's id.
        cases: the cases of this run, in the order of the dataset.
        is_evaluation: it goes through all stages; False for single assets from the Dagster UI.
        use_cache: False reads no memoized result (they are written all the same).
        results: stage → case id → result, for the stages that have been gone through.
        outcomes: criterion → outcome of each case, parallel to `cases`.
        judged: judgment key → outcome, for what was judged in this run.
        settled: what an earlier run recorded of cases about which nothing has changed.
        facts: case id → what slices ask.
        counts: hits, misses and shared results for the cache lines.
        pending_results, head_changes: to be written with the next transaction.
        sample: which sample of the cases this is, from 0.
        others: the further samples; what is not sampled anew they have in common with this one.
        replay: what it replays; None for a run of its own.
        measured: whether the run has come to its metrics.
        stop: set when no further call may be started.
        interrupted: set by a signal; `stop` is then set as well.
    """

    project: Project
    run_id: str
    cases: Sequence[Case]
    is_evaluation: bool = True
    use_cache: bool = True
    observer: Observer = field(default_factory=Silent)
    projector: Projector = field(default_factory=Unprojected)
    results: dict[Stage, dict[str, CaseResult]] = field(default_factory=dict)
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    judged: dict[str, Outcome] = field(default_factory=dict)
    settled: Settled = field(default_factory=Settled)
    facts: dict[str, CaseFacts] = field(default_factory=dict)
    counts: dict[Counted, Counter[str]] = field(default_factory=dict)
    pending_results: list[StageResult] = field(default_factory=list)
    head_changes: dict[HeadKey, Head | None] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)
    loop: EventLoop = field(default_factory=EventLoop)
    sample: int = 0
    others: tuple[Session, ...] = ()
    replay: Replay | None = None
    measured: bool = False
    last_beat: float = field(default_factory=time.monotonic)
    _payloads: dict[str, str] = field(default_factory=dict)
    # In a list, because all samples share the room.
    _payload_bytes: list[int] = field(default_factory=lambda: [0])
    _settled_stages: set[Stage] = field(default_factory=set)

    @cached_property
    def group_keys(self) -> tuple[GroupKey, ...] | None:
        """The group of each case; None where no cases belong together."""
        return group_keys((case.id, case.group) for case in self.cases)

    @property
    def store(self) -> Store:
        """The project's store."""
        return self.project.store

    def window(self) -> CallWindow:
        """A window for the calls of one stage."""
        config, system = self.project.config, self.project.evaluated
        limits = system if isinstance(system, BlackBox) else config.system
        settings = CallSettings(
            limit=config.concurrency.system,
            timeout_s=limits.timeout_s,
            root=config.root,
            attempts=limits.retries.attempts,
            wait_s=limits.retries.wait_s,
            max_wait_s=limits.retries.max_wait_s,
            retry_on=self.project.retry_on,
            retries_timeouts=isinstance(system, BlackBox) and system.retries_timeouts,
        )
        return CallWindow(settings, self.loop, self.stop)

    def take_pending(self, writer: Writer) -> None:
        """Write what waits for the next transaction, and a sign of life."""
        writer.put_stage_results(self.pending_results, replace=not self.use_cache)
        writer.put_heads(self.head_changes)
        writer.update_run(self.run_id, heartbeat=now())
        self.pending_results.clear()
        self.head_changes.clear()
        self.last_beat = time.monotonic()

    def beat(self) -> None:
        """Give a sign of life, when nothing was written for a while."""
        if time.monotonic() - self.last_beat >= HEARTBEAT_S / 3:
            with self.store.writing() as writer:
                self.take_pending(writer)

    def facts_of(self, case_id: str) -> CaseFacts:
        """The facts of a case, to be filled in."""
        return self.facts.setdefault(case_id, CaseFacts())

    def recall_settled(self) -> None:
        """Find out about which cases nothing has changed, unless nothing memoized is read."""
        if not self.use_cache or self.others:
            return
        self.settled = recall_settled(self.store, self.project, self.cases)
        self.facts.update(self.settled.facts)
        if self.is_evaluation:
            # It goes through all stages, and each transaction takes as long as that of one case.
            self.record_settled(*CASE_STAGES)

    def record_settled(self, *stages: Stage) -> None:
        """Put stages of the settled cases on record, unless they are already."""
        new = [stage for stage in stages if stage not in self._settled_stages]
        self._settled_stages.update(new)
        if not self.settled.runs or not new:
            return
        with self.store.writing() as writer:
            writer.repeat_case_stages(self.run_id, new, self.settled.runs)
            if "judgments" in new:
                writer.repeat_judgments(self.run_id, self.settled.runs)
            self.take_pending(writer)

    def unsettled(self) -> Iterator[Case]:
        """The cases that have to be gone through one by one."""
        return (case for case in self.cases if case.id not in self.settled.runs)

    def conclude_settled(self, stage: Stage, hits: Mapping[Counted, int]) -> None:
        """Conclude a stage of the cases about which nothing has changed, all at once.

        Args:
            stage: the stage, whose results are filled in.
            hits: how many hits appear in which count.
        """
        if not self.settled.runs:
            return
        known = self.settled.stages[stage]
        self.results[stage] |= {one: CaseResult("hit", *known[one]) for one in self.settled.runs}
        self.record_settled(stage)
        for what, number in hits.items():
            self.count(what, "hit", number)
        self.projector.committed(stage, list(self.settled.runs))
        self.observer.advanced(stage, len(self.settled.runs))

    def count(self, what: Counted, how: str, number: int = 1) -> None:
        """Count hits, misses or shared results."""
        if number:
            self.counts.setdefault(what, Counter())[how] += number

    def keep_payload(self, digest: str, payload: str) -> None:
        """Keep a payload at hand for the next stage, as long as there is room."""
        if digest not in self._payloads and self._payload_bytes[0] < _PAYLOAD_BYTES:
            self._payloads[digest] = payload
            self._payload_bytes[0] += len(payload)

    def payloads(self, reader: Reader, digests: Iterable[str]) -> Mapping[str, str]:
        """Payloads by digest: those at hand, and the others from the store."""
        found, absent = self._at_hand(digests)
        return {**found, **reader.payloads(absent)} if absent else found

    def payloads_at_hand(self, digests: Iterable[str]) -> Mapping[str, str]:
        """Payloads by digest, without a look into the store."""
        return self._at_hand(digests)[0]

    def payloads_of(self, digests: Iterable[str]) -> Mapping[str, str]:
        """Payloads by digest; the store is opened only for what is not at hand."""
        found, absent = self._at_hand(digests)
        if not absent:
            return found
        with self.store.reading() as reader:
            return {**found, **reader.payloads(absent)}

    def _at_hand(self, digests: Iterable[str]) -> tuple[dict[str, str], list[str]]:
        wanted = dict.fromkeys(digests)
        found = {digest: self._payloads[digest] for digest in wanted if digest in self._payloads}
        return found, [digest for digest in wanted if digest not in found]

    def outcomes_of(self, case_id: str) -> dict[str, Outcome]:
        """Criterion → outcome of one judged case."""
        place = self.places[case_id]
        return {criterion: outcomes[place] for criterion, outcomes in self.outcomes.items()}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Case id → its place in the order of the cases."""
        return {case.id: place for place, case in enumerate(self.cases)}

    @property
    def taken_anew(self) -> frozenset[Stage]:
        """The stages that each sample of a case goes through; the others stand for all samples."""
        config, is_whole = self.project.config, self.project.is_whole
        if config.replicates == 1:
            return frozenset()
        answering = ANSWERING if config.replicate_retrieval or is_whole else ANSWERING[-1:]
        return frozenset({"execution", *answering, "judgments"})

    def numbered(self, stage: Stage) -> int | None:
        """The number of this sample, for a stage that each sample goes through."""
        return self.sample if stage in self.taken_anew else None

    def take_samples(self, number: int) -> None:
        """Make the further samples, so that there are so many in all."""
        self.others = tuple(
            replace(
                self,
                sample=sample,
                projector=Unprojected(),
                results={},
                outcomes={},
                facts={},
                settled=Settled(),
            )
            for sample in range(1, number)
        )

    def sampled(self, stage: Stage) -> list[Mapping[str, CaseResult]]:
        """The results of a stage: of this sample, and of those that have results of their own."""
        own = self.results.get(stage, {})
        return [own, *(one.results[stage] for one in self.others if one.has_own(stage, own))]

    def has_own(self, stage: Stage, results: Mapping[str, CaseResult]) -> bool:
        """Whether this sample has other results of a stage than those."""
        return self.results.get(stage, results) is not results

    def content(self, stage: Stage, case_id: str) -> str | None:
        """Digest of what a stage of a case came to in all samples; None where one has failed."""
        digests = [results[case_id].digest for results in self.sampled(stage) if case_id in results]
        if len(digests) == 1:
            return digests[0]
        if not any(digests) or self.failure(stage, case_id) is not None:
            return None
        return digest(digests)

    def failure(self, stage: Stage, case_id: str) -> Failure | None:
        """Why a stage of a case has no result in one of the samples.

        What a system that is called as a whole did not record is no failure.
        """
        results = (one[case_id] for one in self.sampled(stage) if case_id in one)
        failures = (one.failure for one in results if one.source != "absent")
        return next((one for one in failures if one is not None), None)

    def failures(self) -> list[tuple[Stage, str, Failure]]:
        """(stage, case id, failure) where a stage itself failed, in the order of the run.

        Samples of a case that failed alike count once.
        """
        found: dict[tuple[Stage, str, str, str], Failure] = {}
        for stage in self.results:
            for results in self.sampled(stage):
                for case_id, result in results.items():
                    failure = result.failure
                    if result.source == "error" and failure is not None:
                        found.setdefault((stage, case_id, failure.type, failure.message), failure)
        return [(stage, case_id, failure) for (stage, case_id, *_), failure in found.items()]
