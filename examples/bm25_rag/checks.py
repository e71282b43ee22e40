"""What is right, where no ready-made evaluator knows it: four `custom` evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets import Context, Retrieval

Checked = bool | dict[str, Any]


def states_all(output: Mapping[str, Any], expected: Mapping[str, Any]) -> Checked:
    """Whether an answer states everything that was asked for, without regard to case."""
    if expected["behavior"] != "answer":
        return {"excluded": "no_answer_expected"}
    answer = output["answer"].casefold()
    return all(text.casefold() in answer for text in expected["answers"])


def all_in_context(context: Context, expected: Mapping[str, Any]) -> Checked:
    """Whether all pages that are needed reached the answer."""
    needed = {label["doc_id"] for label in expected.get("relevant", [])}
    if not needed:
        return {"excluded": "no_relevance_labels"}
    return needed <= {item.doc_id for item in context.items}


def reacts_rightly(output: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether the bot abstained where it should, and answered elsewhere."""
    return bool(output["abstained"] == (expected["behavior"] == "abstain"))


def only_current(retrieval: Retrieval, context: Context) -> Checked:
    """Whether no page reached the answer that was replaced or withdrawn."""
    retired = {one.doc_id for one in retrieval.candidates if one.metadata["status"] == "retired"}
    used = [item.doc_id for item in context.items if item.doc_id in retired]
    return {"value": not used, "reason": f"{used[0]} is retired"} if used else True
