"""What the op of a stage does: go through the stage, then report it to Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError

from rag_assets.assets.keys import Suite
from rag_assets.assets.metadata import gate_metadata, metrics_metadata
from rag_assets.assets.projection import Projection
from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import ContractError, StoreLockedError
from rag_assets.contracts.loading import activate
from rag_assets.evaluation.concluding import (
    Conclusion,
    RunMetrics,
    decide_run,
    decisions_digest,
    measure_run,
)
from rag_assets.evaluation.corpora import today
from rag_assets.evaluation.interrupts import finishing_calls
from rag_assets.evaluation.lifecycle import end_run, new_run_id, start_run
from rag_assets.evaluation.pipeline import go_through
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.session import Observer, Session, Silent
from rag_assets.evaluation.wording import counted
from rag_assets.evaluation.words import ANSWERING, CASE_STAGES, STAGES, Stage
from rag_assets.systems.blackbox import BlackBox
from rag_assets.systems.calls import Failure

RUN_ID_TAG = "rag/run_id"
_observer: ContextVar[Observer] = ContextVar("observer", default=Silent())  # noqa: B039


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Tell an observer of this process about the runs inside the block."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def current_observer() -> Observer:
    """Who is told about the runs of this process."""
    return _observer.get()


class SuiteRun(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Run config of a suite: `resources.<suite>_run.config`.

    Attributes:
        cases: ids of the cases to run; absent for all of them.
        run_id: the id of the run; absent for a new one.
        use_cache: false reads no memoized result.
    """

    cases: list[str] | None = None
    run_id: str | None = None
    use_cache: bool = True


@dataclass
class SuiteExecution:
    """One Dagster run of a suite in this process."""

    session: Session
    projection: Projection
    selected: tuple[Stage, ...]
    from_ui: bool
    metrics: RunMetrics | None = None
    conclusion: Conclusion | None = None

    @property
    def last(self) -> Stage:
        """The last stage that the run was asked for: it ends the run."""
        return self.selected[-1]

    def run_stages(self, context: dg.OpExecutionContext, stages: Sequence[Stage]) -> None:
        """Go through the selected stages of one step and write their events.

        Raises:
            dagster.Failure: the system broke its contract, or (after the last selected stage)
                cases have no result.
            DagsterExecutionInterruptedError: the run was interrupted; what finished is committed.
            StoreLockedError: another process held the store for too long.
        """
        try:
            with finishing_calls(self.session):
                self.projection.enter(context, stages)
                if stages[0] in CASE_STAGES:
                    go_through(self.session, stages[0], execute=True)
                elif "metrics" in stages:
                    self._project_metrics(self._measured())
                else:
                    self._decide(self._measured())
        except ContractError as error:
            end_run(self.session, "STOPPED", error=error.render())
            raise dg.Failure(error.render(), allow_retries=False) from None
        except (KeyboardInterrupt, DagsterExecutionInterruptedError):
            end_run(self.session, "INTERRUPTED", error="interrupted by a signal")
            raise DagsterExecutionInterruptedError from None
        except StoreLockedError:
            # There is nowhere to record the end: it is seen when this process has gone.
            raise
        except Exception as error:
            error_text = f"internal error: {error!r}"
            end_run(self.session, "STOPPED", error=error_text, exit_code=4)
            raise
        if self.last in stages:
            end_run(self.session, "DECIDED", conclusion=self.conclusion)

    def raise_for_failed_cases(self) -> None:
        """Turn the run red for exactly the cases that have no result, if the config wants so.

        Raises:
            dagster.Failure: lists case, stage and error.
        """
        failures = self._without_result() if self.from_ui else self.session.failures()
        if failures and self.session.project.config.run.fail_on_case_errors:
            shown = [
                f"{case_id}: {stage} {failure.type}: {failure.message}"
                for stage, case_id, failure in failures
            ]
            more = len(shown) - 20
            text = "\n".join(shown[:20] + ([f"… and {more} more"] if more > 0 else []))
            cases = len({case_id for _, case_id, _ in failures})
            have = "has" if cases == 1 else "have"
            told = f"{counted(cases, 'case')} {have} no result:\n{text}"
            raise dg.Failure(told, allow_retries=False)

    def _without_result(self) -> list[tuple[Stage, str, Failure]]:
        """The first selected stage in which a case has no result, for whatever reason."""
        found: dict[str, tuple[Stage, str, Failure]] = {}
        for stage in self.selected:
            for case_id in self.session.results.get(stage, {}):
                failure = self.session.failure(stage, case_id)
                if failure is not None:
                    found.setdefault(case_id, (stage, case_id, failure))
        return list(found.values())

    def _measured(self) -> RunMetrics:
        """The metrics of the run, over what is on record when its judgments are not part of it."""
        if self.metrics is None:
            if "judgments" not in self.session.results:
                go_through(self.session, "judgments", execute=False)
            self.metrics = measure_run(self.session)
        return self.metrics

    def _project_metrics(self, metrics: RunMetrics) -> None:
        judged = self.session.results["judgments"].values()
        inputs = {"judgments": digest(sorted(result.digest or "" for result in judged))}
        metadata = metrics_metadata(self.session, metrics)
        self.projection.project_whole("metrics", metrics.data_version, inputs, metadata)

    def _decide(self, metrics: RunMetrics) -> None:
        self.conclusion = decide_run(self.session, metrics)
        version = decisions_digest(self.conclusion.decisions, self.conclusion.gate)
        metadata = gate_metadata(self.session, self.conclusion)
        inputs = {"metrics": metrics.data_version}
        self.projection.project_whole("gate", version, inputs, metadata)


