"""The project's own Dagster instance, under its state folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from sqlalchemy import event
from sqlalchemy.engine import Engine

from rag_assets.assets.keys import Suite, suite_name
from rag_assets.assets.storage import RagSqliteEventLogStorage
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import StoreError
from rag_assets.evaluation.places import state_folder

_STORAGE = RagSqliteEventLogStorage.__name__
_SETTINGS = """\
# Written by rag-assets when the project was first used; yours to edit.
telemetry:
  enabled: false
nux:
  enabled: false
python_logs:
  python_log_level: {log_level}
event_log_storage:
  module: rag_assets.assets.storage
  class: RagSqliteEventLogStorage
  config: {{}}
run_queue:
  # How often the daemon looks for a run that was asked for.
  dequeue_interval_seconds: 1
concurrency:
  # One run of a suite at a time.
  pools:
    granularity: run
    default_limit: 1
  runs:
    max_concurrent_runs: 4
"""


def instance_home(config: Config) -> Path:
    """The folder of the instance, with its `dagster.yaml` in place.

    Raises:
        StoreError: the folder cannot be made or written to.
    """
    home = state_folder(config.root) / "dagster"
    settings = home / "dagster.yaml"
    try:
        if not settings.exists():
            home.mkdir(parents=True, exist_ok=True)
            text = _SETTINGS.format(log_level=config.dagster.log_level)
            settings.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{home} cannot be written to: {error}.") from error
    return home


def open_instance(config: Config) -> dg.DagsterInstance:
    """Open the project's instance, in a process of our own.

    What user code prints stays with this process: capturing it for the UI takes helper processes
    that a short run would wait for.
    """
    home = instance_home(config)
    speed_up_sqlite(home)
    overrides: dict[str, Any] = {
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        }
    }
    if _STORAGE in (home / "dagster.yaml").read_text(encoding="utf-8"):
        # Processes that this one starts know nothing of our folder.
        overrides["event_log_storage"] = {
            "module": "rag_assets.assets.storage",
            "class": _STORAGE,
            "config": {"base_dir": str(home / "history" / "runs")},
        }
    instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=overrides))
    if isinstance(instance.event_log_storage, RagSqliteEventLogStorage):
        instance.event_log_storage.keep_connections()
    _limit_pool(instance, Suite(suite_name(config.project)).pool)
    return instance


def _limit_pool(instance: dg.DagsterInstance, pool: str) -> None:
    """Let one run of the pool go on at a time, unless someone has set another limit.

    The default limit of `dagster.yaml` comes too late: the queue takes it over in the same look
    in which it lets the first runs through.
    """
    storage = instance.event_log_storage
    if pool not in storage.get_concurrency_keys():
        storage.set_concurrency_slots(pool, 1)


_kept: dict[str, sqlite3.Connection] = {}
_homes: set[Path] = set()


def speed_up_sqlite(home: Path) -> None:
    """Make the SQLite databases of an instance commit without waiting for the disk each time.

    `synchronous=NORMAL` is safe against a crash of the process: in WAL mode only a power cut can
    lose the last commits. One connection to each database is kept open, so that closing the
    others does not fold the WAL back every time.
    """
    _homes.add(home)
    if not event.contains(Engine, "connect", _on_connect):
        event.listen(Engine, "connect", _on_connect)


def _on_connect(connection: Any, _record: Any) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    listed = connection.execute("PRAGMA database_list").fetchall()
    path = next((Path(row[2]) for row in listed if row[1] == "main" and row[2]), None)
    # The system under evaluation may have databases of its own in this process.
    if path is None or not any(path.is_relative_to(home) for home in _homes):
        return
    # Of a new file only. An event takes 1.5 KB, and two leave a quarter of a default page empty.
    connection.execute("PRAGMA page_size=8192")
    connection.execute("PRAGMA synchronous=NORMAL")
    if str(path) in _kept or not path.exists() or path.stat().st_size == 0:
        return
    kept = sqlite3.connect(path, check_same_thread=False)
    kept.execute("SELECT count(*) FROM sqlite_master").fetchone()
    _kept[str(path)] = kept


def release_sqlite() -> None:
    """Close the connections that were kept open."""
    while _kept:
        _kept.popitem()[1].close()
