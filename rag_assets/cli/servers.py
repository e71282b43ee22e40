"""Server processes that start and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from rag_assets.contracts.errors import RagAssetsError

T = TypeVar("T")

_STOP_SECONDS = 30
_LINES_SHOWN = 15

DEFAULT_PORT = 3000


class ServerEndedError(RagAssetsError):
    """A server ended although nobody asked it to."""


class Servers:
    """Servers in a process group of their own, which leaving the block ends.

    A Ctrl-C in the terminal reaches this process only, and the group is then asked to stop; runs
    that it has launched record what they have finished.

    Args:
        environment: variables in addition to those of this process.
        log: the file that takes what the servers say.
    """

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._environment = {**os.environ, **environment}
        self._log = log
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        log.write_bytes(b"")

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._signal(signal.SIGTERM)
            self._wait_for_the_end()
        finally:
            self._signal(signal.SIGKILL)
            for process in self._processes.values():
                process.wait()

    def start(self, name: str, module: str, *arguments: str) -> None:
        """Start a server.

        Args:
            name: what messages call it.
            module: the Python module to run.
            arguments: its command line.
        """
        with self._log.open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "rag_assets.assets.server", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=self._environment,
                process_group=self._group or 0,
            )

    def wait_for(self, look: Callable[[], T], *, every_s: float) -> T:
        """Look again and again until something is there, and return it.

        Args:
            look: returns something that is false until then.
            every_s: the time between two looks, in seconds.

        Raises:
            ServerEndedError: a server has ended meanwhile.
        """
        while not (found := look()):
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise ServerEndedError(
                        f"The {name} ended with exit code {process.returncode}, and the UI with "
                        f"it. The end of {self._log}:\n{self._last_lines()}"
                    )
            time.sleep(every_s)
        return found

    @property
    def _group(self) -> int | None:
        first = next(iter(self._processes.values()), None)
        return None if first is None else first.pid

    def _signal(self, number: int) -> bool:
        """Send a signal to the group. Returns whether there is a group."""
        if self._group is None:
            return False
        try:
            os.killpg(self._group, number)
        except ProcessLookupError:
            return False
        return True

    def _wait_for_the_end(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while self._signal(0) and time.monotonic() < deadline:
            for process in self._processes.values():
                process.poll()
            time.sleep(0.05)

    def _last_lines(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LINES_SHOWN:])
