"""Child runs: selected cases of a run, generated and judged again over a given context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.canonical import canonical_json, digest, digest_text
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import ContractError
from rag_assets.evaluation.concluding import measure_run
from rag_assets.evaluation.diagnosis.interventions import Intervention, load_reranker
from rag_assets.evaluation.diagnosis.labels import CONTROL, Verdict
from rag_assets.evaluation.diagnosis.selection import evaluator_of, is_failed
from rag_assets.evaluation.interrupts import finishing_calls
from rag_assets.evaluation.judging import judge_cases
from rag_assets.evaluation.lifecycle import end_run, new_run_id, start_run
from rag_assets.evaluation.memo import Batch, Work, case_stage_row, run_stage
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.session import CaseResult, Counted, Observer, Replay, Session
from rag_assets.evaluation.stages import (
    AssemblyStage,
    accept_output,
    count_result,
    generation_call,
    kept_passages,
    seeded,
    take_cases,
)
from rag_assets.evaluation.words import Stage
from rag_assets.store import CaseStage
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one case came to in a child run.

    Attributes:
        verdict: as the label rules take it.
        value: of the criterion; None where it is not observed.
        why: the error, or the reason of what is missing; None where there is a verdict.
    """

    verdict: Verdict
    value: float | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Child:
    """A child run that has ended."""

    run_id: str
    cases: Mapping[str, Replayed]


@dataclass(frozen=True)
class Parent:
    """The run whose cases are gone through again.

    Attributes:
        run_id: its id.
        stages: (stage, case id) → what is recorded, of the selected cases.
        criterion: what is judged again.
        below: the bar of a score; None for a verdict.
    """

    run_id: str
    stages: Mapping[tuple[str, str], CaseStage]
    criterion: str
    below: float | None


def judging_only(project: Project, criterion: str) -> Project:
    """The project with this criterion and what it is made of, one sample a case, and no slices."""
    made = tuple(one for one in project.config.metrics if one.id == criterion)
    config = project.config.model_copy(update={"replicates": 1, "slices": (), "metrics": made})
    own = evaluator_of(project, criterion)
    return replace(project, config=config, evaluators=(*own.parts, own))


def execute_child(
    project: Project,
    parent: Parent,
    cases: Sequence[Case],
    intervention: Intervention | None,
    observer: Observer,
    dagster_run_id: str | None,
) -> Child:
    """Generate and judge cases once more, as a run of its own.

    Generation is executed anew whatever is memoized, and what it returns serves no later run. The
    retriever is never called.

    Args:
        project: as `judging_only` makes it.
        parent: where retrievals and contexts are recorded.
        cases: the selected cases.
        intervention: what is changed; None for the control.
        observer: who is told how it goes on.
        dagster_run_id: the Dagster run that executes it.

    Raises:
        ContractError: a reranker or `count_tokens` broke its contract.
        KeyboardInterrupt: it was interrupted; what finished is committed.
    """
    changed = intervention.applied_to(project) if intervention else project
    role = intervention.name if intervention else CONTROL
    session = Session(
        project=changed,
        run_id=new_run_id(),
        cases=cases,
        is_evaluation=False,
        observer=observer,
        replay=Replay(parent.run_id, parent.criterion, role),
    )
    start_run(session, dagster_run_id=dagster_run_id, selection=[case.id for case in cases])
    try:
        with finishing_calls(session):
            _go_through(session, parent, intervention)
    except ContractError as error:
        end_run(session, "STOPPED", error=error.render())
        raise
    except KeyboardInterrupt:
        end_run(session, "INTERRUPTED", error="interrupted by a signal")
        raise
    except Exception as error:
        end_run(session, "STOPPED", error=f"internal error: {error!r}", exit_code=4)
        raise
    finally:
        session.loop.close()
    end_run(session, "DECIDED")
    return Child(session.run_id, {case.id: _replayed(session, parent, case) for case in cases})


def _go_through(session: Session, parent: Parent, intervention: Intervention | None) -> None:
    take_cases(session)
    _repeat(session, parent, "retrieval")
    if intervention is None:
        _repeat(session, parent, "assembled_context")
    elif intervention.kind == "gold-context":
        _take_gold_context(session, intervention.source)
    else:
        reranker = None
        if intervention.kind == "reranker":
            reranker = load_reranker(intervention, session.project)
        stage = AssemblyStage(session, source=intervention.source, reranker=reranker)
        run_stage(session, stage, execute=True)
    run_stage(session, _Generation(session), execute=True)
    judge_cases(session, execute=True)
    measure_run(session)


def _repeat(session: Session, parent: Parent, stage: Stage) -> None:
    """Take what the parent recorded of a stage."""
    results = session.results[stage] = {}
    rows: list[CaseStage] = []
    for case in session.cases:
        recorded = parent.stages.get((stage, case.id))
        found = recorded.digest if recorded else None
        identity = recorded.identity if recorded else None
        result = CaseResult("hit" if found else "none", identity, found)
        results[case.id] = result
        rows.append(case_stage_row(session, case, stage, result))
    Batch(session, stage, "", rows=rows).flush()


def _take_gold_context(session: Session, source: str) -> None:
    """Exactly the gold passages of each case, without a budget."""
    batch = Batch(session, "assembled_context", "context/v1")
    results = session.results["assembled_context"] = {}
    for case in session.cases:
        items = [
            {
                "doc_id": one.doc_id,
                **({"chunk_id": one.chunk_id} if one.chunk_id else {}),
                "text": one.text,
            }
            for one in case.gold_passages
        ]
        record = {"items": items, "dropped": [], "token_budget": None, "source": source}
        payload = canonical_json(record)
        content = digest_text(payload)
        result = results[case.id] = CaseResult("miss", content, content)
        batch.artifacts[content] = payload
        session.keep_payload(content, payload)
        batch.rows.append(case_stage_row(session, case, "assembled_context", result))
    batch.flush()


class _Generation:
    """Calls `generate(input, context)` anew for every case of a child run."""

    stage: Stage = "generation"
    parent: Stage = "assembled_context"
    kind = "generation/v1"
    counted: tuple[Counted, ...] = ("generate",)
    reuses = False
    has_contract = False

    def __init__(self, session: Session) -> None:
        self.asynchronous = session.project.system.is_async("generate")
        self._generate = seeded(session, "generate")

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Each case has an identity that no other run, and no other case, will ask for."""
        for case, kept in kept_passages(session, reader, cases):
            yield Work(
                case,
                digest(["replay/v1", session.run_id, case.id]),
                generation_call(self._generate, case, kept),
                accept_output,
            )

    def concluded(self, session: Session, case: Case, result: CaseResult) -> None:
        """Count it."""
        count_result(session, "generate", result)


def _replayed(session: Session, parent: Parent, case: Case) -> Replayed:
    for stage in ("assembled_context", "generation"):
        result = session.results[stage][case.id]
        if result.source == "error" and result.failure is not None:
            failure = result.failure
            why = f"{stage} {failure.type}: {failure.message}".rstrip(": ")
            return Replayed("error", None, why)
    outcome = session.outcomes[parent.criterion][session.places[case.id]]
    if outcome.value is None:
        return Replayed("no_verdict", None, outcome.reason)
    failed = is_failed(outcome.value, parent.below)
    return Replayed("failed" if failed else "passed", outcome.value, None)
