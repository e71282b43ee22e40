"""One row of a file of human labels."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rag_assets.contracts.canonical import NotJsonError, canonical_json, digest
from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.human_labels import (
    COVERED,
    FAIL,
    NO_CLAIMS,
    NOT_COVERED,
    PASS,
    STRICTEST_FIRST,
    SUPPORTED,
    UNSUPPORTED,
    About,
    HumanLabel,
    Labelling,
)
from rag_assets.contracts.moments import moment
from rag_assets.contracts.table import Row
from rag_assets.contracts.text import shown

SHOWN_COLUMNS = ("question", "context", "facts")
"""Columns of a worksheet that are there to be read; its `answer` is one of them as well."""
LABEL_COLUMNS = (
    "value",
    "claim_id",
    "claim_text",
    "supported",
    "fact_id",
    "covered",
    "reviewer",
    "at",
    "note",
)
"""What a reviewer fills in."""
KEY_COLUMNS = ("case_id", "criterion", "answer_digest", "answer")
COLUMNS = (*KEY_COLUMNS, *SHOWN_COLUMNS, *LABEL_COLUMNS)
_COLUMNS_OF: Mapping[About, tuple[str, ...]] = {
    "answer": ("value",),
    "claim": ("claim_id", "claim_text", "supported"),
    "fact": ("fact_id", "covered"),
}
_HOW: Mapping[About, str] = {
    "answer": "value",
    "claim": "claim_id and supported",
    "fact": "fact_id and covered",
}
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_YES, _NO = "true", "false"
_SPELLINGS = {"yes": _YES, "1": _YES, "no": _NO, "0": _NO}
# A clock may be wrong, and a day may have begun elsewhere.
_AHEAD = timedelta(days=1)


@dataclass(frozen=True)
class Known:
    """What labels may be about.

    Attributes:
        facts: case id → ids of the facts that its answer should state.
        criteria: criterion → what its labels look like.
    """

    facts: Mapping[str, Sequence[str]]
    criteria: Mapping[str, Labelling]


class LabelRow:
    """One row on its way to a label."""

    def __init__(
        self, row: Row, file: str, known: Known, problems: list[Problem], *, is_table: bool
    ) -> None:
        absent = "" if is_table else None
        self.values = {name: value for name, value in row.values.items() if value != absent}
        self.is_worksheet = any(name in row.values for name in SHOWN_COLUMNS)
        self.is_table = is_table
        self.known = known
        self.found: list[Problem] = []
        self._place = file, row.line
        self._problems = problems

    def report(self, key: str, message: str) -> None:
        """Note that something is wrong."""
        self.found.append(Problem(*self._place, key, message))

    def label(self) -> HumanLabel | None:
        """The label; None where something is wrong, or nobody filled in the row."""
        if self.is_worksheet and not any(name in self.values for name in LABEL_COLUMNS):
            return None
        case_id = self._named("case_id", self.known.facts, "case of the dataset")
        criterion = self._named("criterion", self.known.criteria, "criterion of the config")
        answer = self._answer_digest()
        about = self._about(self.known.criteria.get(criterion or ""))
        unit = self._unit(about, case_id)
        label = None if about is None else self._word(about, criterion)
        texts = {name: self._text(name) for name in ("reviewer", "note", "claim_text")}
        labelled_at = self._text("at")
        if not str(self.values.get("reviewer", "")).strip():
            self.report("reviewer", "reviewer is required: say who labelled.")
        self._check_time(labelled_at)
        self._problems += self.found
        if self.found or not (case_id and criterion and answer and about and label):
            return None
        return HumanLabel(
            case_id, criterion, answer, about, unit or "", label, labelled_at=labelled_at, **texts
        )

    def _named(self, name: str, known: Mapping[str, Any], what: str) -> str | None:
        if name not in self.values:
            self.report(name, f"{name} is required.")
            return None
        value = self.values[name]
        if isinstance(value, str) and value in known:
            return value
        hint = nearest(value, list(known)) if isinstance(value, str) else ""
        self.report(name, f"{shown(value)} is no {what}.{hint}")
        return None

    def _text(self, name: str) -> str:
        value = self.values.get(name, "")
        if isinstance(value, str):
            # A reviewer or a claim is not another one for a space at its end.
            return value.strip()
        self.report(name, f"{name} must be a text, got {shown(value)}.")
        return ""

    def _check_time(self, at: str) -> None:
        if not at:
            return
        try:
            labelled = moment(at).first
        except ValueError as error:
            self.report("at", f"at {error}.")
            return
        if labelled > datetime.now(UTC) + _AHEAD:
            message = f"at is in the future, got {shown(at)}: it would outdo every later label."
            self.report("at", message)

    def _answer_digest(self) -> str | None:
        has_digest, has_answer = ("answer_digest" in self.values, "answer" in self.values)
        if has_digest and has_answer and not self.is_worksheet:
            self.report("answer", "The row has both answer_digest and answer; keep one of them.")
            return None
        if not has_digest and not has_answer:
            self.report(
                "answer_digest",
                "One of answer_digest and answer is required: a label is about one answer.",
            )
            return None
        if not has_digest:
            return self._digest_of(self.values["answer"])
        value = self.values["answer_digest"]
        match = _DIGEST.fullmatch(value.strip().lower()) if isinstance(value, str) else None
        if match is None:
            message = f"answer_digest must be a SHA-256 of 64 hex digits, got {shown(value)}."
            self.report("answer_digest", message)
            return None
        return match[1]

    def _digest_of(self, answer: Any) -> str | None:
        try:
            return digest(json.loads(answer) if self.is_table else answer)
        except (json.JSONDecodeError, NotJsonError, RecursionError):
            message = f"answer must be JSON, got {shown(answer)}; a text stands in quotes."
            self.report("answer", message)
            return None

    def _about(self, labelling: Labelling | None) -> About | None:
        """What the row labels; a problem where that is not one thing that its criterion takes."""
        named = [
            about
            for about, columns in _COLUMNS_OF.items()
            if any(name in self.values for name in columns)
        ]
        takes = tuple(_HOW) if labelling is None else labelling.about
        how = " or ".join(_HOW[about] for about in takes)
        if len(named) > 1:
            filled = " and ".join(_HOW[about] for about in named)
            self.report("", f"The row has {filled}: label one thing in each row.")
            return None
        if not named:
            self.report("", f"The row labels nothing: write {how}.")
            return None
        (about,) = named
        says_no_claims = self.values.get("value") == NO_CLAIMS and "claim" in takes
        if about not in takes and not says_no_claims:
            column = next(name for name in _COLUMNS_OF[about] if name in self.values)
            also = f", or value: {NO_CLAIMS}" if "claim" in takes else ""
            message = (
                f"{shown(self.values.get('criterion'))} is not labelled like this: write "
                f"{how}{also}."
            )
            self.report(column, message)
            return None
        return about

    def _unit(self, about: About | None, case_id: str | None) -> str | None:
        if about == "claim":
            # A claim that has no id is named by its text.
            unit = self._text("claim_id") or self._text("claim_text")
            if not unit:
                self.report("claim_id", "claim_id is required beside supported.")
            return unit
        if about != "fact":
            return None
        unit = self._text("fact_id")
        facts = self.known.facts.get(case_id or "", ())
        if not unit:
            self.report("fact_id", "fact_id is required beside covered.")
        elif case_id is not None and unit not in facts:
            expected = f"expects {', '.join(facts)}" if facts else "expects no facts"
            message = f"{shown(unit)} is no fact of the case, which {expected}."
            self.report("fact_id", message)
        return unit

    def _word(self, about: About, criterion: str | None) -> str | None:
        """What the row says, in the words of `STRICTEST_FIRST`."""
        column = {"answer": "value", "claim": "supported", "fact": "covered"}[about]
        if column not in self.values:
            self.report(column, f"{column} is required beside {_COLUMNS_OF[about][0]}.")
            return None
        value = self.values[column]
        labelling = self.known.criteria.get(criterion or "")
        if about == "answer":
            if labelling is None:
                return None
            if "claim" in labelling.about and value == NO_CLAIMS:
                return NO_CLAIMS
            if labelling.kind == "score":
                return self._score(value, labelling.value_range)
        word = _plain(value)
        found = _MEANINGS[about].get(word) if word is not None else None
        if found is None:
            words = ", ".join(reversed(STRICTEST_FIRST[about]))
            known = "" if about == "fact" else f"{words}, "
            self.report(column, f"{column} must be {known}true or false, got {shown(value)}.")
        return found

    def _score(self, value: Any, value_range: tuple[float, float]) -> str | None:
        low, high = value_range
        number = value
        if self.is_table:
            try:
                number = float(value)
            except ValueError:
                number = None
        is_number = type(number) in (int, float) and math.isfinite(number)
        if is_number and low <= number <= high:
            return canonical_json(float(number))
        self.report("value", f"value must be a number in [{low:g}, {high:g}], got {shown(value)}.")
        return None


def _plain(value: Any) -> str | None:
    """A word or a boolean as spreadsheets and JSON write them."""
    if isinstance(value, bool):
        return _YES if value else _NO
    word = value.strip().casefold() if isinstance(value, str) else None
    return word if word is None else _SPELLINGS.get(word, word)


def _meanings() -> Iterator[tuple[About, dict[str, str]]]:
    yes: Mapping[About, tuple[str, str]] = {
        "answer": (PASS, FAIL),
        "claim": (SUPPORTED, UNSUPPORTED),
        "fact": (COVERED, NOT_COVERED),
    }
    for about, words in STRICTEST_FIRST.items():
        positive, negative = yes[about]
        yield about, {**{word: word for word in words}, _YES: positive, _NO: negative}


_MEANINGS = dict(_meanings())
