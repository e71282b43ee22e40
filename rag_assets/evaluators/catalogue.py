"""The evaluators as plain data, for documentation and messages."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from rag_assets.evaluators.base import COMMON_MISSES, Evaluator, Parameters
from rag_assets.evaluators.registry import EVALUATORS


def describe() -> list[dict[str, Any]]:
    """What every evaluator type declares, as JSON, in the order of the documentation.

    Returns:
        One object a type: type, aliases, description, criterion (the default, with `<k>` for the
        parameter; None where one must be named), kind, range, reads, case_reads, parameters (each
        with name, type, required, default and description), excluded and missing (reason → when),
        when_empty and formula_source.
    """
    return [_described(cls) for cls in EVALUATORS]


def _described(cls: type[Evaluator]) -> dict[str, Any]:
    template = cls.criterion_template
    return {
        "type": cls.type,
        "aliases": list(cls.aliases),
        "description": cls.description,
        "criterion": template and template.format(type=cls.type, k="<k>"),
        "kind": cls.kind,
        "range": list(cls.value_range),
        "reads": list(cls.reads),
        "case_reads": list(cls.case_reads),
        "parameters": _parameters(cls.accepts),
        "excluded": dict(cls.excludes),
        "missing": {**cls.misses, **COMMON_MISSES},
        "when_empty": cls.when_empty,
        "formula_source": cls.formula_source,
    }


def _parameters(model: type[Parameters]) -> list[dict[str, Any]]:
    fields = zip(model.key_names(), model.model_fields.values(), strict=True)
    return [
        {
            "name": name,
            "type": _type_text(field.annotation),
            "required": field.is_required(),
            "default": _default(field),
            "description": field.description,
        }
        for name, field in fields
    ]


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return None
    default = field.default
    return default.model_dump() if isinstance(default, Parameters) else default


def _type_text(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        return _type_text(get_args(annotation)[0])
    arguments = [item for item in get_args(annotation) if item not in (type(None), ...)]
    if get_origin(annotation) is Literal:
        return " or ".join(map(str, arguments))
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(map(_type_text, arguments))
    if get_origin(annotation) is tuple:
        return f"list of {_type_text(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Parameters):
        return f"mapping of {', '.join(annotation.key_names())}"
    return _NAMES[annotation]


_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", Any: "mapping or string"}
