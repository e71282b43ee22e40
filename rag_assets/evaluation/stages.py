"""The case stages of a staged system: cases, retrieval, assembled context, generation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Protocol

from rag_assets.contracts.artifacts import Passage, Retrieval, parse_retrieval
from rag_assets.contracts.canonical import NotJsonError, canonical_json, digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import ArtifactError
from rag_assets.evaluation.assembly import assemble
from rag_assets.evaluation.matching import holds_stale, match_relevant
from rag_assets.evaluation.memo import Batch, Work, case_stage_row
from rag_assets.evaluation.session import CaseResult, Counted, Session
from rag_assets.evaluation.words import Stage
from rag_assets.store import StageResult
from rag_assets.store.reader import Reader
from rag_assets.systems.blackbox import denied_retrieval
from rag_assets.systems.current import current_case


def take_cases(session: Session) -> None:
    """The first stage: put the cases of the run on record."""
    batch = Batch(session, "cases", "case/v1")
    session.observer.stage_started("cases", len(session.cases))
    results = session.results["cases"] = {}
    session.conclude_settled("cases", {})
    for case in session.unsettled():
        results[case.id] = CaseResult("hit", case.digest, case.digest)
        batch.artifacts[case.digest] = canonical_json(case_record(case))
        batch.rows.append(case_stage_row(session, case, "cases", results[case.id]))
        batch.flush_if_due()
    batch.flush()
    session.observer.advanced("cases", len(session.cases) - len(session.settled.runs))
    session.observer.stage_finished("cases")


def case_record(case: Case) -> dict[str, Any]:
    """A case as it is stored and shown."""
    fields = {
        "id": case.id,
        "input": case.input,
        "expected": case.expected,
        "metadata": dict(case.metadata) or None,
        "user": case.user,
        "as_of": case.as_of,
        "group": case.group,
    }
    return {name: value for name, value in fields.items() if value is not None}


class Reranker(Protocol):
    """What puts candidates into another order."""

    @property
    def digest(self) -> str:
        """Of its code."""

    def reorder(
        self,
        case: Case,
        candidates: Sequence[Passage],
        then: Callable[[Sequence[int]], Any],
    ) -> Any:
        """Call `then` with the positions to keep, in the new order.

        Returns:
            What `then` returned, or an awaitable of it.

        Raises:
            ArtifactError: what the reranker returned is no new order of the candidates.
        """


class RetrievalStage:
    """Calls `retrieve(input, depth)`."""

    stage: Stage = "retrieval"
    parent: Stage = "cases"
    kind = "retrieval/v1"
    counted: tuple[Counted, ...] = ("retrieve",)
    reuses = True
    has_contract = True

    def __init__(self, session: Session) -> None:
        system = session.project.system
        self.asynchronous = system.is_async("retrieve")
        self._depth = system.depth
        self._retrieve = seeded(session, "retrieve")

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Every case is ready: a retrieval needs its input only."""
        for case in cases:
            yield Work(
                case,
                session.project.keys.retrieval_of(case, session.sample),
                partial(_invoke, self._retrieve, case, self._depth),
                self._accept,
            )

    def concluded(self, session: Session, case: Case, result: CaseResult) -> None:
        """Count it."""
        count_result(session, "retrieve", result)

    def _accept(self, value: Any) -> dict[str, Any]:
        record = parse_retrieval(value, self._depth).record()
        return denied_retrieval(record) if current_case().recorder.is_denied else record


