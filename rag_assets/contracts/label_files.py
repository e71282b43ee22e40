"""Files of human labels: JSON Lines, CSV or TSV, with every problem of a file in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.human_labels import NO_CLAIMS, HumanLabel
from rag_assets.contracts.label_rows import COLUMNS, Known, LabelRow
from rag_assets.contracts.spreadsheet import restored
from rag_assets.contracts.table import FORMATS, Row, read_table
from rag_assets.contracts.text import read_bytes, shown


def read_label_file(
    path: Path, known: Known, problems: list[Problem], *, name: str | None = None
) -> tuple[HumanLabel, ...]:
    """Read a file of labels.

    Args:
        path: a .jsonl, .csv or .tsv file. In CSV and TSV an empty cell stands for nothing. A file
            with a column `question` or `context` is a worksheet: its `answer` is there to be read
            where `answer_digest` is filled in, and rows that nobody filled in are no labels.
        known: the cases and criteria of the project.
        problems: every problem of the file is appended here, with its line.
        name: the file as messages name it (default: the path as given).

    Returns:
        The labels in the order of the file, the same row twice once: all of them when no problem
        was appended.
    """
    file = name or str(path)
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        message = f"Labels must stand in a file that ends in {', '.join(FORMATS)}."
        problems.append(Problem(file, 0, "", message))
        return ()
    data = read_bytes(path, file, problems)
    if data is None:
        return ()
    rows = read_table(data, kind, file, problems)
    if kind != "jsonl":
        rows = [
            Row(row.line, {name: restored(cell) for name, cell in row.values.items()})
            for row in rows
        ]
    _check_columns(rows, file, problems)
    found: dict[str, HumanLabel] = {}
    rows_of: dict[str, int] = {}
    first: dict[tuple[Any, ...], tuple[int, str]] = {}
    for row in rows:
        label = LabelRow(row, file, known, problems, is_table=kind != "jsonl").label()
        if label is None:
            continue
        found[label.key] = label
        rows_of[label.key] = row.line
        line, said = first.setdefault(
            (label.place, label.reviewer, label.labelled_at), (row.line, label.label)
        )
        if said != label.label:
            message = (
                f"{label.reviewer} says {shown(label.label)} here and {shown(said)} on line {line} "
                f"of the same {label.about}. Remove one of them, or say with `at` which is the "
                "later one."
            )
            problems.append(Problem(file, row.line, "reviewer", message))
    _check_no_claims(found.values(), rows_of, file, problems)
    return tuple(found.values())


def _check_no_claims(
    labels: Iterable[HumanLabel],
    rows_of: Mapping[str, int],
    file: str,
    problems: list[Problem],
) -> None:
    """Who says that an answer makes no claim labels none."""

    def said_of(one: HumanLabel) -> tuple[str, ...]:
        return one.case_id, one.criterion, one.answer_digest, one.reviewer, one.labelled_at

    none = {said_of(one): rows_of[one.key] for one in labels if one.label == NO_CLAIMS}
    for one in labels:
        line = none.get(said_of(one)) if one.about == "claim" else None
        if line is not None:
            message = (
                f"{one.reviewer} labels a claim here, and says on line {line} that the answer "
                f"makes none ({NO_CLAIMS}). Remove one of them."
            )
            problems.append(Problem(file, rows_of[one.key], "claim_id", message))


def _check_columns(rows: Sequence[Row], file: str, problems: list[Problem]) -> None:
    lines: dict[str, int] = {}
    for row in rows:
        for name in row.values:
            lines.setdefault(name, row.line)
    for name, line in lines.items():
        if name not in COLUMNS:
            hint = nearest(name, COLUMNS) or f" The columns are {', '.join(COLUMNS)}."
            problems.append(Problem(file, line, "", f"The column {shown(name)} is unknown.{hint}"))
