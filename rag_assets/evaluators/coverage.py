"""Whether all the evidence that an answer needs was there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from rag_assets.contracts.cases import Case
from rag_assets.evaluators.base import (
    Evaluator,
    Evidence,
    Outcome,
    Parameters,
    Part,
    Project,
    present,
)
from rag_assets.evaluators.ranking import RankingMetric, nothing_relevant, relevant_units


class CoverageParameters(Parameters):
    """What `evidence_coverage` accepts."""

    at: Literal["retrieval", "context"] = Field(
        "retrieval", description="whether the documents were retrieved, or reached the model"
    )


class EvidenceCoverage(Evaluator):
    """All relevant documents were there: all or nothing, which is not recall."""

    type = "evidence_coverage"
    description = (
        "Passes when all relevant admissible documents were retrieved, or (at: context) reached "
        "the model. One absent document fails the case: it is not recall."
    )
    accepts = CoverageParameters
    criterion_template: ClassVar[str | None] = "{type}"
    case_reads: ClassVar[tuple[str, ...]] = RankingMetric.case_reads
    excludes: ClassVar[Mapping[str, str]] = RankingMetric.excludes
    when_empty = "Where nothing came, it fails."
    formula_source = "Set inclusion: the relevant documents within those that were there."
    parameters: CoverageParameters

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator, which reads the retrieval or the context."""
        evaluator = cls(criterion, parameters)
        part: Part = parameters.at
        evaluator.reads = (part,)
        return evaluator

    def exclusion(self, case: Case) -> str | None:
        """A case without a relevant admissible document is excluded."""
        return nothing_relevant(case)

    def reads_of_case(self, case: Case) -> Any:
        """The relevant documents, sorted."""
        return sorted(map(str, relevant_units(case.relevant, "doc")))

    def evaluate(self, evidence: Evidence) -> Outcome:
        """Pass, or fail with the documents that were not there in the detail."""
        passages = (
            present(evidence.retrieval).candidates
            if self.parameters.at == "retrieval"
            else present(evidence.context).items
        )
        there = {one.doc_id for one in passages}
        absent = [one for one in self.reads_of_case(evidence.case) if one not in there]
        return Outcome.verdict(not absent, detail={"absent": absent} if absent else None)
