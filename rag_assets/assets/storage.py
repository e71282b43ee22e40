"""The event log of a project's own Dagster instance.

For a range of partitions Dagster writes one planned event for each partition and asset before a
run starts, 8 ms each. This storage says that it takes one planned event for the whole range
instead; which cases are in progress or have failed is then written by the stages themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import dagster as dg
from dagster._config import UserConfigSchema
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._serdes import ConfigurableClassData


class RagSqliteEventLogStorage(SqliteEventLogStorage):
    """SQLite event log under `$DAGSTER_HOME`, which takes a planned event for many partitions."""

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

    @property
    def supports_partition_subset_in_asset_materialization_planned_events(self) -> bool:
        """One planned event may name a subset of partitions."""
        return True


def plans_by_itself(instance: dg.DagsterInstance) -> bool:
    """Whether the stages have to say themselves which cases are in progress."""
    storage = instance.event_log_storage
    return storage.supports_partition_subset_in_asset_materialization_planned_events
