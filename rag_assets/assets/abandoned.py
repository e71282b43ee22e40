"""Dagster runs whose process was killed: nobody else would ever end them.

Dagster watches the processes that it launches itself, and not those of the command line. A run that
seems to go on forever keeps its place in the pool, so that every later one waits in the queue.
"""

from __future__ import annotations

import dagster as dg
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES

from rag_assets.evaluation.owner import is_alive, now

PROCESS_TAG = "rag/process"


def end_abandoned_runs(instance: dg.DagsterInstance) -> None:
    """Report the runs of the command line as failed whose process has ended before them."""
    going_on = dg.RunsFilter(statuses=IN_PROGRESS_RUN_STATUSES)
    for run in instance.get_runs(going_on):
        # One that is executed again from the UI has the tags of its parent, and another process.
        process = run.tags.get(PROCESS_TAG) if run.parent_run_id is None else None
        # A process of another host is out of sight, so it counts as alive.
        if process is not None and not is_alive(process, now()):
            # It may have ended well between the two looks.
            still = instance.get_run_by_id(run.run_id)
            if still is None or still.status not in IN_PROGRESS_RUN_STATUSES:
                continue
            instance.report_run_failed(run, "The process of this run ended before the run did.")
