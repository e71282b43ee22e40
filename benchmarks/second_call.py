"""Seconds that a command takes in a process that has run it before: what is left is its query.

python -m benchmarks.second_call FOLDER ARGUMENTS...
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from rag_assets.cli import main


def second_call(folder: Path, arguments: list[str]) -> float:
    """Run a command of the program twice; its output is thrown away."""
    began = 0.0
    with open(os.devnull, "w") as nowhere, chdir(folder):
        for _ in range(2):
            began = time.perf_counter()
            with redirect_stdout(nowhere), redirect_stderr(nowhere), suppress(SystemExit):
                main(list(arguments))
    return time.perf_counter() - began


if __name__ == "__main__":
    print(second_call(Path(sys.argv[1]), sys.argv[2:]))
