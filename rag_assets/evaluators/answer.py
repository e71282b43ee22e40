"""Checks on the answer: text that it holds, a value that it equals, a pattern that it matches."""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.paths import NOTHING, value_at
from rag_assets.evaluators.base import Evaluator, Evidence, Outcome, Parameters

JSON_TEXT = "a value that is not a string counts as its JSON text"


def must_be_pattern(pattern: str) -> str:
    """The pattern.

    Raises:
        ValueError: it is no regular expression.
    """
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return pattern


class FieldParameters(Parameters):
    """What every check on the output accepts."""

    field: str | None = Field(
        None, min_length=1, description="dotted path into the output; the whole output without it"
    )


class ExpectedParameters(FieldParameters):
    """What every comparison with an expected value accepts."""

    expected_field: str | None = Field(
        None,
        min_length=1,
        description="dotted path into `expected`, where that is an object; `field` without it",
    )

    def apply(self, text: str) -> str:
        """The text as it is compared."""
        return text


class TextParameters(ExpectedParameters):
    """What comparisons of texts accept."""

    casefold: bool = Field(False, description="ignore the difference of upper and lower case")
    strip: bool = Field(False, description="ignore white space at both ends")
    normalize: Literal["none", "nfkc"] = Field(
        "none", description="`nfkc` makes compatible characters equal, such as ﬁ and fi"
    )

    @field_validator("normalize", mode="before")
    @classmethod
    def _null_is_none(cls, normalize: Any) -> Any:
        return "none" if normalize is None else normalize

    def apply(self, text: str) -> str:
        """The text after the options."""
        if self.normalize == "nfkc":
            text = unicodedata.normalize("NFKC", text)
        if self.casefold:
            text = text.casefold()
        return text.strip() if self.strip else text


class ExactParameters(TextParameters):
    """Those of a text comparison, with another default."""

    strip: bool = Field(True, description="ignore white space at both ends")


class RegexParameters(FieldParameters):
    """What `regex` accepts."""

    pattern: str = Field(description="regular expression in Python's syntax")
    pass_if: Literal["match", "no_match"] = Field(
        "match", description="whether a match passes or fails"
    )

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        return must_be_pattern(pattern)


class OutputCheck(Evaluator):
    """Base of the checks that read one value of the output."""

    misses: ClassVar[Mapping[str, str]] = {
        "field_absent": "the output has no value at the path `field`"
    }
    parameters: FieldParameters

    def evaluate(self, evidence: Evidence) -> Outcome:
        """The outcome for the value at `field`; missing where there is none."""
        value = value_at(evidence.output, self.parameters.field)
        if value is NOTHING:
            return Outcome.missing("field_absent")
        return self.check(value, evidence.case)

    @abstractmethod
    def check(self, value: Any, case: Case) -> Outcome:
        """The outcome for the value at `field`."""


class ExpectedCheck(OutputCheck):
    """Base of the checks that compare the output with the expected value of the case."""

    case_reads: ClassVar[tuple[str, ...]] = ("expected",)
    excludes: ClassVar[Mapping[str, str]] = {
        "no_expected": "the expected value is absent, null or an empty text"
    }
    parameters: ExpectedParameters

    def expected_path(self, case: Case) -> str | None:
        """Where the expected value stands in `expected`; None for the whole of it."""
        if isinstance(case.expected, dict):
            return self.parameters.expected_field or self.parameters.field
        return None

    def expected(self, case: Case) -> Any:
        """The expected value, or `NOTHING`."""
        return value_at(case.expected, self.expected_path(case))

    def is_empty(self, expected: Any) -> bool:
        """Whether it is a text of which nothing is left to compare."""
        return isinstance(expected, str) and not self.parameters.apply(expected)

    def exclusion(self, case: Case) -> str | None:
        """A case without an expected value is excluded."""
        expected = self.expected(case)
        if expected is NOTHING or expected is None or self.is_empty(expected):
            return "no_expected"
        return None

    def reads_of_case(self, case: Case) -> Any:
        """The expected value, in an object so that null and absent differ."""
        expected = self.expected(case)
        return {} if expected is NOTHING else {"expected": expected}

    def check(self, value: Any, case: Case) -> Outcome:
        """Compare with the expected value of the case."""
        return self.compare(value, self.expected(case))

    @abstractmethod
    def compare(self, value: Any, expected: Any) -> Outcome:
        """The outcome for a value of the output and an expected value that is not empty."""

    def problem_key(self, case: Case) -> str:
        """The dotted key of the expected value in the case."""
        path = self.expected_path(case)
        return f"expected.{path}" if path else "expected"


class Contains(ExpectedCheck):
    """The expected text stands somewhere in the output."""

    type = "contains"
    description = f"Passes when the output holds the expected text; {JSON_TEXT}."
    accepts = TextParameters
    when_empty = "An empty or null answer fails."
    formula_source = "Substring test."
    parameters: TextParameters

    def compare(self, value: Any, expected: Any) -> Outcome:
        """Pass when one text holds the other."""
        apply = self.parameters.apply
        return Outcome.verdict(apply(as_text(expected)) in apply(as_text(value)))

    def case_problems(self, case: Case) -> Iterator[tuple[str, str]]:
        """An expected value that is not one text."""
        expected = self.expected(case)
        if isinstance(expected, (dict, list)):
            kind = "an object" if isinstance(expected, dict) else "a list"
            message = (
                f"{self.criterion} looks for a text in the answer, and the expected value is "
                f"{kind}. Name a text inside it with expected_field, or use type: exact."
            )
            yield self.problem_key(case), message


class Exact(ExpectedCheck):
    """The output equals the expected value."""

    type = "exact"
    aliases = ("exact_match",)
    description = (
        "Passes when the output equals the expected value as JSON (1 equals 1.0, and neither "
        'equals true or "1"); the text options apply when both are strings.'
    )
    accepts = ExactParameters
    when_empty = "An empty or null answer fails."
    formula_source = "Equality of JSON values."
    parameters: ExactParameters

    def compare(self, value: Any, expected: Any) -> Outcome:
        """Pass when both are equal."""
        if isinstance(value, str) and isinstance(expected, str):
            apply = self.parameters.apply
            return Outcome.verdict(apply(value) == apply(expected))
        return Outcome.verdict(json_equal(value, expected))


class Regex(OutputCheck):
    """A pattern is found, or is not found, in the output."""

    type = "regex"
    description = (
        f"Searches the output for a pattern, anywhere in it; {JSON_TEXT}, and null never matches."
    )
    accepts = RegexParameters
    when_empty = "A null answer does not match; an empty one matches what matches the empty text."
    formula_source = "Python's re.search."
    parameters: RegexParameters

    def check(self, value: Any, case: Case) -> Outcome:
        """Pass or fail by `pass_if`."""
        found = value is not None and bool(re.search(self.parameters.pattern, as_text(value)))
        return Outcome.verdict(found == (self.parameters.pass_if == "match"))


def as_text(value: Any) -> str:
    """A JSON value as text: a string as it is, null as the empty text, others as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else canonical_json(value)


def json_equal(one: Any, other: Any) -> bool:
    """Equality of JSON values, where numbers compare by value and a boolean is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(json_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(json_equal, one, other))
    return bool(one == other)
