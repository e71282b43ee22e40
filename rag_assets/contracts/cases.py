"""Cases: rows of the dataset, checked once and immutable afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_assets.contracts.canonical import NotJsonError, digest
from rag_assets.contracts.errors import InputError, Problem, nearest
from rag_assets.contracts.expectation import Expectation, read_expectation
from rag_assets.contracts.labels import (
    GoldPassage,
    Label,
    Report,
    id_problem,
    read_gold_context,
    read_labels,
    text_problem,
)
from rag_assets.contracts.moments import moment
from rag_assets.contracts.text import shown

if TYPE_CHECKING:
    from rag_assets.contracts.admissibility import Inadmissibility, Sources
    from rag_assets.contracts.human_labels import HumanLabel

__all__ = ["Case", "Dataset", "GoldPassage", "Label", "check_case", "parse_case"]

KEYS = ("id", "input", "expected", "metadata", "user", "as_of", "group")
MAX_ID_LENGTH = 512
# Leaves room for everything that walks over a value recursively, at about 1,000 Python frames.
MAX_DEPTH = 200
TOO_DEEP = f"The case is nested deeper than {MAX_DEPTH} levels."

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the dataset.

    Attributes:
        input, expected, metadata, user, as_of, group: as the row has them; None where it has none,
            and an empty mapping for absent metadata.
        line: 1-based line in the dataset file, 0 without a file.
        input_digest: digest of the input.
        expected_digest: digest of expected, user and as_of.
        digest: digest of the whole case.
        relevant: the labels, identical repeats removed; labels of grade 0 are kept. Where there is
            a corpus, without those of documents that are not admissible: the reference set.
        gold_context: the passages that hold the answer.
        requires: whether any relevant unit suffices to answer, or all are needed.
        expectation: what the row says of behavior, facts, forbidden texts and the reason.
        inadmissible: the labels that left the reference set, and why.
        sources: the corpus as the user of the case may use it; None without a corpus.
        human_labels: what reviewers said of answers to the case, whichever answer that was.
    """

    id: str
    input: Any
    expected: Any
    metadata: Mapping[str, Any]
    user: Any
    as_of: str | None
    group: str | None
    line: int
    input_digest: str
    expected_digest: str
    digest: str
    relevant: tuple[Label, ...]
    gold_context: tuple[GoldPassage, ...]
    requires: Literal["any", "all"]
    expectation: Expectation
    inadmissible: tuple[tuple[Label, Inadmissibility], ...] = ()
    sources: Sources | None = field(default=None, repr=False, compare=False)
    human_labels: tuple[HumanLabel, ...] = field(default=(), repr=False, compare=False)

    @property
    def gold_passages(self) -> tuple[GoldPassage, ...]:
        """The passages that hold the answer: `gold_context`, or what the manifest says.

        Without `gold_context` they are the texts of the relevant documents in the manifest, as far
        as whole documents are labelled; with `requires: all`, none unless it holds all of them.
        """
        if self.gold_context or self.sources is None:
            return self.gold_context
        documents = self.sources.corpus.documents
        relevant = [one for one in self.relevant if one.grade > 0]
        texts = [
            (one.doc_id, documents[one.doc_id].text)
            for one in relevant
            if one.chunk_id is None and one.doc_id in documents
        ]
        found = tuple(GoldPassage(doc_id, None, text) for doc_id, text in texts if text)
        is_complete = self.requires == "any" or len(found) == len(relevant)
        return found if is_complete else ()

    @property
    def asker(self) -> Any:
        """The user who asks: `user`, or else `input.user`; None where neither is there."""
        if self.user is None and isinstance(self.input, dict):
            return self.input.get("user")
        return self.user


@dataclass(frozen=True, slots=True)
class Dataset:
    """The cases in the order of the file; the digest does not depend on that order."""

    path: Path
    cases: tuple[Case, ...]
    digest: str


def parse_case(raw: Mapping[str, Any], *, line: int = 0) -> Case:
    """Make a case of a row.

    Args:
        raw: the row as JSON has it.
        line: its 1-based line in a file, 0 where there is none.

    Raises:
        InputError: with every problem of the row.
    """
    problems: list[Problem] = []
    case = check_case(raw, "", line, problems)
    if case is None:
        raise InputError(problems)
    return case


def check_case(
    raw: Mapping[str, Any], file: str, line: int, problems: list[Problem]
) -> Case | None:
    """Make a case of a row, or append every problem of the row and return None.

    Args:
        raw: the row as JSON has it.
        file: the dataset as messages name it.
        line: the 1-based line of the row.
        problems: the list to append to.
    """
    found: list[Problem] = []

    def report(key: str, message: str) -> None:
        found.append(Problem(file, line, key, message))

    if _is_deeper_than(raw, MAX_DEPTH):
        report("", TOO_DEEP)
        case = None
    else:
        case = _case(raw, line, found, report)
    problems += found
    return case


