"""Single-turn samples of Ragas: JSON Lines, or CSV as Ragas and pandas write it.

A sample is a row. What is null, in CSV an empty cell, is not there. A list in a cell of a CSV file
is JSON, or a list as Python prints it.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rag_assets.contracts.canonical import NotJsonError, canonical_json
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.labels import id_problem
from rag_assets.contracts.table import Format, Row, read_table
from rag_assets.contracts.text import shown

TEXTS = ("id", "user_input", "response", "reference")
LISTS = (
    "retrieved_contexts",
    "retrieved_context_ids",
    "reference_contexts",
    "reference_context_ids",
)
COLUMNS = (*TEXTS, *LISTS)
_BEFORE = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
}
"""Names of Ragas before 0.2 → names since."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A row of the file; None stands for what is not there.

    Attributes:
        line: 1-based line on which it begins.
        id: its own id.
        user_input: the question.
        response, reference: the answer of the system, and the right one.
        retrieved_contexts, reference_contexts: texts of passages.
        retrieved_context_ids, reference_context_ids: their ids, in the same order.
        rest: every other column.
    """

    line: int
    id: str | None
    user_input: str
    response: str | None
    reference: str | None
    retrieved_contexts: Sequence[str] | None
    retrieved_context_ids: Sequence[str] | None
    reference_contexts: Sequence[str] | None
    reference_context_ids: Sequence[str] | None
    rest: Mapping[str, Any]


def read_samples(data: bytes, kind: Format, file: str, problems: list[Problem]) -> list[Sample]:
    """Read the samples of a file.

    Args:
        data: its content.
        kind: its format; with CSV, cells hold lists.
        file: the file as messages name it.
        problems: what is wrong with a row is appended here, with file, line and column.

    Returns:
        The samples that could be read: all of them when no problem was appended.
    """
    before = len(problems)
    rows = read_table(data, kind, file, problems)
    if len(problems) == before and not any("user_input" in row.values for row in rows):
        problems.append(Problem(file, rows[0].line, "", _no_question(rows[0].values)))
        return []
    reader = _Reader(file, kind != "jsonl", problems)
    return [sample for row in rows if (sample := reader.sample(row)) is not None]


def _no_question(values: Mapping[str, Any]) -> str:
    names = ", ".join(shown(name) for name in values)
    message = f"No row has a user_input, the question. The first one has {names or 'nothing'}."
    renamed = [f"{old} is now {new}" for old, new in _BEFORE.items() if old in values]
    if renamed:
        message += f" Rename the columns of Ragas before 0.2: {', '.join(renamed)}."
    return message


class _Reader:
    """Turns rows into samples, and notes what is wrong with them."""

    def __init__(self, file: str, is_csv: bool, problems: list[Problem]) -> None:
        self._file = file
        self._is_csv = is_csv
        self._problems = problems

    def sample(self, row: Row) -> Sample | None:
        """The sample of a row; None when something is wrong with it."""
        before = len(self._problems)
        values = {
            name: value
            for name, value in row.values.items()
            if value is not None and not (self._is_csv and value == "")
        }
        texts = {name: self._text(row, name, values.get(name)) for name in TEXTS}
        lists = {name: self._list(row, name, values.get(name)) for name in LISTS}
        if "user_input" not in values:
            self._note(row, "user_input", "The row has no user_input, the question.")
        self._check_lengths(row, lists)
        rest = {name: value for name, value in values.items() if name not in COLUMNS and name}
        if len(self._problems) == before:
            self._check_json(row, {**rest, **texts, **lists})
        if len(self._problems) > before:
            return None
        return Sample(
            line=row.line,
            id=texts["id"],
            user_input=texts["user_input"] or "",
            response=texts["response"],
            reference=texts["reference"],
            retrieved_contexts=lists["retrieved_contexts"],
            retrieved_context_ids=lists["retrieved_context_ids"],
            reference_contexts=lists["reference_contexts"],
            reference_context_ids=lists["reference_context_ids"],
            rest=rest,
        )

    def _text(self, row: Row, name: str, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        message = f"must be a text, got {shown(value)}"
        if name == "user_input" and isinstance(value, list):
            message += "; conversations of several turns are not in this version"
        self._note(row, name, f"{name} {message}.")
        return None

    def _list(self, row: Row, name: str, value: Any) -> list[str] | None:
        if value is None:
            return None
        try:
            found = listed(value) if self._is_csv else value
        except UnreadableError:
            found = value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            wanted = 'a list of texts, like ["first", "second"]'
            self._note(row, name, f"{name} must be {wanted}, got {shown(value)}.")
            return None
        if name.endswith("_ids"):
            for one in found:
                problem = id_problem({"An id": one}, "An id")
                if problem is not None:
                    self._note(row, name, problem)
        return found

    def _check_json(self, row: Row, values: Mapping[str, Any]) -> None:
        try:
            canonical_json(values)
        except NotJsonError as error:
            self._note(row, error.path, f"The value {error.message}.")

    def _check_lengths(self, row: Row, lists: Mapping[str, list[str] | None]) -> None:
        for texts, ids in zip(LISTS[::2], LISTS[1::2], strict=True):
            found, named = lists[texts], lists[ids]
            if found is not None and named is not None and len(found) != len(named):
                sizes = f"{ids} has {len(named)} entries, and {texts} has {len(found)}"
                self._note(row, ids, f"{sizes}; each text has its id.")

    def _note(self, row: Row, column: str, message: str) -> None:
        self._problems.append(Problem(self._file, row.line, column, message))


class UnreadableError(ValueError):
    """A cell that should hold a list holds neither JSON nor what Python prints of one."""


def listed(text: str) -> Any:
    """The value in a cell: JSON, or what Python prints of a list.

    Raises:
        UnreadableError: it is neither. This goes for arrays as NumPy prints them, too: without
            commas, two texts would be read as one.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            # Of backslashes that Python would write in another way.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
        is_joined = _has_neighbours(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, tokenize.TokenError):
        is_joined = True
    if is_joined:
        raise UnreadableError("neither JSON nor what Python prints of a list")
    return value


def _has_neighbours(text: str) -> bool:
    """Whether two texts stand next to each other, which Python would join."""
    ignored = (tokenize.NL, tokenize.COMMENT)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kinds = [token.type for token in tokens if token.type not in ignored]
    return (tokenize.STRING, tokenize.STRING) in pairwise(kinds)
