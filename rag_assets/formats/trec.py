"""The two files of TREC: judgments (qrels) and a run, as `trec_eval` reads them.

A judgment is a line `topic iteration document grade`, a result a line
`topic Q0 document rank score run_tag`, with white space between the fields. Lines that begin with #
and blank lines are skipped, and what follows the run tag is ignored. Ids stay the texts that they
are in the file.

Results are ordered as `trec_eval` orders them: by score, the highest first, and equal scores by
document id, the last in code point order first. It ignores the rank column; so do positions here,
and where ranks say something else, this is counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rag_assets.contracts.cases import case_id_problem
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.jsonl import text_lines
from rag_assets.contracts.labels import id_problem
from rag_assets.contracts.text import shown

# What separates fields is ASCII white space; a no-break space belongs to an id.
_FIELD = re.compile(r"[^ \t\v\f\r]+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_JUDGMENT = "topic iteration document grade"
_RESULT = "topic Q0 document rank score run_tag"


class Ranked(NamedTuple):
    """A document of a ranking, with its score (finite)."""

    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Judgments:
    """What a qrels file says.

    Attributes:
        grades: topic → document → grade as the file has it, which may be negative.
        repeated: lines that say again what an earlier line said.
    """

    grades: Mapping[str, Mapping[str, int]]
    repeated: int


@dataclass(frozen=True, slots=True)
class TrecRun:
    """What a file of results says.

    Attributes:
        tag: the run tag of the first line.
        rankings: topic → documents in the order of their scores.
        repeated: results whose document stands further up in the same topic already.
        disagreeing: topics whose ranks order the documents in another way than the scores.
        tied: those of them in which only documents of equal score change places.
    """

    tag: str
    rankings: Mapping[str, Sequence[Ranked]]
    repeated: int
    disagreeing: int
    tied: int


class _Result(NamedTuple):
    """A line of a run; sorted in reverse, results stand in their order."""

    score: float
    doc_id: str
    rank: int


def read_judgments(data: bytes, file: str, problems: list[Problem]) -> Judgments:
    """Read a qrels file.

    Args:
        data: its content, UTF-8.
        file: the file as messages name it.
        problems: what is wrong with a line is appended here.

    Returns:
        The judgments that could be read: all of them when no problem was appended.
    """
    reader = _Reader(file, problems)
    found: dict[str, dict[str, tuple[int, int]]] = {}
    repeated = 0
    for line, fields in reader.rows(data, _JUDGMENT):
        topic, doc_id = reader.ids(line, fields[0], fields[2])
        grade = reader.whole_number(line, "grade", fields[3])
        if topic is None or doc_id is None or grade is None:
            continue
        earlier, first = found.setdefault(topic, {}).setdefault(doc_id, (grade, line))
        if earlier != grade:
            message = (
                f"The document {shown(doc_id)} of topic {shown(topic)} has the grade {grade} here "
                f"and {earlier} in line {first}; keep one."
            )
            problems.append(Problem(file, line, "", message))
        repeated += first != line
    grades = {
        topic: {doc_id: grade for doc_id, (grade, _) in judged.items()}
        for topic, judged in found.items()
    }
    return Judgments(grades, repeated)


def read_run(data: bytes, file: str, problems: list[Problem]) -> TrecRun:
    """Read a file of results.

    Args:
        data: its content, UTF-8.
        file: the file as messages name it.
        problems: what is wrong with a line is appended here.

    Returns:
        The results that could be read: all of them when no problem was appended.
    """
    reader = _Reader(file, problems)
    found: dict[str, list[_Result]] = {}
    tag = ""
    for line, fields in reader.rows(data, _RESULT):
        topic, doc_id = reader.ids(line, fields[0], fields[2])
        rank = reader.whole_number(line, "rank", fields[3])
        score = reader.score(line, fields[4])
        if topic is None or doc_id is None or rank is None or score is None:
            continue
        tag = tag or fields[5]
        found.setdefault(topic, []).append(_Result(score, doc_id, rank))
    for results in found.values():
        results.sort(reverse=True)
    orders = [_order(results) for results in found.values()]
    return TrecRun(
        tag=tag,
        rankings={
            topic: tuple(Ranked(one.doc_id, one.score) for one in results)
            for topic, results in found.items()
        },
        repeated=sum(len(one) - len({each.doc_id for each in one}) for one in found.values()),
        disagreeing=sum(order != "agrees" for order in orders),
        tied=sum(order == "ties" for order in orders),
    )


def _order(results: Sequence[_Result]) -> str:
    """Whether the ranks of ordered results agree with them, or do but for ties, or neither."""
    if all(one.rank <= after.rank for one, after in pairwise(results)):
        return "agrees"
    by_rank = sorted(results, key=lambda one: one.rank)
    falls = all(one.score >= after.score for one, after in pairwise(by_rank))
    return "ties" if falls else "disagrees"


class _Reader:
    """Takes lines apart, and notes what is wrong with them."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file = file
        self._problems = problems
        self._topics: dict[str, str | None] = {}

    def rows(self, data: bytes, form: str) -> Iterator[tuple[int, list[str]]]:
        """The lines with as many fields as a form names, with their numbers."""
        names, before = form.split(), len(self._problems)
        is_empty = True
        for line, text in text_lines(data, self._file, self._problems):
            if text.startswith("#"):
                continue
            is_empty = False
            fields = _FIELD.findall(text)
            if len(fields) == len(names) or (form == _RESULT and len(fields) > len(names)):
                yield line, fields
            else:
                got = f"The line has {len(fields)} fields, and {len(names)} are expected"
                self._note(line, f"{got}: {form}.")
        if is_empty and len(self._problems) == before:
            self._note(0, f"The file holds no line of the form: {form}.")

    def ids(self, line: int, topic: str, doc_id: str) -> tuple[str | None, str | None]:
        """Topic and document of a line; None for one that is no id."""
        if topic not in self._topics:
            problem = case_id_problem({"id": topic})
            if problem is not None:
                self._note(line, f"The topic is the id of a case, and {problem}")
            self._topics[topic] = topic if problem is None else None
        problem = id_problem({"document": doc_id}, "document")
        if problem is not None:
            self._note(line, problem)
        return self._topics[topic], doc_id if problem is None else None

    def whole_number(self, line: int, name: str, text: str) -> int | None:
        """A field that holds a whole number."""
        if _WHOLE.fullmatch(text):
            return int(text)
        self._note(line, f"The {name} must be a whole number, got {shown(text)}.")
        return None

    def score(self, line: int, text: str) -> float | None:
        """A field that holds a finite number."""
        if _NUMBER.fullmatch(text):
            score = float(text)
            if math.isfinite(score):
                return score
        self._note(line, f"The score must be a finite number, got {shown(text)}.")
        return None

    def _note(self, line: int, message: str) -> None:
        self._problems.append(Problem(self._file, line, "", message))
