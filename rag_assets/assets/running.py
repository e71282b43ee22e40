"""Running a suite's job inside this process, as the command line does."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from sqlalchemy.exc import DatabaseError

from rag_assets.assets.abandoned import PROCESS_TAG, end_abandoned_runs
from rag_assets.assets.definitions import project_definitions
from rag_assets.assets.diagnosis import collecting
from rag_assets.assets.execution import RUN_ID_TAG, observed_by
from rag_assets.assets.instance import instance_home, open_instance, release_sqlite
from rag_assets.assets.keys import Suite, suite_name
from rag_assets.contracts.errors import ContractError, InputError, StoreError
from rag_assets.evaluation.diagnosis.record import DiagnosisView
from rag_assets.evaluation.lifecycle import new_run_id
from rag_assets.evaluation.owner import this_process
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.session import Observer


def run_suite(
    project: Project, *, cases: Sequence[str] | None, use_cache: bool, observer: Observer
) -> str:
    """Run all stages of a project through its Dagster job, in this process.

    How the run ended stands in its row in the store. Otherwise only errors of our own are raised.

    Args:
        project: the loaded project.
        cases: ids to restrict the run to; None for all.
        use_cache: False reads no memoized result.
        observer: who is told how the run goes on.

    Returns:
        The id of the run.

    Raises:
        StoreError: the store or the Dagster instance cannot be used.
    """
    suite = Suite(suite_name(project.config.project))
    run_id = new_run_id()
    settings: dict[str, object] = {"run_id": run_id, "use_cache": use_cache}
    if cases is not None:
        settings["cases"] = list(cases)
    config = {"resources": {suite.resource: {"config": settings}}}
    with suppress(dg.Failure, KeyboardInterrupt, DagsterExecutionInterruptedError):
        # Cases without a result, a broken contract or a signal: the run's row says which.
        _execute(project, suite.job, config, {RUN_ID_TAG: run_id}, observer)
    return run_id


def run_diagnosis(
    project: Project, settings: Mapping[str, Any], *, observer: Observer
) -> list[DiagnosisView]:
    """Diagnose a run through the suite's diagnosis job, in this process.

    Args:
        project: the loaded project.
        settings: config of the job, as `DiagnosisConfig` has it.
        observer: who is told how it goes on.

    Returns:
        The diagnoses that were made, in their order.

    Raises:
        InputError: there is nothing that could be diagnosed so.
        ContractError: a reranker or `count_tokens` broke its contract.
        KeyboardInterrupt: it was interrupted.
        StoreError: the store or the Dagster instance cannot be used.
    """
    suite = Suite(suite_name(project.config.project))
    config = {"ops": {suite.diagnosis_op: {"config": dict(settings)}}}
    try:
        with collecting() as made:
            _execute(project, suite.diagnosis_job, config, {}, observer)
            return made
    except dg.Failure as failure:
        if isinstance(failure.__cause__, InputError | ContractError):
            raise failure.__cause__ from None
        raise
    except DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None


def _execute(
    project: Project,
    name: str,
    config: Mapping[str, Any],
    tags: Mapping[str, str],
    observer: Observer,
) -> str:
    """Execute a job of a project in this process, and return the id of the Dagster run."""
    job = project_definitions([project]).resolve_job_def(name)
    try:
        with open_instance(project.config) as instance, observed_by(observer):
            end_abandoned_runs(instance)
            result = job.execute_in_process(
                instance=instance,
                # The command line says itself what goes wrong.
                run_config={
                    **config,
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                },
                tags={**tags, PROCESS_TAG: this_process()},
            )
            return result.run_id
    except (DatabaseError, sqlite3.DatabaseError) as error:
        home = instance_home(project.config)
        raise StoreError(
            f"The Dagster instance in {home} cannot be used: {error}. If it is damaged, remove "
            "that folder: the event log starts anew, and recorded runs and cache stay."
        ) from error
    finally:
        release_sqlite()
