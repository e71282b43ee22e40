"""Events written in bulk are what Dagster itself would have written."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.assets import events as events_module
from rag_assets.assets.events import write_events
from rag_assets.assets.serialization import AssetEvent

KEY = dg.AssetKey(["suite", "generation"])
TABLE = dg.MetadataValue.table(
    records=[dg.TableRecord({"position": 1, "document": "a"})],
    schema=dg.TableSchema(columns=[dg.TableColumn("position", "any"), dg.TableColumn("document")]),
)
THREE = [
    AssetEvent(
        KEY,
        case_id,
        {
            "dagster/data_version": f"v-{case_id}",
            "dagster/data_version_is_user_provided": "true",
            "dagster/input_data_version/suite/cases": "x" * 80,
        },
        {"cache": "miss", "latency_ms": 1.5, "candidates": 3},
    )
    for case_id in ("a", 'b "quoted" \\ / é 🚀', "c\u2028")
]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with scratch(tmp_path) as instance:
        yield instance


def scratch(folder: Path) -> dg.DagsterInstance:
    folder.mkdir(exist_ok=True)
    quiet = {"telemetry": {"enabled": False}}
    return dg.DagsterInstance.local_temp(str(folder), overrides=quiet)


def executed(instance: dg.DagsterInstance, body: Any) -> str:
    """Run a body inside an op; returns the run id."""

    @dg.op
    def op(context: dg.OpExecutionContext) -> None:
        body(context)

    @dg.job
    def job() -> None:
        op()

    return job.execute_in_process(instance=instance).run_id


def stored(instance: dg.DagsterInstance) -> list[Any]:
    records = instance.fetch_materializations(KEY, limit=10, ascending=True).records
    return [(one.asset_materialization, one.partition_key) for one in records]


def in_run_log(instance: dg.DagsterInstance, run_id: str) -> list[Any]:
    kinds = {dg.DagsterEventType.ASSET_MATERIALIZATION}
    logs = instance.all_logs(run_id, of_type=kinds)
    return [
        log.dagster_event.step_materialization_data.materialization  # type: ignore[union-attr]
        for log in logs
    ]


def tags(instance: dg.DagsterInstance) -> list[dict[str, str]]:
    return [dict(one) for one in instance.get_event_tags_for_asset(KEY)]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "with a table"])
def test_bulk_equals_one_by_one(tmp_path: Path, plain: bool) -> None:
    events = THREE
    if not plain:
        events = [AssetEvent(KEY, one.case_id, one.tags, {"rows": TABLE}) for one in THREE]
    found = []
    for name in ("bulk", "alone"):
        with scratch(tmp_path / name) as instance:
            write = write_events if name == "bulk" else one_by_one
            run_id = executed(instance, lambda context, write=write: write(context, events))
            found.append(
                (
                    stored(instance),
                    in_run_log(instance, run_id),
                    tags(instance),
                    instance.get_latest_materialization_event(KEY).asset_materialization,  # type: ignore[union-attr]
                    instance.get_materialized_partitions(KEY),
                )
            )
    assert found[0] == found[1]
    assert len(found[0][0]) == len(found[0][1]) == 3


def one_by_one(context: Any, events: list[AssetEvent]) -> None:
    for event in events:
        context.log_event(
            dg.AssetMaterialization(
                event.key, partition=event.case_id, tags=event.tags, metadata=event.metadata
            )
        )


def test_events_may_stay_out_of_the_run_log(instance: dg.DagsterInstance) -> None:
    run_id = executed(instance, lambda context: write_events(context, THREE, in_run_log=False))
    assert len(stored(instance)) == 3
    assert in_run_log(instance, run_id) == []


def test_no_events_write_nothing(instance: dg.DagsterInstance) -> None:
    executed(instance, lambda context: write_events(context, []))
    assert stored(instance) == []


def test_planned_events_show_what_is_in_progress(instance: dg.DagsterInstance) -> None:
    planned = [AssetEvent(KEY, case_id, planned=True) for case_id in ("a", "b")]
    run_id = executed(instance, lambda context: write_events(context, planned))
    storage: Any = instance.event_log_storage
    method = "get_latest_asset_partition_materialization_attempts_without_materializations"
    found = getattr(storage, method)(KEY)
    assert {partition: attempt[0] for partition, attempt in found.items()} == {
        "a": run_id,
        "b": run_id,
    }


def test_what_dagster_no_longer_offers_costs_speed_only(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(events_module, "_store_in_sqlite", broken)
    with caplog.at_level(logging.WARNING):
        executed(instance, lambda context: write_events(context, THREE))
    assert [partition for _, partition in stored(instance)] == [one.case_id for one in THREE]
    assert "cannot be written in bulk" in caplog.text


def broken(*arguments: Any) -> None:
    raise AttributeError("_event_to_row")


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=8).filter(str.strip),
            st.text(max_size=8),
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(-(2**40), 2**40),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_value_survives_the_template(rows: list[tuple[str, str, float, int]]) -> None:
    from dagster_shared.serdes import deserialize_value

    from rag_assets.assets.serialization import serialize_alike

    def entry(event: AssetEvent) -> Any:
        return entry_of(event)

    events = [
        AssetEvent(KEY, case, {"dagster/data_version": text}, {"text": text, "a": real, "b": whole})
        for case, text, real, whole in rows
    ]
    for event, text in zip(events, serialize_alike(events, entry), strict=True):
        assert deserialize_value(text) == entry(event)


def entry_of(event: AssetEvent) -> Any:
    from dagster._core.events import DagsterEvent, StepMaterializationData
    from dagster._core.events.log import EventLogEntry

    materialization = dg.AssetMaterialization(
        event.key, partition=event.case_id, tags=event.tags, metadata=event.metadata
    )
    return EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=10,
        user_message="",
        run_id="run",
        timestamp=1.0,
        step_key="step",
        job_name="job",
        dagster_event=DagsterEvent(
            event_type_value="ASSET_MATERIALIZATION",
            job_name="job",
            step_key="step",
            event_specific_data=StepMaterializationData(materialization, []),
        ),
    )
