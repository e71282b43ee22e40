"""The schema as numbered migrations: a store is brought up to date when it is first written to.

Big tables have no primary key: there is one writer at a time, who inserts what is not there yet
inside its transaction, and an index would cost more than the scan that it saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_assets.contracts.errors import StoreVersionError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        id VARCHAR NOT NULL, created_at VARCHAR NOT NULL, finished_at VARCHAR,
        project VARCHAR NOT NULL, origin VARCHAR NOT NULL, parent VARCHAR, dagster_run_id VARCHAR,
        state VARCHAR NOT NULL, completeness VARCHAR, gate VARCHAR, exit_code INTEGER,
        owner VARCHAR NOT NULL, heartbeat VARCHAR NOT NULL, error VARCHAR,
        record VARCHAR NOT NULL, summary VARCHAR
    );
    CREATE TABLE artifacts (
        digest VARCHAR NOT NULL, kind VARCHAR NOT NULL, payload VARCHAR NOT NULL
    );
    CREATE TABLE stage_results (
        identity VARCHAR NOT NULL, stage VARCHAR NOT NULL, digest VARCHAR NOT NULL,
        run_id VARCHAR NOT NULL, latency_ms DOUBLE NOT NULL, usage VARCHAR
    );
    CREATE TABLE run_cases (
        run_id VARCHAR NOT NULL, case_id VARCHAR NOT NULL, stage VARCHAR NOT NULL,
        identity VARCHAR, digest VARCHAR, source VARCHAR NOT NULL, latency_ms DOUBLE NOT NULL,
        failure VARCHAR, attempts VARCHAR, usage VARCHAR
    );
    CREATE TABLE judgments (
        key VARCHAR NOT NULL, status VARCHAR NOT NULL, value DOUBLE, reason VARCHAR, detail VARCHAR
    );
    CREATE TABLE run_judgments (
        run_id VARCHAR NOT NULL, case_id VARCHAR NOT NULL, criterion VARCHAR NOT NULL, key VARCHAR,
        source VARCHAR NOT NULL, status VARCHAR NOT NULL, value DOUBLE, reason VARCHAR,
        detail VARCHAR
    );
    CREATE TABLE metrics (
        run_id VARCHAR NOT NULL, scope VARCHAR NOT NULL, criterion VARCHAR NOT NULL,
        kind VARCHAR NOT NULL, estimate DOUBLE, lower DOUBLE, upper DOUBLE,
        observed INTEGER NOT NULL, missing INTEGER NOT NULL, excluded INTEGER NOT NULL,
        payload VARCHAR NOT NULL
    );
    CREATE TABLE decisions (
        run_id VARCHAR NOT NULL, rule VARCHAR NOT NULL, metric VARCHAR NOT NULL,
        state VARCHAR NOT NULL, payload VARCHAR NOT NULL
    );
    CREATE TABLE heads (
        instance VARCHAR NOT NULL, asset VARCHAR NOT NULL, case_id VARCHAR NOT NULL,
        fingerprint VARCHAR NOT NULL, data_version VARCHAR NOT NULL
    );
    """,
    """
    CREATE TABLE comparisons (
        id VARCHAR NOT NULL, created_at VARCHAR NOT NULL, candidate VARCHAR NOT NULL,
        baseline VARCHAR NOT NULL, gate VARCHAR, exit_code INTEGER NOT NULL,
        payload VARCHAR NOT NULL
    );
    """,
    """
    CREATE TABLE settled_cases (
        key VARCHAR NOT NULL, run_id VARCHAR NOT NULL, case_id VARCHAR NOT NULL,
        labelled BOOLEAN, position INTEGER, ambiguous BOOLEAN, truncated BOOLEAN
    );
    CREATE TABLE sample_stages (
        run_id VARCHAR NOT NULL, case_id VARCHAR NOT NULL, stage VARCHAR NOT NULL,
        identity VARCHAR, digest VARCHAR, source VARCHAR NOT NULL, latency_ms DOUBLE NOT NULL,
        failure VARCHAR, attempts VARCHAR, usage VARCHAR, sample INTEGER NOT NULL
    );
    """,
    """
    CREATE TABLE diagnoses (
        id VARCHAR NOT NULL, created_at VARCHAR NOT NULL, run_id VARCHAR NOT NULL,
        criterion VARCHAR NOT NULL, intervention VARCHAR NOT NULL, dagster_run_id VARCHAR,
        payload VARCHAR NOT NULL
    );
    """,
    "ALTER TABLE settled_cases ADD COLUMN stale BOOLEAN;",
    """
    CREATE TABLE labels (
        key VARCHAR NOT NULL, case_id VARCHAR NOT NULL, criterion VARCHAR NOT NULL,
        answer_digest VARCHAR NOT NULL, about VARCHAR NOT NULL, unit VARCHAR NOT NULL,
        label VARCHAR NOT NULL, reviewer VARCHAR NOT NULL, labelled_at VARCHAR NOT NULL,
        note VARCHAR NOT NULL, claim_text VARCHAR NOT NULL
    );
    """,
)


def schema_version(connection: DuckDBPyConnection) -> int:
    """How many migrations a database has seen; 0 for a new one.

    Raises:
        StoreVersionError: it has seen more than this version knows.
    """
    known = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'schema_migrations'"
    ).fetchone()
    if known is None or known[0] == 0:
        return 0
    row = connection.execute("SELECT max(number) FROM schema_migrations").fetchone()
    version = int(row[0]) if row and row[0] is not None else 0
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            f"The store was written by a newer version of rag-assets (schema {version}; this "
            f"version knows {len(MIGRATIONS)}). Upgrade rag-assets, or use another state folder."
        )
    return version


def migrate(connection: DuckDBPyConnection) -> None:
    """Bring a database up to date, inside the caller's transaction."""
    version = schema_version(connection)
    if version == 0:
        connection.execute("CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER NOT NULL)")
    for number in range(version, len(MIGRATIONS)):
        connection.execute(MIGRATIONS[number])
        connection.execute("INSERT INTO schema_migrations VALUES ($1)", [number + 1])
