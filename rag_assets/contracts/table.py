"""Rows of a JSON Lines, CSV or TSV file, with every problem of the file in one pass."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from rag_assets.contracts.errors import Problem
from rag_assets.contracts.jsonl import json_lines
from rag_assets.contracts.text import shown, undecodable

Format = Literal["jsonl", "csv", "tsv"]
FORMATS: Mapping[str, Format] = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv"}
"""Extension → format."""

_DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the 1-based line on which it begins, and column → value."""

    line: int
    values: dict[str, Any]


def read_table(data: bytes, kind: Format, file: str, problems: list[Problem]) -> list[Row]:
    """The rows of a file.

    Args:
        data: the content: UTF-8 with or without a byte order mark; blank lines are skipped. In CSV
            and TSV the first row names the columns, and every value is text.
        kind: the format.
        file: the file as messages name it.
        problems: what is wrong with the file is appended here.

    Returns:
        The rows that could be read: all of them when no problem was appended.
    """
    before = len(problems)
    if kind == "jsonl":
        rows = [Row(line, values) for line, values in json_lines(data, file, problems)]
    else:
        rows = _delimited(data, _DELIMITERS[kind], file, problems)
    if not rows and len(problems) == before:
        problems.append(Problem(file, 0, "", "The file holds no row."))
    return rows


def _delimited(data: bytes, delimiter: str, file: str, problems: list[Problem]) -> list[Row]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Counted in the whole file: the codec leaves a byte order mark out of its positions.
        offset = error.start + len(data) - len(error.object)
        line = data.count(b"\n", 0, offset) + 1
        problems.append(Problem(file, line, "", undecodable(offset, data[offset])))
        return []
    with _cells_up_to(len(text)):
        return _rows(text, delimiter, file, problems)


def _rows(text: str, delimiter: str, file: str, problems: list[Problem]) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    names: Sequence[str] | None = None
    line = 1
    try:
        for cells in reader:
            begins, line = line, reader.line_num + 1
            if not any(cells):
                continue
            if names is None:
                names = cells
                _check_names(names, file, begins, problems)
                if _is_split_otherwise(names, delimiter, file, begins, problems):
                    return []
            elif len(cells) != len(names):
                message = f"The number of cells is {len(cells)}, and that of columns {len(names)}."
                problems.append(Problem(file, begins, "", message))
            else:
                rows.append(Row(begins, dict(zip(names, cells, strict=True))))
    except csv.Error as error:
        problems.append(Problem(file, line, "", f"The row cannot be read: {error}."))
    return rows


@contextmanager
def _cells_up_to(characters: int) -> Iterator[None]:
    """Let a cell be as long as this; Python's own limit is less than a few long passages."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, characters))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _is_split_otherwise(
    names: Sequence[str], delimiter: str, file: str, line: int, problems: list[Problem]
) -> bool:
    """Whether what separates the columns is not what the name of the file says."""
    separators = {",": "commas", "\t": "tabs", ";": "semicolons"}
    found = [one for one in separators if one != delimiter and names[0].count(one)]
    if len(names) > 1 or not found:
        return False
    message = (
        f"The columns are separated by {separators[found[-1]]}, not by {separators[delimiter]}. "
        "Save the file with commas as .csv, or with tabs as .tsv."
    )
    problems.append(Problem(file, line, "", message))
    return True


def _check_names(names: Sequence[str], file: str, line: int, problems: list[Problem]) -> None:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        message = f"The column {shown(name)} stands here twice; keep one."
        problems.append(Problem(file, line, "", message))
