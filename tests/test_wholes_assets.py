"""Systems that are called as a whole in the asset graph, on a real Dagster instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from locations import FRESH, stale
from rag_assets.assets.definitions import project_definitions
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.words import ANSWERING, CASE_STAGES, STAGES
from wholes import WholeProject


@pytest.fixture
def whole(tmp_path: Path) -> WholeProject:
    return WholeProject(tmp_path)


@pytest.fixture
def ran(whole: WholeProject) -> WholeProject:
    """The same project after one run."""
    whole.first_run()
    return whole


@pytest.fixture
def instance(whole: WholeProject) -> Iterator[dg.DagsterInstance]:
    """Where both are asked for, `ran` stands first."""
    with whole.instance() as instance:
        yield instance


def definitions(whole: WholeProject) -> dg.Definitions:
    return project_definitions([load_project(whole.root / "rag_assets.yaml")])


def materialize(
    whole: WholeProject,
    instance: dg.DagsterInstance,
    *stages: str,
    partition: str | None = None,
    until: str | None = None,
) -> dg.ExecuteInProcessResult:
    """What the UI does for a selection of assets, of one case or of a range."""
    keys = [dg.AssetKey(["sample", stage]) for stage in stages]
    job = definitions(whole).resolve_implicit_global_asset_job_def()
    tags = {}
    if until is not None:
        tags = {
            "dagster/asset_partition_range_start": str(partition),
            "dagster/asset_partition_range_end": until,
        }
    return job.execute_in_process(
        instance=instance,
        asset_selection=keys,
        partition_key=partition if until is None else None,
        tags=tags,
        raise_on_error=False,
    )


def events(instance: dg.DagsterInstance, stage: str) -> list[dg.AssetMaterialization]:
    """All events of a stage, newest first."""
    records = instance.fetch_materializations(dg.AssetKey(["sample", stage]), limit=1000).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def counts(instance: dg.DagsterInstance) -> dict[str, int]:
    return {stage: len(events(instance, stage)) for stage in STAGES}


def test_the_shape_of_the_graph(whole: WholeProject) -> None:
    graph = definitions(whole).resolve_asset_graph()
    assert {key.path[-1] for key in graph.get_all_asset_keys()} == {*STAGES, "diagnosis"}
    parents = {
        stage: {key.path[-1] for key in graph.get(dg.AssetKey(["sample", stage])).parent_keys}
        for stage in STAGES
    }
    assert parents == {
        "cases": set(),
        "retrieval": {"cases"},
        "assembled_context": {"retrieval"},
        "generation": {"cases", "assembled_context"},
        "judgments": {"cases", "retrieval", "assembled_context", "generation"},
        "metrics": {"judgments"},
        "gate": {"metrics"},
    }
    project = load_project(whole.root / "rag_assets.yaml")
    code = project.evaluated.code["run"].digest[:16]
    for stage in ANSWERING:
        assert graph.get(dg.AssetKey(["sample", stage])).code_version == code
    assert not list(definitions(whole).sensors or [])


def test_a_service_is_no_python_and_its_version_is_declared(whole: WholeProject) -> None:
    whole.of_service("http://127.0.0.1:9/")
    specs = {spec.key.path[-1]: spec for spec in definitions(whole).resolve_all_asset_specs()}
    for stage in ANSWERING:
        assert specs[stage].code_version == "1"
        assert specs[stage].kinds == {"http", "duckdb"}
    assert specs["judgments"].kinds == {"python", "duckdb"}


def test_one_step_answers(ran: WholeProject, instance: dg.DagsterInstance) -> None:
    run = ran.newest()
    steps = instance.get_run_step_stats(str(run.row.dagster_run_id))
    assert [one.step_key.rpartition(".")[2] for one in steps] == [
        "cases",
        "answer",
        "judgments",
        "metrics",
        "gate",
    ]


def test_one_event_for_each_case_and_then_none(
    ran: WholeProject, instance: dg.DagsterInstance
) -> None:
    run = ran.newest()
    first = counts(instance)
    assert first == dict.fromkeys(CASE_STAGES, 3) | {"metrics": 1, "gate": 1}
    for stage in CASE_STAGES:
        for event in events(instance, stage):
            stored = str(run.stage(str(event.partition), stage).digest)
            assert (event.tags or {})["dagster/data_version"] == stored[:24]
    ran.run()
    assert counts(instance) == first


def test_staleness_of_each_case(whole: WholeProject) -> None:
    whole.first_run()
    names = ["one", "two", "far"]
    assert stale(whole, names) == FRESH
    whole.replace("app.py", '"text": f"text of', '"text": f"words of')
    assert stale(whole, names)["retrieval"] == set(names)
    whole.run()
    assert stale(whole, names) == FRESH


@pytest.mark.parametrize("stage", ANSWERING)
def test_any_stage_alone_calls_the_system(
    whole: WholeProject, instance: dg.DagsterInstance, stage: str
) -> None:
    assert materialize(whole, instance, stage, partition="two").success
    assert whole.calls() == {"call": 1}
    assert counts(instance) == dict.fromkeys(STAGES, 0) | {stage: 1}
    assert whole.newest().stage("two", "generation").source == "miss"


def test_what_is_left_of_a_range_comes_from_the_cache(
    whole: WholeProject, instance: dg.DagsterInstance
) -> None:
    stages = ("retrieval", "generation")
    assert materialize(whole, instance, *stages, partition="one", until="two").success
    assert whole.calls() == {"call": 2}
    again = materialize(whole, instance, *CASE_STAGES, partition="one", until="far")
    assert again.success
    assert whole.calls() == {"call": 1}
    made = counts(instance)
    assert made == dict.fromkeys(STAGES, 0) | dict.fromkeys(CASE_STAGES, 3) | dict.fromkeys(
        stages, 5
    )


def test_judgments_alone_call_nothing(ran: WholeProject, instance: dg.DagsterInstance) -> None:
    assert materialize(ran, instance, "judgments", "metrics", "gate").success
    assert ran.calls() == {}
    assert counts(instance)["generation"] == 3


def test_a_failed_case_is_red_in_all_three_and_then_heals(
    whole: WholeProject, instance: dg.DagsterInstance
) -> None:
    raising = "    if question == 'c d e': raise ValueError('no model')\n    log(question)"
    whole.replace("app.py", "    log(question)", raising)
    whole.run()
    for stage in ANSWERING:
        assert {event.partition for event in events(instance, stage)} == {"one", "far"}
    assert status(whole, instance, "generation") == {"failed": {"two"}, "done": {"one", "far"}}
    whole.replace("app.py", raising, "    log(question)")
    whole.run()
    assert status(whole, instance, "retrieval") == {"failed": set(), "done": {"one", "two", "far"}}


def status(whole: WholeProject, instance: dg.DagsterInstance, stage: str) -> dict[str, set[str]]:
    """What the UI colours the partitions of a stage by."""
    names = {"one", "two", "far"}
    found = instance.get_status_by_partition(
        dg.AssetKey(["sample", stage]),
        sorted(names),
        dg.StaticPartitionsDefinition(["one", "two", "far"]),
    )
    assert found is not None
    by_name = {name: None if one is None else one.value for name, one in found.items()}
    return {
        "failed": {name for name in names if by_name[name] == "FAILED"},
        "done": {name for name in names if by_name[name] == "MATERIALIZED"},
    }


def test_what_was_not_recorded_is_up_to_date(
    whole: WholeProject, instance: dg.DagsterInstance
) -> None:
    whole.replace("app.py", "    case.context(", "    if 'c' not in question: case.context(")
    whole.replace("rag_assets.yaml", "  name: sample", "  name: sample\n  on_malformed: missing")
    assert materialize(whole, instance, *CASE_STAGES, partition="two").success
    (event,) = events(instance, "assembled_context")
    assert event.metadata["not recorded"].value == (
        "context/v1 was not recorded, although the system declares it"
    )
    assert (event.tags or {})["dagster/data_version"] == "absent"
    assert len(events(instance, "judgments")) == 1


def test_what_the_ui_shows(ran: WholeProject, instance: dg.DagsterInstance) -> None:
    shown = {
        stage: next(one.metadata for one in events(instance, stage) if one.partition == "far")
        for stage in ANSWERING
    }
    passages = [one.data for one in shown["retrieval"]["candidates"].records]
    assert [one["document"] for one in passages] == ["f", "g", "h"]
    assert [one["relevant"] for one in passages] == ["", "", "1"]
    items = [one.data for one in shown["assembled_context"]["passages"].records]
    assert [(one["document"], one["context"]) for one in items] == [
        ("f", "in context"),
        ("g", "in context"),
    ]
    answer = shown["generation"]
    assert answer["output"].value == {"answer": "text of f text of g"}
    assert answer["citations"].value == ["f", "g"]
    assert answer["latency_ms"].value > 0
    assert answer["usage"].value == {"input_tokens": 10}
