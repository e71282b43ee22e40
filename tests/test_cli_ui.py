"""`rag-assets ui` with Dagster's own webserver, daemon and code server.

Starting them takes most of the time, so one session serves the tests in their order; each test
says itself what it needs of it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorState, SensorInstigatorData

from command_line import call
from projects import SampleProject
from rag_assets.cli import webserver
from rag_assets.cli.watching import Watch
from serving import PATIENCE_S, Session, alive, descendants, serving, until

SENSOR = {
    "repositoryLocationName": "rag_assets",
    "repositoryName": "__repository__",
    "sensorName": "sample_index_version",
}
START_SENSOR = """
mutation ($selector: SensorSelector!) { startSensor(sensorSelector: $selector) { __typename } }
"""
TICKS = """
query ($selector: SensorSelector!) {
  sensorOrError(sensorSelector: $selector) {
    ... on Sensor {
      sensorState {
        ticks { tickId status skipReason runKeys runIds error { message causes { message } } }
      }
    }
  }
}
"""
LOCATION = """
{
  workspaceOrError {
    ... on Workspace {
      locationEntries {
        name
        locationOrLoadError {
          ... on PythonError { message causes { message } }
          ... on RepositoryLocation { repositories { assetGroups { groupName } } }
        }
      }
    }
  }
}
"""
PARTITIONS = """
{ assetNodeOrError(assetKey: {path: ["sample", "cases"]}) { ... on AssetNode { partitionKeys } } }
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    sample = SampleProject(tmp_path_factory.mktemp("ui"))
    sample.replace("rag_assets.yaml", "index_version: v1", "index_version: {file: VERSION}")
    sample.write("VERSION", "A")
    with serving(sample) as session:
        yield session


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def its_own_signals() -> Iterator[None]:
    """What becomes of signals in the block is forgotten with it."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    handlers = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("It went on."))
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def refused(folder: Path, *options: str) -> tuple[int, str]:
    """Exit code and message of a `ui` that does not start."""
    with its_own_signals():
        # Should it start after all, it would serve for ever.
        signal.alarm(PATIENCE_S)
        done = call(folder, "ui", *options)
    assert done.stdout == ""
    return done.exit_code, done.stderr


def test_the_url_is_printed_and_the_project_is_served(session: Session) -> None:
    assert f"The Dagster UI of sample: {session.url}\n" in session.text()
    (entry,) = session.ask(LOCATION)["workspaceOrError"]["locationEntries"]
    assert entry["name"] == "rag_assets"
    (repository,) = entry["locationOrLoadError"]["repositories"]
    assert repository["assetGroups"] == [{"groupName": "sample"}]


def test_everything_is_written_under_the_state_folder(session: Session) -> None:
    assert {path.name for path in session.sample.root.iterdir()} == {
        "VERSION",
        "app.py",
        "cases.jsonl",
        "rag_assets.yaml",
        "said.txt",
        ".rag_assets",
    }


def test_a_second_one_is_refused(session: Session) -> None:
    code, message = refused(session.sample.root)
    assert code == 2
    assert (
        f"The UI of this project runs already at {session.url}. Open it there, or end it first."
        in message
    )


def test_changed_files_are_loaded_again(session: Session) -> None:
    sample = session.sample
    cases = (sample.root / "cases.jsonl").read_text(encoding="utf-8")
    sample.write("cases.jsonl", cases.replace('"id": "far"', '"id": "near"'))
    until(lambda: "Loaded again: cases.jsonl." in session.text(), "the new case")
    assert session.ask(PARTITIONS)["assetNodeOrError"]["partitionKeys"] == ["one", "two", "near"]
    sample.replace("app.py", "depth=4, top_k=2", "depth=4, top_k=5")
    until(lambda: "after a change of app.py." in session.text(), "the problem")
    message = "rag_assets.yaml:6: system.rag.top_k: is 5, more than the depth 4; use at most 4."
    assert message in session.text()
    (entry,) = session.ask(LOCATION)["workspaceOrError"]["locationEntries"]
    assert message in entry["locationOrLoadError"]["causes"][-1]["message"]
    sample.replace("app.py", "depth=4, top_k=5", "depth=4, top_k=2")
    until(lambda: "Loaded again: app.py." in session.text(), "the cure")


class Ticks:
    """The sensor in the real daemon, without the half minute between its ticks."""

    def __init__(self, session: Session, instance: dg.DagsterInstance) -> None:
        self.session = session
        self.instance = instance

    def all(self) -> list[dict[str, Any]]:
        """The finished ticks, newest first."""
        found = self.session.ask(TICKS, selector=SENSOR)["sensorOrError"]["sensorState"]["ticks"]
        return [tick for tick in found if tick["status"] != "STARTED"]

    def next(self) -> dict[str, Any]:
        """Let a tick be due, and wait for it."""
        before = len(self.all())
        if before:
            self._make_due()
        return until(lambda: self.all() if len(self.all()) > before else [], "a tick")[0]

    def _make_due(self) -> None:
        state = until(self._resting, "the end of the last tick")
        data = state.instigator_data
        assert isinstance(data, SensorInstigatorData)
        past = data._replace(last_tick_timestamp=None, last_tick_start_timestamp=None)
        self.instance.update_instigator_state(state.with_data(past))

    def _resting(self) -> InstigatorState | None:
        """The sensor's state once the daemon has written what came of the last tick."""
        (state,) = self.instance.all_instigator_state()
        time.sleep(0.2)
        (later,) = self.instance.all_instigator_state()
        return later if later == state else None


