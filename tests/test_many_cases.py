"""Forty thousand cases: a few of them can be run without writing about the others."""

from __future__ import annotations

import json
import sqlite3

import dagster as dg

from command_line import call
from projected import newest_versions
from projects import SampleProject
from rag_assets import build_definitions
from rag_assets.evaluation.words import CASE_STAGES

CASES = 40_000


def test_a_few_of_many_cases(sample: SampleProject) -> None:
    rows = ({"id": f"c{index:05}", "input": {"question": f"q{index}"}} for index in range(CASES))
    sample.write("cases.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    evaluators = "  - {type: custom, criterion: any, object: 'checks:anything', kind: verdict}\n"
    sample.write("checks.py", "def anything(output):\n    return True\n")
    config = (sample.root / "rag_assets.yaml").read_text(encoding="utf-8")
    sample.write(
        "rag_assets.yaml", config.partition("evaluators:\n")[0] + "evaluators:\n" + evaluators
    )

    graph = build_definitions(sample.root).resolve_asset_graph()
    partitions = graph.get(dg.AssetKey(["sample", "generation"])).partitions_def
    assert partitions is not None
    assert partitions.get_num_partitions() == CASES
    assert partitions.get_last_partition_key() == "c39999"

    for calls in ({"retrieve": 5, "generate": 5}, {}):
        assert call(sample.root, "run", "--limit", "5").exit_code == 0
        assert sample.calls() == calls
        with sample.instance() as instance:
            for stage in CASE_STAGES:
                assert sorted(newest_versions(instance, stage)) == [f"c0000{n}" for n in range(5)]
    index = sample.root / ".rag_assets" / "dagster" / "history" / "runs" / "index.db"
    with sqlite3.connect(index) as connection:
        (written,) = connection.execute(
            "SELECT count(*) FROM event_logs WHERE partition IS NOT NULL"
        ).fetchone()
        (registered,) = connection.execute("SELECT count(*) FROM dynamic_partitions").fetchone()
    connection.close()
    assert (written, registered) == (5 * len(CASE_STAGES), 0)
    with sample.store.reading() as reader:
        newest = reader.runs()[0]
        assert len(reader.case_stages(newest.id)) == 5 * len(CASE_STAGES)
