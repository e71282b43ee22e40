"""The asset graph: its shape, its events, its checks, on a real Dagster instance."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

import locations
import rag_assets
from projects import SampleProject, relevant
from rag_assets.assets import projection
from rag_assets.assets.definitions import project_definitions
from rag_assets.assets.events import write_events
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.words import CASE_STAGES, STAGES

POLICY = """
rules:
  - {id: answer-floor, metric: answer_correct, min: 0.1}
  - {id: hits.count, metric: hit_rate_at_2, kind: observed_count, max_failures: 0}
  - {id: open, metric: hit_rate_at_2, min: 0.5}
"""


def events(instance: dg.DagsterInstance, stage: str) -> list[dg.AssetMaterialization]:
    records = instance.fetch_materializations(dg.AssetKey(["sample", stage]), limit=1000).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def counts(instance: dg.DagsterInstance) -> dict[str, int]:
    return {stage: len(events(instance, stage)) for stage in STAGES}


def materialize(
    sample: SampleProject, instance: dg.DagsterInstance, *stages: str, partition: str | None = None
) -> dg.ExecuteInProcessResult:
    """What the UI does for a selection of assets."""
    project = load_project(sample.root / "rag_assets.yaml")
    definitions = project_definitions([project])
    keys = [dg.AssetKey(["sample", stage]) for stage in stages]
    job = definitions.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance, asset_selection=keys, partition_key=partition, raise_on_error=False
    )


def test_one_event_for_each_case_and_then_none(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    first = counts(instance)
    assert first == dict.fromkeys(CASE_STAGES, 3) | {"metrics": 1, "gate": 1}
    ran.run()
    assert counts(instance) == first


def test_a_changed_case_alone_is_emitted(ran: SampleProject, instance: dg.DagsterInstance) -> None:
    ran.replace("cases.jsonl", "a b", "a c")
    ran.run()
    # The verdicts came out the same, so nothing is new for metrics and gate.
    assert counts(instance) == dict.fromkeys(CASE_STAGES, 4) | {"metrics": 1, "gate": 1}
    assert events(instance, "generation")[0].partition == "one"


def test_each_case_has_its_own_data_version(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    run = ran.newest()
    for stage in ("retrieval", "assembled_context", "generation"):
        for event in events(instance, stage):
            stored = run.stage(str(event.partition), stage)
            assert (event.tags or {})["dagster/data_version"] == str(stored.digest)[:24]
    assert len({(one.tags or {})["dagster/data_version"] for one in events(instance, "cases")}) == 3


def test_partitions_follow_the_dataset(sample: SampleProject) -> None:
    names = ["a/b slash", "with space", "v1.2.dot", "emoji-🚀 é", "[x]*?"]
    sample.cases(
        *({"id": name, "input": {"question": "a b"}, "expected": relevant("a")} for name in names)
    )
    project = load_project(sample.root / "rag_assets.yaml")
    graph = project_definitions([project]).resolve_asset_graph()
    for stage in STAGES:
        partitions = graph.get(dg.AssetKey(["sample", stage])).partitions_def
        assert (list(partitions.get_partition_keys()) if partitions else None) == (
            names if stage in CASE_STAGES else None
        )
    run = sample.run()
    assert Counter(stage.stage for stage in run.stages) == dict.fromkeys(CASE_STAGES, 5)


def test_the_shape_of_the_graph(sample: SampleProject) -> None:
    sample.write("release.yaml", POLICY)
    project = load_project(sample.root / "rag_assets.yaml")
    graph = project_definitions([project]).resolve_asset_graph()
    parents = {
        stage: {key.path[-1] for key in graph.get(dg.AssetKey(["sample", stage])).parent_keys}
        for stage in STAGES
    }
    assert parents == {
        "cases": set(),
        "retrieval": {"cases", "index"},
        "assembled_context": {"retrieval"},
        "generation": {"cases", "assembled_context"},
        "judgments": {"cases", "retrieval", "assembled_context", "generation"},
        "metrics": {"judgments"},
        "gate": {"metrics"},
    }
    assert {check.name for check in graph.asset_check_keys} == {
        "answer_floor",
        "hits_count",
        "open",
    }
    for stage in STAGES:
        node = graph.get(dg.AssetKey(["sample", stage]))
        assert node.group_name == "sample"
        assert node.description
        assert node.code_version


def test_one_step_for_each_stage(ran: SampleProject, instance: dg.DagsterInstance) -> None:
    run = ran.newest()
    stats = instance.get_run_step_stats(str(run.row.dagster_run_id))
    assert [stat.step_key for stat in stats] == [f"sample__evaluate.{stage}" for stage in STAGES]
    record = instance.get_run_by_id(str(run.row.dagster_run_id))
    assert record is not None
    assert record.tags["rag/run_id"] == run.row.id


def test_only_the_steps_asked_for_are_executed_again(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    first = sample.run()
    file = locations.FILE
    repository = ReconstructableRepository.for_file(str(file), "defs", str(file.parent))
    with locations.location_of(sample):
        again = dg.execute_job(
            repository.get_reconstructable_job("sample_evaluation"),
            instance=instance,
            reexecution_options=dg.ReexecutionOptions(
                parent_run_id=str(first.row.dagster_run_id),
                step_selection=["sample__evaluate.metrics", "sample__evaluate.gate"],
            ),
        )
    assert again.success
    with sample.store.reading() as reader:
        run_id, other = reader.run_ids()
    assert other == first.row.id != run_id
    newest = sample.read(run_id)
    assert newest.row.dagster_run_id == again.run_id
    assert (newest.row.origin, newest.row.state) == ("materialize", "DECIDED")
    assert newest.metrics == [replace(one, run_id=run_id) for one in first.metrics]
    record = instance.get_run_by_id(again.run_id)
    assert record is not None
    assert record.tags["rag/run_id"] == run_id


def test_gate_rules_are_checks(sample: SampleProject, instance: dg.DagsterInstance) -> None:
    sample.write("release.yaml", POLICY)
    run = sample.run()
    states = {one.rule: one.state for one in run.decisions}
    assert states == {
        "answer-floor": "INSUFFICIENT_EVIDENCE",
        "hits.count": "FAIL",
        "open": "INSUFFICIENT_EVIDENCE",
    }
    found: dict[str, Any] = {}
    for name in ("answer_floor", "hits_count", "open"):
        key = dg.AssetCheckKey(dg.AssetKey(["sample", "gate"]), name)
        (record,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=5)
        evaluation = record.event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
        found[name] = (
            evaluation.passed,
            evaluation.severity.value,
            evaluation.metadata["value"].value,
        )
    two_thirds = pytest.approx(2 / 3)
    assert found == {
        "answer_floor": (False, "WARN", two_thirds),
        "hits_count": (False, "ERROR", two_thirds),
        "open": (False, "WARN", two_thirds),
    }


def test_a_passed_rule_is_a_passed_check(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.write("release.yaml", "rules:\n  - {id: low, metric: hit_rate_at_2, min: 0.05}\n")
    assert sample.run().row.gate == "ALLOW"
    key = dg.AssetCheckKey(dg.AssetKey(["sample", "gate"]), "low")
    (record,) = instance.event_log_storage.get_asset_check_execution_history(key, limit=5)
    assert record.event.dagster_event.asset_check_evaluation_data.passed  # type: ignore[union-attr]


def test_failed_cases_turn_the_run_red_after_everything_is_written(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    ran.replace(
        "app.py",
        'log("generate", input["question"])',
        'if input["question"] == "a b": raise ValueError("no model")',
    )
    run = ran.run()
    record = instance.get_run_by_id(str(run.row.dagster_run_id))
    assert record is not None
    assert record.status == dg.DagsterRunStatus.FAILURE
    assert run.row.state == "DECIDED"
    assert counts(instance)["gate"] == 2
    # The case is emitted again as soon as it succeeds, although its content is the old one.
    ran.replace(
        "app.py",
        'if input["question"] == "a b": raise ValueError("no model")',
        'log("generate", input["question"])',
    )
    before = counts(instance)["generation"]
    ran.run()
    emitted = counts(instance)["generation"] - before
    assert [event.partition for event in events(instance, "generation")[:emitted]] != []
    assert "one" in {event.partition for event in events(instance, "generation")[:emitted]}


def test_runs_stay_green_when_the_config_says_so(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.replace(
        "app.py", 'log("generate", input["question"])', 'assert "a b" != input["question"]'
    )
    sample.replace(
        "rag_assets.yaml", "project: sample", "project: sample\nrun: {fail_on_case_errors: false}"
    )
    run = sample.run()
    record = instance.get_run_by_id(str(run.row.dagster_run_id))
    assert record is not None
    assert record.status == dg.DagsterRunStatus.SUCCESS
    assert run.metric("answer_correct").missing == 1


def test_one_partition_from_the_ui(sample: SampleProject, instance: dg.DagsterInstance) -> None:
    result = materialize(sample, instance, *CASE_STAGES, partition="two")
    assert result.success
    assert counts(instance) == dict.fromkeys(CASE_STAGES, 1) | {"metrics": 0, "gate": 0}
    assert sample.calls() == {"retrieve": 1, "generate": 1}
    # Asked for again, it is emitted again, from the cache.
    materialize(sample, instance, *CASE_STAGES, partition="two")
    assert counts(instance)["retrieval"] == 2
    assert sample.calls() == {}
    with sample.store.reading() as reader:
        assert [(row.origin, row.state) for row in reader.runs()] == [
            ("materialize", "DECIDED"),
            ("materialize", "DECIDED"),
        ]


def test_metrics_alone_call_nothing_and_count_what_was_never_executed(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.run(["one", "two"])
    sample.calls()
    assert materialize(sample, instance, "metrics", "gate").success
    assert sample.calls() == {}
    with sample.store.reading() as reader:
        newest = reader.runs()[0]
    run = sample.read(newest.id)
    answer = run.metric("answer_correct")
    assert (answer.observed, answer.missing) == (2, 1)
    assert json.loads(answer.payload)["missing_reasons"] == {"not_executed": 1}
    # A case that nobody executed leaves the run incomplete, and an incomplete run blocks.
    assert (run.row.origin, run.row.completeness) == ("materialize", "PARTIAL")


def test_a_check_alone_is_no_evaluation(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.write("release.yaml", POLICY)
    project = load_project(sample.root / "rag_assets.yaml")
    job = project_definitions([project]).resolve_implicit_global_asset_job_def()
    check = dg.AssetCheckKey(dg.AssetKey(["sample", "gate"]), "open")
    job.get_subset(asset_check_selection={check}, asset_selection=set()).execute_in_process(
        instance=instance, raise_on_error=False
    )
    with sample.store.reading() as reader:
        (row,) = reader.runs()
    assert (row.origin, row.completeness, row.gate, row.exit_code) == (
        "materialize",
        "PARTIAL",
        "BLOCK",
        3,
    )
    assert sample.calls() == {}


def test_a_head_never_speaks_of_an_event_that_was_not_written(
    sample: SampleProject, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        if arguments[1] and arguments[1][0].key.path[-1] == "generation":
            raise OSError("disk full")
        write_events(*arguments, **options)

    monkeypatch.setattr(projection, "write_events", fail)
    with pytest.raises(OSError, match="disk full"):
        sample.run()
    monkeypatch.undo()
    sample.run()
    assert counts(instance)["generation"] == 3


def test_unknown_cases_in_the_run_config_are_refused(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    project = load_project(sample.root / "rag_assets.yaml")
    job = project_definitions([project]).resolve_job_def("sample_evaluation")
    result = job.execute_in_process(
        instance=instance,
        run_config={"resources": {"sample_run": {"config": {"cases": ["one", "typo"]}}}},
        raise_on_error=False,
    )
    assert not result.success
    assert sample.calls() == {}


def test_a_stage_without_what_it_needs_fails_its_partition(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    assert not materialize(sample, instance, "generation", partition="one").success
    assert sample.calls() == {}


def test_a_stage_alone_uses_what_is_recorded(
    ran: SampleProject, instance: dg.DagsterInstance
) -> None:
    ran.replace("app.py", '" ".join', '"; ".join')
    assert materialize(ran, instance, "generation", partition="one").success
    assert ran.calls() == {"generate": 1}


def test_a_selection_of_cases_is_partial(sample: SampleProject) -> None:
    sample.write("release.yaml", "rules:\n  - {id: low, metric: hit_rate_at_2, min: 0.01}\n")
    run = sample.run(["one"])
    assert (run.row.completeness, run.row.gate, run.row.exit_code) == ("PARTIAL", "BLOCK", 3)
    assert run.summary["gate_reasons"] == ["partial_run"]
    assert run.metric("hit_rate_at_2").missing == 0


def test_a_malformed_artifact_stops_the_run(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.replace(
        "app.py",
        "passages[:depth]",
        'passages if "c" not in input["question"] else [{"doc_id": "c", "score": math.nan}]',
    )
    sample.replace("app.py", "import json", "import json, math")
    sample.replace(
        "rag_assets.yaml", "project: sample", "project: sample\nconcurrency: {system: 1}"
    )
    run = sample.run()
    assert (run.row.state, run.row.completeness) == ("STOPPED", "PARTIAL")
    assert run.row.error == (
        "case two: retrieval: the system returned a malformed artifact: candidates.0.score: must "
        "be a finite number, got nan (float). Correct it, or set system.on_malformed to missing to "
        "lose only such cases."
    )
    assert run.stage("one", "retrieval").digest is not None
    record = instance.get_run_by_id(str(run.row.dagster_run_id))
    assert record is not None
    assert record.status == dg.DagsterRunStatus.FAILURE


def test_a_malformed_artifact_may_cost_its_case_only(sample: SampleProject) -> None:
    sample.replace(
        "app.py",
        "passages[:depth]",
        '[{"doc_id": "c", "score": "1"}] if "c" in input["question"] else passages[:depth]',
    )
    sample.replace(
        "rag_assets.yaml", "  name: sample\n", "  name: sample\n  on_malformed: missing\n"
    )
    run = sample.run()
    assert run.row.state == "DECIDED"
    assert run.judgment("two", "hit_rate_at_2").reason == "malformed_artifact"


def test_two_projects_in_one_code_location(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        sample = SampleProject(tmp_path / folder)
        sample.replace("rag_assets.yaml", "project: sample", f"project: the {folder}!")
    definitions = rag_assets.build_definitions(tmp_path / "one", tmp_path / "two")
    groups = {node.group_name for node in definitions.resolve_asset_graph().asset_nodes}
    assert groups == {"the_one_", "the_two_"}
    with pytest.raises(InputError, match='both named "the_one_"'):
        rag_assets.build_definitions(tmp_path / "one", tmp_path / "one")
