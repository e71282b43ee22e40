"""Ctrl-C and kill -9: what has finished is on record, and is a hit afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from projects import SampleProject, slow_at
from rag_assets.assets.running import run_suite
from rag_assets.evaluation.lifecycle import mark_dead_runs
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.session import Silent

RUN = """
import sys
from pathlib import Path
from rag_assets.assets.running import run_suite
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.session import Silent
project = load_project(Path("rag_assets.yaml").resolve())
run_suite(project, cases=None, use_cache=True, observer=Silent())
"""
CASES = 12


@pytest.fixture
def slow(tmp_path: Path) -> SampleProject:
    """Twelve cases, one at a time; the eighth generation waits until it is told to go on."""
    sample = SampleProject(tmp_path)
    slow_at(sample, cases=CASES, place=8)
    return sample


def start(sample: SampleProject) -> subprocess.Popen[bytes]:
    """Start a run, and wait until its eighth generation is in flight."""
    process = subprocess.Popen([sys.executable, "-c", RUN], cwd=sample.root)
    deadline = time.monotonic() + 60
    while not (sample.root / "waiting").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def states(sample: SampleProject) -> list[tuple[str, str | None]]:
    with sample.store.reading() as reader:
        return [(row.state, row.completeness) for row in reader.runs()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_calls_in_flight_finish(slow: SampleProject, number: signal.Signals) -> None:
    process = start(slow)
    process.send_signal(number)
    time.sleep(0.2)
    (slow.root / "go").touch()
    process.wait(timeout=60)
    assert states(slow) == [("INTERRUPTED", "PARTIAL")]
    assert slow.calls() == {"retrieve": CASES, "generate": 8}
    # Running again makes a new run that takes over what has finished.
    run = slow.run()
    assert run.row.state == "DECIDED"
    assert run.counts["retrieve"] == {"hit": CASES}
    assert run.counts["generate"] == {"hit": 8, "miss": CASES - 8}
    assert slow.calls() == {"generate": CASES - 8}


def test_kill_9_loses_nothing_that_was_committed(slow: SampleProject) -> None:
    process = start(slow)
    time.sleep(0.8)  # Longer than a result waits for its commit.
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert states(slow) == [("RUNNING", None)]
    with slow.store.writing() as writer:
        mark_dead_runs(writer)
    assert states(slow) == [("INTERRUPTED", "PARTIAL")]
    slow.calls()
    (slow.root / "go").touch()
    run = slow.run()
    assert run.counts["retrieve"] == {"hit": CASES}
    assert run.counts["generate"] == {"hit": 7, "miss": CASES - 7}
    assert slow.calls() == {"generate": CASES - 7}


def test_a_second_run_waits_for_the_first(slow: SampleProject) -> None:
    class Told(Silent):
        def __init__(self) -> None:
            self.holders: list[tuple[str, str]] = []

        def waiting(self, run_id: str, holder: str) -> None:
            self.holders.append((run_id, holder))
            (slow.root / "go").touch()

    first = start(slow)
    told = Told()
    project = load_project(slow.root / "rag_assets.yaml")
    second = run_suite(project, cases=None, use_cache=True, observer=told)
    first.wait(timeout=60)
    with slow.store.reading() as reader:
        runs = {row.id: row for row in reader.runs()}
    assert told.holders == [
        (next(run_id for run_id in runs if run_id != second), f"process {first.pid}")
    ]
    assert [row.state for row in runs.values()] == ["DECIDED", "DECIDED"]
    # The second run took over everything from the first.
    assert slow.calls() == {"retrieve": CASES, "generate": CASES}


def test_a_signal_while_judging_keeps_the_judgments(sample: SampleProject) -> None:
    sample.cases(
        *(
            {"id": f"c{index}", "input": {"question": f"d{index}"}, "expected": "x"}
            for index in range(CASES)
        )
    )
    sample.write(
        "checks.py",
        "import time\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\n\n\n"
        "def slow(output):\n"
        "    if (HERE / 'slow').exists():\n"
        "        (HERE / 'waiting').touch()\n"
        "        time.sleep(0.2)\n"
        "    return True\n",
    )
    slow_check = "{type: custom, criterion: slow, object: 'checks:slow', kind: verdict}"
    sample.replace("rag_assets.yaml", "evaluators:", f"evaluators:\n  - {slow_check}")
    sample.write("slow", "")
    process = start(sample)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    assert states(sample) == [("INTERRUPTED", "PARTIAL")]
    (sample.root / "slow").unlink()
    counts = sample.run().counts["judgment"]
    assert counts["hit"] >= 3
    # Three evaluators: the cases have no labels, so hit_rate is excluded.
    assert counts["hit"] + counts["miss"] == 3 * CASES
