"""The definitions of suites: names, keys, owners, and what every asset is described as."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.utils import is_valid_owner
from hypothesis import given, settings
from hypothesis import strategies as st

from locations import FRESH, stale
from projects import SampleProject, relevant
from rag_assets import build_definitions
from rag_assets.assets.keys import suite_name
from rag_assets.contracts.cases import parse_case
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.words import CASE_STAGES, STAGES

SNAPSHOT = Path(__file__).parent / "snapshots" / "asset_specs.json"
POLICY = """
rules:
  - {id: answer-floor, metric: answer_correct, min: 0.1}
  - {id: hits.count, metric: hit_rate_at_2, kind: observed_count, max_failures: 0}
"""
OWNERS = 'project: sample\ndagster: {owners: ["team:search", "ops@example.org"]}'
deterministic = settings(max_examples=200, derandomize=True, deadline=None)


def named(sample: SampleProject, name: str) -> None:
    """Give the project a name."""
    sample.replace("rag_assets.yaml", "project: sample", f"project: {json.dumps(name)}")


def events(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
    records = instance.fetch_materializations(key, limit=1000).records
    return [record.asset_materialization for record in records if record.asset_materialization]


# What is described


def described(definitions: dg.Definitions) -> list[dict[str, Any]]:
    """What the specs of all assets say, apart from what follows the code."""
    graph = definitions.resolve_asset_graph()
    found = []
    for key in sorted(graph.get_all_asset_keys()):
        node = graph.get(key)
        partitions = node.partitions_def
        found.append(
            {
                "key": key.to_user_string(),
                "group": node.group_name,
                "description": node.description,
                "kinds": sorted(node.kinds),
                "tags": dict(sorted(node.tags.items())),
                "owners": list(node.owners),
                "has_code_version": node.code_version is not None,
                "parents": sorted(parent.to_user_string() for parent in node.parent_keys),
                "partitions": partitions and type(partitions).__name__,
                "checks": sorted(check.name for check in node.check_keys),
            }
        )
    return found


def test_the_specs_are_those_of_the_snapshot(sample: SampleProject) -> None:
    sample.write("release.yaml", POLICY)
    sample.replace("rag_assets.yaml", "project: sample", OWNERS)
    found = described(build_definitions(sample.root))
    expected = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    assert found == expected, (
        f"The asset specs differ from {SNAPSHOT.name}. If that is what you want, write them anew "
        "with `python tests/test_definitions.py`, and look at the difference before you commit it."
    )


# Owners


@deterministic
@given(st.from_regex(r"[\w.+ -]{0,4}@[\w.-]{0,6}\.\w{0,8}|(team)?:?\s?\w{0,3}", fullmatch=True))
def test_owners_that_the_config_takes_are_owners_for_dagster(text: str) -> None:
    from pydantic import ValidationError

    from rag_assets.contracts.config import DagsterSettings

    try:
        DagsterSettings(owners=(text,))
    except ValidationError:
        return
    assert is_valid_owner(text)


# Names


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("support bot/v2 é", "support_bot_v2__"),
        ("a...b", "a___b"),
        ("context", "context"),
        ("None", "None"),
        ("2024 suite", "suite_2024_suite"),
        ("_x", "suite__x"),
        ("日本語", "suite____"),
        ("!", "suite__"),
        ("s" * 60, "s" * 60),
        ("s" * 61, f"{'s' * 51}_204a2a5a"),
    ],
)
def test_suite_names(project: str, name: str) -> None:
    assert suite_name(project) == name


@deterministic
@given(st.text(min_size=1))
def test_any_project_name_becomes_a_name_in_dagster_and_in_python(project: str) -> None:
    name = suite_name(project)
    assert name.isascii()
    assert name.isidentifier()
    assert not name.startswith("_")
    assert len(name) <= 60


@pytest.mark.parametrize(
    "project", ["2024 suite", "日本語 …", "!!!", "_x", " ", "a/b c.d", "s" * 400, "context", "None"]
)
def test_a_suite_of_any_name_runs(sample: SampleProject, project: str) -> None:
    named(sample, project)
    run = sample.run()
    assert run.row.state == "DECIDED"
    key = dg.AssetKey([suite_name(project), "judgments"])
    with sample.instance() as instance:
        assert {event.partition for event in events(instance, key)} == {"one", "two", "far"}


def test_names_that_become_the_same_are_refused(tmp_path: Path) -> None:
    for folder, name in [("a", "日本語"), ("b", "中国語")]:
        (tmp_path / folder).mkdir()
        named(SampleProject(tmp_path / folder), name)
    with pytest.raises(InputError) as caught:
        build_definitions(tmp_path / "a", tmp_path / "b")
    assert str(caught.value) == (
        f"{tmp_path / 'a' / 'rag_assets.yaml'} and {tmp_path / 'b' / 'rag_assets.yaml'} are both "
        'named "suite____" in Dagster; give one of them another project name.'
    )


# Cases

HOSTILE_IDS = (
    "a,b",
    'say "hi"',
    "it's",
    "a|b",
    "a..b",
    "[x]*?",
    "{y}",
    "a/b\\c",
    "v1.2",
    "-5",
    "null",
    "%2F&=",
    "emoji-🚀 é",
    "日本語",
    "x" * 512,
)


def test_cases_of_any_id_have_their_partition(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.cases(
        *(
            {"id": name, "input": {"question": "a b"}, "expected": relevant("a")}
            for name in HOSTILE_IDS
        )
    )
    run = sample.run()
    assert Counter(stage.case_id for stage in run.stages) == dict.fromkeys(HOSTILE_IDS, 5)
    for stage in CASE_STAGES:
        key = dg.AssetKey(["sample", stage])
        assert sorted(str(one.partition) for one in events(instance, key)) == sorted(HOSTILE_IDS)
    assert stale(sample, HOSTILE_IDS)["generation"] == set()
    # A range, as the UI asks for it.
    job = build_definitions(sample.root).resolve_implicit_global_asset_job_def()
    key = dg.AssetKey(["sample", "cases"])
    tags = {
        "dagster/asset_partition_range_start": HOSTILE_IDS[0],
        "dagster/asset_partition_range_end": HOSTILE_IDS[-1],
    }
    assert job.execute_in_process(instance=instance, asset_selection=[key], tags=tags).success
    assert len(events(instance, key)) == 2 * len(HOSTILE_IDS)


@deterministic
@given(st.text(st.characters() | st.sampled_from(".\n\t\0\a\v| ,"), max_size=8))
def test_every_id_that_a_dataset_takes_is_a_partition_for_dagster(name: str) -> None:
    try:
        case = parse_case({"id": name, "input": "?"})
    except InputError:
        return
    assert dg.StaticPartitionsDefinition([case.id]).get_partition_keys() == [name]


# Key prefixes

PREFIX = ["quality", "rag"]


def run_with_prefix(sample: SampleProject, instance: dg.DagsterInstance) -> None:
    definitions = build_definitions(sample.root, key_prefix=PREFIX)
    job = definitions.resolve_job_def("sample_evaluation")
    job.execute_in_process(instance=instance)


@pytest.mark.parametrize("prefix", ["quality", ["quality"]])
def test_every_key_begins_with_the_prefix(
    sample: SampleProject, prefix: str | Sequence[str]
) -> None:
    graph = build_definitions(sample.root, key_prefix=prefix).resolve_asset_graph()
    assert {tuple(key.path) for key in graph.get_all_asset_keys()} == {
        ("quality", "sample", name) for name in (*STAGES, "index", "diagnosis")
    }
    retrieval = graph.get(dg.AssetKey(["quality", "sample", "retrieval"]))
    assert retrieval.group_name == "sample"
    assert {parent.to_user_string() for parent in retrieval.parent_keys} == {
        "quality/sample/cases",
        "quality/sample/index",
    }


def test_events_checks_and_staleness_follow_the_prefix(
    sample: SampleProject, instance: dg.DagsterInstance
) -> None:
    sample.write("release.yaml", POLICY)
    run_with_prefix(sample, instance)
    keys = {stage: dg.AssetKey([*PREFIX, "sample", stage]) for stage in STAGES}
    once = dict.fromkeys(CASE_STAGES, 3) | {"metrics": 1, "gate": 1}
    assert {stage: len(events(instance, key)) for stage, key in keys.items()} == once
    tags = events(instance, keys["generation"])[0].tags or {}
    assert {name.split("/", 2)[2] for name in tags if name.startswith("dagster/input_")} == {
        "quality/rag/sample/cases",
        "quality/rag/sample/assembled_context",
    }
    check = dg.AssetCheckKey(keys["gate"], "hits_count")
    (record,) = instance.event_log_storage.get_asset_check_execution_history(check, limit=5)
    assert record.event.dagster_event.asset_check_evaluation_data.passed is False  # type: ignore[union-attr]
    cases = ["one", "two", "far"]
    assert stale(sample, cases, PREFIX) == FRESH
    run_with_prefix(sample, instance)
    assert {stage: len(events(instance, key)) for stage, key in keys.items()} == once
    sample.replace("app.py", '" ".join', '"; ".join')
    assert stale(sample, cases, PREFIX) == FRESH | {"generation": set(cases)}


# Several suites


def test_suites_of_one_run_do_not_mix(tmp_path: Path) -> None:
    samples = {}
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        samples[name] = SampleProject(tmp_path / name)
        named(samples[name], name)
        samples[name].run(["one", "two"] if name == "first" else ["one"])
    definitions = build_definitions(*(sample.root for sample in samples.values()))
    job = definitions.resolve_implicit_global_asset_job_def()
    selected = [dg.AssetKey([name, stage]) for name in samples for stage in ("metrics", "gate")]
    with samples["first"].instance() as instance:
        assert job.execute_in_process(instance=instance, asset_selection=selected).success
        for name in samples:
            assert len(events(instance, dg.AssetKey([name, "gate"]))) >= 1
    for name, missing in (("first", 1), ("second", 2)):
        with samples[name].store.reading() as reader:
            newest = reader.runs()[0]
        metric = samples[name].read(newest.id).metric("answer_correct")
        assert (newest.origin, newest.state, metric.missing) == ("materialize", "DECIDED", missing)


def test_a_group_may_hold_assets_of_the_users_own(sample: SampleProject) -> None:
    mine = dg.AssetSpec("mine", group_name="sample")
    definitions = dg.Definitions.merge(build_definitions(sample.root), dg.Definitions([mine]))
    job = definitions.resolve_job_def("sample_evaluation")
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == {
        f"sample/{stage}" for stage in STAGES
    }


def test_the_definitions_are_valid(sample: SampleProject) -> None:
    sample.write("release.yaml", POLICY)
    definitions = build_definitions(sample.root)
    dg.Definitions.validate_loadable(definitions)
    repository = definitions.get_repository_def()
    assert {job.name for job in repository.get_all_jobs()} == {
        "sample_evaluation",
        "sample_diagnosis",
        "__ASSET_JOB",
    }
    job = repository.get_job("sample_evaluation")
    assert {
        node.definition.pool for node in job.nodes_in_topological_order[0].definition.nodes
    } == {  # type: ignore[attr-defined]
        "rag_sample"
    }


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        project = SampleProject(Path(folder))
        project.write("release.yaml", POLICY)
        project.replace("rag_assets.yaml", "project: sample", OWNERS)
        text = json.dumps(described(build_definitions(project.root)), indent=2)
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(f"{text}\n", encoding="utf-8")
