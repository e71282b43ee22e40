"""Checks on the answer as data: its schema, a number, and the words that it shares."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, field_validator

from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.text import shown
from rag_assets.evaluators.answer import (
    JSON_TEXT,
    ExpectedCheck,
    ExpectedParameters,
    FieldParameters,
    OutputCheck,
    as_text,
)
from rag_assets.evaluators.base import Kind, Outcome, Parameters, Project

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, SchemaError, ValidationError
    from referencing import Resource


class JsonSchemaParameters(FieldParameters):
    """What `json_schema` accepts."""

    schema_: Any = Field(
        alias="schema", description="the JSON Schema (draft 2020-12), or the path of its JSON file"
    )

    @field_validator("schema_")
    @classmethod
    def _is_schema_or_file(cls, schema: Any) -> Any:
        if not isinstance(schema, (dict, str)):
            raise ValueError("must be a mapping, the schema, or the path of a JSON file")
        return schema


class JsonSchema(OutputCheck):
    """The output is valid under a JSON Schema."""

    type = "json_schema"
    description = "Passes when the output is valid under a JSON Schema (draft 2020-12)."
    accepts = JsonSchemaParameters
    when_empty = "A null answer is a value like any other: the schema decides."
    formula_source = "JSON Schema, draft 2020-12."
    parameters: JsonSchemaParameters
    schema: Mapping[str, Any]
    validator: Draft202012Validator

    @classmethod
    def defaults(cls, depth: int | None) -> Mapping[str, Any]:
        """No schema, which is then refused in the words of a wrong one."""
        return {"schema": None}

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator with its schema read and checked.

        Raises:
            InputError: the file cannot be read, or the schema is not valid.
        """
        evaluator, schema = cls(criterion, parameters), parameters.schema_
        try:
            if isinstance(schema, str):
                schema = _read_object(project.root, schema)
            evaluator.schema, evaluator.validator = schema, _validator(schema)
        except ValueError as error:
            raise InputError([Problem("", 0, "schema", f"The schema {error}.")]) from None
        return evaluator

    def definition(self) -> dict[str, Any]:
        """With the schema's content, so that an edited file makes another identity."""
        definition = super().definition()
        definition["parameters"]["schema"] = self.schema
        return definition

    def check(self, value: Any, case: Case) -> Outcome:
        """Pass, or fail with the place and message of one error."""
        first = min(
            self.validator.iter_errors(value),
            key=lambda error: (len(error.absolute_path), error.json_path, error.message),
            default=None,
        )
        if first is None:
            return Outcome.verdict(True)
        return Outcome.verdict(False, detail={"at": first.json_path, "message": _message(first)})


class Tolerance(Parameters):
    """How far a number may be from the expected one."""

    absolute: float = Field(0.0, ge=0, description="largest difference")
    relative: float = Field(0.0, ge=0, description="largest difference as a share of the expected")


class NumericParameters(ExpectedParameters):
    """What `numeric` accepts."""

    tolerance: Tolerance = Field(
        Tolerance(), description="the larger of `absolute` and `relative` times the expected counts"
    )


class Numeric(ExpectedCheck):
    """The output is a number near the expected one."""

    type = "numeric"
    description = (
        "Passes when the output is a number, or a text that is wholly a number, within the "
        "tolerance of the expected number; anything else fails with the reason not_a_number."
    )
    accepts = NumericParameters
    when_empty = "An empty or null answer fails with the reason not_a_number."
    formula_source = "|x - e| ≤ max(absolute, relative * |e|), in decimal arithmetic."
    parameters: NumericParameters

    def compare(self, value: Any, expected: Any) -> Outcome:
        """Compare as decimals: 1.1 is within 0.1 of 1.0, as it is written."""
        found = _number(value)
        if found is None:
            return Outcome.verdict(False, "not_a_number")
        wanted, tolerance = _decimal(expected), self.parameters.tolerance
        relative = _EXACT.multiply(_decimal(tolerance.relative), _EXACT.abs(wanted))
        difference = _EXACT.abs(_EXACT.subtract(found, wanted))
        return Outcome.verdict(difference <= max(_decimal(tolerance.absolute), relative))

    def case_problems(self, case: Case) -> Iterator[tuple[str, str]]:
        """An expected value that is not a number."""
        expected = self.expected(case)
        if self.exclusion(case) is None and not _is_number(expected):
            fix = f" Write {expected.strip()} without quotes." if _number(expected) else ""
            message = (
                f"{self.criterion} compares numbers, and the expected value is "
                f"{shown(expected)}.{fix}"
            )
            yield self.problem_key(case), message


class TokenF1(ExpectedCheck):
    """The words that the output and the expected text share."""

    type = "token_f1"
    description = (
        "F1 of the words that the output shares with the expected text, without regard to case, "
        f"order and punctuation; {JSON_TEXT}."
    )
    accepts = ExpectedParameters
    excludes: ClassVar[Mapping[str, str]] = {
        "no_expected": "the expected value is absent, null or has no word"
    }
    when_empty = "An empty or null answer scores 0."
    formula_source = (
        "Rajpurkar et al., SQuAD, EMNLP 2016: 2 * shared / (words of the output + words of the "
        "expected); words are runs of \\w after NFKC and case folding, articles included."
    )
    kind: Kind = "score"

    def is_empty(self, expected: Any) -> bool:
        """Whether it has no word."""
        return not _words(expected)

    def compare(self, value: Any, expected: Any) -> Outcome:
        """A score in [0, 1]."""
        found, wanted = _words(value), _words(expected)
        shared = sum((Counter(found) & Counter(wanted)).values())
        return Outcome.score(2 * shared / (len(found) + len(wanted)))


_EXACT = Context(prec=100, traps=[])
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> Decimal | None:
    if isinstance(value, str):
        text = value.strip()
        return _EXACT.create_decimal(text) if _NUMBER.fullmatch(text) else None
    return _decimal(value) if _is_number(value) else None


def _decimal(value: float) -> Decimal:
    return _EXACT.create_decimal(repr(value))


def _words(value: Any) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", as_text(value)).casefold())


def _read_object(root: Path, name: str) -> Mapping[str, Any]:
    try:
        read = json.loads((root / name).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"file {name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"file {name} is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise ValueError(f"file {name} must hold an object")
    return read


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """A validator that never fetches anything; ValueError where the schema is of no use."""
    from jsonschema import Draft202012Validator, SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"is not valid at {error.json_path}: {_message(error)}") from None
    resource = DRAFT202012.create_resource(schema)
    # Without a registry of its own, the library fetches references over the network.
    registry: Registry[Any] = Registry()
    for reference, resolver in _references(resource, registry.resolver_with_root(resource)):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ValueError(f"refers to {reference}, which it does not hold") from None
    return Draft202012Validator(schema, registry=registry)


def _references(resource: Resource[Any], resolver: Any) -> Iterator[tuple[str, Any]]:
    """Every reference inside a schema, with the resolver for its place."""
    for key in ("$ref", "$dynamicRef"):
        if isinstance(resource.contents, dict) and key in resource.contents:
            yield resource.contents[key], resolver
    for inner in resource.subresources():
        yield from _references(inner, resolver.in_subresource(inner))


def _message(error: SchemaError | ValidationError) -> str:
    return error.message if len(error.message) <= 300 else error.message[:299] + "…"
