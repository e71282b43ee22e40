"""Cases about which nothing has changed: the records of an earlier run stand for them."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from projects import Run, SampleProject

SLICES = """\
slices: [relevant_position, context_truncated]
min_slice_support: 1
"""


@pytest.fixture
def sample(tmp_path: Path) -> SampleProject:
    project = SampleProject(tmp_path)
    config = (tmp_path / "rag_assets.yaml").read_text()
    project.write("rag_assets.yaml", config.replace("v1\n", "v1\n    token_budget: 5\n") + SLICES)
    return project


def recorded(run: Run) -> list[object]:
    """What a run recorded, but for its id, the order, and where results came from."""
    stages = [replace(row, run_id="", source="hit", latency_ms=0.0) for row in run.stages]
    judgments = [
        replace(row, run_id="", source="hit" if row.key else row.source) for row in run.judgments
    ]
    metrics = [replace(row, run_id="") for row in run.metrics]
    return sorted(stages, key=repr) + sorted(judgments, key=repr) + metrics


def settled_rows(sample: SampleProject) -> list[tuple[str, str]]:
    with duckdb.connect(str(sample.store.path), read_only=True) as connection:
        rows = connection.execute("SELECT case_id, run_id FROM settled_cases ORDER BY ALL")
        return rows.fetchall()


def test_a_repeated_run_records_what_the_first_one_did(sample: SampleProject) -> None:
    first = sample.first_run()
    assert settled_rows(sample) == [(one, first.row.id) for one in ("far", "one", "two")]
    assert first.metric("answer_correct", "slice/context_truncated=true").observed == 3
    sample.calls()
    second = sample.run()
    assert recorded(second) == recorded(first)
    assert {row.source for row in second.stages} == {"hit"}
    assert sample.calls() == {}


def test_an_edited_case_is_gone_through_and_the_others_stay_settled(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("cases.jsonl", "c d e", "d c")
    run = sample.run()
    assert sample.calls() == {"retrieve": 1, "generate": 1}
    assert {row.source for row in run.stages if row.case_id != "two"} == {"hit"}
    assert run.judgment("two", "hit_rate_at_2").value == 1.0
    assert [case_id for case_id, _ in settled_rows(sample)] == ["far", "one", "two", "two"]


def test_a_run_of_some_cases_settles_and_reads_those(sample: SampleProject) -> None:
    first = sample.run(["two"])
    second = sample.run()
    assert recorded(sample.run(["two"])) == recorded(first)
    assert second.counts["execution"] == {"hit": 1, "miss": 2}


def test_a_case_without_a_result_is_tried_again(sample: SampleProject) -> None:
    sample.replace(
        "app.py", 'log("generate", input["question"])', 'assert "c" not in input["question"]'
    )
    sample.run()
    assert [case_id for case_id, _ in settled_rows(sample)] == ["far", "one"]
    sample.calls()
    assert sample.run().stage("two", "generation").source == "error"


def test_another_setting_is_not_settled_and_the_first_one_still_is(sample: SampleProject) -> None:
    first = sample.first_run()
    sample.replace("rag_assets.yaml", "token_budget: 5", "token_budget: 3")
    assert sample.run().counts["execution"] == {"miss": 3}
    sample.replace("rag_assets.yaml", "token_budget: 3", "token_budget: 5")
    again = sample.run()
    assert recorded(again) == recorded(first)
    assert again.counts["execution"] == {"hit": 3}


def test_what_no_cache_executes_holds_for_every_later_run(sample: SampleProject) -> None:
    """Also under another setting, whose cases were settled with the result that is replaced."""
    sample.replace("app.py", "import json", "import json, time")
    sample.replace("app.py", 'text=f"text of {w}"', 'text=f"{time.time_ns()} of {w}"')
    sample.run()
    sample.replace("rag_assets.yaml", "token_budget: 5", "token_budget: 3")
    sample.run()
    replaced = sample.run(use_cache=False).stage("one", "retrieval").digest
    sample.replace("rag_assets.yaml", "token_budget: 3", "token_budget: 5")
    assert sample.run().stage("one", "retrieval").digest == replaced


def test_records_that_were_removed_stand_for_nothing(sample: SampleProject) -> None:
    sample.first_run()
    with duckdb.connect(str(sample.store.path)) as connection:
        connection.execute("DELETE FROM run_judgments WHERE case_id = 'one'")
    run = sample.run()
    assert (run.counts["judgment"], sample.calls()) == ({"hit": 9}, {})
    assert run.metric("answer_correct").observed == 3
