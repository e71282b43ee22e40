"""The recorded candidates of a case: relevant, admissible, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.contracts.corpus import CorpusDocument
from rag_assets.evaluation.matching import Unit, relevant_grade


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One retrieved candidate.

    Attributes:
        position: 1-based, as it was retrieved.
        relevant: None where the case has no labels.
        inadmissible: why the user of the case may not see it; None where that is not so, or the
            run had no corpus.
        fate: `context` for one that the model saw, else why it was dropped; None where no
            context was assembled.
        tokens: as counted for the budget, where they were.
    """

    position: int
    doc_id: str
    chunk_id: str | None
    score: float | None
    relevant: bool | None
    inadmissible: str | None
    fate: str | None
    tokens: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class VersionView:
    """One version of a logical document of which a case had several.

    Attributes:
        document: the logical document.
        doc_id, version, status, authority: of the version.
        inadmissible: why the user of the case may not see it; None where that is not so.
    """

    document: str
    doc_id: str
    version: str | None
    status: str
    authority: int
    inadmissible: str | None


def candidates(
    retrieval: Mapping[str, Any], context: Mapping[str, Any] | None, case: Case, unit: Unit
) -> tuple[CandidateView, ...]:
    """The candidates of a retrieval, each with its relevance and what became of it.

    Args:
        retrieval: as recorded.
        context: what was assembled of it; None where nothing was.
        case: with its reference set, where the run had a corpus.
        unit: what is relevant, documents or chunks.
    """
    is_labelled = any(label.grade > 0 for label in case.relevant)
    fates = _fates(context)
    found: list[CandidateView] = []
    for position, candidate in enumerate(retrieval["candidates"], start=1):
        doc_id, chunk_id = candidate["doc_id"], candidate.get("chunk_id")
        is_relevant = relevant_grade(case, doc_id, chunk_id, unit) > 0
        fate, tokens = fates.get(position) or fates.get((doc_id, chunk_id)) or (None, None)
        found.append(
            CandidateView(
                position=position,
                doc_id=doc_id,
                chunk_id=chunk_id,
                score=candidate.get("score"),
                relevant=is_relevant if is_labelled else None,
                inadmissible=None if case.sources is None else case.sources.reason(doc_id),
                fate=fate,
                tokens=tokens,
                text=candidate.get("text"),
            )
        )
    return tuple(found)


def conflicts(case: Case, passages: Sequence[Mapping[str, Any]]) -> tuple[VersionView, ...]:
    """The versions of every logical document that several passages are of; highest authority first.

    Args:
        case: with its sources, where the run had a corpus.
        passages: of a context or a retrieval, as recorded.
    """
    sources = case.sources
    if sources is None:
        return ()
    groups: dict[str, dict[str, CorpusDocument]] = {}
    for passage in passages:
        one = sources.corpus.documents.get(passage["doc_id"])
        if one is not None:
            groups.setdefault(one.document, {})[one.doc_id] = one
    return tuple(
        VersionView(
            document, one.doc_id, one.version, one.status, one.authority, sources.reason(one.doc_id)
        )
        for document, group in groups.items()
        if len(group) > 1
        for one in sorted(group.values(), key=lambda one: -one.authority)
    )


_Place = int | tuple[str, str | None]
"""A position; document and chunk where a system that is called as a whole reports no position."""


def _fates(context: Mapping[str, Any] | None) -> dict[_Place, tuple[str, int | None]]:
    """Place → what became of the candidate, and its tokens."""
    if context is None:
        return {}
    entries = [*context["items"], *context["dropped"]]
    return {_place(one): (one.get("reason", "context"), one.get("tokens")) for one in entries}


def _place(entry: Mapping[str, Any]) -> _Place:
    return entry.get("position") or (entry["doc_id"], entry.get("chunk_id"))
