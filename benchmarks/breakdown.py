"""Where the time of one run goes, measured from outside: the seams of the product are wrapped.

python -m benchmarks.breakdown CONFIG

Each moment of the main thread counts for exactly one part, the innermost that it is in, so that
the parts add up to the whole: from the first line of this program to the end of the command,
without the start and the end of Python. It prints JSON.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from functools import partial, wraps
from pathlib import Path
from typing import Any

OTHER = "other"
IMPORTS = "imports"
STORE = "store"
DAGSTER = "dagster: "
DAGSTER_IMPORTS = DAGSTER + "imports"
INSTANCE = DAGSTER + "instance"
EXECUTION = DAGSTER + "execution"
DEFINITIONS = DAGSTER + "definitions"
EVENTS = DAGSTER + "events"
STAGES = "stages: "
# Packages that only Dagster needs.
_OF_DAGSTER = {"dagster", "dagster_shared", "sqlalchemy"}
_STORE = "rag_assets.store"
_EXECUTION = "rag_assets.assets.execution"
_PROJECTION = "rag_assets.assets.projection"
_RUNNING = "rag_assets.assets.running"

PartOf = Callable[..., str]


def _stage(_session: Any, stage: str, **_options: Any) -> str:
    return STAGES + stage


SEAMS: Mapping[tuple[str, str], str | PartOf] = {
    ("rag_assets.evaluation.project", "load_project"): "project",
    (_RUNNING, "project_definitions"): DEFINITIONS,
    ("dagster", "Definitions.resolve_job_def"): DEFINITIONS,
    (_RUNNING, "open_instance"): INSTANCE,
    (_RUNNING, "end_abandoned_runs"): INSTANCE,
    (_RUNNING, "release_sqlite"): INSTANCE,
    ("dagster", "DagsterInstance.__exit__"): INSTANCE,
    ("dagster", "JobDefinition.execute_in_process"): EXECUTION,
    (_EXECUTION, "start_run"): STAGES + "start",
    (_EXECUTION, "go_through"): _stage,
    (_EXECUTION, "measure_run"): STAGES + "metrics",
    (_EXECUTION, "decide_run"): STAGES + "gate",
    (_EXECUTION, "end_run"): STAGES + "end",
    (_EXECUTION, "metrics_metadata"): EVENTS,
    (_EXECUTION, "gate_metadata"): EVENTS,
    (_PROJECTION, "Projection.__init__"): EVENTS,
    (_PROJECTION, "Projection.enter"): EVENTS,
    (_PROJECTION, "Projection.starting"): EVENTS,
    (_PROJECTION, "Projection.committed"): EVENTS,
    (_PROJECTION, "Projection.project_whole"): EVENTS,
}
# Opening and closing the store; what is done while it is open is not the store's time.
BLOCKS = {
    (f"{_STORE}.database", "Store.reading"): STORE,
    (f"{_STORE}.database", "Store.writing"): STORE,
}
# All public methods of these classes.
CLASSES = {(f"{_STORE}.reader", "Reader"): STORE, (f"{_STORE}.writer", "Writer"): STORE}


class Clock:
    """Gives each moment of one thread to the part that was entered last.

    Args:
        now: the time in seconds, from a clock that does not jump.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._thread = threading.get_ident()
        self._parts = [OTHER]
        self._since = now()
        self._seconds: dict[str, float] = defaultdict(float)

    @property
    def part(self) -> str:
        """The part that time goes to now."""
        return self._parts[-1]

    @property
    def is_outermost(self) -> bool:
        """Whether no part was entered."""
        return len(self._parts) == 1

    @contextmanager
    def within(self, part: str) -> Iterator[None]:
        """Give the time of a block to a part, but for what parts inside it take."""
        if threading.get_ident() != self._thread:
            yield  # The main thread waits for this one, and its time is counted.
            return
        self._turn()
        self._parts.append(part)
        try:
            yield
        finally:
            self._turn()
            self._parts.pop()

    def seconds(self) -> dict[str, float]:
        """Part → seconds until now."""
        self._turn()
        return dict(self._seconds)

    def _turn(self) -> None:
        now = self._now()
        self._seconds[self.part] += now - self._since
        self._since = now


