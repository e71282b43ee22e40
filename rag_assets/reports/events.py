"""The events of `rag-assets run --json`, one JSON object each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_assets.evaluation.views import RunView
from rag_assets.store import RunJudgment


def start_event(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a run is about to do, from what it freezes."""
    selection, policy = record["selection"], record["policy"]
    return {
        "event": "start",
        "cases": record["dataset"]["cases"] if selection is None else len(selection),
        "digests": {
            "config": record["config"]["digest"],
            "policy": policy["digest"] if policy else None,
            "dataset": record["dataset"]["digest"],
            "manifest": record["manifest"] and record["manifest"]["digest"],
            "system": record["system"]["identity"],
            "evaluators": {one["criterion"]: one["identity"] for one in record["evaluators"]},
        },
    }


def result_events(view: RunView, judgments: Sequence[RunJudgment]) -> Iterator[dict[str, Any]]:
    """Judgments, metrics, decisions and the end of a run."""
    for judgment in judgments:
        yield {"event": "judgment", **view.judgment(judgment).as_json()}
    for metric in (*view.metrics, *view.slices):
        yield {"event": "metric", **metric.as_json()}
    for decision in view.decisions:
        yield {"event": "decision", **decision.as_json()}
    yield {
        "event": "end",
        "run": view.row.id,
        "state": view.state,
        "completeness": view.completeness,
        "gate": view.row.gate,
        "exit_code": view.exit_code,
        "cache": view.summary.get("counts", {}),
    }
