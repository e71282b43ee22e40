"""The event log of a project's own Dagster instance.

For a range of partitions Dagster writes one planned event for each partition and asset before a
run starts, 8 ms each. This storage says that it takes one planned event for the whole range
instead; which cases are in progress or have failed is then written by the stages themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import dagster as dg
from dagster._config import UserConfigSchema
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool


class RagSqliteEventLogStorage(SqliteEventLogStorage):
    """SQLite event log under `$DAGSTER_HOME`, which takes a planned event for many partitions."""

    _kept: dict[str, Engine] | None = None

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        """`base_dir` may be left out: then it is the usual folder under `$DAGSTER_HOME`."""
        return {"base_dir": dg.Field(dg.StringSource, is_required=False)}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Build the storage from `dagster.yaml`."""
        base_dir = config_value.get("base_dir")
        if base_dir is None:
            base_dir = str(Path(os.environ["DAGSTER_HOME"]) / "history" / "runs")
        return cls(inst_data=inst_data, base_dir=base_dir)

    def keep_connections(self) -> None:
        """From now on keep one connection to each file, for a process of many short transactions.

        Dagster opens a connection for every event, which takes longer than the event. What is
        kept is closed with the storage.
        """
        self._kept = self._kept or {}

    def dispose(self) -> None:
        """Close what was kept, and end as usual."""
        for engine in (self._kept or {}).values():
            engine.dispose()
        self._kept = None
        super().dispose()

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        if self._kept is None:
            with super()._connect(shard) as connection:
                yield connection
            return
        if shard not in self._kept:
            with super()._connect(shard):
                pass  # Makes the file and its tables, where they are not there yet.
            self._kept[shard] = create_engine(
                self.conn_string_for_shard(shard),
                poolclass=StaticPool,
                connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
            )
        with self._db_lock, self._kept[shard].connect() as connection, connection.begin():
            yield connection

    @property
    def supports_partition_subset_in_asset_materialization_planned_events(self) -> bool:
        """One planned event may name a subset of partitions."""
        return True


def plans_by_itself(instance: dg.DagsterInstance) -> bool:
    """Whether the stages have to say themselves which cases are in progress."""
    storage = instance.event_log_storage
    return storage.supports_partition_subset_in_asset_materialization_planned_events