def case_id_problem(raw: Mapping[str, Any]) -> str | None:
    """What is wrong with the `id` of a case, or None."""
    problem = id_problem(raw, "id")
    if problem is not None:
        return problem
    value = raw["id"]
    if len(value) > MAX_ID_LENGTH:
        return f"id has {len(value)} characters; at most {MAX_ID_LENGTH} are allowed."
    if _CONTROL.search(value):
        return f"id must not hold a control character, got {shown(value)}."
    if "..." in value:
        return f'id must not hold "...", got {shown(value)}.'
    return None


def _case(raw: Mapping[str, Any], line: int, found: list[Problem], report: Report) -> Case | None:
    _check_keys(raw, report)
    expected = raw.get("expected")
    if isinstance(expected, list):
        report("expected", 'expected is a list; name its field, like {"answers": […]}.')
    fields = expected if isinstance(expected, dict) else {}
    relevant = read_labels(fields.get("relevant"), raw.get("id"), report)
    gold_context = read_gold_context(fields.get("gold_context"), report)
    expectation = read_expectation(fields, report)
    requires = fields.get("requires", "any")
    if requires not in ("any", "all"):
        report("expected.requires", f"requires must be any or all, got {shown(requires)}.")
    input_digest = _digest("input", raw.get("input"), report)
    told = {name: raw.get(name) for name in ("expected", "user", "as_of")}
    expected_digest = _digest("", told, report)
    rest = {name: raw.get(name) for name in ("id", "metadata", "group")}
    whole = _digest("", {**rest, "input": input_digest, "expected": expected_digest}, report)
    if found:
        return None
    return Case(
        id=raw["id"],
        input=raw["input"],
        expected=expected,
        metadata=raw.get("metadata", {}),
        user=raw.get("user"),
        as_of=raw.get("as_of"),
        group=raw.get("group"),
        line=line,
        input_digest=input_digest,
        expected_digest=expected_digest,
        digest=whole,
        relevant=relevant,
        gold_context=gold_context,
        requires=requires,
        expectation=expectation,
    )


def _check_keys(raw: Mapping[str, Any], report: Report) -> None:
    """The row's own keys, apart from what is inside `expected`."""
    unknown = [name for name in raw if name not in KEYS]
    for name in unknown:
        hint = nearest(name, KEYS) or f" The keys of a case are {', '.join(KEYS)}."
        report("", f"The key {shown(name)} is not known.{hint}")
    # A required key that stands there misspelt is no second problem.
    if "id" in raw or not any(nearest(name, ["id"]) for name in unknown):
        problem = case_id_problem(raw)
        if problem is not None:
            report("id", problem)
    if raw.get("input") is None and not any(nearest(name, ["input"]) for name in unknown):
        report("input", "input is required and must not be null; it is what the system receives.")
    for name, check in _OPTIONAL.items():
        if name in raw:
            problem = check(raw)
            if problem is not None:
                report(name, problem)


def _metadata_problem(raw: Mapping[str, Any]) -> str | None:
    if isinstance(raw["metadata"], dict):
        return None
    value = shown(raw["metadata"])
    return f"metadata must be an object, got {value}; leave it out where there is none."


def _group_problem(raw: Mapping[str, Any]) -> str | None:
    return text_problem(raw, "group")


def _as_of_problem(raw: Mapping[str, Any]) -> str | None:
    value = raw["as_of"]
    if not isinstance(value, str):
        return f'as_of must be an ISO date like "2026-09-16", got {shown(value)}.'
    try:
        moment(value)
    except ValueError as error:
        return f"as_of {error}."
    return None


def _user_problem(raw: Mapping[str, Any]) -> str | None:
    return user_problem(raw["user"])


def user_problem(user: Any) -> str | None:
    """What is wrong with the user of a case, or None: an id, or an object with id and roles."""
    if not isinstance(user, dict):
        problem = text_problem({"user": user}, "user")
        return None if problem is None else f"{problem} An object with id and roles will do too."
    roles = user.get("roles", [])
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        return f"The roles of user must be a list of strings, got {shown(roles)}."
    problem = id_problem(user, "id")
    return None if problem is None else f"In user, {problem}"


_OPTIONAL = {
    "metadata": _metadata_problem,
    "group": _group_problem,
    "as_of": _as_of_problem,
    "user": _user_problem,
}


def _digest(key: str, value: Any, report: Report) -> str:
    try:
        return digest(value)
    except NotJsonError as error:
        place = ".".join(part for part in (key, error.path) if part)
        what = str(error).removeprefix(f"{error.path}: ")
        report(place, f"The value {what}.")
        return ""


def _is_deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested deeper than so many levels. No recursion on purpose."""
    layer = [value]
    for _ in range(levels):
        layer = [
            child
            for item in layer
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not layer:
            return False
    return True
