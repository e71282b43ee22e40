"""The worksheet that reviewers label the answers of a run on: one row for each answer."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.errors import InputError, nearest
from rag_assets.contracts.kinds import CONTEXT
from rag_assets.contracts.label_rows import LABEL_COLUMNS
from rag_assets.contracts.spreadsheet import neutralised
from rag_assets.evaluation.agreement import TYPES
from rag_assets.evaluation.case_view import found_leaks
from rag_assets.evaluation.recorded_sources import RecordedCases, recorded_cases
from rag_assets.evaluation.stored_cases import by_case
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.wording import value_text
from rag_assets.store.reader import Reader

COLUMNS = (
    "case_id",
    "criterion",
    "question",
    "context",
    "facts",
    "answer",
    "answer_digest",
    *LABEL_COLUMNS,
)
_BATCH = 200
_STAGES = ("cases", "retrieval", "assembled_context", "generation")


@dataclass(frozen=True, slots=True)
class Worksheet:
    """A worksheet, and how many cases have no answer to label.

    Attributes:
        text: the CSV text, with cells that a spreadsheet would execute neutralised.
        rows: number of answers.
        unanswered: ids of the cases of the run that have no answer.
        is_read: whether an evaluator of the run reads labels of the criterion.
    """

    text: str
    rows: int
    unanswered: tuple[str, ...]
    is_read: bool


def worksheet(
    reader: Reader, view: RunView, criterion: str, *, include_restricted: bool = False
) -> Worksheet:
    """Make the worksheet for one criterion of a run.

    Nothing in it says what the run itself made of the answers, so that labelling stays blind. What
    the user of a case may not see is hidden; the digest is that of the answer as it was given.

    Args:
        reader: the open store.
        view: the run.
        criterion: a criterion of an evaluator of the run.
        include_restricted: nothing is hidden.

    Raises:
        InputError: the run has no such criterion.
    """
    known = [one["criterion"] for one in view.record["evaluators"]]
    if criterion not in known:
        hint = nearest(criterion, known) or f" They are {', '.join(known)}."
        raise InputError(f'{view.row.id} has no criterion "{criterion}".{hint}')
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows, unanswered = 0, list[str]()
    for case_id, cells in _answers(reader, view, include_restricted):
        if cells is None:
            unanswered.append(case_id)
            continue
        values = {"case_id": case_id, "criterion": criterion, **cells}
        writer.writerow([neutralised(values.get(name, "")) for name in COLUMNS])
        rows += 1
    types = {one["criterion"]: one["type"] for one in view.record["evaluators"]}
    return Worksheet(text.getvalue(), rows, tuple(unanswered), types[criterion] in TYPES)


def _answers(
    reader: Reader, view: RunView, include_restricted: bool
) -> Iterator[tuple[str, dict[str, str] | None]]:
    """Case id and what is to be read of its answer; None where there is no answer."""
    cases = recorded_cases(reader, view.record)
    ids = reader.case_ids(view.row.id)
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        digests: dict[str, dict[str, str]] = {case_id: {} for case_id in batch}
        for row in reader.case_stages(view.row.id, batch):
            if row.stage in _STAGES and row.digest:
                digests[row.case_id][row.stage] = row.digest
        found = [one for stages in digests.values() for one in stages.values()]
        payloads = reader.payloads(found)
        leaks = _leaks(reader, view, batch)
        for case_id, stages in digests.items():
            parts = {stage: json.loads(payloads[one]) for stage, one in stages.items()}
            has_answer = "generation" in parts and "cases" in parts
            cells = None
            if has_answer:
                cells = _cells(parts, cases, leaks[case_id], include_restricted)
            yield case_id, cells and {**cells, "answer_digest": stages["generation"]}


def _leaks(
    reader: Reader, view: RunView, case_ids: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    rows = by_case(reader.run_judgments(view.row.id, case_ids))
    return {case_id: found_leaks(map(view.judgment, rows[case_id])) for case_id in case_ids}


def _cells(
    parts: Mapping[str, Any],
    cases: RecordedCases,
    leaks: Sequence[Mapping[str, Any]],
    include_restricted: bool,
) -> dict[str, str]:
    case = cases.case(parts["cases"])
    context, answer = parts.get("assembled_context"), parts["generation"]
    if context is not None:
        # A recorded system often has ids only, and reviewers need to read.
        items = [{"text": cases.text_of(one["doc_id"]), **one} for one in context["items"]]
        context = {**context, "items": items}
    if not include_restricted:
        artifacts = [one for one in (parts.get("retrieval"), context) if one is not None]
        redactor = cases.redactor(case, artifacts)
        context, answer = (
            context and redactor.artifact(CONTEXT, context),
            redactor.answer(answer, leaks),
        )
    return {
        "question": _question(case.input),
        "context": "\n\n".join(map(_passage, context["items"])) if context else "",
        "facts": "|".join(case.expectation.facts),
        "answer": canonical_json(answer),
    }


def _question(value: Any) -> str:
    """The question of an input, or the whole input where it names none."""
    has_question = isinstance(value, dict) and isinstance(value.get("question"), str)
    return value["question"] if has_question else value_text(value)


def _passage(passage: Mapping[str, Any]) -> str:
    chunk = f"#{passage['chunk_id']}" if passage.get("chunk_id") else ""
    return f"[{passage['doc_id']}{chunk}] {passage.get('text') or '(text not recorded)'}"
