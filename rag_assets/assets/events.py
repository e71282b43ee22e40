"""Asset events in bulk: one transaction for thousands, where Dagster makes one for each.

On SQLite the rows go into the index database and, up to a number, into the run's own log, as
Dagster itself does for one event. Other storages get them through their public batch method.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence

import dagster as dg
import sqlalchemy as sa
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventType,
    StepMaterializationData,
)
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log.base import EventLogStorage
from dagster._core.storage.event_log.schema import AssetEventTagsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage

from rag_assets.assets.serialization import AssetEvent, serialize_alike

_BATCH = 1000
_log = logging.getLogger(__name__)


def write_events(
    context: dg.OpExecutionContext, events: Sequence[AssetEvent], *, in_run_log: bool = True
) -> None:
    """Write events to the instance's event log.

    Args:
        context: of the op that they come from.
        events: all of one asset, and all planned or none; their order is kept.
        in_run_log: whether the log of the run lists them too; the asset pages always do.
    """
    for start in range(0, len(events), _BATCH):
        batch = events[start : start + _BATCH]
        try:
            _store(context, batch, in_run_log)
        except Exception as error:
            # The bulk way uses what Dagster does not promise; this one it does.
            _log.warning("Events cannot be written in bulk (%r); each is written alone.", error)
            for event in batch:
                _log_alone(context, event)


def _log_alone(context: dg.OpExecutionContext, event: AssetEvent) -> None:
    entry = _entry(context, event).dagster_event
    if event.planned and entry is not None:
        context.instance.report_dagster_event(entry, context.run_id)
    else:
        context.log_event(_materialization(event))


def last_record(instance: dg.DagsterInstance) -> str:
    """The highest storage id of an event so far: what an input event pointer names."""
    return str(instance.event_log_storage.get_maximum_record_id() or 0)


def newest_events(
    instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey]
) -> dict[str, int | None]:
    """Name of an asset → storage id of its newest materialization; None where there is none."""
    return {
        record.asset_entry.asset_key.to_user_string(): (
            record.asset_entry.last_materialization_storage_id
        )
        for record in instance.event_log_storage.get_asset_records(keys)
    }


def instance_id(instance: dg.DagsterInstance) -> str:
    """What distinguishes an instance from others that share the store."""
    storage = instance.run_storage
    if isinstance(storage, SqlRunStorage):
        return storage.get_run_storage_id()
    return type(storage).__name__


def _entry(
    context: dg.OpExecutionContext, event: AssetEvent, now: float | None = None
) -> EventLogEntry:
    step_key = context._step_execution_context.step.key
    if event.planned:
        dagster_event = DagsterEvent.build_asset_materialization_planned_event(
            context.job_name,
            step_key,
            AssetMaterializationPlannedData(event.key, partition=event.case_id),
        )
    else:
        dagster_event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
            job_name=context.job_name,
            event_specific_data=StepMaterializationData(_materialization(event), []),
            pid=os.getpid(),
            step_key=step_key,
        )
    return EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=logging.DEBUG,
        user_message="",
        run_id=context.run_id,
        timestamp=now or time.time(),
        step_key=step_key,
        job_name=context.job_name,
        dagster_event=dagster_event,
    )


def _materialization(event: AssetEvent) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        event.key, partition=event.case_id, tags=event.tags, metadata=event.metadata
    )


def _store(context: dg.OpExecutionContext, events: Sequence[AssetEvent], in_run_log: bool) -> None:
    storage = context.instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        _store_in_sqlite(storage, context, events, in_run_log)
        return
    entries = [_entry(context, event) for event in events]
    if type(storage).store_event_batch is not EventLogStorage.store_event_batch:
        storage.store_event_batch(entries)
    else:
        for entry in entries:
            storage.store_event(entry)


def _store_in_sqlite(
    storage: SqliteEventLogStorage,
    context: dg.OpExecutionContext,
    events: Sequence[AssetEvent],
    in_run_log: bool,
) -> None:
    now = time.time()
    last = _entry(context, events[-1], now)
    row = storage._event_to_row(last)
    texts = serialize_alike(events, lambda event: _entry(context, event, now))
    rows = [
        row | {"event": text, "partition": event.case_id}
        for event, text in zip(events, texts, strict=True)
    ]
    insert = SqlEventLogStorageTable.insert()
    # One after the other: the storage has one lock for all of its files.
    with storage.index_transaction() as connection:
        connection.execute(insert, rows)
        last_id = connection.execute(sa.text("SELECT max(id) FROM event_logs")).scalar_one()
        first_id = last_id - len(rows) + 1
        tags = [
            {
                "event_id": first_id + index,
                "asset_key": row["asset_key"],
                "key": name,
                "value": event.tags[name],
                "event_timestamp": row["timestamp"],
            }
            for index, event in enumerate(events)
            for name in storage.get_asset_tags_to_index(set(event.tags))
        ]
        if tags:
            connection.execute(AssetEventTagsTable.insert(), tags)
        storage._store_asset_event(connection, last, last_id)
    if in_run_log:
        with storage.run_connection(context.run_id) as connection:
            connection.execute(insert, rows)
