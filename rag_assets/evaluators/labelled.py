"""Evaluators whose value is what reviewers said of an answer.

A label is bound to the digest of the answer that the reviewer saw: the same answer in a later run
keeps its labels, and another answer has none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.human_labels import (
    COVERED,
    NO_CLAIMS,
    PASS,
    SUPPORTED,
    About,
    Disagreement,
    HumanLabel,
    last_words,
)
from rag_assets.evaluators.base import Evaluator, Evidence, Kind, Outcome, Parameters, Part, Project
from rag_assets.evaluators.conduct import Conduct
from rag_assets.evaluators.reviewers import (
    DisputedError,
    Said,
    labels_record,
    makes_claims,
    said_of,
    settled,
)

Units = Mapping[tuple[About, str], Said]
"""What was said of each claim, of each fact, or of the answer as a whole."""


class Labelled(Evaluator):
    """Base of the evaluators that read labels."""

    case_reads: ClassVar[tuple[str, ...]] = ("labels",)
    criterion_template: ClassVar[str | None] = "{type}"
    excludes: ClassVar[Mapping[str, str]] = {
        "reviewers_disagree": "the reviewers disagree, and label_disagreement does not settle it"
    }
    misses: ClassVar[Mapping[str, str]] = {
        "not_labelled": "nobody has labelled an answer to the case, or not all that is needed",
        "answer_changed_since_label": "only another answer to the case is labelled",
    }
    reads_labels = True
    built_after = 1
    no_answer: ClassVar[str | None] = None
    """The reason that excludes an answer which is an abstention or no factual answer."""
    disagreement: Disagreement = "exclude"
    recognisers: tuple[Conduct, ...] = ()
    sources: tuple[str, ...] = ()
    """The criteria whose labels are read, the first that has any for an answer."""

    @classmethod
    def build(cls, criterion: str, parameters: Any, project: Project) -> Self:
        """The evaluator, with those that tell an answer from an abstention."""
        evaluator = cls(criterion, parameters)
        evaluator.disagreement = project.label_disagreement
        evaluator.sources = (criterion,)
        if cls.no_answer is not None:
            found = (one for one in project.parts if isinstance(one, Conduct))
            evaluator.recognisers = tuple(found)
        return evaluator

    def definition(self) -> dict[str, Any]:
        """With the rule for disagreements, and how an abstention is recognised."""
        return super().definition() | {
            "disagreement": self.disagreement,
            "recognisers": [one.identity for one in self.recognisers],
            "sources": list(self.sources[1:]),
        }

    def labels_of(self, case: Case, answer_digest: str) -> tuple[HumanLabel, ...]:
        """The last words of the reviewers on one answer to a case."""
        for criterion in self.sources:
            found = tuple(
                one
                for one in case.human_labels
                if (one.criterion, one.answer_digest) == (criterion, answer_digest)
                and (one.about in self.labelled_about or one.label == NO_CLAIMS)
            )
            if found:
                return last_words(found)
        return ()

    def reads_of_labels(self, case: Case, answer_digest: str) -> Any:
        """What each reviewer says of each unit."""
        return labels_record(said_of(self.labels_of(case, answer_digest)))

    def evaluate(self, evidence: Evidence) -> Outcome:
        """What the reviewers said of this answer."""
        if self.no_answer is not None and not self._is_answer(evidence.output):
            return Outcome.excluded(self.no_answer)
        said = said_of(self.labels_of(evidence.case, digest(evidence.output)))
        if not said:
            criteria = {one.criterion for one in evidence.case.human_labels}
            has_any = not criteria.isdisjoint(self.sources)
            return Outcome.missing("answer_changed_since_label" if has_any else "not_labelled")
        detail = {"labels": labels_record(said)}
        try:
            return self.conclude(evidence.case, said, detail)
        except DisputedError:
            return Outcome.excluded("reviewers_disagree", detail)

    @abstractmethod
    def conclude(self, case: Case, said: Units, detail: dict[str, Any]) -> Outcome:
        """The outcome of labels.

        Args:
            case: the case.
            said: at least one label.
            detail: of the outcome, with the labels in it.

        Raises:
            DisputedError: the reviewers disagree, and the rule does not settle it.
        """

    def _is_answer(self, output: Any) -> bool:
        """Whether no declared criterion recognises an output as something else."""
        return all(one.behavior_of(output) in (None, "answer") for one in self.recognisers)

    def _claims(self, said: Units) -> dict[str, str] | None:
        """Claim → its label; None where the answer makes no claim."""
        claims = {unit: by for (about, unit), by in said.items() if about == "claim"}
        whole = said.get(("answer", ""), {})
        if not makes_claims(list(claims.values()), whole, self.disagreement):
            return None
        return {unit: settled(by, "claim", self.disagreement) for unit, by in claims.items()}


def _others(claims: Mapping[str, str]) -> list[dict[str, str]]:
    """The claims that are not supported."""
    others = ((unit, label) for unit, label in claims.items() if label != SUPPORTED)
    return [{"unit": unit, "label": label} for unit, label in others]


class ClaimSupport(Labelled):
    """The share of the claims of an answer that reviewers found supported."""

    type = "claim_support"
    description = (
        "The share of the claims in an answer that are supported, as reviewers labelled them. "
        "Unsupported and contradicted claims count as claims that are not supported."
    )
    excludes: ClassVar[Mapping[str, str]] = {
        "no_claims": "the answer is an abstention, or makes no claim",
        **Labelled.excludes,
    }
    labelled_about = ("claim",)
    counts = "claims"
    no_answer = "no_claims"
    kind: Kind = "score"
    when_empty = "An answer without a claim is excluded: it is never 0 of 0."
    formula_source = (
        "Supported claims / claims. The row has the mean over cases with its interval, and the "
        "claims of all cases together without one: claims of one answer are not independent."
    )

    def conclude(self, case: Case, said: Units, detail: dict[str, Any]) -> Outcome:
        """The share, or excluded without a claim."""
        claims = self._claims(said)
        if claims is None:
            return Outcome.excluded("no_claims", detail)
        supported = sum(label == SUPPORTED for label in claims.values())
        return Outcome.score(
            supported / len(claims),
            detail | {"counts": [supported, len(claims)], "not_supported": _others(claims)},
        )


class FactCoverage(Labelled):
    """The share of the expected facts that reviewers found in an answer."""

    type = "fact_coverage"
    description = "The share of `expected.facts` that an answer states, as reviewers labelled them."
    case_reads: ClassVar[tuple[str, ...]] = ("labels", "expected.facts")
    excludes: ClassVar[Mapping[str, str]] = {
        "no_expected_facts": "the case expects no facts",
        **Labelled.excludes,
    }
    labelled_about = ("fact",)
    counts = "facts"
    kind: Kind = "score"
    when_empty = "A case without expected facts is excluded: it is never 0 of 0."
    formula_source = (
        "Expected facts that are stated / expected facts. The row has the mean over cases with its "
        "interval, and the facts of all cases together without one."
    )

    def exclusion(self, case: Case) -> str | None:
        """A case that expects no facts is excluded."""
        return None if case.expectation.facts else "no_expected_facts"

    def reads_of_case(self, case: Case) -> Any:
        """The expected facts, sorted."""
        return sorted(case.expectation.facts)

    def conclude(self, case: Case, said: Units, detail: dict[str, Any]) -> Outcome:
        """The share, or missing as long as a fact is not labelled."""
        facts = self.reads_of_case(case)
        open_facts = [one for one in facts if ("fact", one) not in said]
        if open_facts:
            return Outcome.missing("not_labelled", detail | {"not_labelled": open_facts})
        labels = {one: settled(said["fact", one], "fact", self.disagreement) for one in facts}
        absent = [one for one, label in labels.items() if label != COVERED]
        covered = len(facts) - len(absent)
        return Outcome.score(
            covered / len(facts),
            detail | {"counts": [covered, len(facts)], "not_covered": absent},
        )


class ContextSupport(Labelled):
    """Whether the passages that reached the model support all that an answer says."""

    type = "context_support"
    description = (
        "Passes when every claim of a factual answer is supported by the passages that reached the "
        "model, as reviewers labelled it: the answer as a whole (value), or claim by claim. Where "
        "it has no labels of its own, those of `claim_support` count."
    )
    excludes: ClassVar[Mapping[str, str]] = {
        "not_a_factual_answer": "the answer is an abstention, or makes no claim",
        **Labelled.excludes,
    }
    labelled_about = ("answer", "claim")
    reads: tuple[Part, ...] = ("output", "context")
    built_after = 2
    no_answer = "not_a_factual_answer"
    when_empty = "An answer without a claim is excluded."
    formula_source = "All claims are supported; a claim that cannot be verified is not."

    @classmethod
    def build(cls, criterion: str, parameters: Parameters, project: Project) -> Self:
        """The evaluator, which falls back on the labels of `claim_support`."""
        evaluator = super().build(criterion, parameters, project)
        claims = [one.criterion for one in project.parts if isinstance(one, ClaimSupport)]
        evaluator.sources = (criterion, *claims[:1])
        return evaluator

    def conclude(self, case: Case, said: Units, detail: dict[str, Any]) -> Outcome:
        """Pass when everything that was labelled is supported."""
        claims = self._claims(said)
        if claims is None:
            return Outcome.excluded("not_a_factual_answer", detail)
        found = [label == SUPPORTED for label in claims.values()]
        verdicts = {
            reviewer: label
            for reviewer, label in said.get(("answer", ""), {}).items()
            if label != NO_CLAIMS
        }
        if verdicts:
            found.append(settled(verdicts, "answer", self.disagreement) == PASS)
        if others := _others(claims):
            detail["not_supported"] = others
        return Outcome.verdict(all(found), detail=detail)
