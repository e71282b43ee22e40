"""Operational metrics: quantiles of time, tokens and money, and the rules on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import document, program_in
from projects import SampleProject, relevant
from rag_assets.contracts.config import read_config
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.metric_config import OperationalMetric
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.gate import decide
from rag_assets.evaluation.operational import measure_quantile
from rag_assets.evaluators import Outcome

METRICS = """
metrics:
  - {id: p50_tokens, source: output_tokens, quantile: 0.5}
  - {id: p95_latency, source: latency_ms, quantile: 0.95}
  - {id: p50_cost, source: cost_usd, quantile: 0.5}
"""
POLICY = """
rules:
  - {id: short, metric: p50_tokens, max: 20}
  - {id: shorter, metric: p50_tokens, max: 15}
  - {id: fast, metric: p95_latency, max: 60000}
"""
REPORTING = """
        from rag_assets import current_case
        current_case().usage(output_tokens=len(input["question"]))
        return answer_of(context)
"""


@pytest.fixture
def project(sample: SampleProject) -> SampleProject:
    sample.replace("app.py", "\n        return answer_of(context)\n", REPORTING)
    config = (sample.root / "rag_assets.yaml").read_text()
    sample.write("rag_assets.yaml", config + METRICS)
    sample.write("release.yaml", POLICY)
    sample.cases(
        *(
            {
                "id": f"c{index:02}",
                "input": {"question": "a" * (index + 1)},
                "expected": relevant("a", answer="of a"),
            }
            for index in range(20)
        )
    )
    return sample


def test_quantiles_are_measured_decided_and_shown(project: SampleProject) -> None:
    program = program_in(project.root)
    called = program("run")
    lines = called.stdout.splitlines()
    # Lengths 1 … 20: the bounds of the median are the 6th and the 15th value.
    assert (
        "p50_tokens  10 tokens  [6 tokens, 15 tokens]  p50 of 20 observed · 0 missing · 0 excluded"
    ) in lines
    assert "p50_cost  none  none  p50 of 0 observed · 20 missing · 0 excluded" in lines
    assert "short  p50_tokens  max 20 tokens  PASS  upper_bound_meets_maximum" in lines
    assert "shorter  p50_tokens  max 15 tokens  PASS  upper_bound_meets_maximum" in lines
    fast = next(line for line in lines if line.startswith("fast  p95_latency"))
    assert fast == ("fast  p95_latency  max 60000 ms  INSUFFICIENT_EVIDENCE  interval_unbounded")
    plan = lines[lines.index(fast) + 1]
    assert plan.startswith("    PASS at 72 / 72 / 72 cases in 50 / 80 / 90 % of such samples")
    assert "p50_cost: 20 missing (not_reported 20)" in called.stderr


def test_a_hit_keeps_the_time_and_usage_of_its_execution(project: SampleProject) -> None:
    first, second = project.first_run(), project.run()
    for metric in ("p50_tokens", "p95_latency"):
        assert second.metric(metric).estimate == first.metric(metric).estimate
    assert first.metric("p95_latency").estimate != 0


def test_gate_decides_them_again_from_records(project: SampleProject) -> None:
    project.first_run()
    project.write("strict.yaml", "rules:\n  - {id: short, metric: p50_tokens, max: 5}\n")
    called = program_in(project.root)("gate", "latest", "--policy", "strict.yaml", "--json")
    assert called.exit_code == 1
    record = document(called)["decisions"][0]
    assert (record["state"], record["reasons"]) == ("FAIL", ["lower_bound_above_maximum"])
    assert (record["lower"], record["upper"], record["quantile"]) == (6.0, 15.0, 0.5)
    assert record["method"] == "order_statistic_quantile@1"


def test_they_stand_side_by_side_in_a_comparison(project: SampleProject) -> None:
    project.first_run()
    project.run()
    called = program_in(project.root)("compare", "latest", "latest~1")
    assert called.exit_code == 0
    side = "10 tokens [6 tokens, 15 tokens]"
    assert (
        f"p50_tokens: {side} against {side} (no difference is computed)"
        in called.stdout.splitlines()
    )


def test_a_failed_stage_is_missing(project: SampleProject) -> None:
    project.replace("app.py", "        from rag_assets import current_case\n", "        1 / 0\n")
    run = project.run()
    metric = run.metric("p95_latency")
    assert (metric.observed, metric.missing) == (0, 20)
    assert json.loads(metric.payload)["missing_reasons"] == {"execution_error": 20}


@pytest.mark.parametrize(
    ("values", "missing", "state", "reason"),
    [
        ([1.0] * 6, 0, "PASS", "upper_bound_meets_maximum"),
        ([3.0] * 6, 0, "FAIL", "lower_bound_above_maximum"),
        ([1.0, 1.0, 1.0, 3.0, 3.0, 3.0], 0, "INSUFFICIENT_EVIDENCE", "interval_overlaps_threshold"),
        ([1.0] * 6, 1, "INSUFFICIENT_EVIDENCE", "interval_unavailable"),
    ],
)
def test_states_of_a_rule_on_a_median(
    values: list[float], missing: int, state: str, reason: str
) -> None:
    outcomes = [Outcome.score(value) for value in values] + [Outcome.missing("timeout")] * missing
    metric = measure_quantile(
        OperationalMetric(id="m", source="latency_ms", quantile=0.5), outcomes, 0.95
    )
    decision = decide(Rule(id="r", metric="m", kind="max", threshold=2.0), metric)
    assert (decision.state, decision.reasons) == (state, (reason,))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("quantile: 0.5}\n  - {id: p95", "quantile: 1.5}\n  - {id: p95", "quantile"),
        ("source: output_tokens", "source: tokens", "source"),
        ("id: p50_tokens", "id: p95_latency", "is taken by another metric; ids are unique."),
        ("id: p50_tokens", "id: answer_correct", "is the criterion of an evaluator"),
    ],
)
def test_wrong_metrics_of_a_config(
    project: SampleProject, old: str, new: str, message: str
) -> None:
    project.replace("rag_assets.yaml", old, new)
    called = program_in(project.root)("check")
    assert called.exit_code == 2
    assert message in called.stderr


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "kind: observed_count, max_failures: 0",
            "observed_count counts failures, and p50_tokens is a quantile; use min or max.",
        ),
        ("kind: superiority", "p50_tokens is a quantile, which has no difference; use min or max."),
    ],
)
def test_rules_that_do_not_fit_a_quantile(project: SampleProject, rule: str, message: str) -> None:
    project.write("release.yaml", f"rules:\n  - {{id: r, metric: p50_tokens, {rule}}}\n")
    called = program_in(project.root)("check")
    assert called.exit_code == 2
    assert message in called.stderr


def test_the_config_holds_them(project: SampleProject) -> None:
    problems: list[Problem] = []
    config = read_config(Path(project.root / "rag_assets.yaml"), problems)
    assert config is not None
    assert config.operational_metrics[0] == OperationalMetric(
        id="p50_tokens", source="output_tokens", quantile=0.5
    )
