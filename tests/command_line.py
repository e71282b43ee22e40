"""Calling the command line in a given folder, inside the test process or apart from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from instances import give_instance
from rag_assets.cli import main
from rag_assets.evaluation.places import CONFIG_FILE

EXAMPLES = Path(__file__).parent.parent / "examples"
EXAMPLE = EXAMPLES / "support_rag"


def call(folder: Path, *arguments: str) -> Result:
    """Run a command as if it were typed in a folder, whose Dagster instance it need not make."""
    if arguments[:1] == ("run",) and (folder / CONFIG_FILE).exists():
        give_instance(folder)
    with chdir(folder):
        return CliRunner().invoke(main, list(arguments))


def call_apart(folder: Path, *arguments: str) -> int:
    """Run a command in a process of its own, and return its exit code."""
    command = [sys.executable, "-m", "rag_assets.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


Program = Callable[..., Result]
"""The command line in one folder: takes the arguments."""


def program_in(folder: Path) -> Program:
    """The command line in a folder."""
    return partial(call, folder)


def document(result: Result) -> dict[str, Any]:
    """The last JSON document on stdout."""
    return events(result)[-1]


def events(result: Result) -> list[dict[str, Any]]:
    """The JSON documents on stdout, one a line."""
    return [json.loads(row) for row in result.stdout.splitlines()]


def copy_example(folder: Path, name: str = "support_rag") -> Path:
    """A copy of an example without what earlier runs left behind."""
    ignored = shutil.ignore_patterns("__pycache__", ".rag_assets")
    return Path(shutil.copytree(EXAMPLES / name, folder, ignore=ignored))
