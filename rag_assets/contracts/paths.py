"""Dotted paths into JSON values."""

from __future__ import annotations

from typing import Any, Final

NOTHING: Final[Any] = object()
"""Where a path leads nowhere; null is a value."""


def value_at(value: Any, path: str | None) -> Any:
    """The value at a dotted path (objects by key, lists by index from 0), or `NOTHING`."""
    for name in path.split(".") if path else ():
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit():
            if int(name) >= len(value):
                return NOTHING
            value = value[int(name)]
        else:
            return NOTHING
    return value


def cited_value(output: Any, path: str | None) -> dict[str, Any]:
    """What stands at the citations path: {} when nothing does, else {"value": …}."""
    value = NOTHING if path is None else value_at(output, path)
    return {} if value is NOTHING else {"value": value}
