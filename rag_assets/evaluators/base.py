"""What an evaluator is: a declaration, and one outcome for one case."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from rag_assets.contracts.artifacts import Citations, Context, Retrieval
from rag_assets.contracts.canonical import canonical_json, digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.human_labels import About, Disagreement
from rag_assets.contracts.validation import FileModel

Kind = Literal["verdict", "score"]
Part = Literal["output", "retrieval", "context", "citations"]
T = TypeVar("T")

SOURCES = ("user", "as_of", "corpus")
"""What decides which documents are admissible, in the words of `case_reads`."""

COMMON_MISSES: Mapping[str, str] = {
    "execution_error": "the stage that makes what it reads raised, or the service failed",
    "timeout": "the stage that makes what it reads took longer than timeout_s",
    "malformed_artifact": "what it reads was recorded in a wrong form",
    "artifact_absent": "what it reads was not recorded for this case",
    "not_executed": "the run ended before this case was executed",
    "not_recorded": "the recorded results have no row for this case",
    "evaluator_error": "the evaluator itself raised; its traceback is in the detail",
}
"""The missing reasons that every evaluator can have, and when."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A part of the evidence that does not exist.

    Attributes:
        reason: the missing reason ("timeout", "artifact_absent", …).
        detail: more about it for a person, or "".
    """

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A case and what the system made of it. Any part but the case can be absent.

    `parts` holds the outcomes of the criteria that an evaluator is made of.
    """

    case: Case
    output: Any
    retrieval: Retrieval | Absent
    context: Context | Absent
    citations: Citations | Absent
    parts: Mapping[str, Outcome] = field(default_factory=dict)


def present(part: T | Absent) -> T:
    """A part that is known to be there, because the evaluator declares that it reads it."""
    if isinstance(part, Absent):
        raise ValueError(f"the evaluator read a part that is absent ({part.reason})")
    return part


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one evaluator says of one case.

    Attributes:
        status: whether there is a value, the case does not apply, or something was missing.
        value: a score, or 1.0 and 0.0 for a verdict that passed and failed; None unless observed.
        reason: why it is excluded, missing or (where the evaluator names it) failed.
        detail: more about it, as JSON.
    """

    status: Literal["observed", "excluded", "missing"]
    value: float | None = None
    reason: str | None = None
    detail: Any = None

    @classmethod
    def recall(
        cls, status: str, value: float | None, reason: str | None, detail: str | None
    ) -> Self:
        """An outcome as it was recorded, its detail as JSON."""
        decoded = None if detail is None else json.loads(detail)
        return cls(status, value, reason, decoded)  # type: ignore[arg-type]

    @classmethod
    def verdict(cls, passed: bool, reason: str | None = None, detail: Any = None) -> Self:
        """An observed pass (1.0) or fail (0.0)."""
        return cls("observed", 1.0 if passed else 0.0, reason, detail)

    @classmethod
    def score(cls, value: float, detail: Any = None) -> Self:
        """An observed score, in the evaluator's range."""
        return cls("observed", value, None, detail)

    @classmethod
    def excluded(cls, reason: str, detail: Any = None) -> Self:
        """The criterion does not apply to this case."""
        return cls("excluded", None, reason, detail)

    @classmethod
    def missing(cls, reason: str, detail: Any = None) -> Self:
        """The criterion applies, and there is no value."""
        return cls("missing", None, reason, detail)


@dataclass(frozen=True, slots=True)
class Project:
    """What an evaluator may know of the project when it is built.

    Attributes:
        root: the project folder; relative paths and modules are looked for there.
        depth: the declared retrieval depth, None where the system declares none.
        cases: all cases of the dataset.
        has_corpus: whether a manifest is declared.
        label_disagreement: what the labels of reviewers who disagree come to.
        parts: the evaluators whose outcomes another one may be made of.
        parts_are_known: whether these are all that the config declares.
    """

    root: Path
    depth: int | None
    cases: tuple[Case, ...]
    has_corpus: bool = False
    label_disagreement: Disagreement = "exclude"
    parts: tuple[Evaluator, ...] = ()
    parts_are_known: bool = False


