"""Retrieval metrics: where the labelled passages stand in the recorded ranking.

The unit of a candidate or a label is its document, or its document and chunk. R is the set of
units with a grade above zero; pos(u) is the first position of u among the candidates, from 1; H is
the part of R with pos(u) ≤ k. Scores and names of candidates are never looked at.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum, log2
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from rag_assets.contracts.artifacts import Passage
from rag_assets.contracts.cases import Case, Label
from rag_assets.evaluators.base import (
    SOURCES,
    Evaluator,
    Evidence,
    Kind,
    Outcome,
    Parameters,
    ParametersClass,
    Part,
    Project,
    present,
)

RelevanceUnit = Literal["doc", "chunk"]
Unit = str | tuple[str, str | None]
Hit = tuple[int, float]

TEXTBOOK = "Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, chapter 8"


class RankingParameters(Parameters):
    """What retrieval metrics that look at the first few candidates accept."""

    k: int = Field(5, ge=1, description="how many candidates count; at most the depth")
    relevance_unit: RelevanceUnit = Field(
        "doc", description="whether a document or one chunk of it is what is relevant"
    )


class DeepRankingParameters(RankingParameters):
    """Those of the metrics that weigh positions, which look further down."""

    k: int = Field(10, ge=1, description="how many candidates count; at most the depth")


class RankingMetric(Evaluator):
    """Base of the retrieval metrics."""

    accepts: ClassVar[ParametersClass] = RankingParameters
    criterion_template: ClassVar[str | None] = "{type}_at_{k}"
    case_reads: ClassVar[tuple[str, ...]] = ("expected.relevant", *SOURCES)
    excludes: ClassVar[Mapping[str, str]] = {
        "no_relevance_labels": "the case labels nothing with a grade above 0",
        "no_admissible_source": "nothing that the case labels is admissible for its user and date",
    }
    misses: ClassVar[Mapping[str, str]] = {"retrieval_too_shallow": "the recorded depth is below k"}
    reads: tuple[Part, ...] = ("retrieval",)
    kind: Kind = "score"
    parameters: RankingParameters

    @classmethod
    def defaults(cls, depth: int | None) -> Mapping[str, Any]:
        """`k` is never above a declared depth."""
        default: int = cls.accepts.model_fields["k"].default
        return {"k": default if depth is None else min(default, depth)}

    def project_problems(self, project: Project) -> Iterator[tuple[str, str]]:
        """`k` above the declared depth."""
        k, depth = self.parameters.k, project.depth
        if depth is not None and k > depth:
            message = (
                f"k is {k}, and the depth of retrieval is {depth}. "
                f"Write k: {depth} or less, or raise system.rag.depth."
            )
            yield "k", message

    def case_problems(self, case: Case) -> Iterator[tuple[str, str]]:
        """Labels without the chunk that is to be compared."""
        if self.parameters.relevance_unit == "doc":
            return
        for label in case.relevant:
            if label.chunk_id is None:
                message = (
                    f'The label of document "{label.doc_id}" has no chunk_id, which '
                    "relevance_unit: chunk needs on every label. Add it, or write "
                    "relevance_unit: doc."
                )
                yield "expected.relevant", message

    def exclusion(self, case: Case) -> str | None:
        """A case without a relevant unit is excluded."""
        return nothing_relevant(case)

    def reads_of_case(self, case: Case) -> Any:
        """The relevant units with their grades, sorted."""
        grades = relevant_units(case.relevant, self.parameters.relevance_unit)
        return sorted(([unit, grade] for unit, grade in grades.items()), key=str)

    def evaluate(self, evidence: Evidence) -> Outcome:
        """The value in [0, 1] from the first k candidates."""
        retrieval, parameters = present(evidence.retrieval), self.parameters
        if retrieval.depth is not None and retrieval.depth < parameters.k:
            return Outcome.missing(
                "retrieval_too_shallow",
                f"k={parameters.k} but retrieval was recorded to depth {retrieval.depth}.",
            )
        grades = relevant_units(evidence.case.relevant, parameters.relevance_unit)
        first = retrieval.candidates[: parameters.k]
        return Outcome.score(self.value(found(first, grades, parameters.relevance_unit), grades))

    @abstractmethod
    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """The metric of one case.

        Args:
            hits: (pos(u), grade of u) for the units of H, by position.
            grades: the grades of the units of R; not empty.
        """


class HitRate(RankingMetric):
    """Something relevant was found."""

    type = "hit_rate"
    description = "Passes when at least one relevant unit stands among the first k candidates."
    when_empty = "An empty list of candidates fails."
    formula_source = "Success at k, as in TREC: pass iff H is not empty."
    kind: Kind = "verdict"

    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """1 for a pass, 0 for a fail."""
        return 1.0 if hits else 0.0


class Recall(RankingMetric):
    """The share of what is relevant that was found."""

    type = "recall"
    description = (
        "The share of the relevant units that stand among the first k candidates; a verdict when "
        "every labelled case of the dataset has exactly one relevant unit."
    )
    when_empty = "An empty list of candidates scores 0 (or fails)."
    formula_source = f"{TEXTBOOK}: |H| / |R|."

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """Recall with the kind that all cases of the dataset decide."""
        evaluator = cls(criterion, parameters)
        evaluator.kind = recall_kind(project.cases, parameters.relevance_unit)
        return evaluator

    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """0 … 1."""
        return len(hits) / len(grades)


class Precision(RankingMetric):
    """The share of what was retrieved that is relevant."""

    type = "precision"
    description = (
        "Relevant units among the first k candidates, divided by k, also when fewer came back."
    )
    when_empty = "An empty list of candidates scores 0."
    formula_source = f"{TEXTBOOK}: |H| / k."

    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """0 … 1."""
        return len(hits) / self.parameters.k


class ReciprocalRank(RankingMetric):
    """How far up the first relevant unit stands."""

    type = "mrr"
    description = "One divided by the position of the first relevant unit, 0 when none is found."
    accepts: ClassVar[ParametersClass] = DeepRankingParameters
    when_empty = "An empty list of candidates scores 0."
    formula_source = "Voorhees, The TREC-8 Question Answering Track Report, 1999: 1 / min pos."

    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """0 … 1."""
        return 1 / hits[0][0] if hits else 0.0


class AveragePrecision(RankingMetric):
    """Precision at every relevant unit, averaged over all that are relevant."""

    type = "average_precision"
    description = (
        "The precision at the position of every relevant unit that is found, summed and divided "
        "by the number of relevant units."
    )
    accepts: ClassVar[ParametersClass] = DeepRankingParameters
    when_empty = "An empty list of candidates scores 0."
    formula_source = f"{TEXTBOOK}: the sum over H of (rank of u in H) / pos(u), divided by |R|."

    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """0 … 1."""
        return fsum(rank / pos for rank, (pos, _) in enumerate(hits, 1)) / len(grades)


class Ndcg(RankingMetric):
    """Grades found, discounted by position, relative to the best possible order."""

    type = "ndcg"
    description = (
        "The sum of the grades found, each divided by log2(position + 1), relative to that sum "
        "for the best order of all labels."
    )
    accepts: ClassVar[ParametersClass] = DeepRankingParameters
    when_empty = "An empty list of candidates scores 0."
    formula_source = (
        "Järvelin and Kekäläinen, ACM TOIS 20(4), 2002, with linear gain and the discount "
        "log2(position + 1); the best order comes from the labels, not from what was retrieved."
    )

    def value(self, hits: Sequence[Hit], grades: Mapping[Unit, float]) -> float:
        """0 … 1."""
        best = sorted(grades.values(), reverse=True)[: self.parameters.k]
        # Relative to the largest grade, so that no sum of large grades overflows.
        gained = fsum(grade / best[0] / log2(pos + 1) for pos, grade in hits)
        ideal = fsum(grade / best[0] / log2(pos + 1) for pos, grade in enumerate(best, 1))
        return min(1.0, gained / ideal)


def recall_kind(cases: Iterable[Case], relevance_unit: RelevanceUnit) -> Kind:
    """Whether recall over these cases is a verdict or a score.

    Returns:
        "verdict" when every labelled case has exactly one relevant unit and at least one case is
        labelled, otherwise "score".
    """
    sizes = {len(relevant_units(case.relevant, relevance_unit)) for case in cases}
    return "verdict" if sizes - {0} == {1} else "score"


def nothing_relevant(case: Case) -> str | None:
    """Why a case has no relevant unit: the reason of its exclusion; None where it has one."""
    if any(label.grade > 0 for label in case.relevant):
        return None
    return "no_admissible_source" if case.inadmissible else "no_relevance_labels"


def relevant_units(labels: Iterable[Label], relevance_unit: RelevanceUnit) -> dict[Unit, float]:
    """The relevant units, each with the largest of its grades."""
    grades: dict[Unit, float] = {}
    for label in labels:
        unit = _unit(label, relevance_unit)
        if label.grade > grades.get(unit, 0.0):
            grades[unit] = label.grade
    return grades


def found(
    candidates: Iterable[Passage], grades: Mapping[Unit, float], relevance_unit: RelevanceUnit
) -> list[Hit]:
    """The relevant units among candidates: their first positions and their grades."""
    left, hits = dict(grades), []
    for position, candidate in enumerate(candidates, 1):
        grade = left.pop(_unit(candidate, relevance_unit), None)
        if grade is not None:
            hits.append((position, grade))
    return hits


def _unit(item: Passage | Label, relevance_unit: RelevanceUnit) -> Unit:
    return item.doc_id if relevance_unit == "doc" else (item.doc_id, item.chunk_id)
