"""Cases against the corpus: what their users may use, and which labels that leaves to find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date

from rag_assets.contracts.admissibility import Inadmissibility, Sources, names_of
from rag_assets.contracts.cases import Case, Label, user_problem
from rag_assets.contracts.corpus import Corpus
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.moments import Moment, day, moment
from rag_assets.contracts.text import shown

SHOWN = 5
"""How many labels a warning names one by one."""


class ReferenceSets:
    """Takes the labels of documents that are not admissible out of cases.

    Args:
        corpus: the manifest.
        today: the date of a case that names none.
    """

    def __init__(self, corpus: Corpus, today: date) -> None:
        self._corpus = corpus
        self._today = day(today)
        self._sources: dict[tuple[frozenset[str], Moment], Sources] = {}

    def of(self, case: Case) -> Case:
        """A case with its reference set, and with the corpus as its user may use it.

        Args:
            case: as the dataset has it, or with its reference set of another date.
        """
        sources = self.sources_of(case)
        relevant: list[Label] = []
        inadmissible: list[tuple[Label, Inadmissibility]] = []
        for label in (*case.relevant, *(label for label, _ in case.inadmissible)):
            reason = sources.reason(label.doc_id) if label.grade > 0 else None
            if reason is None:
                relevant.append(label)
            else:
                inadmissible.append((label, reason))
        return replace(
            case, relevant=tuple(relevant), inadmissible=tuple(inadmissible), sources=sources
        )

    def sources_of(self, case: Case) -> Sources:
        """The corpus as the user of a case may use it; users with equal names share it."""
        as_of = self._today if case.as_of is None else moment(case.as_of)
        key = names_of(case.asker), as_of
        if key not in self._sources:
            self._sources[key] = Sources(self._corpus, *key)
        return self._sources[key]


def user_problems(cases: Iterable[Case], file: str) -> Iterator[Problem]:
    """Users inside of inputs that say neither who they are nor what they may see."""
    for case in cases:
        problem = None if case.asker is None else user_problem(case.asker)
        if problem is not None:
            yield Problem(file, case.line, "input.user", problem)


def reference_problems(cases: Iterable[Case], file: str) -> Iterator[Problem]:
    """Labels that contradict an expected answer at the date that the case names.

    Args:
        cases: with their reference sets.
        file: the dataset as messages name it.
    """
    for case in cases:
        if case.expectation.behavior != "answer" or case.as_of is None:
            continue
        for label, reason in case.inadmissible:
            message = (
                f"Case {shown(case.id)} expects an answer, and its relevant document "
                f"{_named(case, label, reason)}. Correct the label or the manifest, or expect "
                "behavior: abstain."
            )
            yield Problem(file, case.line, "expected.relevant", message)


def reference_warnings(cases: Iterable[Case]) -> list[str]:
    """Labels that leave the reference set of a case that expects an answer: the date decides."""
    found = [
        (case, label, reason)
        for case in cases
        if case.expectation.behavior == "answer"
        for label, reason in case.inadmissible
    ]
    warnings = [
        f"Case {shown(case.id)} (line {case.line}): its relevant document "
        f"{_named(case, label, reason)}, so the label does not count."
        for case, label, reason in found[:SHOWN]
    ]
    if len(found) > SHOWN:
        warnings.append(f"{len(found) - SHOWN} more labels do not count for the same reasons.")
    return warnings


def _named(case: Case, label: Label, reason: str) -> str:
    document = shown(label.doc_id)
    if reason == "unknown_source":
        return f"{document} is not in the manifest"
    date = "today" if case.as_of is None else f"at {case.as_of}"
    words = "not permitted to its user" if reason == "not permitted" else f"{reason} {date}"
    return f"{document} is {words}"
