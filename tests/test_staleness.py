"""What Dagster shows as stale, case by case, asked through its GraphQL."""

from __future__ import annotations

from typing import Any

import dagster as dg

from locations import FRESH, stale
from projects import SampleProject
from rag_assets.assets.definitions import project_definitions
from rag_assets.evaluation.project import load_project

CASES = ["one", "two", "far"]


def shown(sample: SampleProject) -> dict[str, Any]:
    return stale(sample, CASES)


def materialize(sample: SampleProject, *stages: str, partition: str | None = None) -> None:
    """What the UI does for a selection of assets."""
    project = load_project(sample.root / "rag_assets.yaml")
    with sample.instance() as instance:
        job = project_definitions([project]).resolve_implicit_global_asset_job_def()
        job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(["sample", stage]) for stage in stages],
            partition_key=partition,
        )


def test_everything_is_fresh_after_a_run(ran: SampleProject) -> None:
    assert shown(ran) == FRESH


def test_an_edited_question_makes_its_case_stale_and_no_other(ran: SampleProject) -> None:
    ran.replace("cases.jsonl", "a b", "a c")
    materialize(ran, "cases", partition="one")
    assert shown(ran) == FRESH | {
        "retrieval": {"one"},
        "generation": {"one"},
        "judgments": {"one"},
    }
    ran.run()
    assert shown(ran) == FRESH


def test_a_new_index_makes_all_retrievals_stale(ran: SampleProject) -> None:
    ran.replace("rag_assets.yaml", "index_version: v1", "index_version: v2")
    materialize(ran, "cases", "retrieval", partition="one")
    found = shown(ran)
    assert found["retrieval"] == {"two", "far"}
    # The rebuilt index returned the same passages, so nothing is stale behind it.
    assert found["assembled_context"] == found["generation"] == set()
    ran.calls()
    ran.run()
    assert ran.calls() == {"retrieve": 2}
    assert shown(ran) == FRESH


def test_other_passages_make_the_context_stale(ran: SampleProject) -> None:
    ran.replace("rag_assets.yaml", "index_version: v1", "index_version: v2")
    ran.replace("app.py", 'f"text of {w}"', 'f"new text of {w}"')
    materialize(ran, "cases", "retrieval", partition="one")
    assert shown(ran)["assembled_context"] == {"one"}


def test_new_code_of_generate_makes_all_generations_stale(ran: SampleProject) -> None:
    ran.replace("app.py", '" ".join', '"; ".join')
    assert shown(ran) == FRESH | {"generation": set(CASES)}


def test_a_new_manifest_makes_all_judgments_stale_and_nothing_else(
    sample: SampleProject,
) -> None:
    documents = "".join(f'{{"doc_id": "{one}"}}\n' for one in "abcdefgh")
    sample.write("corpus.jsonl", documents)
    sample.replace("rag_assets.yaml", "project: sample", "project: sample\ncorpus: corpus.jsonl")
    sample.run()
    assert shown(sample) == FRESH
    sample.write("corpus.jsonl", documents + '{"doc_id": "i"}\n')
    materialize(sample, "judgments", partition="one")
    assert shown(sample) == FRESH | {"judgments": {"two", "far"}}
    sample.calls()
    sample.run()
    assert sample.calls() == {}
    assert shown(sample) == FRESH


def test_going_back_and_forth_is_fresh_after_each_run(ran: SampleProject) -> None:
    for old, new in [("v1", "v2"), ("v2", "v1"), ("v1", "v2")]:
        ran.replace("rag_assets.yaml", f"index_version: {old}", f"index_version: {new}")
        ran.run()
        assert shown(ran) == FRESH
    for old, new in [('" ".join', '"; ".join'), ('"; ".join', '" ".join')]:
        ran.replace("app.py", old, new)
        ran.run()
        assert shown(ran) == FRESH


def test_a_removed_case_leaves_metrics_and_gate(ran: SampleProject) -> None:
    lines = (ran.root / "cases.jsonl").read_text().splitlines(keepends=True)
    ran.write("cases.jsonl", "".join(lines[:2]))
    run = ran.run()
    assert run.metric("hit_rate_at_2").observed == 2
    assert stale(ran, ["one", "two"]) == FRESH
