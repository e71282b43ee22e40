"""From a mapping in a file to a frozen model, and from pydantic's errors to helpful problems."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.text import shown
from rag_assets.contracts.yaml_source import YamlSource


class FileModel(BaseModel):
    """A mapping of a file: nothing is coerced, unknown keys are refused, values are frozen."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    # Keys that the product knows but this version does not have yet.
    later_keys: ClassVar[frozenset[str]] = frozenset()


Model = TypeVar("Model", bound=FileModel)


def _must_be_one(value: int) -> int:
    if value != 1:
        raise ValueError(f"must be 1, got {shown(value)}; this is the only version there is")
    return value


_DOTTED_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"


def is_reference(text: str) -> bool:
    """Whether a text has the form "module:name", both sides possibly dotted."""
    return re.fullmatch(f"{_DOTTED_NAME}:{_DOTTED_NAME}", text) is not None


def _must_be_reference(value: str) -> str:
    if not is_reference(value):
        raise ValueError(f'must have the form "module:name", got {shown(value)}')
    return value


PositiveInt = Annotated[int, Field(ge=1)]
NonEmpty = Annotated[str, Field(min_length=1)]
FormatVersion = Annotated[int, AfterValidator(_must_be_one)]
Reference = Annotated[str, AfterValidator(_must_be_reference)]
# YAML has lists; the models keep them as tuples.
Texts = Annotated[tuple[NonEmpty, ...], Field(strict=False)]


def must_hold_one(values: tuple[str, ...]) -> tuple[str, ...]:
    """The values. Pydantic's own bound would say so of a list whose only entry is refused.

    Raises:
        ValueError: there is none.
    """
    if not values:
        raise ValueError("must hold at least one entry")
    return values


def validate(
    model: type[Model],
    content: Mapping[str, Any],
    source: YamlSource,
    problems: list[Problem],
    *,
    key: str = "",
    computed: Mapping[str, Any] | None = None,
    said: Collection[str] = (),
) -> Model | None:
    """Make a model of a mapping.

    Args:
        model: the model.
        content: the mapping as the file has it (parts of it may be models already).
        source: the file, for lines and for numbers as they were written.
        problems: one problem for each error is appended here.
        key: dotted key of the mapping in the file, "" for the whole file.
        computed: fields of the model that do not come from the file.
        said: dotted keys whose problem has been reported already.

    Returns:
        The model, or None when something is wrong.
    """
    computed = computed or {}
    # A computed field is no key of the file: pydantic alone would take the user's value for it.
    taken = [name for name in content if name in computed]
    for name in taken:
        known = _known_keys(model, computed)
        problems.append(source.problem(_join(key, name), _unknown(name, known)))
    try:
        made = model.model_validate({**content, **computed})
    except ValidationError as error:
        details = error.errors(include_url=False)
        for detail in details:
            if not _is_consequence(detail, details):
                place = _join(key, *detail["loc"])
                if place not in said:
                    message = _message(detail, model, computed, source.texts.get(place, ""))
                    problems.append(source.problem(place, message))
        return None
    return None if taken else made


def _join(*parts: str | int) -> str:
    return ".".join(str(part) for part in parts if part != "")


def _is_consequence(detail: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """A required key that stands there misspelt is no second problem."""
    if detail["type"] != "missing":
        return False
    *parent, name = detail["loc"]
    return any(
        other["type"] == "extra_forbidden"
        and list(other["loc"][:-1]) == parent
        and nearest(str(other["loc"][-1]), [str(name)])
        for other in details
    )


def _message(
    detail: ErrorDetails, model: type[FileModel], computed: Mapping[str, Any], written: str
) -> str:
    name = detail["loc"][-1]
    if detail["type"] in ("extra_forbidden", "missing"):
        owner = _model_at(model, detail["loc"][:-1])
        if detail["type"] == "missing":
            meaning = owner.model_fields[str(name)].description
            return f"{name} is required{f': {meaning}' if meaning else ''}."
        if name in owner.later_keys:
            return f"{name} is not in this version of rag-assets; remove it."
        return _unknown(str(name), _known_keys(owner, computed))
    subject = "The entry" if isinstance(name, int) else name
    return f"{subject} {_predicate(detail, written)}"


def _model_at(model: type[FileModel], path: tuple[int | str, ...]) -> type[FileModel]:
    for part in path:
        inner = model_in(model.model_fields[str(part)].annotation)
        if inner is None:
            raise TypeError(f"{part} of {model.__name__} holds no model")
        model = inner
    return model


def model_in(annotation: Any) -> type[FileModel] | None:
    """The model that a field holds, also where it may be None; None for any other field."""
    kinds = [one for one in get_args(annotation) or [annotation] if one is not type(None)]
    only = kinds[0] if len(kinds) == 1 else None
    return only if isinstance(only, type) and issubclass(only, FileModel) else None


def _known_keys(model: type[FileModel], computed: Mapping[str, Any]) -> list[str]:
    return [name for name in model.model_fields if name not in computed]


def _unknown(name: str, known: list[str]) -> str:
    hint = nearest(name, known) or f" The keys here are {', '.join(known)}."
    return f"The key {shown(name)} is not known.{hint}"


_EXPECTED = {
    "int_type": "an integer",
    "float_type": "a finite number",
    "string_type": "a string",
    "is_instance_of": "a path, as a string",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _predicate(detail: ErrorDetails, written: str) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _EXPECTED:
        fix = _fix(kind, detail["loc"][-1], value, written)
        return f"must be {_EXPECTED[kind]}, got {shown(value)}{fix}."
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"must be {words} {context[bound]:g}, got {shown(value)}."
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        hint = nearest(value, choices) if isinstance(value, str) else ""
        return f"must be one of {', '.join(choices)}, got {shown(value)}.{hint}"
    if kind == "string_too_short":
        return "must not be empty."
    if kind == "value_error":
        text = str(context["error"])
        return text if text.endswith("?") else f"{text}."
    return f"is refused: {detail['msg']}."


def _fix(kind: str, name: int | str, value: Any, written: str) -> str:
    """What to write instead, where the intention is plain."""
    key = "" if isinstance(name, int) else f"{name}: "
    if kind in ("int_type", "float_type"):
        number = _as_number(value, whole=kind == "int_type")
        quotes = " without quotes" if isinstance(value, str) else ""
        return "" if number is None else f"; write {key}{number}{quotes}"
    if kind in ("string_type", "is_instance_of") and isinstance(value, (int, float)):
        return f'; write {key}"{written or shown(value)}" in quotes'
    if kind == "bool_type" and str(value).lower() in ("true", "yes", "on", "1"):
        return f"; write {key}true without quotes"
    if kind == "bool_type" and str(value).lower() in ("false", "no", "off", "0"):
        return f"; write {key}false without quotes"
    if kind == "tuple_type" and isinstance(value, str):
        return f"; write {key}[{shown(value)}]"
    return ""


def _as_number(value: Any, *, whole: bool) -> int | float | None:
    """The number that a text or a float plainly means, or None."""
    if not isinstance(value, (str, float)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if number.is_integer():
        return int(number)
    return None if whole else number
