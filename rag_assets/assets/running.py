"""Running a suite's job inside this process, as the command line does."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from sqlalchemy.exc import DatabaseError

from rag_assets.assets.abandoned import PROCESS_TAG, end_abandoned_runs
from rag_assets.assets.definitions import project_definitions
from rag_assets.assets.execution import RUN_ID_TAG, observed_by
from rag_assets.assets.instance import instance_home, open_instance, release_sqlite
from rag_assets.assets.keys import Suite, suite_name
from rag_assets.contracts.errors import StoreError
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
    job = project_definitions([project]).resolve_job_def(suite.job)
    try:
        with open_instance(project.config) as instance, observed_by(observer):
            end_abandoned_runs(instance)
            job.execute_in_process(
                instance=instance,
                run_config={
                    "resources": {suite.resource: {"config": settings}},
                    # The command line says itself what goes wrong.
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                },
                tags={RUN_ID_TAG: run_id, PROCESS_TAG: this_process()},
            )
    except dg.Failure:
        pass  # Cases without a result, or a broken contract: the run's row says which.
    except (KeyboardInterrupt, DagsterExecutionInterruptedError):
        pass
    except (DatabaseError, sqlite3.DatabaseError) as error:
        home = instance_home(project.config)
        raise StoreError(
            f"The Dagster instance in {home} cannot be used: {error}. If it is damaged, remove "
            "that folder: the event log starts anew, and recorded runs and cache stay."
        ) from error
    finally:
        release_sqlite()
    return run_id