# By Dagster run and suite: one run may hold stages of several suites.
_executions: dict[tuple[str, Suite], SuiteExecution] = {}


def execution_of(
    context: dg.OpExecutionContext,
    project: Project,
    suite: Suite,
    settings: SuiteRun,
    stage: Stage,
) -> SuiteExecution:
    """The execution that the ops of one Dagster run share; the first stage starts it."""
    key = context.run_id, suite
    if key not in _executions:
        _executions[key] = _start(context, project, suite, settings, stage)
    return _executions[key]


def forget(context: dg.OpExecutionContext, suite: Suite) -> None:
    """Let go of the execution of a suite in a Dagster run."""
    execution = _executions.pop((context.run_id, suite), None)
    if execution is not None:
        execution.session.loop.close()


def _start(
    context: dg.OpExecutionContext,
    project: Project,
    suite: Suite,
    settings: SuiteRun,
    first: Stage,
) -> SuiteExecution:
    project = project.on(today())
    if project.reads_labels:
        with project.store.reading() as reader:
            project = project.labelled(reader.labels())
    tags = context.run.tags
    ranged = "dagster/partition" in tags or "dagster/asset_partition_range_start" in tags
    wanted: Sequence[str] | None = context.partition_keys if ranged else settings.cases
    cases = _cases(project, wanted)
    activate(project.config.root)
    selected = _selected_stages(context, project, suite)
    session = Session(
        project=project,
        # Executed again, a Dagster run has the config of the first one, and is another run.
        run_id=(context.run.parent_run_id is None and settings.run_id) or new_run_id(),
        cases=cases,
        # A run of checks alone names no assets, and does not begin with the cases.
        is_evaluation=not ranged and selected == STAGES and first == STAGES[0],
        use_cache=settings.use_cache,
        observer=_observer.get(),
    )
    start_run(
        session,
        dagster_run_id=context.run_id,
        selection=None if wanted is None else [case.id for case in cases],
    )
    session.take_samples(project.config.replicates)
    from_ui = ranged or context.job_name.startswith("__ASSET_JOB") or "dagster/backfill" in tags
    try:
        if tags.get(RUN_ID_TAG) != session.run_id:
            context.instance.add_run_tags(context.run_id, {RUN_ID_TAG: session.run_id})
        projection = Projection(
            session, context.instance, suite, code_versions(project), from_ui=from_ui
        )
    except BaseException as error:
        end_run(session, "STOPPED", error=f"internal error: {error!r}", exit_code=4)
        raise
    session.projector = projection
    return SuiteExecution(session, projection, selected, from_ui)


def _cases(project: Project, wanted: Sequence[str] | None) -> list[Case]:
    """The cases of a run, in the order of the dataset.

    Raises:
        dagster.Failure: the dataset has no case of such an id.
    """
    if wanted is None:
        return list(project.dataset.cases)
    unknown = set(wanted) - {case.id for case in project.dataset.cases}
    if unknown or not wanted:
        ids = ", ".join(sorted(unknown)) or "an empty list"
        raise dg.Failure(f"The dataset has no such cases: {ids}.", allow_retries=False)
    chosen = frozenset(wanted)
    return [case for case in project.dataset.cases if case.id in chosen]


def _selected_stages(
    context: dg.OpExecutionContext, project: Project, suite: Suite
) -> tuple[Stage, ...]:
    """The stages whose assets or checks this run was asked for."""
    run = context.run
    if run.asset_selection:
        chosen = [stage for stage in STAGES if suite.key(stage) in run.asset_selection]
    elif run.asset_check_selection:
        checked = {check.asset_key for check in run.asset_check_selection}
        chosen = [stage for stage in STAGES if suite.key(stage) in checked]
    else:
        chosen = list(STAGES)
    if run.step_keys_to_execute is not None:
        # Executed again from a failure: only some of the steps.
        keys = run.step_keys_to_execute
        again = {one for step in steps(project) if suite.step_key(step) in keys for one in step}
        chosen = [one for one in chosen if one in again]
    return tuple(chosen)


def steps(project: Project) -> tuple[tuple[Stage, ...], ...]:
    """The stages that one op goes through, in the order of a run."""
    if not project.is_whole:
        return tuple((stage,) for stage in STAGES)
    return ("cases",), ANSWERING, ("judgments",), ("metrics",), ("gate",)


def code_versions(project: Project) -> dict[Stage, str]:
    """Stage → code version of its asset, as the UI shows it."""
    evaluators = digest([[one.criterion, one.identity] for one in project.evaluators])
    return {
        "cases": "1",
        **_answering_versions(project),
        "judgments": evaluators[:16],
        "metrics": digest([evaluators, project.config.slices])[:16],
        "gate": (project.policy.digest if project.policy else "none")[:16],
    }


def _answering_versions(project: Project) -> dict[Stage, str]:
    """The code of each stage; of a system that is called as a whole the one that there is."""
    system = project.evaluated
    if isinstance(system, BlackBox):
        code = system.code.get("run")
        version = code.digest[:16] if code else system.version or system.identity[:16]
        return dict.fromkeys(ANSWERING, version)
    counter = system.code["count_tokens"].digest if "count_tokens" in system.code else None
    return {
        "retrieval": system.code["retrieve"].digest[:16],
        "assembled_context": digest([system.top_k, system.token_budget, counter])[:16],
        "generation": system.code["generate"].digest[:16],
    }
