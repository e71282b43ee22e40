"""Diagnosis as Dagster sees it: an asset by case, and a job whose config says what to diagnose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from diagnosable import EXPECTED, Switches
from projects import Run
from rag_assets import build_definitions

KEY = dg.AssetKey(["switches", "diagnosis"])
OP = "switches__diagnose"


class Launched:
    """A project whose run was diagnosed through the job, as the Launchpad launches it."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.project = Switches(root)
        self.run: Run = self.project.run()
        self.instance = instance
        definitions = build_definitions(root / "rag_assets.yaml")
        self.job = definitions.resolve_job_def("switches_diagnosis")
        # What the Launchpad begins with.
        self.result = self.job.execute_in_process(instance=instance)

    def launch(self, **config: Any) -> dg.ExecuteInProcessResult:
        return self.job.execute_in_process(
            instance=self.instance,
            run_config={"ops": {OP: {"config": config}}},
            raise_on_error=False,
        )

    def events(self) -> list[dg.AssetMaterialization]:
        records = self.instance.fetch_materializations(KEY, limit=1000).records
        return [one.asset_materialization for one in records if one.asset_materialization]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    root = tmp_path_factory.mktemp("launched")
    with Switches(root).instance() as instance:
        yield Launched(root, instance)


def test_each_diagnosed_case_has_an_event_with_its_label(launched: Launched) -> None:
    assert launched.result.success
    by_case = {str(event.partition): event for event in launched.events()}
    assert len(launched.events()) == len(EXPECTED)
    for case_id, (label, reason, strength, position) in EXPECTED.items():
        shown = {name: value.value for name, value in by_case[case_id].metadata.items()}
        assert (shown["label"], shown["reason"]) == (label, reason)
        assert str(shown["strength"]).removeprefix("intervention_") == strength
        assert shown["best relevant position"] == (position or "none")
    with launched.project.store.reading() as reader:
        (diagnosis,) = reader.diagnoses("sha256:")
    children = json.loads(diagnosis.payload)["children"]
    shown = {name: value.value for name, value in by_case["raises_later"].metadata.items()}
    assert shown["control"] == "error: generation RuntimeError: the model is gone"
    assert shown["run"] == launched.run.row.id
    assert shown["child run of gold context"] == children["intervention"]
    assert shown["child run of control"] == children["control"]
    assert shown["executed in"] == launched.result.run_id
    assert shown["run in Dagster"] == launched.run.row.dagster_run_id
    assert diagnosis.dagster_run_id == launched.result.run_id
    assert shown["inspect"] == f"rag-assets inspect {diagnosis.id} --case raises_later"


def test_an_observation_sums_them_up_as_a_table(launched: Launched) -> None:
    (record,) = launched.instance.fetch_observations(KEY, limit=5).records[-1:]
    assert record.asset_observation is not None
    metadata = record.asset_observation.metadata
    labels = metadata["labels"]
    assert isinstance(labels, dg.TableMetadataValue)
    assert [one.data for one in labels.records] == [
        {"label": "RETRIEVAL_MISS", "cases": 3, "of": 18},
        {"label": "RANKED_OUT", "cases": 4, "of": 18},
        {"label": "CONTEXT_ASSEMBLY_LOSS", "cases": 3, "of": 18},
        {"label": "GENERATION_FAILURE", "cases": 3, "of": 18},
        {"label": "UNRESOLVED", "cases": 5, "of": 18},
    ]
    factors = metadata["implicated"]
    assert isinstance(factors, dg.TableMetadataValue)
    assert [one.data["factor"] for one in factors.records] == ["ranking depth"]
    assert metadata["recovered"].value == "12 of 18"


def test_a_replay_is_launched_with_its_value(launched: Launched) -> None:
    before = len(launched.events())
    result = launched.launch(
        run=launched.run.row.id, criterion="answer_correct", intervention="top-k", top_k=3
    )
    assert result.success
    new = launched.events()[: len(launched.events()) - before]
    by_case = {str(event.partition): event for event in new}
    assert by_case["ranked_out"].metadata["strength"].value == "replay_confirmed"
    assert by_case["ranked_out"].metadata["top-k 3"].value == "passed"


def test_what_cannot_be_diagnosed_fails_the_run_with_the_reason(launched: Launched) -> None:
    result = launched.launch(run="latest", criterion="answer_f1")
    assert not result.success
    (failure,) = result.all_node_events and [
        event for event in result.all_node_events if event.is_step_failure
    ]
    assert "answer_f1 is a score" in str(failure.step_failure_data.error)


def test_the_asset_is_written_by_its_own_job_alone(launched: Launched) -> None:
    definitions = build_definitions(launched.project.root / "rag_assets.yaml")
    node = definitions.resolve_asset_graph().get(KEY)
    assert not node.is_materializable
    assert node.parent_keys == {dg.AssetKey(["switches", "judgments"])}
    assert node.partitions_def is not None
    assert set(EXPECTED) < set(node.partitions_def.get_partition_keys())
    assert "switches_diagnosis" in str(node.description)


def test_a_suite_without_answers_has_a_job_that_needs_its_config(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    for name in ("contains, criterion: answer_correct", "token_f1, criterion: answer_f1"):
        project.replace("rag_assets.yaml", f"  - {{type: {name}, field: answer}}\n", "")
    run = project.run(["passes", "ranked_out"])
    assert run.metric("hit_rate_at_2").observed == 2
    job = build_definitions(tmp_path / "rag_assets.yaml").resolve_job_def("switches_diagnosis")
    with pytest.raises(dg.DagsterInvalidConfigError, match="criterion"):
        job.execute_in_process()
