"""An evaluator of the user's own: one function of the project."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from math import isfinite
from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import Field, ValidationInfo, field_validator

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.loading import load_object
from rag_assets.evaluators.base import Evaluator, Evidence, Kind, Outcome, Parameters, Part, Project

Argument = Literal["input", "expected", "metadata", "output", "retrieval", "context", "citations"]
ARGUMENTS: tuple[str, ...] = get_args(Argument)
CASE_ARGUMENTS = ARGUMENTS[:3]


class CustomParameters(Parameters):
    """What `custom` accepts."""

    object: str = Field(description="the function, as module:function")
    kind: Kind = Field(description="whether it returns a verdict or a score")
    range: tuple[float, ...] | None = Field(
        None,
        strict=False,
        validate_default=True,
        description="least and largest score; needed for scores",
    )
    reads: tuple[Argument, ...] | None = Field(
        None,
        strict=False,
        description="what the function may be given; all that its signature names without it",
    )

    @field_validator("range")
    @classmethod
    def _fits_kind(
        cls, value: tuple[float, ...] | None, info: ValidationInfo
    ) -> tuple[float, ...] | None:
        kind = info.data.get("kind")
        if kind == "score" and value is None:
            raise ValueError("is needed for kind: score; write range: [0, 1], for example")
        if kind == "verdict" and value is not None:
            raise ValueError("belongs to kind: score; leave it out for a verdict")
        if value is not None and not (len(value) == 2 and value[0] < value[1]):
            raise ValueError("must be [least, largest], two numbers with the least first")
        return value


class Custom(Evaluator):
    """A function of the project judges."""

    type = "custom"
    description = (
        "Calls a function of the project with what its signature names of input, output, "
        "expected, metadata, retrieval, context and citations. It returns a boolean, a number in "
        "the range, {value, reason} or {excluded: reason}."
    )
    accepts = CustomParameters
    case_reads: ClassVar[tuple[str, ...]] = CASE_ARGUMENTS
    excludes: ClassVar[Mapping[str, str]] = {
        "<reason>": "the function returns {excluded: <reason>}"
    }
    when_empty = "The function decides; an error in it is missing, never a fail or a zero."
    formula_source = "The function."
    parameters: CustomParameters
    function: Callable[..., Any]
    code: str
    arguments: tuple[str, ...]

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator with its function imported and its code digest taken.

        Raises:
            InputError: the function cannot be imported, or cannot be called as declared.
        """
        from rag_assets.contracts.fingerprint import code_digest

        evaluator = cls(criterion, parameters)
        try:
            function = load_object(parameters.object, project.root)
        except InputError as error:
            raise InputError([Problem("", 0, "object", error.problems[0].message)]) from error
        evaluator.function = function
        evaluator.arguments = _arguments(function, parameters)
        evaluator.code = code_digest(function, project.root).digest
        evaluator.kind = parameters.kind
        if parameters.range:
            evaluator.value_range = parameters.range
        evaluator.reads = tuple(part for part in get_args(Part) if part in evaluator.arguments)
        evaluator.home = project.root
        return evaluator

    def definition(self) -> dict[str, Any]:
        """With the digest of the function's code and the arguments that it takes."""
        definition = super().definition() | {"code": self.code}
        definition["parameters"]["reads"] = list(self.arguments)
        return definition

    def reads_of_case(self, case: Case) -> Any:
        """Those of input, expected and metadata that the function takes."""
        return {name: getattr(case, name) for name in CASE_ARGUMENTS if name in self.arguments}

    def evaluate(self, evidence: Evidence) -> Outcome:
        """What the function returned, as an outcome.

        Raises:
            Exception: whatever the function raises.
            ValueError: it returned something else than declared.
        """
        returned = self.function(**{name: _argument(name, evidence) for name in self.arguments})
        result = returned if isinstance(returned, Mapping) else {"value": returned}
        if set(result) == {"excluded"} and _is_reason(result["excluded"]):
            return Outcome.excluded(result["excluded"])
        reason = result.get("reason")
        if not (
            "value" in result
            and set(result) <= {"value", "reason"}
            and self._is_value(result["value"])
            and (reason is None or _is_reason(reason))
        ):
            raise ValueError(f"{self.parameters.object} returned {returned!r:.200}; {self._wanted}")
        return Outcome("observed", float(result["value"]), reason)

    def _is_value(self, value: Any) -> bool:
        if self.kind == "verdict":
            return isinstance(value, bool)
        lowest, highest = self.value_range
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and isfinite(value) and lowest <= value <= highest

    @property
    def _wanted(self) -> str:
        value = "True or False" if self.kind == "verdict" else "a number in {} … {}"
        return (
            f"it must return {value.format(*self.value_range)}, "
            "{value: …, reason: text} or {excluded: text}"
        )


def _is_reason(value: Any) -> bool:
    return isinstance(value, str) and value != "" and bool(canonical_json(value))


def _argument(name: str, evidence: Evidence) -> Any:
    if name in ("retrieval", "context", "citations"):
        return getattr(evidence, name)
    # JSON is copied, so that a function that changes it changes nothing for others.
    return deepcopy(getattr(evidence if name == "output" else evidence.case, name))


def _arguments(function: Any, parameters: CustomParameters) -> tuple[str, ...]:
    """The arguments of the function that it is called with, in a fixed order."""

    def refuse(key: str, message: str) -> InputError:
        return InputError([Problem("", 0, key, f"{parameters.object} {message}")])

    # Only a function has code to fingerprint; a decorated one counts as what it wraps.
    if not inspect.isfunction(inspect.unwrap(function)):
        raise refuse("object", "is not a function. Name a function of the project.")
    if inspect.iscoroutinefunction(function):
        raise refuse("object", "is an async function. Write it with a plain def.")
    taken = inspect.signature(function).parameters.values()
    named = {item.name for item in taken if item.kind in _BY_NAME}
    needed = [item.name for item in taken if item.default is item.empty and _is_single(item)]
    allowed = ARGUMENTS if parameters.reads is None else parameters.reads
    for name in needed:
        if name not in ARGUMENTS or name not in named:
            known = ", ".join(ARGUMENTS)
            raise refuse("object", f"needs {name}, and is called by name with some of: {known}.")
        if name not in allowed:
            raise refuse("reads", f"needs {name}, which reads does not list.")
    for name in parameters.reads or ():
        if name not in named:
            raise refuse("reads", f"has no parameter {name}. Take it out of reads.")
    return tuple(name for name in ARGUMENTS if name in named and name in allowed)


def _is_single(item: inspect.Parameter) -> bool:
    """Whether it is one parameter, not *args or **kwargs."""
    return item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
