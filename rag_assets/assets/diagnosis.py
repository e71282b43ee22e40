"""Diagnosis in Dagster: an asset for the labels of failed cases, and a job that finds them.

The asset is written by its own job alone, which says what to diagnose. It is no step of the
evaluation: to materialize a suite never re-executes its failed cases.
"""

# Dagster looks at the annotations of an op itself, so they are not postponed here.
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError

from rag_assets.assets.events import write_events
from rag_assets.assets.execution import current_observer
from rag_assets.assets.keys import DIAGNOSIS, Suite
from rag_assets.assets.serialization import AssetEvent
from rag_assets.contracts.canonical import digest
from rag_assets.contracts.errors import ContractError, InputError
from rag_assets.contracts.loading import activate
from rag_assets.evaluation.corpora import today
from rag_assets.evaluation.diagnosis.diagnosing import diagnose
from rag_assets.evaluation.diagnosis.interventions import token_budget
from rag_assets.evaluation.diagnosis.planning import (
    Request,
    diagnosable_criteria,
    plan_diagnosis,
)
from rag_assets.evaluation.diagnosis.record import DiagnosisView
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.wording import counted

# What the jobs of this process have made, for the command line that has started one.
_made: ContextVar[list[DiagnosisView]] = ContextVar("made", default=[])  # noqa: B039


@contextmanager
def collecting() -> Iterator[list[DiagnosisView]]:
    """The diagnoses that are made in this process inside the block."""
    made: list[DiagnosisView] = []
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


class DiagnosisConfig(dg.Config):
    """Run config of a diagnosis.

    Attributes:
        run: the run to diagnose: an id, the beginning of one, `latest` or `latest~N`.
        criterion: what the cases failed.
        intervention: what is changed; `all` for gold context and the replays without an argument.
        top_k: for top-k, the new one.
        token_budget: for token-budget, the new one, or `unlimited`.
        reranker: for reranker, `module:function`.
        below: for a score criterion, the bar that failed cases are below.
        control: whether the cases are executed without the intervention as well.
    """

    run: str = "latest"
    criterion: str
    intervention: Literal["gold-context", "top-k", "token-budget", "reranker", "all"] = (
        "gold-context"
    )
    top_k: int | None = None
    token_budget: str | None = None
    reranker: str | None = None
    below: float | None = None
    control: bool = True

    def request(self) -> Request:
        """The request that the config stands for.

        Raises:
            InputError: the token budget is neither a number nor `unlimited`.
        """
        settings: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        budget = token_budget(self.token_budget)
        return Request(**settings | {"token_budget": budget})


def diagnosis_asset(project: Project, suite: Suite) -> dg.AssetSpec:
    """The asset that holds the label of each diagnosed case."""
    return dg.AssetSpec(
        suite.key(DIAGNOSIS),
        deps=[suite.key("judgments")],
        partitions_def=dg.StaticPartitionsDefinition([case.id for case in project.dataset.cases]),
        group_name=suite.name,
        description=(
            "Why a failed case failed, as far as executing it again with one thing changed can "
            f"tell. Written by the job {suite.diagnosis_job}."
        ),
        owners=project.config.dagster.owners,
        kinds={"python", "duckdb"},
        tags={"rag/suite": suite.name, "rag/stage": DIAGNOSIS},
    )


def diagnosis_job(project: Project, suite: Suite) -> dg.JobDefinition:
    """The job that diagnoses a run, as its config says."""

    @dg.op(name=suite.diagnosis_op, out=dg.Out(dg.Nothing), pool=suite.pool)
    def run(context: dg.OpExecutionContext, config: DiagnosisConfig) -> None:
        activate(project.config.root)
        try:
            with project.store.reading() as reader:
                now = project.on(today()).labelled(reader.labels())
                plan = plan_diagnosis(reader, now, config.request())
            context.log.info(f"{counted(plan.generations, 'generation')} will be executed.")
            for view in diagnose(plan, current_observer(), context.run_id):
                _write(context, suite, view, plan.run.row.dagster_run_id)
                _made.get().append(view)
        except (InputError, ContractError) as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        except KeyboardInterrupt:
            raise DagsterExecutionInterruptedError from None

    preset: dict[str, Any] = {}
    criteria = diagnosable_criteria(project)
    if criteria:
        # What the Launchpad begins with.
        begun = {"run": "latest", "intervention": "gold-context", "criterion": criteria[0]}
        preset["config"] = {"ops": {suite.diagnosis_op: {"config": begun}}}

    @dg.job(
        name=suite.diagnosis_job,
        description="Executes the failed cases of a run again with one thing changed.",
        executor_def=dg.in_process_executor,
        **preset,
    )
    def job() -> None:
        run()

    return job


def _write(
    context: dg.OpExecutionContext, suite: Suite, view: DiagnosisView, parent: str | None
) -> None:
    """An event for each diagnosed case, and an observation that sums them up."""
    key = suite.key(DIAGNOSIS)
    events = [
        AssetEvent(
            key,
            one["id"],
            {
                "dagster/data_version": digest([view.id, one])[:24],
                "dagster/data_version_is_user_provided": "true",
            },
            _case_metadata(context, view, one, parent),
        )
        for one in view.cases
    ]
    write_events(context, events)
    context.log_event(dg.AssetObservation(key, metadata=_summary(view)))


def _case_metadata(
    context: dg.OpExecutionContext,
    view: DiagnosisView,
    one: Mapping[str, Any],
    parent: str | None,
) -> dict[str, Any]:
    children = view.record["children"]
    found: dict[str, Any] = {
        "label": one["label"],
        "reason": one["reason"],
        "strength": one["strength"] + ("" if view.record["control"] else " (without control)"),
        "best relevant position": one["best_position"] or "none",
        "control": _verdict(one["control"]),
        view.name: _verdict(one["intervention"]),
        "run": view.record["run"],
        f"child run of {view.name}": children["intervention"] or "none",
        "child run of control": children["control"] or "none",
        "executed in": dg.MetadataValue.dagster_run(context.run_id),
        "inspect": f"rag-assets inspect {view.id} --case {shlex.quote(one['id'])}",
    }
    if one["notes"]:
        found["notes"] = ", ".join(one["notes"])
    if parent is not None:
        found["run in Dagster"] = dg.MetadataValue.dagster_run(parent)
    return found


def _summary(view: DiagnosisView) -> dict[str, Any]:
    record, number = view.record, len(view.cases)
    labels = [
        {"label": label, "cases": count, "of": number} for label, count in view.counts().items()
    ]
    factors = [
        {
            "factor": one["factor"],
            "cases": one["cases"],
            "of": one["of"],
            "candidate experiments": "; ".join(one["experiments"]),
        }
        for one in record["implicated"]
    ]
    return {
        "intervention": view.name,
        "run": record["run"],
        "criterion": record["criterion"]["name"],
        "recovered": f"{record['recovered']} of {number}",
        "control passed": f"{record['control_passed']} of {number}",
        "labels": _table(labels),
        **({"implicated": _table(factors)} if factors else {}),
        "diagnosis": view.id,
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> Any:
    return dg.MetadataValue.table([dg.TableRecord(dict(row)) for row in rows])


def _verdict(replayed: Mapping[str, Any] | None) -> str:
    if replayed is None:
        return "not executed"
    return f"{replayed['verdict']}: {replayed['why']}" if replayed["why"] else replayed["verdict"]
