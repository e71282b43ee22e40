"""What a run that goes on may tell of its cases: in logs, in Dagster, and in its own records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.recorded_sources import least_chars
from rag_assets.evaluation.redaction import Redactor, may_hide, passages_of
from rag_assets.evaluation.session import Session
from rag_assets.evaluation.words import PASSAGE_STAGES
from rag_assets.evaluators import Absent, Evaluator, Evidence, Outcome
from rag_assets.evaluators.custom import Custom
from rag_assets.evaluators.leak_check import leaks_in
from rag_assets.systems.calls import CallResult


def redactor_of(session: Session, case: Case, artifacts: Iterable[Mapping[str, Any]]) -> Redactor:
    """What takes out of a case what its user may not see.

    Args:
        session: the run.
        case: one of its cases.
        artifacts: what is at hand of its retrieval and context, as it is stored.
    """
    least = least_chars(session.project)
    passages = [one for artifact in artifacts for one in passages_of(artifact)]
    return Redactor(case, passages, least, partial(leaks_in, case=case, min_chars=least))


def told_call(session: Session, case: Case, call: CallResult) -> CallResult:
    """The result of a call, with what its errors say as it may be told."""
    errors = [call.failure, *(one.error for one in call.attempts)]
    if not may_hide(case) or not any(errors):
        return call
    digests = (
        result.digest
        for stage in PASSAGE_STAGES
        if (result := session.results.get(stage, {}).get(case.id)) is not None
    )
    at_hand = session.payloads_at_hand(one for one in digests if one is not None)
    redactor = redactor_of(session, case, map(json.loads, at_hand.values()))
    attempts = tuple(replace(one, error=redactor.text(one.error)) for one in call.attempts)
    failure = call.failure and replace(
        call.failure,
        message=redactor.text(call.failure.message),
        traceback=redactor.text(call.failure.traceback),
    )
    return replace(call, failure=failure, attempts=attempts)


def told_outcome(
    session: Session, case: Case, evidence: Evidence | None, evaluator: Evaluator, outcome: Outcome
) -> Outcome:
    """An outcome, with what its evaluator says of it as it may be told.

    Args:
        session: the run.
        case: the case.
        evidence: what the evaluator looked at, where it is at hand.
        evaluator: who says it. Constraints name documents and places, and quote nothing.
        outcome: what it said.
    """
    parts = (evidence.retrieval, evidence.context) if evidence is not None else ()
    found = (part.record() for part in parts if not isinstance(part, Absent))
    redactor = redactor_of(session, case, found)
    is_custom = evaluator.type == Custom.type
    reason = redactor.text(outcome.reason) if is_custom and outcome.reason else outcome.reason
    tell = redactor.value if evaluator.is_constraint else redactor.said
    return replace(outcome, reason=reason, detail=tell(outcome.detail))
