"""Whether an answer cites only what the model was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from rag_assets.evaluators.base import Evaluator, Evidence, Outcome, Parameters, Part, present

SHOWN = 10
"""How many invalid ids a judgment keeps."""


class CitationParameters(Parameters):
    """What `citation_validity` accepts."""

    require_citations: bool = Field(False, description="whether citing nothing fails")


class CitationValidity(Evaluator):
    """Every cited id is that of a passage in the context."""

    type = "citation_validity"
    description = (
        "Passes when every cited id is the doc_id of a passage in the context, or its "
        "doc_id#chunk_id. A document covers all its chunks, a chunk only itself."
    )
    accepts = CitationParameters
    criterion_template = "citations_valid"
    misses: ClassVar[Mapping[str, str]] = {
        "malformed_citations": "what the answer cites is not a list of non-empty strings"
    }
    when_empty = "Citing nothing passes, or fails with require_citations."
    formula_source = "Set inclusion: cited ids within the ids of the context."
    reads: tuple[Part, ...] = ("context", "citations")
    parameters: CitationParameters

    def evaluate(self, evidence: Evidence) -> Outcome:
        """Pass, or fail with the first invalid ids in the detail."""
        items, cited = present(evidence.context).items, present(evidence.citations).ids
        valid = {item.doc_id for item in items}
        valid.update(f"{item.doc_id}#{item.chunk_id}" for item in items if item.chunk_id)
        invalid = [name for name in dict.fromkeys(cited) if name not in valid]
        if invalid:
            return Outcome.verdict(False, detail={"invalid_ids": invalid[:SHOWN]})
        return Outcome.verdict(bool(cited) or not self.parameters.require_citations)
