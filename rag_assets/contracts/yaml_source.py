"""A YAML file read strictly, with the line of every key.

Scalars mean what JSON makes of them: `null`, `true` and `false`, numbers; everything else is text
exactly as written. So `yes`, `22:30`, `007` and `2026-09-16` are text and never become a boolean, a
number of minutes, an octal number or a date. What JSON cannot hold is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rag_assets.contracts.errors import Problem
from rag_assets.contracts.text import read_bytes, shown, undecodable

# Aliases can make a small file stand for a huge value; no honest config comes near this.
MAX_VALUES = 100_000

_PREFIX = "tag:yaml.org,2002:"
_MERGE_KEY = "<<"


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A YAML file that holds a mapping.

    Attributes:
        file: the file as messages name it.
        content: the mapping; of a key that is written twice, the first value.
        lines: dotted key ("system.rag.depth", "slices.1") to the 1-based line where it stands.
        texts: dotted key to the scalar as it is written in the file, without quotes.
    """

    file: str
    content: Mapping[str, Any]
    lines: Mapping[str, int]
    texts: Mapping[str, str]

    def line(self, key: str) -> int:
        """The line of a dotted key, or of the nearest key around it (1 for the whole file)."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return self.lines.get(key, 1)

    def problem(self, key: str, message: str) -> Problem:
        """A problem at a dotted key of this file."""
        return Problem(self.file, self.line(key), key, message)


def read_yaml(path: Path, problems: list[Problem], *, name: str | None = None) -> YamlSource | None:
    """Read a file that must hold a YAML mapping.

    Args:
        path: the file.
        problems: everything wrong with the file is appended here.
        name: the file as messages shall name it (default: the path as given).

    Returns:
        The mapping with its lines, or None when there is no mapping to go on with. Keys that are
        written twice are problems, but the rest of the file can still be judged.
    """
    file = name or str(path)
    text = _read_text(path, file, problems)
    if text is None:
        return None
    try:
        return _parse(text, file, problems)
    except RecursionError:
        message = "The YAML is nested too deeply, or contains itself through an alias."
        problems.append(Problem(file, 0, "", message))
    except yaml.YAMLError as error:
        problems.append(_syntax_problem(error, text, file))
    except (ValueError, OverflowError):
        # The scanner lets an escape above U+10FFFF through to chr().
        message = "The file is not valid YAML: an escape names no Unicode character."
        problems.append(Problem(file, 0, "", message))
    return None


def _read_text(path: Path, file: str, problems: list[Problem]) -> str | None:
    data = read_bytes(path, file, problems)
    if data is None:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Counted in the whole file: the codec leaves a byte order mark out of its positions.
        offset = error.start + len(data) - len(error.object)
        line = data.count(b"\n", 0, offset) + 1
        problems.append(Problem(file, line, "", undecodable(offset, data[offset])))
        return None


def _parse(text: str, file: str, problems: list[Problem]) -> YamlSource | None:
    node = yaml.compose(text, _JsonLoader)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_PREFIX}null"):
        problems.append(Problem(file, 1, "", "The file is empty; a mapping of keys is expected."))
        return None
    if not isinstance(node, yaml.MappingNode):
        kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
        message = f"The file holds {kind}; a mapping (lines like `key: value`) is expected."
        problems.append(Problem(file, _line(node), "", message))
        return None
    builder = _Builder(file)
    content = builder.value(node, "")
    problems += builder.problems
    if not builder.readable:
        return None
    return YamlSource(file, content, builder.lines, builder.texts)


def _syntax_problem(error: yaml.YAMLError, text: str, file: str) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        parts = ", ".join(part for part in (error.context, error.problem) if part)
        message = f"The file is not valid YAML: {parts} (column {mark.column + 1})."
        return Problem(file, mark.line + 1, "", message)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        message = "The file is not valid YAML: it holds a control character; remove it."
        return Problem(file, line, "", message)
    return Problem(file, 0, "", f"The file cannot be read as YAML: {error}.")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _JsonLoader(yaml.BaseLoader):
    """Composes nodes; plain scalars are tagged by the rules in the module's docstring."""


for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?=\.?[0-9])(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
):
    _JsonLoader.add_implicit_resolver(_PREFIX + _tag, re.compile(_pattern), _first)


class _Builder:
    """Turns nodes into values, and notes lines, texts and problems on the way."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.readable = True
        self._values_left = MAX_VALUES

    def value(self, node: yaml.Node, key: str) -> Any:
        self._values_left -= 1
        if self._values_left < 0:
            raise yaml.YAMLError(f"it stands for more than {MAX_VALUES} values through its aliases")
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_PREFIX}map":
            return self._mapping(node, key)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_PREFIX}seq":
            return self._sequence(node, key)
        if isinstance(node, yaml.ScalarNode):
            self.texts[key] = node.value
            return self._scalar(node, key)
        self._refuse(node, key, f"The tag {node.tag} is not supported; remove it.")
        return None

    def _mapping(self, node: yaml.MappingNode, parent: str) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            name = self._key(key_node, parent)
            if name is None:
                continue
            key = f"{parent}.{name}" if parent else name
            if name in mapping:
                message = f"The key is written twice, first on line {self.lines[key]}; keep one."
                self.problems.append(Problem(self.file, _line(key_node), key, message))
                continue
            self.lines[key] = _line(key_node)
            mapping[name] = self.value(value_node, key)
        return mapping

    def _sequence(self, node: yaml.SequenceNode, parent: str) -> list[Any]:
        items: list[Any] = []
        for index, item in enumerate(node.value):
            key = f"{parent}.{index}"
            self.lines[key] = _line(item)
            items.append(self.value(item, key))
        return items

    def _key(self, node: yaml.Node, parent: str) -> str | None:
        """The name, or None (and a problem) where it is not one."""
        if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_PREFIX}str":
            written = node.value if isinstance(node, yaml.ScalarNode) else ""
            fix = f'; write "{written}" in quotes.' if written else "."
            self._refuse(node, parent, f"A key must be a string{fix}")
            return None
        if node.value == _MERGE_KEY and node.style is None:
            self._refuse(node, parent, "Merge keys (<<) are not supported; repeat the keys.")
            return None
        return self._text(node, parent)

    def _scalar(self, node: yaml.ScalarNode, key: str) -> Any:
        match node.tag.removeprefix(_PREFIX):
            case "str":
                return self._text(node, key)
            case "null":
                return None
            case "bool":
                return node.value.lower() == "true"
            case "int" | "float":
                return self._number(node, key)
        self._refuse(node, key, f"The tag {node.tag} is not supported; remove it.")
        return None

    def _text(self, node: yaml.ScalarNode, key: str) -> str | None:
        text = str(node.value)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self._refuse(node, key, f"{shown(text)} holds half of a surrogate pair; remove it.")
            return None
        return text

    def _number(self, node: yaml.ScalarNode, key: str) -> int | float | None:
        try:
            number = int(node.value) if node.tag == f"{_PREFIX}int" else float(node.value)
        except ValueError:
            number = math.inf  # Too many digits, or a tag that promises a number.
        if math.isinf(number):
            message = f"{shown(node.value)} is no number that can be held; write it in quotes."
            self._refuse(node, key, message)
            return None
        return number

    def _refuse(self, node: yaml.Node, key: str, message: str) -> None:
        """Note something that leaves the file without a usable value at this place."""
        self.readable = False
        self.problems.append(Problem(self.file, _line(node), key, message))
