"""The Python entry points inside a running event loop, as in a notebook or a web server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from projects import SampleProject

IN_LOOP = """
import asyncio, signal, sys

NAMES = ("run", "get_event_loop", "get_running_loop", "new_event_loop", "wait_for", "Runner")

def asyncio_now():
    loop = asyncio.get_running_loop()
    policy = type(asyncio.get_event_loop_policy())
    return [getattr(asyncio, name) for name in NAMES], policy, loop, loop._run_once.__func__

async def main():
    before, handlers = asyncio_now(), [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    turns = []

    async def others():
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await asyncio.sleep(0)

    import rag_assets

    definitions = rag_assets.build_definitions(".")
    # What runs a job in this thread has its own handlers; having one takes none.
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    job = definitions.resolve_job_def("sample_evaluation")
    assert job.execute_in_process(raise_on_error=False).success
    assert asyncio_now() == before
    assert "nest_asyncio" not in sys.modules
    # The loop goes on with what was on it.
    seen = len(turns)
    await asyncio.sleep(0.01)
    assert len(turns) > seen
    task.cancel()

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_suite_runs_inside_a_running_loop(sample: SampleProject, kind: str) -> None:
    sample.replace("app.py", "    def retrieve(", f"    {kind} retrieve(")
    sample.replace("app.py", "    def generate(", f"    {kind} generate(")
    done = subprocess.run(
        [sys.executable, "-c", IN_LOOP],
        cwd=sample.root,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    with sample.store.reading() as reader:
        (row,) = reader.runs()
    run = sample.read(row.id)
    assert (run.row.state, run.row.completeness) == ("DECIDED", "COMPLETE")
    assert run.metric("answer_correct").observed == 3
