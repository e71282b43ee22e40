"""Bytes on disk: of the store against its artifacts, and of Dagster's logs for each event."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

STATE = ".rag_assets"
# One row for each stage of a case and its artifact: what files of their own would hold.
_ARTIFACTS = "SELECT sum(strlen(payload)) FROM artifacts"
_UNSHARED = "SELECT sum(strlen(payload)) FROM run_cases JOIN artifacts USING (digest)"


@dataclass(frozen=True)
class StoreSize:
    """Bytes of the store.

    Attributes:
        file: of the DuckDB file.
        artifacts: of the artifacts as JSON, each content once.
        unshared: the same, each content once for every case and stage that it belongs to.
    """

    file: int
    artifacts: int
    unshared: int


@dataclass(frozen=True)
class LogSize:
    """Bytes of Dagster's event logs.

    Attributes:
        events: how many rows all logs have together.
        json: of the events as JSON.
        files: of all files of the instance: columns, indexes and empty pages included.
    """

    events: int
    json: int
    files: int


def store_size(project: Path) -> StoreSize:
    """Measure the store of a project that is not in use."""
    import duckdb

    path = project / STATE / "store.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        (artifacts,), (unshared,) = (
            connection.execute(query).fetchone() or (0,) for query in (_ARTIFACTS, _UNSHARED)
        )
    return StoreSize(path.stat().st_size, int(artifacts), int(unshared))


def log_size(project: Path) -> LogSize:
    """Measure the logs of a project that is not in use."""
    home = project / STATE / "dagster"
    events = json = 0
    for path in (home / "history" / "runs").glob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            query = "SELECT count(*), coalesce(sum(length(CAST(event AS BLOB))), 0) FROM event_logs"
            rows, size = connection.execute(query).fetchone()
        events, json = events + rows, json + size
    files = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    return LogSize(events, json, files)
