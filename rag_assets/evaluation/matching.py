"""Where the relevant evidence of a case stands in a retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rag_assets.contracts.cases import Case

if TYPE_CHECKING:
    from rag_assets.contracts.artifacts import ContextItem, Passage

Unit = Literal["doc", "chunk"]


@dataclass(frozen=True, slots=True)
class Match:
    """The best position of the relevant evidence.

    Attributes:
        labelled: whether the case has a label with grade > 0.
        position: 1-based; with `requires: all` the position at which the set is complete. None
            when the evidence was not retrieved, or the match is ambiguous.
        ambiguous: a candidate without chunk id might be a labelled chunk.
    """

    labelled: bool
    position: int | None = None
    ambiguous: bool = False


def relevant_grade(case: Case, doc_id: str, chunk_id: str | None, unit: Unit) -> float:
    """The largest grade that a label of the case gives a passage; 0 where no label names it."""
    grades = [
        label.grade
        for label in case.relevant
        if label.doc_id == doc_id and (unit == "doc" or label.chunk_id == chunk_id)
    ]
    return max(grades, default=0.0)


@dataclass(slots=True)
class CaseFacts:
    """What slices ask of a case: where its relevant evidence stood, whether a budget cut its
    context, and whether that held a stale document; None where it is not known."""

    match: Match | None = None
    truncated: bool | None = None
    stale: bool | None = None


def holds_stale(case: Case, items: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether a context holds a retired or superseded document; None without a corpus.

    Args:
        case: with its sources, where there is a corpus.
        items: of the context, as they are stored.
    """
    sources = case.sources
    return None if sources is None else any(sources.is_stale(one["doc_id"]) for one in items)


def match_relevant(case: Case, candidates: Sequence[Passage | ContextItem], unit: Unit) -> Match:
    """Find the relevant evidence of a case among candidates, by their order.

    Args:
        case: its labels and whether one (`any`) or all of them are required.
        candidates: in the order of the retrieval.
        unit: documents match by id, whatever their chunks; chunks by both ids. A chunk match is
            ambiguous when a candidate of the labelled document without a chunk id stands before
            the first match, or anywhere while nothing matches.
    """
    wanted = dict.fromkeys(
        (label.doc_id, label.chunk_id if unit == "chunk" else None)
        for label in case.relevant
        if label.grade > 0
    )
    if not wanted:
        return Match(labelled=False)
    found = [_first(doc_id, chunk_id, candidates, unit) for doc_id, chunk_id in wanted]
    if case.requires == "all":
        if any(ambiguous for _, ambiguous in found):
            return Match(labelled=True, ambiguous=True)
        positions = [position for position, _ in found if position is not None]
        complete = len(positions) == len(found)
        return Match(labelled=True, position=max(positions) if complete else None)
    best = min((position for position, _ in found if position is not None), default=None)
    doubtful = [_doubt(doc_id, candidates, best) for doc_id, _ in wanted] if unit == "chunk" else []
    if any(doubtful):
        return Match(labelled=True, ambiguous=True)
    return Match(labelled=True, position=best)


def _first(
    doc_id: str, chunk_id: str | None, candidates: Sequence[Passage | ContextItem], unit: Unit
) -> tuple[int | None, bool]:
    for position, candidate in enumerate(candidates, start=1):
        if candidate.doc_id == doc_id and (unit == "doc" or candidate.chunk_id == chunk_id):
            return position, unit == "chunk" and _doubt(doc_id, candidates, position)
    return None, unit == "chunk" and _doubt(doc_id, candidates, None)


def _doubt(doc_id: str, candidates: Sequence[Passage | ContextItem], before: int | None) -> bool:
    """Whether a candidate of the document without a chunk id stands before a position."""
    looked_at = candidates if before is None else candidates[: before - 1]
    return any(candidate.doc_id == doc_id and candidate.chunk_id is None for candidate in looked_at)
