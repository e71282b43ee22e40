"""`rag-assets ui` in a process of its own, and asking its GraphQL."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any, TypeVar

from projects import SampleProject

T = TypeVar("T")

PATIENCE_S = 120
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(look: Callable[[], T], what: str) -> T:
    deadline = time.monotonic() + PATIENCE_S
    pauses = chain((0.05, 0.1, 0.2), repeat(0.4))  # A look takes time from what it looks for.
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(next(pauses))
    return found


def descendants(pid: int) -> dict[int, str]:
    """Process id → command line of everything that a process has started."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    found = {pid: ""}
    for _ in rows:
        grown = found | {int(row[0]): row[2] for row in rows if int(row[1]) in found}
        if len(grown) == len(found):
            break
        found = grown
    del found[pid]
    return found


def alive(pids: dict[int, str]) -> list[str]:
    """The command lines of those processes that still run."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    running = {int(pid) for pid, state in rows if not state.startswith("Z")}
    return [command for pid, command in pids.items() if pid in running]


class Session:
    """`rag-assets ui` in a process of its own."""

    def __init__(self, sample: SampleProject, *options: str) -> None:
        self.sample = sample
        self.said = sample.root / "said.txt"
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rag_assets.cli", "ui", *options],
                cwd=sample.root,
                stdout=said,
                stderr=said,
            )
        self.started: dict[int, str] = {}
        self.url = ""

    def text(self) -> str:
        return self.said.read_text(encoding="utf-8")

    def wait_until_it_serves(self) -> None:
        def served() -> str:
            assert self.process.poll() is None, self.text()
            return self.text() if "Ctrl-C ends it." in self.text() else ""

        line = next(line for line in until(served, "the URL").splitlines() if "http" in line)
        self.url = line.rpartition(" ")[2]
        self.started = descendants(self.process.pid)

    def ask(self, query: str, **variables: Any) -> Any:
        request = urllib.request.Request(
            f"{self.url}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with OPENER.open(request, timeout=PATIENCE_S) as answer:
            document = json.load(answer)
        assert "errors" not in document, document
        return document["data"]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end. Returns the exit code."""
        self.started |= descendants(self.process.pid)
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def kill(self) -> None:
        """End it whatever has happened."""
        if self.process.poll() is None:
            try:
                self.end()
            except subprocess.TimeoutExpired:
                # Its servers see the end of their input, and follow.
                self.process.kill()
                self.process.wait()


@contextmanager
def serving(sample: SampleProject) -> Iterator[Session]:
    """A session on a port of its own, which has ended with the block, and all it has started."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    session = Session(sample, "--port", str(port))
    try:
        session.wait_until_it_serves()
        yield session
    finally:
        session.kill()
        until(lambda: not alive(session.started), "the end of the servers")
