"""What a system did with a question: answered, abstained, asked back, or reported an error.

How that is recognised is declared and never guessed: a field of the output says it, or patterns do.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field

from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.expectation import BEHAVIORS, Behavior
from rag_assets.contracts.paths import NOTHING, value_at
from rag_assets.contracts.validation import must_hold_one
from rag_assets.evaluators.answer import as_text, must_be_pattern
from rag_assets.evaluators.base import Evaluator, Evidence, Outcome, Parameters, Project

Pattern = Annotated[str, AfterValidator(must_be_pattern)]
Patterns = Annotated[tuple[Pattern, ...], Field(strict=False), AfterValidator(must_hold_one)]


class AbstentionParameters(Parameters):
    """What `abstention` accepts."""

    field: str | None = Field(
        None,
        min_length=1,
        description="dotted path of a boolean in the output; with `patterns`, of the text that "
        "they are searched in (the whole output without it)",
    )
    patterns: Patterns | None = Field(
        None,
        description="regular expressions in Python's syntax; an answer abstains when one of them "
        "is found",
    )


class BehaviorPatterns(Parameters):
    """What the text of an answer holds, by behavior; they are looked for in this order."""

    abstain: Patterns = ()
    clarify: Patterns = ()
    report_error: Patterns = ()
    answer: Patterns = ()


class BehaviorParameters(Parameters):
    """What `behavior` accepts."""

    field: str | None = Field(
        None,
        min_length=1,
        description="dotted path of the behavior in the output; with `patterns`, of the text that "
        "they are searched in (the whole output without it)",
    )
    patterns: BehaviorPatterns | None = Field(
        None,
        description="behavior to regular expressions; the first behavior of which one is found "
        "counts, in the order given here, and `answer` where none is",
    )


class Conduct(Evaluator):
    """Base of the evaluators that look at what a system did."""

    case_reads: ClassVar[tuple[str, ...]] = ("expected.behavior",)
    misses: ClassVar[Mapping[str, str]] = {
        "field_absent": "the output has no value at the path `field`"
    }
    formula_source = "Equality of the expected and the observed behavior."
    unrecognised: ClassVar[str]
    """The missing reason where the value at `field` shows no behavior."""
    parameters: AbstentionParameters | BehaviorParameters

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator.

        Raises:
            InputError: nothing says how the behavior is recognised.
        """
        if parameters.field is None and parameters.patterns is None:
            message = (
                f"{cls.type} needs to know how it is recognised: name a field of the output "
                "(field), or what the text of the answer holds (patterns)."
            )
            raise InputError([Problem("", 0, "type", message)])
        return cls(criterion, parameters)

    def reads_of_case(self, case: Case) -> Any:
        """The expected behavior."""
        return case.expectation.behavior

    def evaluate(self, evidence: Evidence) -> Outcome:
        """Pass when the system did what was expected."""
        value = value_at(evidence.output, self.parameters.field)
        if value is NOTHING:
            return Outcome.missing("field_absent")
        observed = self.observed(value)
        if observed is None:
            return Outcome.missing(self.unrecognised)
        return self.compare(observed, evidence.case.expectation.behavior)

    def behavior_of(self, output: Any) -> Behavior | None:
        """What a system did that gave an output; None where that cannot be told."""
        value = value_at(output, self.parameters.field)
        return None if value is NOTHING else self.observed(value)

    @abstractmethod
    def observed(self, value: Any) -> Behavior | None:
        """The behavior that the value at `field` shows; None where it shows none."""

    @abstractmethod
    def compare(self, observed: Behavior, expected: Behavior) -> Outcome:
        """The outcome for what was observed."""


class Abstention(Conduct):
    """The system abstained where it should, and nowhere else."""

    type = "abstention"
    description = (
        "Passes when a system that should abstain did so, and when one that should answer did "
        "not: abstaining too often is a failure as well."
    )
    accepts = AbstentionParameters
    criterion_template: ClassVar[str | None] = "{type}"
    excludes: ClassVar[Mapping[str, str]] = {
        "behavior_not_comparable": "the case expects neither an answer nor an abstention"
    }
    misses: ClassVar[Mapping[str, str]] = {
        **Conduct.misses,
        "not_a_boolean": "the value at the path `field` is neither true nor false",
    }
    unrecognised = "not_a_boolean"
    when_empty = "With patterns, an empty or null answer abstains only where a pattern finds it."
    parameters: AbstentionParameters

    def exclusion(self, case: Case) -> str | None:
        """Only an answer and an abstention can be told apart."""
        known = case.expectation.behavior in ("answer", "abstain")
        return None if known else "behavior_not_comparable"

    def observed(self, value: Any) -> Behavior | None:
        """Whether it abstained; anything else is an answer."""
        if self.parameters.patterns is not None:
            abstained = _is_found(self.parameters.patterns, value)
        elif isinstance(value, bool):
            abstained = value
        else:
            return None
        return "abstain" if abstained else "answer"

    def compare(self, observed: Behavior, expected: Behavior) -> Outcome:
        """Pass when it abstained as expected."""
        return Outcome.verdict((observed == "abstain") == (expected == "abstain"))


class BehaviorCheck(Conduct):
    """The system did what was expected of it."""

    type = "behavior"
    description = (
        "Passes when the behavior of the system (answer, abstain, clarify or report_error) is the "
        "expected one."
    )
    accepts = BehaviorParameters
    criterion_template: ClassVar[str | None] = "{type}"
    misses: ClassVar[Mapping[str, str]] = {
        **Conduct.misses,
        "unknown_behavior": "the value at the path `field` is none of the behaviors",
    }
    unrecognised = "unknown_behavior"
    when_empty = "With patterns, an empty or null answer is an answer unless a pattern finds it."
    parameters: BehaviorParameters

    def observed(self, value: Any) -> Behavior | None:
        """The first behavior of which a pattern is found, or the behavior that the value names."""
        if self.parameters.patterns is not None:
            found = (name for name, texts in self.parameters.patterns if _is_found(texts, value))
            return next(found, "answer")  # type: ignore[arg-type]
        return next((one for one in BEHAVIORS if one == value), None)

    def compare(self, observed: Behavior, expected: Behavior) -> Outcome:
        """Pass when the behavior is the expected one, which the detail names otherwise."""
        passed = observed == expected
        return Outcome.verdict(passed, detail=None if passed else {"observed": observed})


def _is_found(patterns: tuple[str, ...], value: Any) -> bool:
    return any(re.search(pattern, as_text(value)) for pattern in patterns)
