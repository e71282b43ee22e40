"""Calls that never return: time-outs, what is lost with them, and what a run says meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from command_line import call
from projects import SampleProject
from rag_assets.cli import progress

ANSWER = b'{"answer": "from the server"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ANSWER)
GENERATE = """
        import json, urllib.request
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:PORT/{input['question'][0]}") as reply:
            return json.load(reply)
"""


class Model:
    """A server that answers at once, a byte at a time, or with its headers only, by path."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.healthy = threading.Event()
        self.late = threading.Event()
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            path = connection.recv(65536).split()[1]
            connection.sendall(HEAD)
            if path == b"/a":
                self.healthy.wait()
            elif path == b"/c":
                for byte in ANSWER[:-1]:
                    connection.sendall(bytes([byte]))
                    if not self.healthy.is_set():
                        self.healthy.wait(0.1)
                connection.sendall(ANSWER[-1:])
                self.late.set()
                return
            connection.sendall(ANSWER)
            self.late.set()

    def close(self) -> None:
        self.healthy.set()
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


@pytest.fixture
def hanging(sample: SampleProject, model: Model) -> SampleProject:
    """A project whose first two cases hang; each attempt may take half a second."""
    sample.replace(
        "app.py",
        "        return answer_of(context)\n",
        GENERATE.replace("PORT", str(model.port)),
    )
    sample.replace("rag_assets.yaml", "  name: sample\n", "  name: sample\n  timeout_s: 0.5\n")
    return sample


def test_a_model_that_hangs_costs_its_cases_only(hanging: SampleProject, model: Model) -> None:
    run = hanging.run()
    found = {case: run.judgment(case, "answer_correct") for case in ("one", "two", "far")}
    assert {case: (one.status, one.reason) for case, one in found.items()} == {
        "one": ("missing", "timeout"),
        "two": ("missing", "timeout"),
        "far": ("observed", None),
    }
    metric = run.metric("hit_rate_at_2")
    assert (metric.observed, metric.missing) == (3, 0)
    # The replies come now, and belong to nobody.
    model.late.clear()
    model.healthy.set()
    assert model.late.wait(30)
    assert [run.stage(case, "generation").digest for case in ("one", "two")] == [None, None]
    hanging.calls()
    again = hanging.run()
    assert hanging.calls() == {"generate": 2}
    assert again.metric("answer_correct").observed == 3


def test_the_case_that_is_waited_for_is_named(
    hanging: SampleProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_EVERY_S", 0.3)
    done = call(hanging.root, "run", "--cases", "one")
    assert "generation: 0 of 1 case; waiting for one, 0 s so far\n" in done.stderr
    assert "first failure: generation of one: TimeoutError: " in done.stderr
