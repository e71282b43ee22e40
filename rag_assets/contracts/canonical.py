"""Canonical JSON and the digests made of it.

One value has one text: sorted keys, no white space, UTF-8, no NaN. `1`, `1.0`, `"1"` and `true`
stay different, as JSON has them.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

MAX_DEPTH = 250
"""Levels of nesting. A limit of our own, because Python's depends on who asks: what a worker thread
could just write would be too deep for the thread that commits it. Cases may use 200 of them."""


class NotJsonError(ValueError):
    """A value that JSON cannot hold.

    Attributes:
        path: where in the value ("a.0.b", "" for the whole).
        message: what stands there.
    """

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}" if path else message)


def canonical_json(value: Any) -> str:
    """The canonical JSON text of a value.

    Raises:
        NotJsonError: the value holds something that is not JSON (a set, NaN, a key that is not a
            string, a lone surrogate), with its path; or it is nested too deeply.
    """
    try:
        text = _ENCODER.encode(value)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise _explain(value) from None
    if _needs_a_look(value):
        problem = _find(value, "", MAX_DEPTH)
        if problem is not None:
            raise problem
    return text


def digest(value: Any) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of a value."""
    return digest_text(canonical_json(value))


def digest_text(text: str) -> str:
    """SHA-256 (64 hex digits) of a text as UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


_ENCODER = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)


_HOLDERS = (dict, list, tuple)


def _needs_a_look(value: Any) -> bool:
    """What the encoder lets pass: keys like 1 or None, which it turns into text, and any depth."""
    layer = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                if not {str}.issuperset(map(type, item)):
                    return True
                below += [child for child in item.values() if isinstance(child, _HOLDERS)]
            elif isinstance(item, (list, tuple)):
                below += [child for child in item if isinstance(child, _HOLDERS)]
        if not below:
            return False
        layer = below
    return True


def _explain(value: Any) -> NotJsonError:
    return _find(value, "", MAX_DEPTH) or NotJsonError("", "cannot be written as JSON")


def _find(value: Any, path: str, levels: int) -> NotJsonError | None:
    """The first thing in a value that JSON cannot hold, at most so many levels deep."""
    if not isinstance(value, _HOLDERS):
        problem = _scalar_problem(value)
        return None if problem is None else NotJsonError(path, problem)
    if levels == 0:
        return NotJsonError("", f"is nested deeper than {MAX_DEPTH} levels, or contains itself")
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        problem = _key_problem(key) if isinstance(value, dict) else None
        if problem is not None:
            return NotJsonError(path, problem)
        found = _find(item, f"{path}.{key}" if path else str(key), levels - 1)
        if found is not None:
            return found
    return None


def _key_problem(key: Any) -> str | None:
    if isinstance(key, str):
        return _scalar_problem(key)
    return f"has the key {key!r}, and JSON keys are strings"


def _scalar_problem(value: Any) -> str | None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return "holds half of a surrogate pair, which UTF-8 cannot write"
        return None
    if isinstance(value, int):
        try:
            str(value)
        except ValueError:
            return "is a whole number of too many digits"
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, and JSON has no such number"
    return None if value is None else f"is a {_type_name(value)}, which JSON cannot hold"


def _type_name(value: Any) -> str:
    """With its module, because `numpy.bool` and `bool` are two things."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
