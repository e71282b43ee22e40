"""The life of a run: what it freezes at its start, and what it came to at its end."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from rag_assets.contracts.canonical import canonical_json, digest_text
from rag_assets.evaluation.concluding import Conclusion, completeness_of, failure_groups
from rag_assets.evaluation.labelling import labels_record
from rag_assets.evaluation.owner import DIED, describe, is_alive, now, this_process
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.recorded_sources import MANIFEST_KIND, manifest_record, manifest_text
from rag_assets.evaluation.session import Session
from rag_assets.evaluation.words import RunState
from rag_assets.store import RunRow
from rag_assets.store.writer import Writer

_LOOK_AGAIN_S = 0.25
_EXIT_CODES = {"STOPPED": 2, "INTERRUPTED": 130}


def new_run_id() -> str:
    """A new run id: `run_` and a ULID, which sorts by time."""
    from ulid import ULID

    return f"run_{ULID()}"


def start_run(
    session: Session, *, dagster_run_id: str | None, selection: Sequence[str] | None
) -> None:
    """Put a run on record, once no other run of the same project is going on.

    Runs whose process has died are marked on the way. Looking and starting is one transaction of
    the store, which has one writer at a time, so that two runs never start together.

    Args:
        session: the run that starts.
        dagster_run_id: the Dagster run that executes it.
        selection: the case ids that it is restricted to; None for all.
    """
    project = session.project.config.project
    replay = session.replay
    frozen = frozen_record(session.project, selection, session.use_cache)
    record = canonical_json(frozen | ({"replay": asdict(replay)} if replay else {}))
    corpus = manifest_text(session.project)
    told = None
    while True:
        with session.store.writing() as writer:
            mark_dead_runs(writer)
            going_on = [row for row in writer.reader.running() if row.project == project]
            if not going_on:
                if not session.use_cache:
                    writer.forget_settled()
                if writer.reader.run(session.run_id) is not None:
                    # Somebody launched an earlier run's config once more.
                    session.run_id = new_run_id()
                if corpus is not None:
                    writer.put_artifacts(MANIFEST_KIND, {digest_text(corpus): corpus})
                writer.add_run(
                    RunRow(
                        id=session.run_id,
                        created_at=now(),
                        finished_at=None,
                        project=project,
                        origin=_origin(session),
                        parent=replay.run_id if replay else None,
                        dagster_run_id=dagster_run_id,
                        state="RUNNING",
                        completeness=None,
                        gate=None,
                        exit_code=None,
                        owner=this_process(),
                        heartbeat=now(),
                        error=None,
                        record=record,
                        summary=None,
                    )
                )
                return
        if told != going_on[0].id:
            told = going_on[0].id
            session.observer.waiting(told, describe(going_on[0].owner))
        time.sleep(_LOOK_AGAIN_S)


def _origin(session: Session) -> str:
    if session.replay is not None:
        return "diagnose"
    return "run" if session.is_evaluation else "materialize"


def end_run(
    session: Session,
    state: RunState,
    *,
    conclusion: Conclusion | None = None,
    error: str | None = None,
    exit_code: int | None = None,
) -> None:
    """Record how a run ended.

    Args:
        session: the run.
        state: DECIDED, STOPPED or INTERRUPTED.
        conclusion: what was decided, when it came to that.
        error: what stopped it, for people.
        exit_code: where the state does not say it: 4 for an error of our own.
    """
    columns: dict[str, str | int | None] = {
        "state": state,
        "finished_at": now(),
        "error": error,
        "exit_code": _EXIT_CODES.get(state) if exit_code is None else exit_code,
    }
    summary: dict[str, Any] = {
        "cases": len(session.cases),
        "counts": {what: dict(counts) for what, counts in session.counts.items()},
        "failures": failure_groups(session),
    }
    if state != "DECIDED":
        if session.measured or session.is_evaluation:
            columns["completeness"] = "PARTIAL"
    elif conclusion is not None:
        columns["completeness"] = conclusion.completeness
    elif session.measured:
        columns["completeness"] = completeness_of(session)
    if conclusion is not None:
        columns["gate"] = conclusion.gate.state if conclusion.gate else None
        columns["exit_code"] = conclusion.exit_code
        summary |= conclusion.summary()
    columns["summary"] = canonical_json(summary)
    with session.store.writing() as writer:
        session.take_pending(writer)
        writer.update_run(session.run_id, **columns)


def mark_dead_runs(writer: Writer) -> None:
    """Mark runs INTERRUPTED whose process is gone, or began another run since."""
    me = this_process()
    for row in writer.reader.running():
        # A run that this process left behind is over as well: it never waits for itself.
        if row.owner == me or not is_alive(row.owner, row.heartbeat):
            writer.update_run(
                row.id,
                state="INTERRUPTED",
                completeness="PARTIAL" if row.origin == "run" else None,
                finished_at=now(),
                error=DIED,
            )


def frozen_record(
    project: Project, selection: Sequence[str] | None, use_cache: bool
) -> dict[str, Any]:
    """Everything that a run freezes at its start, as JSON."""
    config, policy = project.config, project.policy
    return {
        "config": {"file": config.path.name, "digest": config.digest},
        "policy": policy
        and {
            "file": policy.path.name,
            "digest": policy.digest,
            "confidence_level": policy.confidence_level,
        },
        "dataset": {
            "file": config.dataset.name,
            "digest": project.dataset.digest,
            "cases": len(project.dataset.cases),
        },
        "manifest": manifest_record(project),
        "labels": labels_record(config, project.labels, project.evaluators),
        "grouped": project.is_grouped,
        "suite": config.suite,
        "selection": None if selection is None else list(selection),
        "use_cache": use_cache,
        "seed": config.seed,
        "system": {**project.evaluated.settings, "identity": project.evaluated.identity},
        "replicates": config.replicates,
        "replicate_retrieval": config.replicate_retrieval,
        "evaluators": [one.record() for one in project.measured],
        "metrics": [metric.model_dump() for metric in config.operational_metrics],
        "slices": list(config.slices),
        "min_slice_support": config.min_slice_support,
        "relevance_unit": project.relevance_unit,
        "packages": {
            "rag-assets": version("rag-assets"),
            "dagster": version("dagster"),
            "duckdb": version("duckdb"),
            "python": platform.python_version(),
        },
    }
