"""What would decide an undecided rule: sizes, obstacles, missing cases, and the command `plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import program_in
from projects import SampleProject
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.differences import difference
from rag_assets.evaluation.gate import decide
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluation.planning import Plan, plan_for_metric
from rag_assets.evaluation.planning_differences import plan_for_difference, with_complete_plan
from rag_assets.evaluation.views import DecisionView, Measure
from rag_assets.evaluators import Outcome
from rag_assets.reports.planning import planning_line
from rag_assets.statistics import Sizes, bounded_mean, cases_for_mean, pairs_for_margin

GOLDEN = Path(__file__).parent / "golden"
SIZES = json.loads((GOLDEN / "planning_sizes.json").read_text())
DECISIONS = json.loads((GOLDEN / "gate_run_decisions.json").read_text())
PASS, FAIL, CRASHED = Outcome.verdict(True), Outcome.verdict(False), Outcome.missing("timeout")


def measured(metric: MetricValue, level: float) -> Measure:
    interval = metric.interval
    return Measure(
        kind=metric.kind,
        range=metric.value_range,
        estimate=metric.estimate,
        lower=interval.lower if interval else None,
        upper=interval.upper if interval else None,
        observed=metric.observed,
        missing=metric.missing,
        excluded=metric.excluded,
        passes=metric.passes,
        method=interval.method if interval else None,
        level=level,
    )


def line_of_run(rule: Rule, outcomes: list[Outcome], kind: Any = "verdict") -> str | None:
    """The planning line of a rule on one run."""
    metric = measure("m", kind, (0.0, 1.0), outcomes, level=0.95, method=rule.method)
    decision = decide(rule, metric)
    values = [one.value for one in outcomes if one.value is not None]
    plan = plan_for_metric(decision, values, 0.95)
    record = rule.model_dump(exclude_none=True)
    return planning_line(
        DecisionView(
            record,
            decision.state,
            decision.reasons,
            measured(metric, 0.95),
            plan.as_json() if plan else None,
        )
    )


def line_of_pairs(rule: Rule, gained: int, lost: int, same: int, missing: int = 0) -> str | None:
    """The planning line of a rule on a comparison of verdicts."""
    return planning_line(view_of_pairs(rule, gained, lost, same, missing))


def view_of_pairs(rule: Rule, gained: int, lost: int, same: int, missing: int = 0) -> DecisionView:
    pairs = [
        *[(PASS, FAIL)] * gained,
        *[(FAIL, PASS)] * lost,
        *[(PASS, PASS)] * same,
        *[(CRASHED, PASS)] * missing,
    ]
    named = {f"c{index}": pair for index, pair in enumerate(pairs)}
    found = difference("m", "verdict", (0.0, 1.0), named).bounded(0.95, rule.method)
    decision = decide(rule, found)
    plan = plan_for_difference(decision, 0.95)
    shown = Measure("verdict", (0.0, 1.0), found.estimate, None, None, found.observed, 0, 0,
                    None, None, 0.95)  # fmt: skip
    record = rule.model_dump(exclude_none=True)
    return DecisionView(
        record, decision.state, decision.reasons, shown, plan.as_json() if plan else None
    )


def floor(threshold: float, **fields: Any) -> Rule:
    return Rule(id="r", metric="m", kind="min", threshold=threshold, **fields)


def ceiling(threshold: float) -> Rule:
    return Rule(id="r", metric="m", kind="max", threshold=threshold)


def margin(delta: float, **fields: Any) -> Rule:
    return Rule(id="r", metric="m", kind="non_inferiority", margin=delta, **fields)


SUPERIORITY = Rule(id="r", metric="m", kind="superiority")
IF_SO = "in 50 / 80 / 90 % of such samples, if future cases follow the observed distribution"


def test_a_floor_that_can_be_reached() -> None:
    line = line_of_run(floor(0.8), [PASS] * 12 + [FAIL])
    assert line == f"PASS at 41 / 75 / 94 cases {IF_SO} (12 of 13)"


def test_a_ceiling_is_planned_like_a_floor_for_failures() -> None:
    line = line_of_run(ceiling(0.2), [FAIL] * 12 + [PASS])
    assert line == f"PASS at 41 / 75 / 94 cases {IF_SO} (1 of 13)"


def test_an_estimate_on_the_wrong_side() -> None:
    line = line_of_run(floor(0.7), [PASS] * 69 + [FAIL] * 31)
    assert line == ("no size would make this PASS, because the estimate 69.0% is not above 70.0%")
    line = line_of_run(ceiling(0.3), [PASS] * 31 + [FAIL] * 69)
    assert line == ("no size would make this PASS, because the estimate 31.0% is not below 30.0%")


@pytest.mark.parametrize(
    "vector",
    [one for one in DECISIONS["rates"] if "resolve_missing_first" in one],
    ids=lambda vector: f"{vector['passed']}/{vector['observed']}+{vector['missing']}",
)
def test_golden_bounds_with_the_missing_cases_resolved(vector: dict[str, Any]) -> None:
    entry = vector["rule"]
    if vector["confidence"] != 0.95 or vector["state"] != "INSUFFICIENT_EVIDENCE":
        pytest.skip("the lines here are of 95 %")
    rule = floor(entry["min"]) if "min" in entry else ceiling(entry["max"])
    outcomes = [Outcome.verdict(index < vector["passed"]) for index in range(vector["observed"])]
    line = line_of_run(rule, outcomes + [CRASHED] * vector["missing"])
    wanted = vector["resolve_missing_first"]
    if wanted is None:
        assert line is None or not line.startswith("resolve")
        return
    cases = "case" if wanted["missing"] == 1 else "cases"
    assert line == (
        f"resolve the {wanted['missing']} missing {cases} first: counted favourably, the bound "
        f"would be {wanted['bound_if_favourable']}"
    )


def test_missing_cases_of_a_count() -> None:
    rule = Rule(id="r", metric="m", kind="observed_count", max_failures=1)
    line = line_of_run(rule, [PASS] * 12 + [FAIL] + [CRASHED] * 2)
    assert line == "resolve the 2 missing cases first"
    line = line_of_run(rule, [PASS] * 12 + [FAIL, CRASHED])
    assert line == "resolve the 1 missing case first"


@pytest.mark.parametrize(
    ("rule", "outcomes"),
    [
        (floor(0.8, max_missing_fraction=0.1), [PASS] * 20 + [CRASHED] * 8),
        (floor(0.8), [CRASHED] * 13),
        (floor(0.8, requires_manual_review=True), [PASS] * 13),
        (floor(0.5), [PASS] * 13),
    ],
)
def test_where_nothing_is_planned(rule: Rule, outcomes: list[Outcome]) -> None:
    assert line_of_run(rule, outcomes) is None


def test_sizes_are_never_below_the_support_that_is_asked_for() -> None:
    line = line_of_run(floor(0.8, min_support=60), [PASS] * 12 + [FAIL])
    assert line == f"PASS at 60 / 75 / 94 cases {IF_SO} (12 of 13)"


def test_a_mean_score() -> None:
    values = [1.0] * 10 + [0.6309297535714575] * 2 + [0.0]
    line = line_of_run(floor(0.7), [Outcome.score(value) for value in values], "score")
    assert line == f"PASS at about 47 / 71 / 86 cases {IF_SO} (mean 0.866 of 13)"


@pytest.mark.parametrize("vector", SIZES["paired"])
def test_golden_sizes_of_pairs(vector: dict[str, Any]) -> None:
    sizes = pairs_for_margin(
        vector["share_gained"],
        vector["share_lost"],
        vector["margin"],
        level=vector["confidence"],
    )
    assert sizes.at_50 == vector["cases_50"]


def test_both_methods_without_a_changed_pair() -> None:
    assert line_of_pairs(margin(0.05), 0, 0, 13) == (
        f"PASS at 107 / 107 / 107 cases {IF_SO} (gained 0.0 %, lost 0.0 % of pairs); "
        "with method: exact_paired: 72 instead of 107"
    )
    assert line_of_pairs(margin(0.05, method="exact_paired"), 0, 0, 13) == (
        f"PASS at 72 / 72 / 72 cases {IF_SO} (gained 0.0 %, lost 0.0 % of pairs)"
    )


def test_one_gain_in_fifteen() -> None:
    assert line_of_pairs(margin(0.05), 1, 0, 14) == (
        f"PASS at 55 / 64 / 78 cases {IF_SO} (gained 6.7 %, lost 0.0 % of pairs); "
        "with method: exact_paired: 35 instead of 55"
    )


def test_a_harmful_increase_is_planned_on_the_mirrored_shares() -> None:
    line = line_of_pairs(margin(0.05, direction="max"), 0, 1, 14)
    assert line == (
        f"PASS at 55 / 64 / 78 cases {IF_SO} (gained 0.0 %, lost 6.7 % of pairs); "
        "with method: exact_paired: 35 instead of 55"
    )


@pytest.mark.parametrize(
    ("rule", "counts", "because"),
    [
        (margin(0.05), (0, 1, 19), "the difference -5.0 points is not inside the margin"),
        (SUPERIORITY, (0, 0, 13), "nothing was gained"),
        (SUPERIORITY, (2, 3, 20), "the difference -4.0 points is not above 0"),
        (
            Rule(id="r", metric="m", kind="equivalence", margin=0.05),
            (2, 0, 18),
            "the difference +10.0 points is not inside the margin",
        ),
    ],
)
def test_differences_that_no_size_would_decide(
    rule: Rule, counts: tuple[int, int, int], because: str
) -> None:
    line = line_of_pairs(rule, *counts)
    assert line == f"no size would make this PASS, because {because}"


def test_missing_pairs_counted_as_gained() -> None:
    line = line_of_pairs(margin(0.05), 3, 0, 60, missing=12)
    assert line == (
        "resolve the 12 missing cases first: counted favourably, the bound would be +7.5 points"
    )


def test_a_long_search_is_left_to_the_command() -> None:
    view = view_of_pairs(margin(0.02), 50, 50, 400)
    line = planning_line(view)
    assert line is not None
    assert line.endswith("; with method: exact_paired: takes longer to compute: rag-assets plan")
    complete = with_complete_plan(view).plan
    assert complete is not None
    assert complete["methods"] == [
        {"method": "paired_mixture", "sizes": {"at_50": 6350, "at_80": 10000, "at_90": None}},
        {"method": "exact_paired", "sizes": {"at_50": 1950, "at_80": 3950, "at_90": 5300}},
    ]


def test_a_plan_survives_its_record() -> None:
    plan = view_of_pairs(margin(0.02), 1, 0, 14).plan
    assert plan is not None
    assert Plan.from_json(json.loads(json.dumps(plan))).as_json() == plan


def test_equal_scores_are_planned_exactly() -> None:
    assert cases_for_mean([0.0] * 13, -0.05, value_range=(-1.0, 1.0)) == Sizes(107, 107, 107)
    needed = cases_for_mean([0.9] * 5, 0.8).at_50
    assert needed is not None
    bounds = [bounded_mean([0.9] * size).lower for size in (needed - 1, needed)]
    assert bounds[0] is not None
    assert bounds[1] is not None
    assert bounds[0] < 0.8 <= bounds[1]


@pytest.mark.parametrize(
    ("gained", "lost", "delta"), [(1, 0, 0.05), (21, 21, 0.05), (60, 30, 0.01), (120, 120, 0.05)]
)
def test_approximate_sizes_are_close_to_the_exact_ones(
    gained: int, lost: int, delta: float
) -> None:
    pairs = 600 if gained > 1 else 15
    values = [1.0] * gained + [-1.0] * lost + [0.0] * (pairs - gained - lost)
    about = cases_for_mean(values, -delta, value_range=(-1.0, 1.0))
    exact = pairs_for_margin(gained / pairs, lost / pairs, delta)
    for guess, known in ((about.at_50, exact.at_50), (about.at_80, exact.at_80)):
        assert guess == pytest.approx(known, rel=0.07)


def test_the_command_shows_both_methods_side_by_side(sample: SampleProject) -> None:
    sample.write(
        "compare.yaml",
        "rules:\n  - {id: same, metric: answer_correct, kind: non_inferiority, margin: 0.05}\n",
    )
    sample.write("release.yaml", "rules:\n  - {id: floor, metric: hit_rate_at_2, min: 0.5}\n")
    sample.run()
    sample.run()
    program = program_in(sample.root)
    name = program("compare", "latest", "latest~1").stdout.split()[1]
    called = program("plan", name)
    lines = called.stdout.splitlines()
    assert called.exit_code == 0
    assert lines[0] == f"Plan for {name}"
    assert "with method: exact_paired: 72 instead of 107" in lines[3]
    table = [line.split() for line in lines[4:7]]
    assert table[0][0] == "method"
    assert table[1] == ["paired_mixture", "107", "107", "107"]
    assert table[2] == ["exact_paired", "72", "72", "72"]
    assert "Only 3 pairs: the rule is truly met with probability" in called.stdout
    of_run = program("plan", "latest").stdout
    assert f"    PASS at 42 / 77 / 99 cases {IF_SO} (2 of 3)" in of_run.splitlines()
    assert "Allowing for that, PASS at" in of_run
