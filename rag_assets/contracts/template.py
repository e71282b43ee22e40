"""Bodies of requests as templates: JSON in which `{{ … }}` stands for a value of the case.

A text that is one placeholder becomes the JSON value itself; a placeholder inside a longer text
becomes text. Placeholders are `input`, `case.id`, `case.user`, `case.as_of` and `seed`; below
`input` and `case.user`, dotted paths lead further (`{{ input.question }}`, `{{ input.tags.0 }}`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import nearest
from rag_assets.contracts.paths import NOTHING, value_at

NAMES = ("input", "case.id", "case.user", "case.as_of", "seed")

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_OPEN = ("input", "case.user")


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
    values = {
        "input": case.input,
        "case.id": case.id,
        "case.user": case.asker,
        "case.as_of": case.as_of,
        "seed": seed,
    }
    found = value_at(values[known], path)
    if found is NOTHING:
        raise TemplateError(f"the body needs {name}, and this case has nothing there")
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
