"""The label of one diagnosed case: what the two new verdicts and the positions support, no more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.matching import Match, Unit, match_relevant

RULES_VERSION = "diagnosis/v1"

LabelName = Literal[
    "RETRIEVAL_MISS", "RANKED_OUT", "CONTEXT_ASSEMBLY_LOSS", "GENERATION_FAILURE", "UNRESOLVED"
]
LABELS: tuple[LabelName, ...] = (
    "RETRIEVAL_MISS",
    "RANKED_OUT",
    "CONTEXT_ASSEMBLY_LOSS",
    "GENERATION_FAILURE",
    "UNRESOLVED",
)
Verdict = Literal["passed", "failed", "error", "no_verdict"]
"""What a re-execution came to: `error` when it raised or timed out, `no_verdict` when the criterion
is missing or excluded for another reason."""

Strength = Literal["none", "intervention_recovery", "intervention_non_recovery", "replay_confirmed"]
CONTROL = "control"
ALSO_MISSED = "retrieval_also_missed"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where the relevant evidence of a case stood in the run that is diagnosed.

    Attributes:
        retrieved: in the retrieval; None where that is not known.
        in_context: in the assembled context; None where that is not known.
        is_any_retrieved: whether any relevant unit was retrieved at all.
        top_k: of the system; None where it declares none.
    """

    retrieved: Match | None
    in_context: Match | None
    is_any_retrieved: bool
    top_k: int | None

    @property
    def best_position(self) -> int | None:
        """The best relevant position, 1-based; None when none is found, or a match is ambiguous."""
        if self.retrieved is None or self.is_ambiguous:
            return None
        return self.retrieved.position

    @property
    def is_ambiguous(self) -> bool:
        """Whether a passage without a chunk id might be the one that a label names."""
        return any(one.ambiguous for one in (self.retrieved, self.in_context) if one is not None)


@dataclass(frozen=True, slots=True)
class CaseLabel:
    """The label of one case, with what it rests on."""

    label: LabelName
    reason: str
    strength: Strength = "none"
    notes: tuple[str, ...] = ()


def evidence_of(case: Case, candidates: Any, items: Any, unit: Unit, top_k: int | None) -> Evidence:
    """Find the relevant evidence of a case in what was recorded.

    Args:
        case: its labels, and whether one or all of them are required.
        candidates: the retrieved passages in their order; None where they are not known.
        items: the passages of the assembled context; None where they are not known.
        unit: what a label names, a document or a chunk.
        top_k: of the system; None where it declares none.
    """
    one_suffices = replace(case, requires="any")
    retrieved = None if candidates is None else match_relevant(case, candidates, unit)
    found = None if candidates is None else match_relevant(one_suffices, candidates, unit)
    return Evidence(
        retrieved=retrieved,
        in_context=None if items is None else match_relevant(case, items, unit),
        is_any_retrieved=found is not None and found.position is not None,
        top_k=top_k,
    )


def label_case(
    *,
    is_staged: bool,
    control: Verdict | None,
    intervention: Verdict,
    is_labelled: bool,
    evidence: Evidence,
) -> CaseLabel:
    """The label of a case under gold context: the first row of the table that applies.

    Args:
        is_staged: whether the system is called stage by stage.
        control: what the re-execution without the intervention came to; None without a control.
        intervention: what the re-execution over the gold passages came to.
        is_labelled: whether the case has a label with grade > 0.
        evidence: where the relevant evidence stood.
    """
    if not is_staged:
        return _unresolved("intervention_unsupported")
    for verdict, reason in ((control, "control_error"), (intervention, "intervention_error")):
        if verdict == "error":
            return _unresolved(reason)
    if "no_verdict" in (control, intervention):
        return _unresolved("intervention_evidence_missing")
    if control == "passed":
        return _unresolved("unstable_under_control")
    if intervention == "failed":
        notes = (ALSO_MISSED,) if is_labelled and _missed(evidence) else ()
        return CaseLabel(
            "GENERATION_FAILURE", "fails_with_gold_context", "intervention_non_recovery", notes
        )
    return _label_recovered(is_labelled, evidence)


def _label_recovered(is_labelled: bool, evidence: Evidence) -> CaseLabel:
    retrieved, in_context, top_k = evidence.retrieved, evidence.in_context, evidence.top_k
    if not is_labelled:
        return _unresolved("no_relevance_labels")
    if retrieved is None or in_context is None or top_k is None:
        return _unresolved("intervention_evidence_missing")
    if evidence.is_ambiguous:
        return _unresolved("relevance_unit_mismatch")
    if retrieved.position is None:
        return _recovered("RETRIEVAL_MISS", "relevant_not_retrieved")
    if retrieved.position > top_k:
        return _recovered("RANKED_OUT", "relevant_ranked_below_top_k")
    if in_context.position is None:
        return _recovered("CONTEXT_ASSEMBLY_LOSS", "relevant_dropped_from_context")
    return _unresolved("recovered_with_relevant_in_context")


def _missed(evidence: Evidence) -> bool:
    retrieved = evidence.retrieved
    return retrieved is not None and not retrieved.ambiguous and not evidence.is_any_retrieved


def _recovered(label: LabelName, reason: str) -> CaseLabel:
    return CaseLabel(label, reason, "intervention_recovery")


def _unresolved(reason: str) -> CaseLabel:
    return CaseLabel("UNRESOLVED", reason)