class Parameters(FileModel):
    """Base of the parameter models: frozen, strict, no further keys."""

    @classmethod
    def key_names(cls) -> tuple[str, ...]:
        """The keys as the config file has them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())


# `type` means something else inside the classes below.
ParametersClass = type[Parameters]


class Evaluator(ABC):
    """One criterion of one type. Instances are never changed after they are built.

    What the class attributes declare is what documentation, checks and messages say.

    Args:
        criterion: the name of the metric.
        parameters: an instance of `accepts`.
    """

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str]
    accepts: ClassVar[ParametersClass] = Parameters
    criterion_template: ClassVar[str | None] = None
    """The criterion when the config names none; None where it must name one."""
    definition_version: ClassVar[int] = 1
    """Raised when the meaning of the type changes: recorded judgments are then not reused."""
    case_reads: ClassVar[tuple[str, ...]] = ()
    excludes: ClassVar[Mapping[str, str]] = {}
    misses: ClassVar[Mapping[str, str]] = {}
    when_empty: ClassVar[str]
    formula_source: ClassVar[str]

    kind: Kind = "verdict"
    value_range: tuple[float, float] = (0.0, 1.0)
    reads: tuple[Part, ...] = ("output",)
    home: Path = Path(__file__).parent
    """The folder whose frames a traceback shows when the evaluator raises."""

    built_after: ClassVar[int] = 0
    """How many other evaluators build on each other before it: it knows all with a lower number."""
    labelled_about: ClassVar[tuple[About, ...]] = ("answer",)
    """What of an answer reviewers label for it."""
    reads_labels: ClassVar[bool] = False
    """Whether its value is what reviewers said."""
    counts: ClassVar[str | None] = None
    """What a ratio of a case is a share of ("claims"); its detail then holds both `counts`."""
    is_constraint: ClassVar[bool] = False
    """Whether a single failure is a violation, which no mean makes good."""
    parts: tuple[Evaluator, ...] = ()
    """Evaluators whose outcomes it is made of. Such an evaluator is not memoized."""

    criterion: str
    parameters: Parameters

    def __init__(self, criterion: str, parameters: Parameters) -> None:
        self.criterion = criterion
        self.parameters = parameters

    @classmethod
    def defaults(cls, depth: int | None) -> Mapping[str, Any]:
        """Parameter defaults that depend on the declared retrieval depth."""
        return {}

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator inside a project.

        Raises:
            InputError: a parameter cannot be used; its problems carry the parameter as key.
        """
        return cls(criterion, parameters)

    def project_problems(self, project: Project) -> Iterator[tuple[str, str]]:
        """What does not fit the project, as (parameter, message)."""
        return iter(())

    def case_problems(self, case: Case) -> Iterator[tuple[str, str]]:
        """What in a case this evaluator cannot be used with, as (dotted key, message)."""
        return iter(())

    def exclusion(self, case: Case) -> str | None:
        """Why the criterion does not apply to a case, from the case alone; None when it does."""
        return None

    def reads_of_case(self, case: Case) -> Any:
        """Exactly what is read of a case, as JSON; a judgment is reused only when it is equal."""
        return None

    def reads_of_labels(self, case: Case, answer_digest: str) -> Any:
        """Exactly what is read of the labels of one answer to a case, as JSON."""
        return None

    @abstractmethod
    def evaluate(self, evidence: Evidence) -> Outcome:
        """The outcome for a case that is not excluded; every part in `reads` is there."""

    @property
    def reads_corpus(self) -> bool:
        """Whether it, or what it is made of, asks which documents are admissible."""
        return "corpus" in self.case_reads or any(one.reads_corpus for one in self.parts)

    def definition(self) -> dict[str, Any]:
        """Everything that decides the value for given evidence, as JSON."""
        return {
            "type": self.type,
            "version": self.definition_version,
            "parameters": self.parameters.model_dump(mode="json", by_alias=True),
        }

    @cached_property
    def identity(self) -> str:
        """Digest of the definition: equal identities judge alike. The criterion is not in it."""
        return digest(self.definition())

    def __str__(self) -> str:
        values = self.parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
        parameters = ", ".join(f"{key}={_shown(value)}" for key, value in values.items())
        return f"{self.type}({parameters})"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= 60 else text[:59] + "…"
