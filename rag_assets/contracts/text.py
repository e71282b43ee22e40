"""Files as bytes, and values as a message shows them."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import Problem

# Characters that the words "got …" show of a value.
MAX_SHOWN = 60


def names(pattern: str, case_id: str) -> bool:
    """Whether a glob, or an id as it stands, names a case: an id may hold what globs use."""
    return pattern == case_id or fnmatchcase(case_id, pattern)


def read_bytes(path: Path, file: str, problems: list[Problem]) -> bytes | None:
    """The content of a file, or None with a problem that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        problems.append(Problem(file, 0, "", f"The file cannot be read: {error.strerror}."))
        return None


def undecodable(offset: int, byte: int) -> str:
    """The message for a byte that is not UTF-8. `offset` counts from 0 at the start of the file."""
    return f"Byte offset {offset} (0x{byte:02x}) is not UTF-8; save the file as UTF-8."


def shown(value: Any) -> str:
    """A value as JSON for a message: on one line, cut, and printable whatever it holds."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    if len(text) > MAX_SHOWN:
        text = text[: MAX_SHOWN - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
