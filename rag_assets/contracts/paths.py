"""Dotted paths into JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def texts_in(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a JSON value, each with its dotted path: keys and numbers are texts as well.

    All keys of an object stand at `PATH#keys`, since a key may be what nobody should see.
    """
    if isinstance(value, dict):
        for key in value:
            yield f"{place}#keys", key
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(part, f"{place}.{key}" if place else str(key))
    elif (text := _text_of(value)) is not None:
        yield place, text


def with_texts(value: Any, change: Callable[[str, str], str], place: str = "") -> Any:
    """A JSON value with each of its texts replaced by what `change(path, text)` makes of it.

    The path of a key is not told. A number that is changed becomes a text. Keys that become alike
    are numbered.
    """
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, part in value.items():
            name = change("", key)
            if name in found:
                name += f" ({len(found) + 1})"
            found[name] = with_texts(part, change, f"{place}.{key}" if place else key)
        return found
    if isinstance(value, (list, tuple)):
        return [
            with_texts(part, change, f"{place}.{index}" if place else str(index))
            for index, part in enumerate(value)
        ]
    text = _text_of(value)
    if text is None:
        return value
    changed = change(place, text)
    return value if changed == text else changed


def with_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with each of its strings changed; keys and numbers stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: with_strings(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_strings(part, change) for part in value]
    return value


def _text_of(value: Any) -> str | None:
    """A text, or a number as it is written; None for null, true and false."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(value) if is_number else None
