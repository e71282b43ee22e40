"""The names of stages and states, in the order of a run."""

from __future__ import annotations

from typing import Literal

Stage = Literal[
    "cases",
    "execution",
    "retrieval",
    "assembled_context",
    "citations",
    "generation",
    "judgments",
    "metrics",
    "gate",
]
CASE_STAGES: tuple[Stage, ...] = (
    "cases",
    "retrieval",
    "assembled_context",
    "generation",
    "judgments",
)
WHOLE_STAGES: tuple[Stage, ...] = ("cases", "execution", *CASE_STAGES[1:])
"""The stages of a case of a system that is called as a whole."""
STAGES: tuple[Stage, ...] = (*CASE_STAGES, "metrics", "gate")
ANSWERING: tuple[Stage, ...] = ("retrieval", "assembled_context", "generation")
"""The stages that one execution of a system that is called as a whole stands for."""
PASSAGE_STAGES: tuple[Stage, ...] = ("retrieval", "assembled_context")
"""The stages that passages are recorded of."""
PARENTS: dict[Stage, tuple[Stage, ...]] = {
    "cases": (),
    "retrieval": ("cases",),
    "assembled_context": ("retrieval",),
    "generation": ("cases", "assembled_context"),
    "judgments": ("cases", "retrieval", "assembled_context", "generation"),
    "metrics": ("judgments",),
    "gate": ("metrics",),
}

RunState = Literal["RUNNING", "DECIDED", "STOPPED", "INTERRUPTED"]
Completeness = Literal["COMPLETE", "PARTIAL"]
DecisionState = Literal["PASS", "FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"]
GateState = Literal["ALLOW", "WARN", "BLOCK"]

UNLABELLED = frozenset({"not_labelled", "answer_changed_since_label"})
"""Reasons why a judgment is missing that only say that a reviewer has something to do."""
