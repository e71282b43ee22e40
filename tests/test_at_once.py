"""Several processes on one project at once: runs, readers, the UI with its daemon, and a holder.

Starting the UI takes most of the time, so one session serves the tests in their order.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from command_line import call
from locations import FRESH, stale_by
from projected import assert_projected
from projects import SampleProject, relevant
from rag_assets.evaluation.words import CASE_STAGES
from serving import Session, serving, until

CASES = [f"c{index:02}" for index in range(12)]
LOOKS = 20
LAUNCH = """
mutation ($job: JobOrPipelineSelector!) {
  launchRun(executionParams: {selector: $job, runConfigData: {}}) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
JOB = {
    "repositoryLocationName": "rag_assets",
    "repositoryName": "__repository__",
    "jobName": "sample_evaluation",
}
HOLD = """
import sys, time
import duckdb
connection = duckdb.connect(".rag_assets/store.duckdb")
print("held", flush=True)
sys.stdin.read()
"""
# Ends with the process that has started it.
TAKE_ONCE = f"""
HOLDERS = []


def take_once():
    if not (HERE / "taken").exists():
        (HERE / "taken").touch()
        command = [sys.executable, "-c", {HOLD!r}]
        pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}}
        quiet = {{"stderr": subprocess.DEVNULL}}
        # The run may be writing just now; then the holder tries again.
        while not HOLDERS:
            holder = subprocess.Popen(command, cwd=HERE, **pipes, **quiet)
            if holder.stdout.readline():
                HOLDERS.append(holder)
"""


def slow_project(root: Path) -> SampleProject:
    """Twelve cases of which each takes a moment, one after the other."""
    sample = SampleProject(root)
    sample.cases(
        *({"id": name, "input": {"question": name}, "expected": relevant("x")} for name in CASES)
    )
    sample.replace(
        "rag_assets.yaml", "project: sample", "project: sample\nconcurrency: {system: 1}"
    )
    sample.replace("app.py", "import json", "import json, time")
    sample.replace(
        "app.py", "return answer_of(context)", "time.sleep(0.1)\n        return answer_of(context)"
    )
    return sample


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with serving(slow_project(tmp_path_factory.mktemp("at_once"))) as session:
        yield session


@pytest.fixture
def instance(session: Session) -> Iterator[dg.DagsterInstance]:
    with session.sample.instance() as instance:
        yield instance


def started(sample: SampleProject) -> subprocess.Popen[str]:
    """A `rag-assets run` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "rag_assets.cli", "run"],
        cwd=sample.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def generation_begun(sample: SampleProject) -> bool:
    log = sample.root / "calls.log"
    return log.exists() and "generate" in log.read_text(encoding="utf-8")


def test_two_runs_and_twenty_looks(session: Session, instance: dg.DagsterInstance) -> None:
    sample = session.sample
    runs = [started(sample) for _ in range(2)]
    until(lambda: generation_begun(sample), "the first calls")
    looks = []
    while len(looks) < LOOKS or any(run.poll() is None for run in runs):
        command = ("inspect", "latest") if len(looks) % 2 else ("runs",)
        looks.append(call(sample.root, *command))
        time.sleep(0.05)
    assert [(look.exit_code, look.stderr) for look in looks] == [(0, "")] * len(looks)
    ends = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends

    # One of them waited, and said for whom.
    pattern = r"waiting for (run_\w+) \(process (\d+)\) to end …"
    told = [re.search(pattern, stderr) for _, stderr in ends]
    (waiter,) = [index for index, one in enumerate(told) if one is not None]
    with sample.store.reading() as reader:
        second, first = reader.runs()
    match = told[waiter]
    assert match is not None
    assert match.groups() == (first.id, str(runs[1 - waiter].pid))

    assert [row.state for row in (first, second)] == ["DECIDED", "DECIDED"]
    for row in (first, second):
        stages = sample.read(row.id).stages
        assert {(one.case_id, one.stage) for one in stages} == {
            (case, stage) for case in CASES for stage in CASE_STAGES
        }
        assert len(stages) == len(CASES) * len(CASE_STAGES)
    assert sample.read(second.id).counts["execution"] == {"hit": len(CASES)}
    assert sample.calls() == {"retrieve": len(CASES), "generate": len(CASES)}
    assert_projected(sample, instance, sample.read(second.id))
    # The code server of the UI has loaded the same code, in a process of its own.
    assert stale_by(session.ask, CASES) == FRESH


def launched(session: Session) -> str:
    """A run that the UI was asked for."""
    answer: dict[str, Any] = session.ask(LAUNCH, job=JOB)["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    return str(answer["run"]["runId"])


def finished(instance: dg.DagsterInstance, dagster_run_id: str) -> dg.RunRecord:
    """The record of a run once it has ended."""

    def record() -> dg.RunRecord | None:
        found = instance.get_run_record_by_id(dagster_run_id)
        return found if found is not None and found.dagster_run.is_finished else None

    ended = until(record, "the end of a run")
    assert ended is not None
    return ended


def test_two_launches_of_the_ui_do_not_overlap(
    session: Session, instance: dg.DagsterInstance
) -> None:
    session.sample.replace("rag_assets.yaml", "index_version: v1", "index_version: v2")
    session.sample.replace("app.py", '" ".join', '"; ".join')
    records = [finished(instance, one) for one in [launched(session), launched(session)]]
    assert {record.dagster_run.status for record in records} == {dg.DagsterRunStatus.SUCCESS}
    (_, end), (start, _) = sorted((one.start_time or 0, one.end_time or 0) for one in records)
    assert start >= end
    assert session.sample.calls() == {"retrieve": len(CASES), "generate": len(CASES)}
    until(lambda: stale_by(session.ask, CASES) == FRESH, "what was edited to be loaded again")


def test_a_killed_command_line_does_not_hold_up_the_ui(
    session: Session, instance: dg.DagsterInstance
) -> None:
    session.sample.calls()
    session.sample.replace("app.py", "def answer_of(context):", "def answer_of(context, more=1):")
    run = started(session.sample)
    until(lambda: generation_begun(session.sample), "the first calls")
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert finished(instance, launched(session)).dagster_run.status == dg.DagsterRunStatus.SUCCESS
    with session.sample.store.reading() as reader:
        newest, killed, *_ = reader.runs()
    assert (newest.state, killed.state) == ("DECIDED", "INTERRUPTED")
    assert_projected(session.sample, instance, session.sample.read(newest.id))


# A holder


@pytest.fixture
def ran(sample: SampleProject) -> SampleProject:
    sample.replace(
        "rag_assets.yaml", "project: sample", "project: sample\nstore: {lock_timeout_s: 0.3}"
    )
    sample.first_run()
    return sample


@pytest.fixture
def holder(ran: SampleProject) -> Iterator[subprocess.Popen[str]]:
    """A process that has the store's file open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=ran.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    "command", [("run",), ("inspect", "latest"), ("runs",), ("gate", "latest")]
)
def test_who_holds_the_store_for_long_is_named(
    ran: SampleProject, holder: subprocess.Popen[str], command: tuple[str, ...]
) -> None:
    done = call(ran.root, *command)
    assert done.exit_code == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert f" has been in use by process {holder.pid} (" in last
    assert last.endswith(
        ") for more than 0.3 s. Wait for that process or end it; store.lock_timeout_s in the "
        "config sets the patience."
    )
    assert "Traceback" not in done.stderr
    holder.kill()
    holder.wait()
    # Nothing is lost, and nothing is in the way of the next run.
    assert call(ran.root, "run").exit_code == 0
    assert ran.calls() == {}
    with ran.store.reading() as reader:
        assert [row.state for row in reader.runs()] == ["DECIDED", "DECIDED"]


def test_who_takes_the_store_in_the_middle_of_a_run_is_named(ran: SampleProject) -> None:
    ran.replace("app.py", "import json", "import json, subprocess, sys")
    ran.replace("app.py", "def answer_of(", f"{TAKE_ONCE}\n\ndef answer_of(")
    ran.replace("app.py", "return answer_of(context)", "take_once(); return answer_of(context)")
    run = started(ran)
    stdout, stderr = run.communicate()
    assert run.returncode == 2, stderr
    assert re.search(r"store\.duckdb has been in use by process \d+ \(", stderr.splitlines()[-1])
    assert "Traceback" not in stderr
    assert stdout == ""
    assert call(ran.root, "runs").exit_code == 0
    last = ran.run()
    assert last.row.state == "DECIDED"


def test_a_short_hold_is_waited_out(ran: SampleProject, holder: subprocess.Popen[str]) -> None:
    ran.replace("rag_assets.yaml", "lock_timeout_s: 0.3", "lock_timeout_s: 60")
    run = started(ran)
    time.sleep(4)
    assert run.poll() is None
    assert holder.stdin is not None
    holder.stdin.close()
    _, stderr = run.communicate()
    assert run.returncode == 0, stderr
