"""Which documents of the corpus the user of a case may be shown, at the date of the case."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from rag_assets.contracts.corpus import Corpus, CorpusDocument
from rag_assets.contracts.moments import Moment

Inadmissibility = Literal["retired", "not permitted", "not yet valid", "expired", "unknown_source"]
"""Why a document is not admissible; `unknown_source` is one that the manifest does not hold."""


def inadmissibility(
    document: CorpusDocument | None, names: frozenset[str], as_of: Moment
) -> Inadmissibility | None:
    """Why a document is not admissible; None where it is.

    Args:
        document: None for one that the manifest does not hold.
        names: the id and the roles of the user; empty for nobody in particular.
        as_of: the day or instant. Of a day, it is enough that the document holds at some time.

    Returns:
        The first that applies, in the order of `Inadmissibility`.
    """
    if document is None:
        return "unknown_source"
    if document.status == "retired":
        return "retired"
    if document.names is not None and document.names.isdisjoint(names):
        return "not permitted"
    if document.begins is not None and document.begins.first > as_of.last:
        return "not yet valid"
    if document.ends is not None and document.ends.last < as_of.first:
        return "expired"
    return None


def names_of(user: Any) -> frozenset[str]:
    """The id and the roles of a user as a case has it: a text, an object, or None."""
    if isinstance(user, dict):
        return frozenset([user["id"], *user.get("roles", ())])
    return frozenset() if user is None else frozenset([user])


def user_id(user: Any) -> str | None:
    """The id of a user as a case has it; None where there is none."""
    found: str | None = user["id"] if isinstance(user, dict) else user
    return found


@dataclass(frozen=True)
class Sources:
    """The corpus as one user may use it at one date.

    Attributes:
        corpus: the manifest.
        names: the id and the roles of the user.
        as_of: the date.
    """

    corpus: Corpus
    names: frozenset[str]
    as_of: Moment
    _known: dict[str, Inadmissibility | None] = field(default_factory=dict, repr=False)

    def reason(self, doc_id: str) -> Inadmissibility | None:
        """Why a document is not admissible; None where it is."""
        if doc_id not in self._known:
            document = self.corpus.documents.get(doc_id)
            self._known[doc_id] = inadmissibility(document, self.names, self.as_of)
        return self._known[doc_id]

    @cached_property
    def standing(self) -> list[Any]:
        """What decides every answer of `reason`, as JSON, and nothing else.

        A date counts by the bounds of validity that it has passed, so that a day on which nothing
        begins or ends changes nothing; a name counts where the manifest names it.
        """
        corpus = self.corpus
        return [corpus.rights, sorted(self.names & corpus.names), corpus.passed(self.as_of)]

    def cited_document(self, cited: str) -> str:
        """The document of a cited id, which may be `doc_id#chunk_id`; the id as it is otherwise."""
        name = cited
        while name not in self.corpus.documents:
            name, hash_sign, _ = name.rpartition("#")
            if not hash_sign:
                return cited
        return name

    def is_stale(self, doc_id: str) -> bool:
        """Whether a document is retired, expired, or superseded by a version that holds by then."""
        document = self.corpus.documents.get(doc_id)
        if document is None:
            return False
        if self.reason(doc_id) in ("retired", "expired"):
            return True
        return any(
            _supersedes(other, document, self.as_of)
            for other in self.corpus.versions[document.document]
        )


def _supersedes(other: CorpusDocument, document: CorpusDocument, as_of: Moment) -> bool:
    """Whether another version has begun to hold later, and holds at a date."""
    if other.begins is None or other.status == "retired" or other.begins.first > as_of.last:
        return False
    if other.ends is not None and other.ends.last < as_of.first:
        return False
    return document.begins is None or other.begins.first > document.begins.first
