"""Reading a dataset: JSON Lines, every problem of the file in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case, Dataset, check_case
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.jsonl import json_lines
from rag_assets.contracts.text import read_bytes, shown


def read_dataset(path: Path, problems: list[Problem], *, name: str | None = None) -> Dataset | None:
    """Read a dataset.

    Args:
        path: the JSON Lines file, UTF-8 with or without a byte order mark.
        problems: every problem of the file is appended here, in the order of the lines.
        name: the file as messages shall name it (default: the path as given).

    Returns:
        The dataset, or None when anything is wrong with the file.
    """
    file = name or str(path)
    found: list[Problem] = []
    data = read_bytes(path, file, found)
    cases = [] if data is None else list(_cases(data, file, found))
    if not cases and not found:
        found.append(
            Problem(file, 0, "", "The dataset holds no case; write one JSON object a line.")
        )
    problems += found
    if found:
        return None
    pairs = sorted([case.id, case.digest] for case in cases)
    return Dataset(path, tuple(cases), digest(pairs))


def _cases(data: bytes, file: str, problems: list[Problem]) -> Iterator[Case]:
    first_lines: dict[str, int] = {}
    for line, raw in json_lines(data, file, problems):
        case = check_case(raw, file, line, problems)
        case_id = raw.get("id")
        if isinstance(case_id, str) and first_lines.setdefault(case_id, line) != line:
            message = (
                f"The id {shown(case_id)} of line {line} is the id of line {first_lines[case_id]} "
                "as well; ids are unique."
            )
            problems.append(Problem(file, line, "id", message))
        if case is not None:
            yield case
