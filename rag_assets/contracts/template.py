"""Bodies of requests as templates: JSON in which `{{ … }}` stands for a value of the case.

A text that is one placeholder becomes the JSON value itself; a placeholder inside a longer text
becomes text. Placeholders are `input`, `case.id`, `case.user`, `case.as_of` and `seed`; below
`input` and `case.user`, dotted paths lead further (`{{ input.question }}`, `{{ input.tags.0 }}`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import nearest
from rag_assets.contracts.paths import NOTHING, value_at

NAMES = ("input", "case.id", "case.user", "case.as_of", "seed")

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_OPEN = ("input", "case.user")
_KEYS_SHOWN = 10


class TemplateError(ValueError):
    """A case has no value where the template wants one."""


def template_problems(template: Any, key: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a template, as (dotted key, message).

    Args:
        template: any JSON.
        key: the dotted key of the template.
    """
    for place, text in _texts(template, key):
        for name in _PLACEHOLDER.findall(text):
            if _split(name) is None:
                hint = nearest(name, NAMES) or f" The placeholders are {', '.join(NAMES)}."
                yield place, f'The placeholder "{name}" is not known.{hint}'
        if "{{" in _PLACEHOLDER.sub("", text):
            yield place, 'A placeholder is not closed; write it like "{{ input }}".'


def unanswered(template: Any, key: str, cases: Sequence[Case]) -> Iterator[tuple[str, str]]:
    """Paths of a valid template that lead nowhere in every case, as (dotted key, message).

    Args:
        template: a template without problems.
        key: the dotted key of the template.
        cases: all cases; a path that some of them have is in order.
    """
    for place, text in _texts(template, key):
        for name in _PLACEHOLDER.findall(text):
            split = _split(name)
            if split is None or not split[1]:
                continue
            values = [_values(case, 0)[split[0]] for case in cases]
            if all(value_at(value, split[1]) is NOTHING for value in values):
                yield place, f"No case has {name}.{_keys_on_the_way(*split, values)}"


def _keys_on_the_way(name: str, path: str, values: Sequence[Any]) -> str:
    """Which keys stand where a path leaves all values, and the nearest of them."""
    *parts, last = path.split(".")
    while parts and all(value_at(value, ".".join(parts)) is NOTHING for value in values):
        last = parts.pop()
    found = [value_at(value, ".".join(parts)) for value in values]
    keys = list(dict.fromkeys(key for one in found if isinstance(one, dict) for key in one))
    place = ".".join((name, *parts))
    if not keys:
        return f" {place} has no keys in any of them."
    more = f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
    return f" The keys of {place} are {', '.join(keys[:_KEYS_SHOWN])}{more}.{nearest(last, keys)}"


def placeholders(template: Any) -> frozenset[str]:
    """Which of `NAMES` a valid template uses."""
    found = (
        _split(name) for _, text in _texts(template, "") for name in _PLACEHOLDER.findall(text)
    )
    return frozenset(part[0] for part in found if part is not None)


def render(template: Any, case: Case, seed: int) -> Any:
    """The template with the values of a case.

    Args:
        template: a template without problems.
        case: the case.
        seed: the seed of the run.

    Raises:
        TemplateError: the case has nothing at a path; the message names it.
    """
    if isinstance(template, dict):
        return {key: render(part, case, seed) for key, part in template.items()}
    if isinstance(template, list):
        return [render(part, case, seed) for part in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole is not None and "{{" not in whole[1]:
        return _value(whole[1], case, seed)
    return _PLACEHOLDER.sub(lambda match: _text(_value(match[1], case, seed)), template)


def _texts(template: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(template, str):
        yield place, template
    elif isinstance(template, dict):
        for key, part in template.items():
            yield from _texts(part, f"{place}.{key}")
    elif isinstance(template, list):
        for index, part in enumerate(template):
            yield from _texts(part, f"{place}.{index}")


def _split(name: str) -> tuple[str, str] | None:
    """The placeholder's name and the path below it; None for one that does not exist."""
    for known in NAMES:
        if name == known:
            return known, ""
        path = name.removeprefix(f"{known}.")
        if known in _OPEN and path != name and all(path.split(".")):
            return known, path
    return None


def _value(name: str, case: Case, seed: int) -> Any:
    split = _split(name)
    assert split is not None, f"the template was not checked: {name}"
    known, path = split
    found = value_at(_values(case, seed)[known], path)
    if found is NOTHING:
        raise TemplateError(f"the body needs {name}, and this case has nothing there")
    return found


def _values(case: Case, seed: int) -> dict[str, Any]:
    """What each of `NAMES` stands for."""
    return {
        "input": case.input,
        "case.id": case.id,
        "case.user": case.asker,
        "case.as_of": case.as_of,
        "seed": seed,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
