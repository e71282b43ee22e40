"""The example as the Dagster UI shows it, and runs that are started by clicking.

One session serves the tests in their order; each launch is compared with the store.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from command_line import call, call_apart, document
from dagster_pages import (
    check,
    colour,
    materialize_all,
    materialize_one,
    materialize_some,
    metadata,
    table,
)
from dagster_records import Launches, events, launched, partitions
from projects import Example
from rag_assets.evaluation.words import CASE_STAGES, STAGES
from serving import Session, serving

SUITE = "support_rag"
SETTLED = dict.fromkeys(CASE_STAGES, (13, 0, 0, 0))


@pytest.fixture(scope="module")
def session(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    example = Example(tmp_path_factory.mktemp("browser"))
    assert call_apart(example.root, "run") == 3
    with serving(example) as session:
        yield session


@pytest.fixture(scope="module")
def cases(session: Session) -> list[str]:
    """The ids of the cases, in the order of the dataset."""
    lines = (session.sample.root / "data/support.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["id"] for line in lines]


def inspected(session: Session, *arguments: str) -> dict[str, Any]:
    return document(call(session.sample.root, "inspect", *arguments, "--json"))


def recorded(session: Session) -> dict[str, dict[str, Any]]:
    """Run id → its row in `rag-assets runs --all`."""
    rows = document(call(session.sample.root, "runs", "--all", "--json"))["runs"]
    return {row["run"]: row for row in rows}


def test_the_graph_shows_every_stage_and_its_cases(page: Page) -> None:
    page.goto("/asset-groups")
    nodes = page.locator("foreignObject")
    for name in ("index", *STAGES):
        expect(nodes.filter(has=page.get_by_text(name, exact=True))).to_be_visible()
        row = page.get_by_role("button").filter(has=page.get_by_text(name, exact=True))
        assert colour(row.get_by_role("img", name="run_success")) == "green"
    expect(page.get_by_role("button", name="Materialize all (7)…")).to_be_visible()
    # Near enough, a node says how many cases it has.
    judgments = nodes.filter(has=page.get_by_text("judgments", exact=True))
    for _ in range(12):
        if "partitions" in str(judgments.text_content()):
            break
        page.get_by_role("img", name="zoom_in").click()
    expect(judgments).to_contain_text("100% filled")
    expect(judgments).to_contain_text("13 partitions")


def test_the_counts_of_partitions(page: Page, session: Session) -> None:
    page.goto(f"/assets/{SUITE}/judgments?view=partitions")
    for text in ("Materialized (13)", "Missing (0)", "Failed (0)", "Materializing (0)"):
        expect(page.get_by_text(text, exact=True)).to_be_visible()
    assert partitions(session, SUITE) == SETTLED


def test_what_became_of_each_candidate_of_a_case(page: Page) -> None:
    page.goto(f"/assets/{SUITE}/assembled_context?view=partitions&partition=refund_review")
    header, *rows = table(page, "position")
    assert header == ["position", "document", "score", "relevant", "context", "text"]
    assert [row[:-1] for row in rows] == [
        ["1", "kb-09", "4", "", "in context (32 tokens)"],
        ["2", "kb-01", "2", "1", "dropped: token_budget (22 tokens)"],
        ["3", "kb-13", "2", "", "dropped: top_k"],
        ["4", "kb-03", "1", "", "dropped: top_k"],
        ["5", "kb-11", "1", "", "dropped: top_k"],
    ]
    assert rows[1][-1] == (
        "You can claim a full refund of an annual plan within 14 days… (116 characters)"
    )
    assert metadata(page, "cache") == "miss"


def test_what_was_retrieved_for_a_case(page: Page) -> None:
    page.goto(f"/assets/{SUITE}/retrieval?view=partitions&partition=refund_review")
    header, *rows = table(page, "position")
    assert header == ["position", "document", "score", "relevant", "text"]
    assert [row[:4] for row in rows[:2]] == [["1", "kb-09", "4", ""], ["2", "kb-01", "2", "1"]]


def test_the_checks_of_the_gate(page: Page) -> None:
    undecided = "INSUFFICIENT_EVIDENCE: interval_overlaps_threshold"
    page.goto(f"/assets/{SUITE}/gate?view=checks")
    for name, result, painted, reason, numbers in [
        (
            "answer_floor",
            "Failed",
            "amber",
            undecided,
            {"lower": 0.385738, "threshold": 0.7, "upper": 0.909080, "value": 0.692308},
        ),
        (
            "citations_valid",
            "Succeeded",
            "green",
            "PASS: observed_failures_within_limit",
            {"lower": 0.752947, "max_failures": 0, "upper": 1, "value": 1},
        ),
        (
            "retrieval_floor",
            "Failed",
            "amber",
            undecided,
            {"lower": 0.639703, "threshold": 0.8, "upper": 0.998054, "value": 0.923077},
        ),
    ]:
        row = check(page, name)
        row.click()
        expect(row).to_contain_text(result)
        assert colour(row.get_by_role("img")) == painted
        expect(page.get_by_text(f"Rule {name.replace('_', '-')} on")).to_be_visible()
        expect(page.get_by_text(reason, exact=True)).to_be_visible()
        shown = {key: float(value) for key, value in table(page, "value")}
        assert shown == pytest.approx(numbers, abs=1e-6)


def test_the_metrics_and_their_plot(page: Page) -> None:
    page.goto(f"/assets/{SUITE}/metrics?view=events")
    everything = "observed · 0 missing · 0 excluded"
    assert table(page, "estimate") == [
        ["metric", "estimate", "interval", "denominator"],
        ["answer_correct", "69.2%", "[38.5%, 91.0%]", f"9 / 13 {everything}"],
        ["hit_rate_at_2", "92.3%", "[63.9%, 99.9%]", f"12 / 13 {everything}"],
        ["recall_at_2", "92.3%", "[63.9%, 99.9%]", f"12 / 13 {everything}"],
        ["ndcg_at_6", "0.866", "[0.506, 0.990]", f"mean of 13 {everything}"],
        ["citations_valid", "100.0%", "[75.2%, 100.0%]", f"13 / 13 {everything}"],
        ["retrieval_valid", "100.0%", "[75.2%, 100.0%]", f"13 / 13 {everything}"],
    ]
    page.get_by_text("[Show Markdown]").click()
    plot = page.get_by_role("img", name="intervals")
    expect(plot).to_be_visible()
    expect(plot).to_have_js_property("complete", True)
    # One row for each of the six metrics, and the axis below them.
    assert plot.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [630, 190]


def assert_all_went_well(session: Session, done: Launches, cases: list[str]) -> None:
    """All is green, and each run has written one event for each partition it was launched for."""
    assert set(done.backfills.values()) <= {"COMPLETED_SUCCESS"}
    assert {one.status for one in done.runs} == {"SUCCESS"}
    assert partitions(session, SUITE) == SETTLED
    requested = Counter(
        (stage, case, one.id)
        for one in done.runs
        for stage in one.stages
        for case in one.cases(cases) or [None]
    )
    assert events(session, SUITE, done.runs) == requested
    assert set(requested.values()) == {1}


def assert_judgments_are_those_of_the_store(page: Page, session: Session, record: str) -> None:
    """What the page of a partition shows is what `inspect` says of that run."""
    case = inspected(session, record, "--case", "refund_review")
    page.goto(f"/assets/{SUITE}/judgments?view=partitions&partition=refund_review")
    expect(page.get_by_text(f"rag-assets inspect {record} --case refund_review")).to_be_visible()
    shown = {name: (status, float(value)) for name, status, value, *_ in table(page, "value")[1:]}
    assert shown == {
        one["criterion"]: (one["status"], float(one["value"])) for one in case["judgments"]
    }


def test_materializing_one_case(page: Page, session: Session, cases: list[str]) -> None:
    done = launched(session, partial(materialize_one, page, f"{SUITE}/judgments", "refund_review"))
    (only,) = done.runs
    assert (only.stages, only.cases(cases)) == (["judgments"], ["refund_review"])
    assert_all_went_well(session, done, cases)
    row = recorded(session)[only.record]
    assert (row["origin"], row["state"], row["gate"]) == ("materialize", "DECIDED", None)
    assert_judgments_are_those_of_the_store(page, session, only.record)


def test_materializing_scattered_cases(page: Page, session: Session, cases: list[str]) -> None:
    chosen = [cases[place - 1] for place in (1, 3, 4, 9)]
    done = launched(session, partial(materialize_some, page, f"{SUITE}/judgments", chosen))
    # Dagster launches ranges: cases that follow each other share a run.
    assert sorted(one.cases(cases) for one in done.runs) == sorted(
        [chosen[:1], chosen[1:3], chosen[3:]]
    )
    assert_all_went_well(session, done, cases)
    in_turn = sorted((one.started, one.ended) for one in done.runs)
    assert all(ended <= started for (_, ended), (started, _) in pairwise(in_turn))
    rows = recorded(session)
    assert {rows[one.record]["state"] for one in done.runs} == {"DECIDED"}
    (of_review,) = [one for one in done.runs if one.cases(cases) == ["refund_review"]]
    assert_judgments_are_those_of_the_store(page, session, of_review.record)


def test_materializing_everything(page: Page, session: Session, cases: list[str]) -> None:
    done = launched(session, partial(materialize_all, page))
    assert [(set(one.stages), one.cases(cases)) for one in done.runs] == [
        (set(CASE_STAGES), cases),
        ({"metrics", "gate"}, []),
    ]
    assert_all_went_well(session, done, cases)
    by_case, whole = (one.record for one in done.runs)
    rows = recorded(session)
    assert (rows[by_case]["state"], rows[by_case]["gate"]) == ("DECIDED", None)
    assert rows[whole]["completeness"] == "COMPLETE"
    assert_judgments_are_those_of_the_store(page, session, by_case)

    run = inspected(session, whole)
    page.goto(f"/assets/{SUITE}/metrics?view=events")
    assert metadata(page, "run_id") == whole
    for metric in run["metrics"]:
        assert float(metadata(page, metric["metric"])) == metric["estimate"]
    page.goto(f"/assets/{SUITE}/gate?view=events")
    assert metadata(page, "run_id") == whole
    assert metadata(page, "gate") == run["gate"] == rows[whole]["gate"] == "BLOCK"
    decisions = [(rule, state) for rule, state, *_ in table(page, "asks for")[1:]]
    assert decisions == [(one["rule"], one["state"]) for one in run["decisions"]]
    assert decisions == [(one["rule"], one["state"]) for one in rows[whole]["rules"]]


def test_a_rule_that_fails_is_an_error_in_red(page: Page, session: Session) -> None:
    # The whole interval, up to 91 %, is below what the rule now asks for.
    session.sample.replace("release.yaml", "min: 0.70", "min: 0.95")
    assert call_apart(session.sample.root, "run") == 1
    page.goto(f"/assets/{SUITE}/gate?view=checks")
    row = check(page, "answer_floor")
    row.click()
    expect(page.get_by_text("FAIL: upper_bound_below_minimum", exact=True)).to_be_visible()
    expect(row).to_contain_text("Failed")
    assert colour(row.get_by_role("img")) == "red"
    assert ["threshold", "0.95"] in table(page, "threshold")
