"""Reading a dataset: JSON Lines, every problem of the file in one pass."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import TOO_DEEP, Case, Dataset, check_case
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.text import read_bytes, shown, undecodable

# What JSON calls white space: U+2028, U+2029 and NEL are data.
_WHITE = " \t\r\n"


class _RefusedError(ValueError):
    """JSON that Python would accept and the dataset does not."""


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
    for line, text in _lines(data, file, problems):
        raw = _object(text, file, line, problems)
        if raw is None:
            continue
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


def _lines(data: bytes, file: str, problems: list[Problem]) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    for number, line in enumerate(data[start:].split(b"\n"), 1):
        try:
            text = line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            message = undecodable(start + error.start, line[error.start])
            problems.append(Problem(file, number, "", message))
        else:
            if text.strip(_WHITE):
                yield number, text
        start += len(line) + 1


def _object(text: str, file: str, line: int, problems: list[Problem]) -> dict[str, Any] | None:
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        message = (
            f"The line is not JSON: {error.msg} (column {error.colno}); "
            "each line holds one whole JSON object."
        )
    except _RefusedError as error:
        message = str(error)
    except ValueError:
        # The only other one: Python converts integers up to a limit of digits.
        message = "An integer has too many digits to be read; write it as a string."
    except RecursionError:
        message = TOO_DEEP
    else:
        if isinstance(value, dict):
            return value
        message = f"The line must be a JSON object, got {shown(value)}."
    problems.append(Problem(file, line, "", message))
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(f"The key {shown(twice)} stands twice in one object; keep one.")
    return mapping


def _refuse_constant(text: str) -> Any:
    raise _RefusedError(f"{text} is no JSON number; leave the key out or write null.")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
