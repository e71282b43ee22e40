"""Running a command as a process of its own, and what it took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
RAG_ASSETS = [sys.executable, "-m", "rag_assets.cli"]
# A run is measured whatever its policy says of it.
DECIDED = (0, 1, 3)


@dataclass(frozen=True)
class Measured:
    """Seconds of wall time and peak memory in MB of one process."""

    seconds: float
    peak_mb: float


def measure(command: Sequence[str], cwd: Path, expected: tuple[int, ...] = (0,)) -> Measured:
    """Run a command; its output is thrown away."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return Measured(seconds, usage.ru_maxrss / 1024)


def best(command: Sequence[str], cwd: Path, times: int, expected: tuple[int, ...] = (0,)) -> float:
    """The shortest of several runs, in seconds."""
    return min(measure(command, cwd, expected).seconds for _ in range(times))


def printed(module: str, *arguments: str | Path) -> str:
    """What a module of this package prints, in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
