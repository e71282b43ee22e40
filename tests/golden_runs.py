"""Comparing what a run recorded with the documented figures of an example."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from projects import Example, Run

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "end_to_end.json").read_text(encoding="utf-8")
)


def assert_decided(run: Run, golden: Mapping[str, Any]) -> None:
    """State, decisions, gate and exit code."""
    row = run.row
    assert (row.state, row.completeness) == ("DECIDED", "COMPLETE")
    assert (row.gate, row.exit_code) == (golden["gate"], golden["exit_code"])
    assert [
        {
            "rule": decision.rule,
            "metric": decision.metric,
            "state": decision.state,
            "reasons": json.loads(decision.payload)["reasons"],
        }
        for decision in run.decisions
    ] == golden["decisions"]


def assert_measured(run: Run, golden: Mapping[str, Any]) -> None:
    """Every metric over all cases and every slice, and the size of the tested family."""
    expected = {(one["metric"], one["scope"]): one for one in golden["metrics"]}
    # Of the plan, which the golden metrics do not speak of, every case has a retrieval.
    coverage = run.metric("retrieval_valid")
    assert (coverage.estimate, coverage.missing, coverage.excluded) == (1.0, 0, 0)
    metrics = [one for one in run.metrics if one != coverage]
    assert {(one.criterion, one.scope) for one in metrics} == set(expected)
    for metric in metrics:
        wanted = expected[metric.criterion, metric.scope]
        payload = json.loads(metric.payload)
        assert metric.kind == wanted["kind"]
        assert metric.estimate == _near(wanted["estimate"])
        bounds = None if metric.lower is None else [metric.lower, metric.upper]
        assert bounds == _near(wanted["interval"])
        counts = (metric.observed, metric.missing, metric.excluded)
        assert counts == (wanted["observed"], wanted["missing"], wanted["excluded"])
        if "support" in wanted:
            assert (payload["support"], payload["mark"]) == (wanted["support"], wanted["mark"])
            for name in ("p_value", "p_adjusted"):
                assert payload[name] == _near(wanted[name])
    assert run.summary["slice_tests"] == golden["slice_tests"]


def verdicts(run: Run) -> dict[str, dict[str, Any]]:
    """Case → criterion → verdict, or "excluded:reason"."""
    found: dict[str, dict[str, Any]] = {}
    for one in run.judgments:
        excluded = f"excluded:{one.reason}"
        value = excluded if one.status == "excluded" else one.value == 1.0
        found.setdefault(one.case_id, {})[one.criterion] = value
    return found


def _near(wanted: Any) -> Any:
    return wanted if wanted is None else pytest.approx(wanted, abs=1e-9)


def assert_recorded(example: Example, run: Run, golden_run: Mapping[str, Any]) -> None:
    """What a run recorded of the retrieval and the context of each case."""
    digests = {
        (stage.case_id, stage.stage): str(stage.digest) for stage in run.stages if stage.digest
    }
    with example.store.reading() as reader:
        payloads = reader.payloads(list(digests.values()))
    for golden in golden_run["cases"]:
        case = golden["case"]
        retrieval = json.loads(payloads[digests[case, "retrieval"]])
        context = json.loads(payloads[digests[case, "assembled_context"]])
        assert len(retrieval["candidates"]) == golden["candidates"]
        assert len(context["items"]) == golden["in_context"]
        assert [[one["position"], one["reason"]] for one in context["dropped"]] == golden["dropped"]
