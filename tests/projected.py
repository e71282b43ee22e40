"""Whether Dagster's event log and the heads say what the newest run has in the store."""

from __future__ import annotations

import dagster as dg

from projects import Run, SampleProject
from rag_assets.assets.events import instance_id
from rag_assets.evaluation.words import CASE_STAGES

# What an event shows of a digest.
VERSION = slice(24)


def events(instance: dg.DagsterInstance, stage: str) -> list[dg.AssetMaterialization]:
    """All events of a stage of the sample project, newest first."""
    records = instance.fetch_materializations(dg.AssetKey(["sample", stage]), limit=1000).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def newest_versions(instance: dg.DagsterInstance, stage: str) -> dict[str, str]:
    """Case → data version of its newest event."""
    found: dict[str, str] = {}
    for event in events(instance, stage):
        found.setdefault(str(event.partition), (event.tags or {})["dagster/data_version"])
    return found


def assert_projected(sample: SampleProject, instance: dg.DagsterInstance, run: Run) -> None:
    """Every case of every stage: its newest event and its head have the content of the run."""
    names = {stage: f"sample/{stage}" for stage in CASE_STAGES}
    with sample.store.reading() as reader:
        heads = reader.heads(instance_id(instance), list(names.values()))
    for stage, name in names.items():
        stored = {one.case_id: str(one.digest)[VERSION] for one in run.stages if one.stage == stage}
        assert newest_versions(instance, stage) == stored
        found = {case: head.data_version for (asset, case), head in heads.items() if asset == name}
        assert {case: found[case] for case in stored} == stored
