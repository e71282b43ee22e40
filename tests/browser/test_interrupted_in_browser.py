"""A slow suite of thirty cases: terminated in the browser, taken up again, and run at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from command_line import call_apart
from dagster_pages import materialize_all
from dagster_records import events, launched, launches, partitions
from projects import SampleProject, slow_at
from rag_assets.evaluation.words import CASE_STAGES
from serving import Session, serving, until

CASES = 30
FINISHED = 8
LAUNCH = """
mutation ($keys: [AssetKeyInput!]!) {
  launchPartitionBackfill(backfillParams: {assetSelection: $keys, allPartitions: true}) {
    ... on LaunchBackfillSuccess { backfillId }
  }
}
"""


@pytest.fixture(scope="module")
def session(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The eighth generation waits until it is told to go on."""
    sample = SampleProject(tmp_path_factory.mktemp("slow"))
    slow_at(sample, cases=CASES, place=FINISHED)
    with serving(sample) as session:
        yield session


def assert_counts(
    page: Page, *, materialized: int, materializing: int = 0, missing: int = 0
) -> None:
    """What the page of the generation says of its partitions."""
    counts = {
        "Materialized": materialized,
        "Materializing": materializing,
        "Missing": missing,
        "Failed": 0,
    }
    # The page reads its numbers when it is opened, and on a busy machine that can be too early.
    for is_last in (False, False, False, True):
        page.goto("/assets/sample/generation?view=partitions")
        try:
            for name, number in counts.items():
                expect(page.get_by_text(f"{name} ({number})", exact=True)).to_be_visible()
            return
        except AssertionError:
            if is_last:
                raise


def test_a_run_that_is_terminated_is_taken_up_again(page: Page, session: Session) -> None:
    sample = session.sample
    materialize_all(page)
    until((sample.root / "waiting").exists, "the eighth generation")
    (run,) = launches(session).runs
    page.goto(f"/runs/{run.id}")
    page.get_by_role("button", name="Terminate").click()
    page.get_by_role("button", name="Terminate 1 run").click()
    expect(page.get_by_text("Successfully requested termination for 1 run.")).to_be_visible()
    # The call in flight is waited for.
    assert_counts(page, materialized=FINISHED - 1, materializing=CASES - FINISHED + 1)
    (sample.root / "go").touch()
    until(lambda: launches(session).have_ended, "the end of the run")
    done = launches(session)
    assert [(one.id, one.status) for one in done.runs] == [(run.id, "CANCELED")]
    assert set(done.backfills.values()) == {"COMPLETED_FAILED"}
    assert_counts(page, materialized=FINISHED, missing=CASES - FINISHED)

    with sample.store.reading() as reader:
        (row,) = reader.runs()
    assert (row.dagster_run_id, row.state, row.completeness) == (run.id, "INTERRUPTED", None)
    assert sample.calls() == {"retrieve": CASES, "generate": FINISHED}
    assert partitions(session, "sample") == {
        **dict.fromkeys(("cases", "retrieval", "assembled_context"), (CASES, 0, 0, 0)),
        "generation": (FINISHED, CASES - FINISHED, 0, 0),
        "judgments": (0, CASES, 0, 0),
    }

    assert call_apart(sample.root, "run") == 0
    with sample.store.reading() as reader:
        again = sample.read(reader.runs()[0].id)
    assert again.row.state == "DECIDED"
    assert again.counts["generate"] == {"hit": FINISHED, "miss": CASES - FINISHED}
    assert sample.calls() == {"generate": CASES - FINISHED}
    assert partitions(session, "sample") == dict.fromkeys(CASE_STAGES, (CASES, 0, 0, 0))
    assert_counts(page, materialized=CASES)


def test_thirty_cases_are_one_run(session: Session) -> None:
    keys = [{"path": ["sample", stage]} for stage in CASE_STAGES]
    done = launched(session, lambda: session.ask(LAUNCH, keys=keys))
    (only,) = done.runs
    assert (set(done.backfills.values()), only.status) == ({"COMPLETED_SUCCESS"}, "SUCCESS")
    ids = [f"c{index}" for index in range(CASES)]
    assert only.cases(ids) == ids
    requested: Counter[Any] = Counter(
        (stage, case, only.id) for stage in CASE_STAGES for case in ids
    )
    assert events(session, "sample", done.runs) == requested
    assert session.sample.calls() == {}
