import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_assets.evaluation.owner import is_alive, now, this_process

OWNER = """
import sys
from rag_assets.evaluation.owner import this_process
print(this_process(), flush=True)
sys.stdin.read()
"""


def test_this_process_is_alive() -> None:
    owner = this_process()
    assert is_alive(owner, now())
    assert this_process() == owner
    described = json.loads(owner)
    assert (described["host"], described["pid"]) == (socket.gethostname(), os.getpid())


def test_another_process_is_alive_until_it_ends() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        owner = process.stdout.readline()
        assert json.loads(owner)["pid"] == process.pid
        assert is_alive(owner, now())
        process.kill()
    assert not is_alive(owner, now())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_that_nobody_has_collected_is_dead() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        owner = process.stdout.readline()
        process.kill()
        # Not waited for: it stays in the table of processes, as one that has ended.
        deadline = time.monotonic() + 10
        while is_alive(owner, now()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, 0)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    described = json.loads(this_process())
    assert not is_alive(json.dumps({**described, "started": "1"}), now())


def test_a_process_of_another_host_counts_as_alive() -> None:
    described = json.loads(this_process())
    elsewhere = json.dumps({**described, "host": "elsewhere", "pid": 2**22 + 1})
    assert is_alive(elsewhere, now())
    assert not is_alive(elsewhere, "2026-09-16T10:00:00.000+00:00")
    assert not is_alive(json.dumps({**described, "pid": 2**22 + 1}), now())
