"""JSON Lines: one object a line, every problem of the file in one pass."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

from rag_assets.contracts.cases import TOO_DEEP
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.text import shown, undecodable

# What JSON calls white space: U+2028, U+2029 and NEL are data.
_WHITE = " \t\r\n"
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _RefusedError(ValueError):
    """JSON that Python would accept and the files of a project do not hold."""


def text_lines(data: bytes, file: str, problems: list[Problem]) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers from 1.

    Args:
        data: the content: UTF-8 with or without a byte order mark; a line ends at LF or CR LF.
        file: the file as messages name it.
        problems: a byte that is not UTF-8 is appended here.
    """
    if b"\0" in data[:4] or data.startswith(_UTF_16_MARKS):
        problems.append(Problem(file, 0, "", "The file is UTF-16 or UTF-32; save it as UTF-8."))
        return
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


def json_lines(
    data: bytes, file: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with the numbers of their lines; blank lines are skipped.

    Args:
        data: the content: UTF-8 with or without a byte order mark; a line ends at LF or CR LF.
        file: the file as messages name it.
        problems: what is wrong with a line is appended here.
    """
    may_span = True
    for line, text in text_lines(data, file, problems):
        before = len(problems)
        raw = _object(text, file, line, problems)
        if raw is not None:
            yield line, raw
        elif may_span:
            # Looked for once: it takes the rest of the file.
            may_span = False
            last = _last_line(data, line)
            if last > line:
                message = (
                    f"The JSON value that begins here goes on to line {last}; each line holds one "
                    "whole JSON object. Write each object on one line (jq -c does that)."
                )
                problems[before:] = [Problem(file, line, "", message)]
                return


def _last_line(data: bytes, first: int) -> int:
    """The line on which the JSON value that begins on a line ends; that line where none does."""
    try:
        text = data.split(b"\n", first - 1)[-1].decode("utf-8-sig").lstrip(_WHITE)
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return first
    return first + text.count("\n", 0, end)


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
