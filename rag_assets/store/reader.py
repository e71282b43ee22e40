"""Bulk look-ups and read views of one opening of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rag_assets.store.records import (
    CaseStage,
    ComparisonRow,
    Decision,
    Head,
    Judgment,
    Metric,
    RunJudgment,
    RunRow,
    StageCost,
    StageResult,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")

# A ULID sorts by time, so the id breaks ties of one millisecond.
_NEWEST_FIRST = "created_at DESC, id DESC"
_LISTED = "parent IS NULL AND (origin = 'run' OR completeness IS NOT NULL)"


class Reader:
    """Reads from an open store; without a connection everything is empty."""

    def __init__(self, connection: DuckDBPyConnection | None) -> None:
        self._connection = connection

    def stage_results(self, identities: Sequence[str]) -> dict[str, StageResult]:
        """The memoized results among the identities, in one query."""
        found = self._among("stage_results", "identity", identities, StageResult)
        return {result.identity: result for result in found}

    def payloads(self, digests: Sequence[str]) -> dict[str, str]:
        """Digest → canonical JSON, for those that are stored."""
        # By row: otherwise the payloads of the whole table are read, to be compared by digest.
        rows = self._rows(
            "SELECT digest, payload FROM artifacts WHERE rowid IN (SELECT rowid FROM artifacts "
            "WHERE digest IN (SELECT unnest($1::VARCHAR[])))",
            [list(digests)],
        )
        return dict(rows)

    def judgments(self, keys: Sequence[str]) -> dict[str, Judgment]:
        """The memoized judgments among the keys, in one query."""
        return {
            judgment.key: judgment for judgment in self._among("judgments", "key", keys, Judgment)
        }

    def heads(self, instance: str, assets: Sequence[str]) -> dict[tuple[str, str], Head]:
        """(asset, case) → head, for some assets of a Dagster instance."""
        rows = self._rows(
            "SELECT * FROM heads WHERE instance = $1 AND asset IN (SELECT unnest($2::VARCHAR[]))",
            [instance, list(assets)],
        )
        return {(row[1], row[2]): Head(*row) for row in rows}

    def runs(self, limit: int | None = None) -> list[RunRow]:
        """Runs, newest first."""
        sql = f"SELECT * FROM runs ORDER BY {_NEWEST_FIRST}"
        rows = self._rows(sql if limit is None else f"{sql} LIMIT {int(limit)}", [])
        return [RunRow(*row) for row in rows]

    def listed_runs(self, limit: int, *, everything: bool = False) -> list[RunRow]:
        """Runs as lists show them, newest first.

        Args:
            limit: the most to return.
            everything: False leaves out children of other runs, and materializations that came
                to no metrics.
        """
        where = "" if everything else f"WHERE {_LISTED}"
        sql = f"SELECT * FROM runs {where} ORDER BY {_NEWEST_FIRST} LIMIT $1"
        return [RunRow(*row) for row in self._rows(sql, [limit])]

    def run_ids(self) -> list[str]:
        """The ids of all runs, newest first."""
        return [row[0] for row in self._rows(f"SELECT id FROM runs ORDER BY {_NEWEST_FIRST}", [])]

    def running(self) -> list[RunRow]:
        """Runs that have not ended, or whose end nobody has recorded."""
        rows = self._rows("SELECT * FROM runs WHERE state = 'RUNNING'", [])
        return [RunRow(*row) for row in rows]

    def run(self, run_id: str) -> RunRow | None:
        """One run."""
        rows = self._rows("SELECT * FROM runs WHERE id = $1", [run_id])
        return RunRow(*rows[0]) if rows else None

    def case_stages(self, run_id: str, case_id: str | None = None) -> list[CaseStage]:
        """What the stages came to, of all cases of a run or of one."""
        return self._of_run("run_cases", CaseStage, run_id, case_id)

    def stage_digests(self, run_id: str, stage: str) -> dict[str, str]:
        """Case id → digest of what one stage of a run produced, in the order of the run."""
        rows = self._rows(
            "SELECT case_id, digest FROM run_cases "
            "WHERE run_id = $1 AND stage = $2 AND digest IS NOT NULL ORDER BY rowid",
            [run_id, stage],
        )
        return dict(rows)

    def stage_costs(self, run_id: str) -> list[StageCost]:
        """Time and reported usage of every stage of a run that a system executes.

        Assembly is done anew in every run, and counts with its first time, like a hit.
        """
        rows = self._rows(
            "SELECT c.case_id, c.stage, c.digest, c.failure, "
            "CASE WHEN c.source = 'miss' AND c.stage <> 'assembled_context' "
            "THEN c.latency_ms ELSE coalesce(r.latency_ms, 0) END, "
            "r.usage FROM run_cases c LEFT JOIN stage_results r ON c.identity = r.identity "
            "WHERE c.run_id = $1 AND c.stage IN ('retrieval', 'assembled_context', 'generation')",
            [run_id],
        )
        return [StageCost(*row) for row in rows]

    def run_judgments(self, run_id: str, case_id: str | None = None) -> list[RunJudgment]:
        """The outcomes of a run, of all cases or of one."""
        return self._of_run("run_judgments", RunJudgment, run_id, case_id)

    def metrics(self, run_id: str) -> list[Metric]:
        """The metrics of a run, in the order in which they were recorded."""
        return self._of_run("metrics", Metric, run_id)

    def decisions(self, run_id: str) -> list[Decision]:
        """The decisions of a run, in the order of the policy."""
        return self._of_run("decisions", Decision, run_id)

    def decisions_of(self, run_ids: Sequence[str]) -> list[Decision]:
        """The decisions of several runs."""
        rows = self._rows(
            "SELECT * FROM decisions WHERE run_id IN (SELECT unnest($1::VARCHAR[])) ORDER BY rowid",
            [list(run_ids)],
        )
        return [Decision(*row) for row in rows]

    def comparisons(self, prefix: str) -> list[ComparisonRow]:
        """The comparisons whose id begins with a text, newest first."""
        if not self._has("comparisons"):
            return []
        rows = self._rows(
            f"SELECT * FROM comparisons WHERE starts_with(id, $1) ORDER BY {_NEWEST_FIRST}",
            [prefix],
        )
        return [ComparisonRow(*row) for row in rows]

    def _has(self, table: str) -> bool:
        """Whether the store, which an older version may have written, has a table."""
        return bool(self._rows("SELECT 1 FROM duckdb_tables() WHERE table_name = $1", [table]))

    def _of_run(
        self, table: str, kind: type[T], run_id: str, case_id: str | None = None
    ) -> list[T]:
        sql = f"SELECT * FROM {table} WHERE run_id = $1"
        values: list[Any] = [run_id]
        if case_id is not None:
            sql += " AND case_id = $2"
            values.append(case_id)
        return [kind(*row) for row in self._rows(f"{sql} ORDER BY rowid", values)]

    def _among(self, table: str, column: str, keys: Sequence[str], kind: type[T]) -> list[T]:
        rows = self._rows(
            f"SELECT * FROM {table} WHERE {column} IN (SELECT unnest($1::VARCHAR[]))",
            [list(keys)],
        )
        return [kind(*row) for row in rows]

    def _rows(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        return self._connection.execute(sql, values).fetchall()