class Instruments:
    """Wraps the seams as soon as their modules are there, and times imports."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._import = builtins.__import__
        self._waiting: dict[tuple[str, str], Callable[[Any, str], None]] = {
            **{seam: partial(self._wrap, part=part) for seam, part in SEAMS.items()},
            **{seam: partial(self._wrap_block, part=part) for seam, part in BLOCKS.items()},
            **{seam: partial(self._wrap_class, part=part) for seam, part in CLASSES.items()},
        }
        self._depth = 0

    def install(self) -> None:
        """From now on everything is timed."""
        builtins.__import__ = self._timed_import

    def remove(self) -> None:
        """Imports are no longer timed.

        Raises:
            SystemExit: a seam was never found, so that its time is in another part.
        """
        builtins.__import__ = self._import
        if self._waiting:
            names = ", ".join(f"{module}.{name}" for module, name in self._waiting)
            raise SystemExit(f"Never imported: {names}. Has it been moved?")

    def _timed_import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        self._depth += 1
        try:
            with self._clock.within(self._import_part(name)):
                return self._import(name, globals, locals, fromlist or (), level)
        finally:
            self._depth -= 1
            if self._depth == 0 and self._waiting:
                self._wrap_what_is_there()

    def _import_part(self, name: str) -> str:
        package = name.partition(".")[0]
        inside = self._clock.part.startswith(DAGSTER) and package != "rag_assets"
        return DAGSTER_IMPORTS if inside or package in _OF_DAGSTER else IMPORTS

    def _wrap_what_is_there(self) -> None:
        for module, name in list(self._waiting):
            if module in sys.modules:
                wrap = self._waiting.pop((module, name))
                owner: Any = sys.modules[module]
                *path, last = name.split(".")
                for one in path:
                    owner = getattr(owner, one)
                wrap(owner, last)

    def _wrap(self, owner: Any, name: str, part: str | PartOf) -> None:
        function = getattr(owner, name)

        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            of = part if isinstance(part, str) else part(*arguments, **options)
            with self._clock.within(of):
                return function(*arguments, **options)

        setattr(owner, name, timed)

    def _wrap_block(self, owner: Any, name: str, part: str) -> None:
        function = getattr(owner, name)

        @wraps(function)
        @contextmanager
        def timed(*arguments: Any, **options: Any) -> Iterator[Any]:
            block: AbstractContextManager[Any] = function(*arguments, **options)
            with self._clock.within(part):
                value = block.__enter__()
            try:
                yield value
            except BaseException as error:
                with self._clock.within(part):
                    if not block.__exit__(type(error), error, error.__traceback__):
                        raise
            else:
                with self._clock.within(part):
                    block.__exit__(None, None, None)

        setattr(owner, name, timed)

    def _wrap_class(self, owner: Any, name: str, part: str) -> None:
        kind = getattr(owner, name)
        for method, value in list(vars(kind).items()):
            if callable(value) and not method.startswith("_"):
                self._wrap(kind, method, part)


def run(config: Path) -> dict[str, Any]:
    """Run the suite of a project in this process.

    Returns:
        The exit code, the seconds in total and of each part.
    """
    began = time.perf_counter()
    clock = Clock()
    instruments = Instruments(clock)
    instruments.install()
    code: Any = None
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        try:
            from rag_assets.cli import main

            main(["run", "--config", str(config)])
        except SystemExit as end:
            code = end.code
    parts = clock.seconds()
    total = time.perf_counter() - began
    instruments.remove()
    return {"exit_code": code, "total": total, "parts": parts}


def dagster_share(parts: Mapping[str, float]) -> float:
    """The share of the time that goes into Dagster itself, or into telling it what happened."""
    return sum(one for name, one in parts.items() if name.startswith(DAGSTER)) / sum(parts.values())


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]).resolve()), indent=2))