class AssemblyStage:
    """Cuts the candidates; with a token budget it asks `count_tokens(passage)`.

    Args:
        session: the run.
        source: where the passages come from, as the context says it; `retrieval`, or the name of
            an intervention.
        reranker: what puts the candidates into another order before they are cut.
    """

    stage: Stage = "assembled_context"
    parent: Stage = "retrieval"
    kind = "context/v1"
    counted: tuple[Counted, ...] = ()
    asynchronous = False
    reuses = False
    has_contract = True

    def __init__(
        self, session: Session, *, source: str = "retrieval", reranker: Reranker | None = None
    ) -> None:
        system = session.project.system
        self._system = system
        self._source = source
        self._reranker = reranker
        code = system.code.get("count_tokens")
        self._base = digest(
            [
                "assembly/v1",
                *(system.name, system.version, system.config, system.top_k, system.token_budget),
                code.digest if code else None,
                # Replays are never looked up by a run, whose contexts come from its retrieval.
                *([] if source == "retrieval" else [source]),
                *([reranker.digest] if reranker else []),
            ]
        )

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Read the retrievals; note where the relevant evidence stands."""
        retrievals = _retrievals(session, reader, cases)
        unit = session.project.relevance_unit
        for case in cases:
            retrieval = retrievals[case.id]
            facts = session.facts_of(case.id)
            facts.match = match_relevant(case, retrieval.candidates, unit)
            found = session.results["retrieval"][case.id].digest
            yield Work(
                case,
                digest([self._base, found]),
                partial(self._order, case, retrieval.candidates),
                partial(self._assemble, retrieval.candidates),
            )

    def concluded(self, session: Session, case: Case, result: CaseResult) -> None:
        """Nothing is counted: assembly is not part of the cache lines."""

    def _order(self, case: Case, candidates: Sequence[Passage]) -> Any:
        """The order to cut, as positions, and the token counts that are needed for the cut."""
        if self._reranker is None:
            return self._counted(candidates, range(1, len(candidates) + 1))
        # The counts come after the order, which an asynchronous reranker gives later.
        return self._reranker.reorder(case, candidates, partial(self._counted, candidates))

    def _counted(
        self, candidates: Sequence[Passage], order: Sequence[int]
    ) -> tuple[Sequence[int], list[Any]]:
        if self._system.token_budget is None:
            return order, []
        count = self._system.function("count_tokens")
        return order, [count(candidates[one - 1]) for one in order[: self._system.top_k]]

    def _assemble(
        self, candidates: Sequence[Passage], ordered: tuple[Sequence[int], list[Any]]
    ) -> dict[str, Any]:
        order, tokens = ordered
        for position, count in zip(order, tokens, strict=False):
            if type(count) is not int or count < 0:
                raise ArtifactError(
                    f"count_tokens of candidate {position}",
                    f"must be a whole number ≥ 0, got {count!r} ({type(count).__name__})",
                )
        context = assemble(
            candidates,
            top_k=self._system.top_k,
            token_budget=self._system.token_budget,
            tokens=tokens,
            source=self._source,
            order=order,
        )
        return context.record()


class GenerationStage:
    """Calls `generate(input, context)` with exactly the passages that were kept."""

    stage: Stage = "generation"
    parent: Stage = "assembled_context"
    kind = "generation/v1"
    counted: tuple[Counted, ...] = ("generate", "execution")
    reuses = True
    has_contract = False

    def __init__(self, session: Session) -> None:
        system = session.project.system
        self.asynchronous = system.is_async("generate")
        self._generate = seeded(session, "generate")
        self._executions: dict[str, str] = {}
        self._known: set[str] = set()

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Read what was kept, and which of the executions are known as a whole."""
        keys = session.project.keys
        executions = {case.id: keys.execution_of(case, session.sample) for case in cases}
        self._executions.update(executions)
        if session.use_cache:
            self._known.update(reader.stage_results(list(executions.values())))
        for case, kept in kept_passages(session, reader, cases):
            yield Work(
                case,
                keys.generation_of(case, [passage.record() for passage in kept], session.sample),
                generation_call(self._generate, case, kept),
                accept_output,
            )

    def concluded(self, session: Session, case: Case, result: CaseResult) -> None:
        """Count it, and count the execution as a whole."""
        count_result(session, "generate", result)
        execution = self._executions.get(case.id)
        if result.is_shared:
            session.count("execution", "shared")
        elif execution in self._known and result.source == "hit":
            session.count("execution", "hit")
        elif result.source != "none":
            session.count("execution", "miss")
        if result.digest is not None and execution is not None and execution not in self._known:
            self._known.add(execution)
            session.pending_results.append(
                StageResult(execution, "execution", result.digest, session.run_id, 0.0, None)
            )


def _invoke(function: Callable[..., Any], case: Case, argument: Any) -> Any:
    """Call a stage with a copy of the input, so that no stage can change what the next one sees."""
    return function(deepcopy(case.input), argument)


def kept_passages(
    session: Session, reader: Reader, cases: Sequence[Case]
) -> Iterator[tuple[Case, list[Passage]]]:
    """The passages of each assembled context: as they were retrieved, or as the context has them
    where they were not; note what slices ask of the contexts."""
    assembled = session.results["assembled_context"]
    payloads = session.payloads(reader, (str(assembled[case.id].digest) for case in cases))
    contexts = {case.id: json.loads(payloads[str(assembled[case.id].digest)]) for case in cases}
    # Gold passages were never retrieved, and of some cases nothing was.
    retrieved = [
        case for case in cases if any("position" in one for one in contexts[case.id]["items"])
    ]
    retrievals = _retrievals(session, reader, retrieved)
    for case in cases:
        context, facts = contexts[case.id], session.facts_of(case.id)
        facts.truncated = any(one["reason"] == "token_budget" for one in context["dropped"])
        facts.stale = holds_stale(case, context["items"])
        candidates = retrievals[case.id].candidates if case.id in retrievals else ()
        yield (
            case,
            [
                candidates[item["position"] - 1] if "position" in item else Passage(**item)
                for item in context["items"]
            ],
        )


def generation_call(
    generate: Callable[..., Any], case: Case, kept: Sequence[Passage]
) -> Callable[[], Any]:
    """A call with passages of its own, whatever an earlier attempt did to them."""
    return lambda: _invoke(generate, case, [one.model_copy(deep=True) for one in kept])


def accept_output(value: Any) -> Any:
    """Check that an output is JSON.

    Raises:
        TypeError: it is not; the message names the place.
    """
    try:
        canonical_json(value)
    except NotJsonError as error:
        place = f"{error.path}: " if error.path else ""
        message = str(error).removeprefix(place)
        raise TypeError(f"generate must return JSON, but {place}the value {message}") from None
    return value


def _retrievals(session: Session, reader: Reader, cases: Sequence[Case]) -> dict[str, Retrieval]:
    digests = {case.id: str(session.results["retrieval"][case.id].digest) for case in cases}
    payloads = session.payloads(reader, digests.values())
    return {
        case_id: Retrieval.recall(json.loads(payloads[found])) for case_id, found in digests.items()
    }


def seeded(session: Session, stage: str) -> Callable[..., Any]:
    """The user's function of a stage, with the seed of the sample where it takes one."""
    system = session.project.system
    function = system.function(stage)
    if system.takes_seed(stage):
        # With one seed for all, the samples of a case would be one and the same.
        return partial(function, seed=session.project.config.seed + session.sample)
    return function


def count_result(session: Session, what: Any, result: CaseResult) -> None:
    """Count the result of a case; a failure was executed as well."""
    if result.is_shared:
        session.count(what, "shared")
    elif result.source in ("hit", "miss"):
        session.count(what, result.source)
    elif result.source == "error":
        session.count(what, "miss")
