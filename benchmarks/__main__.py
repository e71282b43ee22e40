"""Wall time and memory of whole runs, against the import of dagster and a plain Python loop.

python -m benchmarks [--sizes 13,1000,10000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.suites import make_suite


@dataclass(frozen=True)
class Measured:
    """Seconds of wall time and peak memory in MB of one process."""

    seconds: float
    peak_mb: float


def measure(command: list[str], cwd: Path, expected: tuple[int, ...] = (0,)) -> Measured:
    """Run a command; its output is thrown away."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    code = os.waitstatus_to_exitcode(status)
    if code not in expected:
        raise SystemExit(f"{' '.join(command)} ended with exit code {code}")
    return Measured(seconds, usage.ru_maxrss / 1024)


def best(command: list[str], cwd: Path, times: int) -> float:
    """The shortest of several runs, in seconds."""
    return min(measure(command, cwd).seconds for _ in range(times))


def rows_of(config: Path, cases: int, unit: float) -> list[str]:
    """The table rows of one suite."""
    run = [sys.executable, "-m", "rag_assets.cli", "run"]
    here = Path(__file__).parent.parent
    loop_command = [sys.executable, "-m", "benchmarks.plain_loop", str(config)]
    printed = subprocess.run(loop_command, cwd=here, capture_output=True, text=True, check=True)
    loop = float(printed.stdout)
    rows = []
    for name in ("cold", "warm"):
        done = measure(run, config.parent, expected=(0, 1, 3))
        over_loop = (done.seconds - loop) / cases * 1000
        rows.append(
            f"| {cases:,} | {name} | {done.seconds:.2f} s | {done.seconds / unit:.1f} × "
            f"| {loop:.2f} s | {over_loop:.2f} ms | {done.peak_mb:.0f} MB |"
        )
    return rows


def main() -> None:
    """Measure, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="13,1000,10000")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="rag-assets-bench-"))
    unit = best([sys.executable, "-c", "import dagster"], folder, 5)
    print(f"`import dagster`: {unit:.2f} s (whole process, best of 5)\n")
    print(
        "| cases | cache | `rag-assets run` | in imports of dagster | plain loop | over the loop, "
        "per case | peak memory |"
    )
    print("|---|---|---|---|---|---|---|")
    for size in (int(size) for size in options.sizes.split(",")):
        config = make_suite(folder / f"suite-{size}", size)
        for row in rows_of(config, size, unit):
            print(row, flush=True)


if __name__ == "__main__":
    main()
