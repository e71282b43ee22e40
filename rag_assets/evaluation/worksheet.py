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
from rag_assets.evaluation.case_view import found_leaks
from rag_assets.evaluation.recorded_sources import RecordedCases, recorded_cases
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.wording import value_text
from rag_assets.store.reader import Reader

COLUMNS = (
    "case_id",
    "criterion",
    "question",
    "context",
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
    """

    text: str
    rows: int
    unanswered: tuple[str, ...]


def worksheet(reader: Reader, view: RunView, criterion: str) -> Worksheet:
    """Make the worksheet for one criterion of a run.

    Nothing in it says what the run itself made of the answers, so that labelling stays blind. What
    the user of a case may not see is hidden; the digest is that of the answer as it was given.

    Args:
        reader: the open store.
        view: the run.
        criterion: a criterion of an evaluator of the run.

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
    for case_id, cells in _answers(reader, view):
        if cells is None:
            unanswered.append(case_id)
            continue
        values = {"case_id": case_id, "criterion": criterion, **cells}
        writer.writerow([neutralised(values.get(name, "")) for name in COLUMNS])
        rows += 1
    return Worksheet(text.getvalue(), rows, tuple(unanswered))


def _answers(reader: Reader, view: RunView) -> Iterator[tuple[str, dict[str, str] | None]]:
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
            cells = _cells(parts, cases, leaks[case_id]) if has_answer else None
            yield case_id, cells and {**cells, "answer_digest": stages["generation"]}


def _leaks(
    reader: Reader, view: RunView, case_ids: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    judgments = [view.judgment(row) for row in reader.run_judgments(view.row.id, case_ids)]
    return {
        case_id: found_leaks(one for one in judgments if one.case == case_id)
        for case_id in case_ids
    }


def _cells(
    parts: Mapping[str, Any], cases: RecordedCases, leaks: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    case = cases.case(parts["cases"])
    artifacts = [parts[one] for one in ("retrieval", "assembled_context") if one in parts]
    redactor = cases.redactor(case, artifacts)
    context = parts.get("assembled_context")
    shown = context and redactor.artifact(CONTEXT, context)
    return {
        "question": _question(case.input),
        "context": "\n\n".join(map(_passage, shown["items"])) if shown else "",
        "answer": canonical_json(redactor.answer(parts["generation"], leaks)),
    }


def _question(value: Any) -> str:
    """The question of an input, or the whole input where it names none."""
    has_question = isinstance(value, dict) and isinstance(value.get("question"), str)
    return value["question"] if has_question else value_text(value)


def _passage(passage: Mapping[str, Any]) -> str:
    chunk = f"#{passage['chunk_id']}" if passage.get("chunk_id") else ""
    return f"[{passage['doc_id']}{chunk}] {passage.get('text') or '(text not recorded)'}"
