"""kill -9 between a commit in the store and the events about it: the next run makes it good."""

from __future__ import annotations

import signal
import subprocess
import sys

import dagster as dg
import pytest

from projected import assert_projected, events
from projects import SampleProject
from rag_assets.assets.definitions import build_definitions
from rag_assets.evaluation.words import STAGES

# Ends with the events of a stage: before they are written, or after, when no head tells of them.
RUN = """
import os, signal, sys
from pathlib import Path
from rag_assets.assets import projection
from rag_assets.assets.running import run_suite
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.session import Silent

moment, stage = sys.argv[1:]
write = projection.write_events

def write_or_die(context, events, **options):
    last = bool(events) and not events[0].planned and events[0].key.path[-1] == stage
    if last and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    write(context, events, **options)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)

projection.write_events = write_or_die
project = load_project(Path("rag_assets.yaml").resolve())
run_suite(project, cases=None, use_cache=True, observer=Silent())
"""
ALL_CALLS = {"retrieve": 3, "generate": 3}


def killed(sample: SampleProject, moment: str, stage: str) -> None:
    """A run in a process of its own that is killed with the events of a stage."""
    command = [sys.executable, "-c", RUN, moment, stage]
    done = subprocess.run(command, cwd=sample.root, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    ("moment", "stage"),
    [
        ("before", "cases"),
        ("after", "retrieval"),
        ("before", "generation"),
        ("after", "judgments"),
        ("after", "metrics"),
    ],
)
def test_the_next_run_executes_nothing_again_and_writes_what_is_missing(
    sample: SampleProject, instance: dg.DagsterInstance, moment: str, stage: str
) -> None:
    killed(sample, moment, stage)
    before = sample.calls()
    run = sample.run()
    # Whatever was called by the run that was killed is on record.
    assert before + sample.calls() == ALL_CALLS
    assert_projected(sample, instance, run)
    assert len(events(instance, "metrics")) >= 1
    assert len(events(instance, "gate")) == 1
    # Nothing was abandoned, and nothing is written twice from now on.
    states = [record.status for record in instance.get_runs()]
    assert states == [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
    written = {name: len(events(instance, name)) for name in STAGES}
    assert_projected(sample, instance, sample.run())
    assert {name: len(events(instance, name)) for name in STAGES} == written


def test_going_back_after_a_kill_is_seen(ran: SampleProject, instance: dg.DagsterInstance) -> None:
    ran.replace("app.py", '" ".join', '"; ".join')
    killed(ran, "after", "generation")
    ran.replace("app.py", '"; ".join', '" ".join')
    run = ran.run()
    # The head spoke of this very content all the time, and the newest event of the other one.
    assert_projected(ran, instance, run)


def test_going_back_to_an_index_after_a_kill_is_seen(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    ran.replace("rag_assets.yaml", "index_version: v1", "index_version: v2")
    good = (ran.root / "app.py").read_text(encoding="utf-8")
    ran.replace("app.py", 'log("retrieve", input["question"])', "os.kill(os.getpid(), 9)")
    ran.replace("app.py", "import json", "import os")
    killed(ran, "never", "")
    ran.write("app.py", good)
    ran.replace("rag_assets.yaml", "index_version: v2", "index_version: v1")
    ran.run()
    (newest,) = instance.fetch_observations(dg.AssetKey(["sample", "index"]), limit=1).records
    assert newest.asset_observation is not None
    assert newest.asset_observation.data_version == "v1"


def test_what_somebody_wiped_is_emitted_again(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    key = dg.AssetKey(["sample", "retrieval"])
    instance.wipe_assets([key])
    assert events(instance, "retrieval") == []
    written = {name: len(events(instance, name)) for name in STAGES}
    assert_projected(ran, instance, ran.run())
    assert {name: len(events(instance, name)) for name in STAGES} == written | {"retrieval": 3}


def test_a_partition_that_turned_red_in_a_stopped_run_turns_green(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    good = (ran.root / "app.py").read_text(encoding="utf-8")
    ran.replace("app.py", "candidates=passages[:depth]", 'candidates=[{"doc_id": ""}]')
    definitions = build_definitions(ran.root)
    key = dg.AssetKey(["sample", "retrieval"])
    cases = definitions.resolve_asset_graph().get(key).partitions_def
    assert cases is not None

    def statuses() -> dict[str, str]:
        found = instance.get_status_by_partition(key, ["one", "two", "far"], cases) or {}
        return {case: status.value for case, status in found.items() if status is not None}

    tags = {
        "dagster/asset_partition_range_start": "one",
        "dagster/asset_partition_range_end": "far",
    }
    job = definitions.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(
        instance=instance, asset_selection=[key], tags=tags, raise_on_error=False
    )
    assert not done.success
    assert statuses() == dict.fromkeys(("one", "two", "far"), "FAILED")
    # The content is the one of the first run, and so are the fingerprints.
    ran.write("app.py", good)
    ran.run()
    assert statuses() == dict.fromkeys(("one", "two", "far"), "MATERIALIZED")
