"""One judgment: the outcome of one evaluator for one case."""

from __future__ import annotations

import traceback

from rag_assets.contracts.loading import user_frames
from rag_assets.evaluators.base import Absent, Evaluator, Evidence, Outcome


def judge(evaluator: Evaluator, evidence: Evidence) -> Outcome:
    """Judge one case. An error is never turned into a fail or a zero.

    Args:
        evaluator: what judges.
        evidence: the case and what the system made of it.

    Returns:
        The first that applies: excluded when the criterion does not apply to the case; missing
        with the reason of the first absent part that the evaluator reads; missing
        (`evaluator_error`, with message and traceback in the detail) when the evaluator raised;
        otherwise what it said.
    """
    try:
        reason = evaluator.exclusion(evidence.case)
        if reason is not None:
            return Outcome.excluded(reason)
        for name in evaluator.reads:
            part = getattr(evidence, name)
            if isinstance(part, Absent):
                return Outcome.missing(part.reason, part.detail or None)
        return evaluator.evaluate(evidence)
    except (Exception, SystemExit) as error:
        return Outcome.missing("evaluator_error", _explain(error, evaluator))


def _explain(error: BaseException, evaluator: Evaluator) -> dict[str, str]:
    """The error as JSON, whatever characters its message holds."""
    detail = {
        "error": "".join(traceback.format_exception_only(error)).strip(),
        "traceback": user_frames(error, evaluator.home),
    }
    return {
        key: text.encode("utf-8", "backslashreplace").decode("utf-8")
        for key, text in detail.items()
    }
