"""Whether what a case was served was admissible for its user, at its date."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from rag_assets.contracts.admissibility import Sources
from rag_assets.contracts.cases import Case
from rag_assets.evaluators.base import (
    SOURCES,
    Evaluator,
    Evidence,
    Outcome,
    Part,
    Project,
    present,
)

INCLUSION = "Set inclusion: the documents within those that are admissible."


class Admissible(Evaluator):
    """Base of the checks that every document of one artifact was admissible."""

    criterion_template: ClassVar[str | None] = "{type}"
    case_reads: ClassVar[tuple[str, ...]] = SOURCES
    is_constraint = True
    when_empty = "Where there is no document, it passes."
    formula_source = INCLUSION

    def project_problems(self, project: Project) -> Iterator[tuple[str, str]]:
        """A project without a manifest."""
        if not project.has_corpus:
            message = (
                f"{self.type} reads the manifest, and this config declares none. Name it with the "
                "key corpus, or remove this evaluator."
            )
            yield "type", message

    def reads_of_case(self, case: Case) -> Any:
        """What decides which documents its user may use."""
        return sources_of(case).standing

    def evaluate(self, evidence: Evidence) -> Outcome:
        """Pass, or fail with the reason of the first offender, which stands in the detail."""
        sources = sources_of(evidence.case)
        offenders = [
            (position, doc_id, reason)
            for position, doc_id in enumerate(self.documents(evidence, sources), start=1)
            if (reason := sources.reason(doc_id)) is not None
        ]
        if not offenders:
            return Outcome.verdict(True)
        position, doc_id, reason = offenders[0]
        unknown = sum(one[2] == "unknown_source" for one in offenders)
        detail = {
            "doc_id": doc_id,
            "position": position,
            "inadmissible": len(offenders) - unknown,
            "unknown": unknown,
        }
        return Outcome.verdict(False, reason, detail)

    @abstractmethod
    def documents(self, evidence: Evidence, sources: Sources) -> Sequence[str]:
        """Ids of the documents, in the order of the artifact."""


class AdmissibleContext(Admissible):
    """Every passage that reached the model was admissible."""

    type = "admissible_context"
    description = (
        "Passes when every passage that reached the model was admissible for the user of the "
        "case, at its date; names the first that was not, and why."
    )
    reads: tuple[Part, ...] = ("context",)

    def documents(self, evidence: Evidence, sources: Sources) -> Sequence[str]:
        """Those of the assembled context."""
        return [item.doc_id for item in present(evidence.context).items]


class AdmissibleRetrieval(Admissible):
    """Every candidate was admissible."""

    type = "admissible_retrieval"
    description = (
        "Passes when every retrieved candidate was admissible for the user of the case, at its "
        "date: where the search itself has to enforce permissions."
    )
    reads: tuple[Part, ...] = ("retrieval",)

    def documents(self, evidence: Evidence, sources: Sources) -> Sequence[str]:
        """Those of the candidates."""
        return [one.doc_id for one in present(evidence.retrieval).candidates]


class AdmissibleCitations(Admissible):
    """Everything that is cited was admissible."""

    type = "admissible_citations"
    description = (
        "Passes when every cited document was admissible for the user of the case, at its date. "
        "An id doc_id#chunk_id stands for its document."
    )
    reads: tuple[Part, ...] = ("citations",)

    def documents(self, evidence: Evidence, sources: Sources) -> Sequence[str]:
        """Those of the citations."""
        return [sources.cited_document(one) for one in present(evidence.citations).ids]


def sources_of(case: Case) -> Sources:
    """The corpus as the user of a case may use it, which is known to be there."""
    if case.sources is None:
        raise ValueError("the case was not held against a corpus")
    return case.sources
