"""Schedule and sensor of a suite, with Dagster's test contexts on a real instance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._daemon import controller

from projects import SampleProject
from rag_assets.assets.definitions import build_definitions
from rag_assets.assets.server import shorten_interval
from rag_assets.contracts.errors import InputError

INDEX = dg.AssetKey(["sample", "index"])
SENSOR = "sample_index_version"


class Ticks:
    """A sensor that is ticked by hand; the cursor goes from tick to tick, as in the daemon."""

    def __init__(self, sample: SampleProject, instance: dg.DagsterInstance) -> None:
        self.definitions = build_definitions(sample.root)
        self.instance = instance
        self.cursor: str | None = None
        self.skipped: str | None = None
        self.observed: list[str] = []

    def tick(self) -> list[str | None]:
        """The run keys that a tick requests."""
        repository = self.definitions.get_repository_def()
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, sensor_name=SENSOR, repository_def=repository
        ) as context:
            data = repository.get_sensor_def(SENSOR).evaluate_tick(context)
        self.cursor, self.skipped = data.cursor, data.skip_message
        for event in data.asset_events:
            assert event.asset_key == INDEX
            self.observed.append((event.tags or {})["dagster/data_version"])
        for request in data.run_requests or []:
            assert request.partition_key is None
            assert "dagster/partition" not in request.tags
        return [request.run_key for request in data.run_requests or []]


@pytest.fixture
def ticks(sample: SampleProject, instance: dg.DagsterInstance) -> Ticks:
    sample.replace("rag_assets.yaml", "index_version: v1", "index_version: {file: VERSION}")
    sample.write("VERSION", "A\n")
    return Ticks(sample, instance)


def test_the_first_tick_records_the_version(ticks: Ticks) -> None:
    assert ticks.tick() == []
    assert ticks.skipped == "index_version is A; a run is requested when it changes."
    assert ticks.observed == ["A"]


def test_nothing_changed_nothing_requested_nothing_observed(ticks: Ticks) -> None:
    ticks.tick()
    assert ticks.tick() == []
    assert ticks.skipped == "index_version is still A."
    assert ticks.observed == ["A"]


def test_there_and_back_are_two_runs(sample: SampleProject, ticks: Ticks) -> None:
    ticks.tick()
    found = []
    for version in "BABA":
        sample.write("VERSION", version)
        found += ticks.tick()
        assert ticks.tick() == []
    assert found == ["sample:A->B:1", "sample:B->A:2", "sample:A->B:3", "sample:B->A:4"]
    assert ticks.observed == ["A", "B", "A", "B", "A"]


def test_several_changes_between_two_ticks_are_one(sample: SampleProject, ticks: Ticks) -> None:
    ticks.tick()
    sample.write("VERSION", "B")
    sample.write("VERSION", "C")
    assert ticks.tick() == ["sample:A->C:1"]
    sample.write("VERSION", "D")
    sample.write("VERSION", "C")
    assert ticks.tick() == []


def test_an_unreadable_version_raises_and_keeps_the_cursor(
    sample: SampleProject, ticks: Ticks
) -> None:
    ticks.tick()
    (sample.root / "VERSION").unlink()
    with pytest.raises(InputError) as caught:
        ticks.tick()
    assert str(caught.value) == (
        "rag_assets.yaml:8: system.rag.index_version: cannot be read from VERSION: "
        "No such file or directory."
    )
    sample.write("VERSION", "A")
    assert ticks.tick() == []
    sample.write("VERSION", "B")
    assert ticks.tick() == ["sample:A->B:1"]


def test_a_config_that_became_invalid_says_why(sample: SampleProject, ticks: Ticks) -> None:
    ticks.tick()
    sample.replace("rag_assets.yaml", "project: sample", "project:")
    with pytest.raises(InputError, match=r"rag_assets\.yaml:2: project: project must be a string"):
        ticks.tick()


def in_the_config(sample: SampleProject, version: str) -> None:
    text = (sample.root / "rag_assets.yaml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "index_version" not in line]
    index = next(index for index, line in enumerate(lines) if "object:" in line)
    lines.insert(index + 1, f"    index_version: {version}")
    sample.write("rag_assets.yaml", "\n".join(lines))


def in_the_decorator(sample: SampleProject, version: str) -> None:
    in_the_config(sample, "null")
    text = (sample.root / "app.py").read_text(encoding="utf-8")
    before, _, after = text.partition("@rag_system(")
    rest = after.partition("\n")[2]
    declared = f'@rag_system(depth=4, top_k=2, index_version="{version}")\n'
    sample.write("app.py", before + declared + rest)


def in_a_function(sample: SampleProject, version: str) -> None:
    in_the_config(sample, "{callable: versions:current}")
    sample.write("versions.py", f"VERSION = '{version}'\ndef current():\n    return VERSION\n")


@pytest.mark.parametrize("declare", [in_the_config, in_the_decorator, in_a_function])
def test_every_kind_of_version_is_read_anew(
    sample: SampleProject,
    instance: dg.DagsterInstance,
    declare: Callable[[SampleProject, str], None],
) -> None:
    declare(sample, "A")
    ticks = Ticks(sample, instance)
    assert ticks.tick() == []
    declare(sample, "B")
    assert ticks.tick() == ["sample:A->B:1"]
    # What the run sees is what the tick saw.
    assert json.loads(sample.run().row.record)["system"]["index_version"] == "B"
    assert sample.calls() == {"retrieve": 3, "generate": 3}


def test_a_function_that_raises(sample: SampleProject, instance: dg.DagsterInstance) -> None:
    in_a_function(sample, "A")
    ticks = Ticks(sample, instance)
    ticks.tick()
    sample.write("versions.py", "def current():\n    raise OSError('the index is away')\n")
    with pytest.raises(InputError, match=r"(?s)versions:current raised\..*the index is away"):
        ticks.tick()
    sample.write("versions.py", "def current():\n    return 7\n")
    with pytest.raises(InputError, match="versions:current must return a string, got 7"):
        ticks.tick()


def test_no_version_is_declared(sample: SampleProject, instance: dg.DagsterInstance) -> None:
    in_the_config(sample, "null")
    ticks = Ticks(sample, instance)
    assert ticks.tick() == []
    assert ticks.skipped == (
        "No index_version is declared. Set system.rag.index_version in rag_assets.yaml to a "
        "string, a file or a callable."
    )


def test_a_long_version_is_named_by_its_digest(sample: SampleProject, ticks: Ticks) -> None:
    ticks.tick()
    manifest = '{"built": 1}\n' * 20
    sample.write("VERSION", manifest)
    name = "sha256:" + hashlib.sha256(manifest.strip().encode()).hexdigest()
    assert ticks.tick() == [f"sample:A->{name}:1"]
    # The data version is the version itself, as in the events of a run.
    assert ticks.observed[-1] == manifest.strip()


@pytest.mark.parametrize("cursor", [None, "", "nonsense", "[]", '{"version": "A"}'])
def test_a_cleared_cursor_starts_again_with_new_run_keys(
    sample: SampleProject, ticks: Ticks, cursor: str | None
) -> None:
    ticks.tick()
    sample.write("VERSION", "B")
    (key,) = ticks.tick()
    run = dg.DagsterRun(
        job_name="sample_evaluation",
        tags={"dagster/sensor_name": SENSOR, "dagster/run_key": str(key)},
    )
    ticks.instance.add_run(run)
    sample.write("VERSION", "A")
    ticks.cursor = cursor
    assert ticks.tick() == []
    sample.write("VERSION", "B")
    assert ticks.tick() == ["sample:A->B:2"]


def test_the_nightly_schedule(sample: SampleProject, instance: dg.DagsterInstance) -> None:
    sample.replace(
        "rag_assets.yaml", "project: sample", 'project: sample\ndagster: {cron: "30 4 * * 1-5"}'
    )
    definitions = build_definitions(sample.root)
    schedule = definitions.get_repository_def().get_schedule_def("sample_nightly")
    assert schedule.cron_schedule == "30 4 * * 1-5"
    assert schedule.execution_timezone in (None, "UTC")
    assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
    due = datetime(2026, 1, 5, 4, 30, tzinfo=UTC)
    with dg.build_schedule_context(
        instance, due, repository_def=definitions.get_repository_def()
    ) as context:
        (request,) = schedule.evaluate_tick(context).run_requests or []
    assert request.partition_key is None
    assert set(request.tags) == {"dagster/schedule_name"}
    # Untagged, so it is one run of the whole suite.
    job = definitions.resolve_job_def(schedule.job_name)
    assert job.execute_in_process(instance=instance, tags=request.tags).success
    with sample.store.reading() as reader:
        (row,) = reader.runs()
    assert (row.origin, row.state, row.completeness) == ("run", "DECIDED", "COMPLETE")


def test_two_o_clock_unless_the_config_says_otherwise(sample: SampleProject) -> None:
    schedule = (
        build_definitions(sample.root).get_repository_def().get_schedule_def("sample_nightly")
    )
    assert schedule.cron_schedule == "0 2 * * *"


def test_the_sensor_is_off_until_someone_switches_it_on(sample: SampleProject) -> None:
    sensor = build_definitions(sample.root).get_repository_def().get_sensor_def(SENSOR)
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert sensor.job_name == "sample_evaluation"


def test_a_malformed_cron_is_a_problem_with_its_line(sample: SampleProject) -> None:
    sample.replace(
        "rag_assets.yaml", "project: sample", 'project: sample\ndagster:\n  cron: "0 25 * * *"'
    )
    with pytest.raises(InputError) as caught:
        build_definitions(sample.root)
    assert str(caught.value) == (
        "rag_assets.yaml:4: dagster.cron: cron must be five fields (minute, hour, day, month, "
        'weekday) such as "0 2 * * *", or a word such as "@daily", got "0 25 * * *": the hour '
        '"25" is not between 0 and 23.'
    )


def test_each_suite_has_its_own(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        project = SampleProject(tmp_path / folder)
        project.replace("rag_assets.yaml", "project: sample", f"project: {folder}")
    repository = build_definitions(tmp_path / "one", tmp_path / "two").get_repository_def()
    assert {one.name for one in repository.schedule_defs} == {"one_nightly", "two_nightly"}
    assert {one.name for one in repository.sensor_defs} == {
        "one_index_version",
        "two_index_version",
    }


def test_the_daemon_looks_for_backfills_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", 30)
    assert shorten_interval(controller)
    assert controller.DEFAULT_DAEMON_INTERVAL_SECONDS == 3


def test_a_daemon_without_that_constant_keeps_its_pace() -> None:
    module = SimpleNamespace()
    assert not shorten_interval(module)
    assert vars(module) == {}