def version_of(session: Session, tick: dict[str, Any]) -> str:
    """The index version that the run of a tick has recorded, once it has come to its end."""
    (dagster_run_id,) = tick["runIds"]

    def record() -> str:
        with session.sample.store.reading() as reader:
            for row in reader.runs():
                if row.dagster_run_id == dagster_run_id and row.state == "DECIDED":
                    return row.record
        return ""

    return str(json.loads(until(record, "the run"))["system"]["index_version"])


def observed(instance: dg.DagsterInstance) -> list[str]:
    """The data versions of the index, newest first, without those that were said once more.

    The sensor says what it has seen, and the run what it searches.
    """
    records = instance.fetch_observations(dg.AssetKey(["sample", "index"]), limit=10).records
    found = [record.asset_observation for record in records if record.asset_observation]
    return [key for key, _ in groupby((one.tags or {})["dagster/data_version"] for one in found)]


def test_the_sensor_in_the_real_daemon(session: Session) -> None:
    sample = session.sample
    with sample.instance() as instance:
        ticks = Ticks(session, instance)
        session.ask(START_SENSOR, selector=SENSOR)
        first = ticks.next()
        assert first["skipReason"] == "index_version is A; a run is requested when it changes."

        sample.write("VERSION", "B")
        sample.write("VERSION", "C")
        edge = ticks.next()
        assert (edge["status"], edge["runKeys"]) == ("SUCCESS", ["sample:A->C:1"])
        # Nothing was loaded again meanwhile: a run reads the version for itself.
        assert version_of(session, edge) == "C"

        (sample.root / "VERSION").unlink()
        failed = ticks.next()
        assert (failed["status"], failed["runKeys"]) == ("FAILURE", [])
        assert "cannot be read from VERSION: No such file or directory." in str(failed["error"])

        sample.write("VERSION", "A")
        back = ticks.next()
        assert (back["status"], back["runKeys"]) == ("SUCCESS", ["sample:C->A:2"])
        assert version_of(session, back) == "A"
        assert ticks.next()["skipReason"] == "index_version is still A."
        assert observed(instance) == ["A", "C", "A"]


def test_ctrl_c_ends_everything(session: Session) -> None:
    assert len([one for one in descendants(session.process.pid).values() if "server" in one]) >= 3
    assert session.end(signal.SIGINT) == 130
    assert alive(session.started) == []


@pytest.fixture
def starting(sample: SampleProject) -> Iterator[Session]:
    """A session whose first server has just been started."""
    session = Session(sample)
    try:
        until(lambda: descendants(session.process.pid), "the first server")
        session.started = descendants(session.process.pid)
        yield session
    finally:
        session.kill()


def test_when_a_server_dies_all_end_and_its_last_words_are_shown(starting: Session) -> None:
    for pid in starting.started:
        os.kill(pid, signal.SIGKILL)
    assert starting.process.wait(timeout=PATIENCE_S) == 4
    assert "The Dagster code server ended with exit code -9, and the UI with it." in starting.text()
    assert alive(starting.started) == []


def test_servers_do_not_survive_their_starter(starting: Session) -> None:
    starting.process.kill()
    starting.process.wait()
    until(lambda: not alive(starting.started), "the end of the servers")


def test_a_port_that_is_taken(sample: SampleProject, taken: int) -> None:
    code, message = refused(sample.root, "--port", str(taken))
    assert code == 2
    assert f"Port {taken} is taken. Name another one, or none for a port that is free." in message


def test_a_host_that_is_not_ours(sample: SampleProject) -> None:
    code, message = refused(sample.root, "--host", "192.0.2.1")
    assert code == 2
    assert "Nothing can listen on 192.0.2.1, port 3000: " in message


def test_without_a_project(tmp_path: Path) -> None:
    code, message = refused(tmp_path)
    assert code == 2
    assert message.startswith(f"There is no rag_assets.yaml in {tmp_path} or above it.")


def test_an_invalid_config(sample: SampleProject) -> None:
    sample.replace("rag_assets.yaml", "project: sample", "project:")
    code, message = refused(sample.root)
    assert code == 2
    assert message.startswith("rag_assets.yaml:2: project: ")


def test_another_port_when_the_usual_one_is_taken(
    monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.setattr(webserver, "DEFAULT_PORT", taken)
    port = webserver.choose_port("127.0.0.1", None)
    assert port != taken
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:3000"),
        ("localhost", "http://localhost:3000"),
        ("0.0.0.0", "http://127.0.0.1:3000"),
        ("::", "http://[::1]:3000"),
        ("::1", "http://[::1]:3000"),
    ],
)
def test_the_url_for_a_browser_on_this_machine(host: str, url: str) -> None:
    assert webserver.Webserver(host, 3000, "rag_assets").url == url


def test_what_is_watched(sample: SampleProject) -> None:
    sample.write("prompts/answer.txt", "Answer.")
    sample.replace(
        "rag_assets.yaml", "  name: sample\n", "  name: sample\n  code_paths: [prompts/*.txt]\n"
    )
    config = (sample.root / "rag_assets.yaml").read_text(encoding="utf-8")
    watch = Watch(sample.root / "rag_assets.yaml")
    assert watch.changes() == []
    for name in ("rag_assets.yaml", "release.yaml", "cases.jsonl", "app.py", "prompts/answer.txt"):
        # A config that is invalid for a while leads back to the other files.
        for text in ("changed", config):
            sample.write(name, text)
            assert watch.changes() == [name]
            assert watch.changes() == []
    for name in ("notes.md", "calls.log", ".rag_assets/store.duckdb", ".venv/lib/module.py"):
        sample.write(name, "changed")
        assert watch.changes() == []
    (sample.root / "app.py").unlink()
    assert watch.changes() == ["app.py"]
