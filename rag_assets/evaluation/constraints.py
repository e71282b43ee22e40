"""Hard constraints of a run: criteria of which every failure is a violation, whatever the mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.evaluation.replicates import samples_of
from rag_assets.evaluation.views import RunView
from rag_assets.store.reader import Reader

CONSTRAINTS = ("admissible_retrieval", "admissible_context", "admissible_citations", "no_leak")
"""Types of their evaluators."""


@dataclass(frozen=True, slots=True)
class Violated:
    """A case that failed a hard constraint.

    Attributes:
        case, criterion: which of them.
        reason: why, as the evaluator names it.
        doc_id: the first document that is at fault, where one is named.
    """

    case: str
    criterion: str
    reason: str
    doc_id: str | None


def violated(reader: Reader, view: RunView) -> list[Violated]:
    """The cases that failed a hard constraint of a run, in the order of the records.

    Args:
        reader: the open store.
        view: the run.
    """
    evaluators = view.record["evaluators"]
    criteria = {one["criterion"] for one in evaluators if one["type"] in CONSTRAINTS}
    if not criteria:
        return []
    return [
        Violated(one.case_id, one.criterion, one.reason or "", _first_document(one.detail))
        for one in reader.run_judgments(view.row.id)
        if one.criterion in criteria and one.value is not None and one.value < 1.0
    ]


def _first_document(detail: str | None) -> str | None:
    found = json.loads(detail) if detail else None
    samples = samples_of(found)
    details = [found] if samples is None else [one["detail"] for one in samples]
    first = next((one for one in details if isinstance(one, Mapping)), None)
    if first is None:
        return None
    leaks = first.get("leaks") or [first]
    doc_id = leaks[0].get("doc_id")
    return doc_id if isinstance(doc_id, str) else None
