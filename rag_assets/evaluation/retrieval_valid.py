"""Run coverage: of how many planned cases there is a retrieval, whatever it found.

The only metric in which a failure of the system is an observed failure. A retrieval that found
nothing, and one that access was denied to, are results like any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rag_assets.contracts.canonical import digest
from rag_assets.evaluation.replicates import Criterion, combine
from rag_assets.evaluation.stored_cases import NOT_EXECUTED
from rag_assets.evaluators import Outcome
from rag_assets.store import CaseStage
from rag_assets.store.reader import Reader

if TYPE_CHECKING:
    from rag_assets.contracts.config import Config
    from rag_assets.evaluation.session import CaseResult, Session

NAME = "retrieval_valid"
DENIED = "denied"
RetrievalState = Literal["valid", "empty", "denied", "error"]


def retrieval_criterion(config: Config, *, is_recorded: bool) -> Criterion | None:
    """The criterion of run coverage; None for a system that records no retrieval."""
    if not is_recorded:
        return None
    is_sampled = config.replicate_retrieval or config.system.kind != "rag"
    samples = config.replicates if is_sampled else 1
    identity = digest(["retrieval_valid/v1"])
    return Criterion(NAME, "verdict", (0.0, 1.0), identity, NAME, NAME, samples)


def session_outcomes(session: Session) -> list[Outcome]:
    """One outcome for each case of a run that goes on, in the order of its cases."""
    samples = session.sampled("retrieval")
    return [_combined([_of_result(one.get(case.id)) for one in samples]) for case in session.cases]


def recorded_outcomes(reader: Reader, run_id: str) -> dict[str, Outcome]:
    """Case id → outcome, of the cases that a run has a retrieval stage on record of."""
    rows: dict[str, list[CaseStage]] = {}
    for row in reader.stage_rows(run_id, "retrieval"):
        rows.setdefault(row.case_id, []).append(row)
    return {case_id: _combined([_of_row(one) for one in of]) for case_id, of in rows.items()}


def state_of(row: CaseStage | None, retrieval: Mapping[str, Any] | None) -> RetrievalState | None:
    """What came of a retrieval; None where the run never came to it, or nothing is recorded.

    Args:
        row: what the stage came to.
        retrieval: the stored artifact, where there is one.
    """
    if retrieval is not None:
        if retrieval.get("state") == DENIED:
            return "denied"
        return "valid" if retrieval["candidates"] else "empty"
    if row is None or row.source in ("none", "absent") or row.failure is None:
        return None
    return "error"


def _of_result(result: CaseResult | None) -> Outcome:
    if result is None:
        return NOT_EXECUTED
    return _outcome(result.digest, result.failure.reason if result.failure else None)


def _of_row(row: CaseStage) -> Outcome:
    return _outcome(row.digest, json.loads(row.failure)["reason"] if row.failure else None)


def _outcome(digest: str | None, reason: str | None) -> Outcome:
    if digest is not None:
        return Outcome.verdict(True)
    if reason in (None, NOT_EXECUTED.reason):
        return NOT_EXECUTED
    return Outcome.verdict(False, reason)


def _combined(outcomes: Sequence[Outcome]) -> Outcome:
    return combine(outcomes) if len(outcomes) > 1 else outcomes[0]
