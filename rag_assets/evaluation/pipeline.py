"""Going through the stages in order, executing some and only looking up the others."""

from __future__ import annotations

from rag_assets.evaluation.executions import execute_cases
from rag_assets.evaluation.judging import judge_cases
from rag_assets.evaluation.memo import run_stage
from rag_assets.evaluation.session import Session
from rag_assets.evaluation.stages import (
    AssemblyStage,
    GenerationStage,
    RetrievalStage,
    take_cases,
)
from rag_assets.evaluation.words import ANSWERING, CASE_STAGES, Stage


def go_through(session: Session, stage: Stage, *, execute: bool) -> None:
    """Take a case stage through the cases of the run.

    Earlier stages that this run has not gone through are looked up, never executed. A system that
    is called as a whole goes through all stages of an answer at once.

    Args:
        session: the run; results are filled in.
        stage: one of the case stages.
        execute: whether what is not memoized may be executed.

    Raises:
        ContractError: the system broke its contract.
    """
    if not session.results:
        session.recall_settled()
    with_it = ANSWERING if session.project.is_whole and stage in ANSWERING else (stage,)
    for earlier in CASE_STAGES[: CASE_STAGES.index(with_it[0])]:
        if earlier not in session.results:
            _go_through(session, earlier, execute=False)
    _go_through(session, stage, execute=execute)


def _go_through(session: Session, stage: Stage, *, execute: bool) -> None:
    """All samples of the cases, the first one last: what it commits stands for all of them."""
    for other in session.others:
        if stage in session.taken_anew:
            _take_sample(other, stage, execute=execute)
    _take_sample(session, stage, execute=execute)
    for other in session.others:
        other.results.setdefault(stage, session.results[stage])


def _take_sample(session: Session, stage: Stage, *, execute: bool) -> None:
    if stage == "cases":
        take_cases(session)
    elif session.project.is_whole and stage in ANSWERING:
        execute_cases(session, execute=execute)
    elif stage == "retrieval":
        run_stage(session, RetrievalStage(session), execute=execute)
    elif stage == "assembled_context":
        run_stage(session, AssemblyStage(session), execute=execute)
    elif stage == "generation":
        run_stage(session, GenerationStage(session), execute=execute)
    else:
        judge_cases(session, execute=execute)
