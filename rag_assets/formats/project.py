"""A project of recorded results, as importers make it: its files, and what to say of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

CONFIG_FILE = "rag_assets.yaml"
POLICY_FILE = "release.yaml"
COMPARE_POLICY_FILE = "compare.yaml"
DATASET = "data/cases.jsonl"

_NAME = re.compile(r"[A-Za-z][\w-]*")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_UNDECIDED = """\
version: 1

# Nothing blocks yet, because the thresholds below are only examples. Put in your own, and delete
# these two lines: then every rule that is not PASS blocks.
block_on: []
warn_on: [FAIL, INSUFFICIENT_EVIDENCE, MANUAL_REVIEW]

rules:
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """How many there are of something in the imported files, and what is made of them."""

    count: int
    meaning: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found in one file, or of one kind."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An evaluator of a config, or a rule of a policy.

    Attributes:
        why: a comment above it.
        keys: its keys in their order.
    """

    why: str
    keys: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImportedProject:
    """A project before it is written.

    Attributes:
        sizes: how many there are of what, such as (3, "topic").
        configs: names of its config files; the first is the default.
        labels: the label of the project in each of them.
        files: path inside the project → text in pieces.
        facts: what was found, and what is made of it.
        left_out: metrics that the files cannot feed, each with the reason.
    """

    sizes: tuple[tuple[int, str], ...]
    configs: tuple[str, ...]
    labels: tuple[str, ...]
    files: Mapping[str, Iterable[str]]
    facts: tuple[Facts, ...]
    left_out: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Write the files into an existing folder.

        Raises:
            OSError: a file cannot be written.
        """
        for name, pieces in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)


def config_text(
    *,
    what: str,
    project: str,
    system: Mapping[str, Any],
    recorded: str,
    evaluators: Sequence[Entry],
    left_out: Sequence[str],
    settings: str = "",
) -> str:
    """The text of a config.

    Args:
        what: the first comment.
        project: the label of the project.
        system: keys of the system but for `recorded`.
        recorded: the lines of `recorded`, two levels deep.
        evaluators: at least one.
        left_out: metrics that the files cannot feed, each with the reason.
        settings: further lines.
    """
    head = _comment(f"{what} Paths are relative to this file.")
    body = f"version: 1\nproject: {json.dumps(project)}\ndataset: {DATASET}\n"
    named = "".join(f"  {key}: {_yaml(value)}\n" for key, value in system.items())
    listed = _entries(evaluators)
    told = "\n# Left out:\n" if left_out else ""
    told += "".join(_comment(text) for text in left_out)
    body += f"\nsystem:\n{named}  recorded:\n{recorded}{settings}"
    return f"{head}{body}\nevaluators:\n{listed}{told}"


def policy_text(what: str, rules: Sequence[Entry]) -> str:
    """The text of a policy whose thresholds still have to be chosen."""
    return f"{_comment(what)}{_UNDECIDED}{_entries(rules)}"


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Rows as lines of JSON."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _entries(entries: Sequence[Entry]) -> str:
    return "\n".join(_entry(one) for one in entries)


def _entry(entry: Entry) -> str:
    lines = [f"{key}: {_yaml(value)}" for key, value in entry.keys.items()]
    return _comment(entry.why, "  ") + "  - " + "\n    ".join(lines) + "\n"


def _yaml(value: Any) -> str:
    """A value on one line: the names of this program plain, all else as JSON, which is YAML too."""
    is_name = isinstance(value, str) and _NAME.fullmatch(value) and value.lower() not in _YAML_WORDS
    return str(value) if is_name else json.dumps(value, ensure_ascii=False)


def _comment(text: str, indent: str = "") -> str:
    start = f"{indent}# "
    rows = wrap(text, 98, initial_indent=start, subsequent_indent=start)
    return "".join(f"{row}\n" for row in rows)
