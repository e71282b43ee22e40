"""Projects of systems that are called as a whole, and calls to them through the real window."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_assets.contracts.cases import Case, Dataset, parse_case
from rag_assets.contracts.config import read_config
from rag_assets.contracts.dataset import read_dataset
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.loading import forget_project_modules
from rag_assets.systems.blackbox import BlackBox
from rag_assets.systems.calls import Call, CallResult, CallSettings, CallWindow, EventLoop
from rag_assets.systems.current import CurrentCase
from rag_assets.systems.load import load_system

CONFIG = """\
project: p
dataset: cases.jsonl
system:
  name: bot
{system}
evaluators:
  - {{type: contains, criterion: answer_correct}}
"""


class Place:
    """A project folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cases({"id": "c1", "input": {"question": "Q?"}})

    def write(self, name: str, content: str | bytes) -> None:
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (self.root / name).write_bytes(data)

    def cases(self, *rows: Mapping[str, Any]) -> None:
        self.write("cases.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def load(self, **system: Any) -> tuple[BlackBox | None, list[Problem]]:
        """The system of a config whose key `system` holds these keys; problems are of loading."""
        forget_project_modules()
        lines = "\n".join(f"  {key}: {json.dumps(value)}" for key, value in system.items())
        self.write("rag_assets.yaml", CONFIG.format(system=lines))
        problems: list[Problem] = []
        config = read_config(self.root / "rag_assets.yaml", problems, name="rag_assets.yaml")
        assert config is not None, problems
        dataset = read_dataset(config.dataset, problems)
        assert dataset is not None, problems
        found = load_system(config, "rag_assets.yaml", dataset, problems)
        assert found is None or isinstance(found, BlackBox)
        return found, problems

    def system(self, **system: Any) -> BlackBox:
        found, problems = self.load(**system)
        assert problems == []
        assert found is not None
        return found

    def problems(self, **system: Any) -> list[tuple[str, int, str, str]]:
        """File, line, key and message of each problem of loading."""
        found, problems = self.load(**system)
        assert found is None
        return [(one.file, one.line, one.key, one.message) for one in problems]

    def problem(self, **system: Any) -> tuple[int, str, str]:
        (problem,) = self.problems(**system)
        return problem[1:]

    @property
    def dataset(self) -> Dataset:
        found = read_dataset(self.root / "cases.jsonl", [])
        assert found is not None
        return found


def a_case(case_id: str = "c1", input: Any = "Q?", **row: Any) -> Case:
    return parse_case({"id": case_id, "input": input, **row})


def called(system: BlackBox, cases: Iterable[Case], *, limit: int = 8) -> dict[str, CallResult]:
    """Call a system as a run does, and give back what it held open."""
    loop = EventLoop()
    settings = CallSettings(
        limit=limit,
        timeout_s=system.timeout_s,
        root=Path("/nowhere"),
        attempts=system.retries.attempts,
        wait_s=system.retries.wait_s,
        max_wait_s=system.retries.max_wait_s,
        retries_timeouts=system.retries_timeouts,
    )
    window = CallWindow(settings, loop, threading.Event())
    calls = (
        Call(
            case.id,
            lambda case=case: system.invoke(case),  # type: ignore[misc]
            system.accept,
            CurrentCase(system.config, case.user, case.as_of, records=True),
        )
        for case in cases
    )
    try:
        found = window.run(calls, asynchronous=system.is_async)
        return {result.key: result for result in found if result is not None}
    finally:
        loop.run(system.close())
        loop.close()


def call_of(system: BlackBox, case: Case | None = None) -> CallResult:
    """One call."""
    (result,) = called(system, [case or a_case()]).values()
    return result


def failure(result: CallResult) -> tuple[str, str, str]:
    """Reason, type and message."""
    assert result.failure is not None, result.value
    return result.failure.reason, result.failure.type, result.failure.message


@contextmanager
def serving_example(example: Path) -> Iterator[str]:
    """Run the server.py of an example on a free port, and give its URL."""
    command = [sys.executable, "-B", "server.py", "0"]
    server = subprocess.Popen(command, cwd=example, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split()[0]
    finally:
        server.terminate()
        server.communicate()
