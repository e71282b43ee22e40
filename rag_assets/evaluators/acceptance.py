"""Whether a case is acceptable as a whole: a contract over other criteria."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field

from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import InputError, Problem, nearest
from rag_assets.contracts.validation import must_hold_one
from rag_assets.evaluators.base import Evaluator, Evidence, Outcome, Parameters, Project

Criteria = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(must_hold_one)]


class AcceptanceParameters(Parameters):
    """What `task_acceptance` accepts."""

    all_of: Criteria | None = Field(None, description="criteria that all have to pass")
    any_of: Criteria | None = Field(
        None, description="criteria of which one has to pass; instead of `all_of`"
    )


class TaskAcceptance(Evaluator):
    """The declared contract of a task."""

    type = "task_acceptance"
    description = (
        "Passes when all criteria of all_of pass, or one of any_of. An excluded criterion is left "
        "out; a missing one leaves the case missing, unless the others decide it already."
    )
    accepts = AcceptanceParameters
    criterion_template: ClassVar[str | None] = "{type}"
    case_reads: ClassVar[tuple[str, ...]] = ("the outcomes of its criteria",)
    excludes: ClassVar[Mapping[str, str]] = {"all_parts_excluded": "all its criteria are excluded"}
    misses: ClassVar[Mapping[str, str]] = {
        "<reason>": "the reason of the first of its criteria that is missing"
    }
    reads = ()
    built_after = 3
    when_empty = "What its criteria say."
    formula_source = "Three-valued logic: what is missing may be either."
    parameters: AcceptanceParameters

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator with the evaluators of its criteria.

        Raises:
            InputError: it names no criterion, or one that is no verdict of another evaluator.
        """
        given = {
            key: names
            for key in ("all_of", "any_of")
            if (names := getattr(parameters, key)) is not None
        }
        if len(given) != 1:
            message = "task_acceptance takes either all_of or any_of, a list of criteria."
            raise InputError([Problem("", 0, "type", message)])
        ((key, names),) = given.items()
        verdicts = {one.criterion: one for one in project.parts if one.kind == "verdict"}
        problems = list(_problems(key, names, verdicts)) if project.parts_are_known else []
        if problems:
            raise InputError(problems)
        evaluator = cls(criterion, parameters)
        evaluator.parts = tuple(verdicts[name] for name in names if name in verdicts)
        return evaluator

    def definition(self) -> dict[str, Any]:
        """With the identities of its criteria: when one of them changes, so does the contract."""
        return super().definition() | {"parts": [one.identity for one in self.parts]}

    def exclusion(self, case: Case) -> str | None:
        """A case that none of its criteria applies to is excluded."""
        applies = any(one.exclusion(case) is None for one in self.parts)
        return None if applies else "all_parts_excluded"

    def evaluate(self, evidence: Evidence) -> Outcome:
        """The outcome from those of its criteria; the detail names those that did not pass."""
        outcomes = {one.criterion: evidence.parts[one.criterion] for one in self.parts}
        applying = {name: one for name, one in outcomes.items() if one.status != "excluded"}
        if not applying:
            return Outcome.excluded("all_parts_excluded")
        failed = [name for name, one in applying.items() if one.value == 0.0]
        missing = [name for name, one in applying.items() if one.value is None]
        passed = len(applying) - len(failed) - len(missing)
        detail = {"failed": failed, "missing": missing} if failed or missing else None
        needs_all = self.parameters.all_of is not None
        if (needs_all and failed) or (not needs_all and not passed and not missing):
            return Outcome.verdict(False, detail=detail)
        if missing and (needs_all or not passed):
            return Outcome.missing(applying[missing[0]].reason or "", detail)
        return Outcome.verdict(True)


def _problems(
    key: str, names: tuple[str, ...], verdicts: Mapping[str, Evaluator]
) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name not in verdicts:
            hint = nearest(name, list(verdicts)) or f" Those are {', '.join(verdicts) or 'absent'}."
            message = f'"{name}" is no criterion of verdicts of another evaluator.{hint}'
            yield Problem("", 0, f"{key}.{index}", message)
        elif name in names[:index]:
            yield Problem("", 0, f"{key}.{index}", f'"{name}" stands here twice; keep one.')
