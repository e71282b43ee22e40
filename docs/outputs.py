"""Real output in Markdown pages.

A page is a sequence of steps in one temporary project, written as HTML comments on lines of their
own. A fenced block directly below a comment belongs to it.

    <!-- project: NAME -->          start anew with a copy of this example, or with `empty`
    <!-- within: FOLDER -->         from here on, the project is this folder inside it
    <!-- file: PATH -->             write the block below into the project
    <!-- edit: PATH: OLD -> NEW --> change the one place where a file has OLD
    <!-- output: COMMAND -->        run it, and show it and its output in the block below
    <!-- error: COMMAND -->         the same for a command that must end with exit code 2

A command is a call of `rag-assets`, and may end in `| grep -E PATTERN`. Its output is shown as it
goes into a pipe. It may name the digest of an earlier output by the beginning that the page shows.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from rag_assets.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "docs/decisions.md",
    "docs/diagnosis.md",
    "docs/from-a-to-b.md",
    "docs/imports.md",
    "docs/labels.md",
    "docs/sources.md",
    "examples/access_rag/README.md",
    "examples/blackbox_rag/README.md",
    "examples/bm25_rag/README.md",
    "examples/policy_rag/README.md",
    "examples/support_rag/README.md",
)

_STEP = re.compile(
    r"^<!-- (?P<step>project|within|file|edit|output|error): (?P<text>[^\n]+) -->\n"
    r"(?P<fence>```\w*\n(?P<block>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_PROJECT = "my-rag"

# What differs from run to run, and what stands for it; columns keep the width of the stand-in.
_STAND_INS = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"), "2026-01-15 09:30:00Z"),
    (re.compile(r"took \d+\.\d s"), "took 1.2 s"),
    (re.compile(r"\btime +(?=cache$)", re.MULTILINE), "time    "),
    (re.compile(r"\d+\.\d ms +(?=hit|miss|shared)"), "0.1 ms  "),
    (re.compile(r"- +(?=(?:hit|miss|shared)$)", re.MULTILINE), "-       "),
)
_RUN_ID = re.compile(r"\brun_[0-9A-Z]{26}\b")
_DIGEST = re.compile(r"\bsha256:[0-9a-f]{64}\b")


class PageError(Exception):
    """A step of a page cannot be taken, or a command ended in another way than the page says."""


def with_outputs(page: str, folder: str | Path) -> str:
    """A page with the output of its commands as it is now.

    Args:
        page: the Markdown text.
        folder: an empty folder to work in.

    Raises:
        PageError: a step is malformed, or a command ended in another way than the page says.
    """
    walk = _Walk(Path(folder).resolve())
    return _STEP.sub(walk.take, page)


class _Walk:
    """The steps of one page, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._project = folder
        self._ids: dict[str, str] = {}

    def take(self, match: re.Match[str]) -> str:
        """Take one step, and return what the page shall have in its place."""
        step, text = match["step"], match["text"]
        if step in ("output", "error"):
            shown = self._run(text, must_fail=step == "error")
            return f"<!-- {step}: {text} -->\n```console\n$ {text}\n{shown}```\n"
        steps: dict[str, Callable[[str, str | None], None]] = {
            "project": self._start,
            "within": self._enter,
            "file": self._write,
            "edit": self._edit,
        }
        steps[step](text, match["block"])
        return match[0]

    def _start(self, name: str, block: str | None) -> None:
        number = sum(path.is_dir() for path in self._folder.iterdir())
        self._project = self._folder / str(number) / _PROJECT
        self._project.mkdir(parents=True)
        if name != "empty":
            self._run(f"rag-assets init --example {name} .", must_fail=False)

    def _enter(self, name: str, block: str | None) -> None:
        self._project = self._project / name

    def _write(self, name: str, block: str | None) -> None:
        if block is None:
            raise PageError(f"No block stands below the step for the file {name}.")
        path = self._project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(block, encoding="utf-8")

    def _edit(self, text: str, block: str | None) -> None:
        name, _, change = text.partition(": ")
        old, _, new = change.partition(" -> ")
        path = self._project / name
        content = path.read_text(encoding="utf-8")
        if content.count(old) != 1:
            raise PageError(f'{name} must hold "{old}" once, and holds it {content.count(old)} ×.')
        path.write_text(content.replace(old, new), encoding="utf-8")

    def _run(self, command: str, *, must_fail: bool) -> str:
        called, _, rest = command.partition(" | grep -E ")
        program, *arguments = shlex.split(called)
        patterns = shlex.split(rest) or [""]
        if program != "rag-assets" or len(patterns) > 1:
            raise PageError(f"{command} is no command that a page can run.")
        with chdir(self._project):
            called_with = [self._real(one) for one in arguments]
            result = CliRunner().invoke(main, called_with, env={"COLUMNS": "100"})
        if (result.exit_code == 2) != must_fail or result.exit_code not in (0, 1, 2, 3):
            raise PageError(f"{command} ended with {result.exit_code}:\n{result.output}")
        text = self._normal(result.stderr if must_fail else result.stdout)
        return "".join(f"{row}\n" for row in text.splitlines() if re.search(patterns[0], row))

    def _normal(self, text: str) -> str:
        """The text without what differs from run to run."""
        text = text.replace(str(self._project), f"/home/you/{_PROJECT}")
        for pattern, stand_in in _STAND_INS:
            text = pattern.sub(stand_in, text)
        text = _RUN_ID.sub(lambda match: self._id(match[0], "run_01KF{0:022}"), text)
        # The number stands in front, so that a command of the page can name it by its beginning.
        rest = hashlib.sha256(b"stand-in").hexdigest()[2:]
        return _DIGEST.sub(lambda match: self._id(match[0], f"sha256:{{0:02}}{rest}"), text)

    def _id(self, real: str, stand_in: str) -> str:
        """The same stand-in wherever the page shows the same id."""
        return self._ids.setdefault(real, stand_in.format(len(self._ids) + 1))

    def _real(self, argument: str) -> str:
        """An argument, with the real id in the place of the beginning of a stand-in."""
        if not argument.startswith("sha256:"):
            return argument
        found = (real for real, shown in self._ids.items() if shown.startswith(argument))
        return next(found, argument)
