"""What the users of the cases of a run should not have been served, from its records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.admissibility import user_id
from rag_assets.contracts.cases import Case
from rag_assets.evaluation.case_view import cited
from rag_assets.evaluation.recorded_sources import recorded_cases
from rag_assets.evaluation.redaction import Redactor, leaks_of
from rag_assets.evaluation.replicates import samples_of
from rag_assets.evaluation.stored_cases import by_case
from rag_assets.evaluation.views import RunView
from rag_assets.evaluation.words import PASSAGE_STAGES
from rag_assets.store import CaseStage, RunJudgment, SampleStage
from rag_assets.store.reader import Reader

_BATCH = 200
_STAGES = ("cases", "retrieval", "assembled_context", "citations", "generation")


@dataclass(frozen=True, slots=True)
class Violation:
    """One passage that a user should not have been served, or one part of an answer.

    Attributes:
        case: the case.
        sample: which of its samples, from 0.
        user: who asked; None where the case names nobody.
        stage: retrieval, assembled_context, citations, or generation for a part of an answer.
        position: 1-based, in the order of what was recorded; of a part of an answer its offset
            in characters.
        doc_id: the document; None for a text that the case forbids.
        reason: why it is not admissible, or what of it stands in the answer.
    """

    case: str
    sample: int
    user: str | None
    stage: str
    position: int
    doc_id: str | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        """One object."""
        return asdict(self)


def violations(reader: Reader, view: RunView) -> list[Violation]:
    """Every violation of a run, by case and on its way to the answer.

    Args:
        reader: the open store.
        view: the run; without a manifest, only what cases forbid can be found.
    """
    cases = recorded_cases(reader, view.record)
    ids = reader.case_ids(view.row.id)
    found: list[Violation] = []
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        rows = [
            row
            for row in (
                *reader.case_stages(view.row.id, batch),
                *reader.sample_stages(view.row.id, batch),
            )
            if row.stage in _STAGES
        ]
        payloads = reader.payloads([row.digest for row in rows if row.digest])
        stages, judgments = by_case(rows), by_case(reader.run_judgments(view.row.id, batch))
        for case_id in batch:
            own = [row for row in stages[case_id] if row.digest in payloads]
            record = next((row.digest for row in own if row.stage == "cases"), None)
            if record is not None:
                case = cases.case(json.loads(payloads[record]))
                passages = [
                    json.loads(payloads[str(row.digest)])
                    for row in own
                    if row.stage in PASSAGE_STAGES
                ]
                redactor = cases.redactor(case, passages)
                found += _served(redactor, own, payloads, view)
                found += _told(case, judgments[case_id])
    return found


def reason_counts(found: Sequence[Violation]) -> dict[str, int]:
    """Reason → number of violations, the most frequent first."""
    return dict(Counter(one.reason for one in found).most_common())


def _served(
    redactor: Redactor, rows: Sequence[CaseStage], payloads: Mapping[str, str], view: RunView
) -> Iterator[Violation]:
    """Inadmissible passages, in the order of the stages and of the records."""
    case = redactor.case
    sources, has_citations = case.sources, any(row.stage == "citations" for row in rows)
    if sources is None:
        return
    for row in sorted(rows, key=lambda row: (_sample(row), _STAGES.index(row.stage))):
        stage = "citations" if row.stage == "generation" and not has_citations else row.stage
        documents = _documents(row.stage, json.loads(payloads[str(row.digest)]), view)
        if row.stage == "generation" and has_citations:
            continue
        for position, doc_id in enumerate(documents, start=1):
            known = sources.cited_document(doc_id) if stage == "citations" else doc_id
            reason = sources.reason(known)
            if reason is not None:
                # What is cited is free text, and may say what nobody should see.
                named = known if known in sources.corpus.documents else redactor.text(known)
                user = user_id(case.asker)
                yield Violation(case.id, _sample(row), user, stage, position, named, reason)


def _documents(stage: str, artifact: Any, view: RunView) -> list[str]:
    """Ids in an artifact, in its order."""
    if stage == "retrieval":
        return [one["doc_id"] for one in artifact["candidates"]]
    if stage == "assembled_context":
        return [one["doc_id"] for one in artifact["items"]]
    if stage == "cases":
        return []
    found = cited(None, artifact, view) if stage == "citations" else cited(artifact, None, view)
    is_list = isinstance(found, list)
    return [one for one in found if isinstance(one, str)] if is_list else []


def _told(case: Case, judgments: Sequence[RunJudgment]) -> Iterator[Violation]:
    """Parts of the answer that `no_leak` found."""
    for one in judgments:
        detail = json.loads(one.detail) if one.detail else None
        for sample in range(len(samples_of(detail) or (None,))):
            for leak in leaks_of(detail, sample):
                reason = f"{leak['what']} in the answer"
                where = ("generation", leak["offset"], leak["doc_id"])
                yield Violation(case.id, sample, user_id(case.asker), *where, reason)


def _sample(row: CaseStage) -> int:
    return row.sample if isinstance(row, SampleStage) else 0
