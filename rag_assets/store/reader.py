"""Bulk look-ups and read views of one opening of the store."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rag_assets.contracts.human_labels import HumanLabel
from rag_assets.store.records import (
    CaseStage,
    ComparisonRow,
    Decision,
    DiagnosisRow,
    Head,
    Judgment,
    Metric,
    RunJudgment,
    RunRow,
    SampleStage,
    SettledCase,
    StageCost,
    StageResult,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
RunTable = Literal["run_cases", "sample_stages", "run_judgments", "metrics", "decisions"]
"""The tables that hold what a run came to."""

# A ULID sorts by time, so the id breaks ties of one millisecond.
_NEWEST_FIRST = "created_at DESC, id DESC"
_LISTED = "parent IS NULL AND (origin = 'run' OR completeness IS NOT NULL)"


class Reader:
    """Reads from an open store; without a connection everything is empty.

    Attributes:
        path: the file of the store; None where it does not matter.
    """

    def __init__(self, connection: DuckDBPyConnection | None, path: Path | None = None) -> None:
        self._connection = connection
        self.path = path

    def stage_results(self, identities: Sequence[str]) -> dict[str, StageResult]:
        """The memoized results among the identities, in one query."""
        found = self._among("stage_results", "identity", identities, StageResult)
        return {result.identity: result for result in found}

    def payloads(self, digests: Sequence[str]) -> dict[str, str]:
        """Digest → canonical JSON, for those that are stored."""
        # Found by digest first, so that the payloads of all others are left unread.
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

    def settled(self, keys: Sequence[str]) -> list[SettledCase]:
        """The settled cases among the keys, in one query."""
        return self._among("settled_cases", "key", keys, SettledCase)

    def settled_stages(self, settled: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
        """(case id, stage, identity, digest) of settled cases.

        Args:
            settled: case id → run whose records stand for it.
        """
        return self._of_settled("run_cases", "case_id, stage, identity, digest", settled)

    def settled_outcomes(self, settled: Mapping[str, str]) -> list[tuple[Any, ...]]:
        """(case id, criterion, was it judged, status, value, reason, detail) of settled cases.

        Args:
            settled: as for `settled_stages`.
        """
        columns = "case_id, criterion, key IS NOT NULL, status, value, reason, detail"
        return self._of_settled("run_judgments", columns, settled)

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

    def listed_runs(
        self, limit: int, *, project: str | None = None, everything: bool = False
    ) -> list[RunRow]:
        """Runs as lists show them, newest first.

        Args:
            limit: the most to return.
            project: only runs of the project of this name.
            everything: False leaves out children of other runs, and materializations that came
                to no metrics.
        """
        where = "($2::VARCHAR IS NULL OR project = $2)" + ("" if everything else f" AND {_LISTED}")
        sql = f"SELECT * FROM runs WHERE {where} ORDER BY {_NEWEST_FIRST} LIMIT $1"
        return [RunRow(*row) for row in self._rows(sql, [limit, project])]

    def other_projects(self, project: str | None) -> dict[str, int]:
        """Name → number of listed runs, for the other projects in this store; none for None."""
        sql = f"SELECT project, count(*) FROM runs WHERE project <> $1 AND {_LISTED}"
        return dict(self._rows(f"{sql} GROUP BY project ORDER BY project", [project]))

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

    def case_ids(self, run_id: str) -> list[str]:
        """The cases that a run has anything on record of, in the order of the run."""
        found: dict[str, None] = {}
        for table in ("run_cases", "run_judgments"):
            rows = self._rows(
                f"SELECT case_id FROM {table} WHERE run_id = $1 "
                "GROUP BY case_id ORDER BY min(rowid)",
                [run_id],
            )
            found |= dict.fromkeys(row[0] for row in rows)
        return list(found)

    def case_stages(self, run_id: str, case_ids: Sequence[str] | None = None) -> list[CaseStage]:
        """What the stages came to, of all cases of a run or of some."""
        return self._of_run("run_cases", CaseStage, run_id, case_ids)

    def stage_digests(self, run_id: str, stage: str) -> dict[str, str]:
        """Case id → digest of what one stage of a run produced, in the order of the run."""
        rows = self._rows(
            "SELECT case_id, digest FROM run_cases "
            "WHERE run_id = $1 AND stage = $2 AND digest IS NOT NULL ORDER BY rowid",
            [run_id, stage],
        )
        return dict(rows)

    def stage_rows(self, run_id: str, stage: str) -> list[CaseStage]:
        """What one stage came to, of all cases of a run: first samples first, in their order."""
        where = "WHERE run_id = $1 AND stage = $2 ORDER BY"
        rows = self._rows(f"SELECT * FROM run_cases {where} rowid", [run_id, stage])
        found = [CaseStage(*row) for row in rows]
        if self._has("sample_stages"):
            rows = self._rows(f"SELECT * FROM sample_stages {where} sample, rowid", [run_id, stage])
            found += [SampleStage(*row) for row in rows]
        return found

    def sample_stages(
        self, run_id: str, case_ids: Sequence[str] | None = None
    ) -> list[SampleStage]:
        """What the stages of further samples came to, of all cases of a run or of some."""
        if not self._has("sample_stages"):
            return []
        return self._of_run("sample_stages", SampleStage, run_id, case_ids)

    def stage_costs(self, run_id: str) -> list[StageCost]:
        """Time and reported usage of every stage of a run that a system executes.

        Assembly is done anew in every run, and counts with its first time, like a hit.
        """
        columns = "run_id, case_id, stage, identity, digest, source, latency_ms, failure"
        recorded = f"SELECT {columns}, 0 AS sample FROM run_cases"
        if self._has("sample_stages"):
            recorded += f" UNION ALL SELECT {columns}, sample FROM sample_stages"
        rows = self._rows(
            "SELECT c.case_id, c.stage, c.digest, c.failure, "
            "CASE WHEN c.source = 'miss' AND c.stage <> 'assembled_context' "
            "THEN c.latency_ms ELSE coalesce(r.latency_ms, 0) END, r.usage, c.sample "
            f"FROM ({recorded}) c LEFT JOIN stage_results r ON c.identity = r.identity "
            "WHERE c.run_id = $1 AND c.stage IN "
            "('execution', 'retrieval', 'assembled_context', 'generation')",
            [run_id],
        )
        return [StageCost(*row) for row in rows]

    def run_judgments(
        self, run_id: str, case_ids: Sequence[str] | None = None
    ) -> list[RunJudgment]:
        """The outcomes of a run, of all cases or of some."""
        return self._of_run("run_judgments", RunJudgment, run_id, case_ids)

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

    def diagnoses(self, prefix: str) -> list[DiagnosisRow]:
        """The diagnoses whose id begins with a text, newest first."""
        return self._diagnoses("starts_with(id, $1)", [prefix])

    def diagnoses_of(self, run_id: str, criterion: str, intervention: str) -> list[DiagnosisRow]:
        """The diagnoses of a run under one criterion and intervention, newest first."""
        where = "run_id = $1 AND criterion = $2 AND intervention = $3"
        return self._diagnoses(where, [run_id, criterion, intervention])

    def _diagnoses(self, where: str, values: list[Any]) -> list[DiagnosisRow]:
        if not self._has("diagnoses"):
            return []
        # Two of one invocation may have the same time: the later row is the newer one.
        sql = f"SELECT * FROM diagnoses WHERE {where} ORDER BY created_at DESC, rowid DESC"
        return [DiagnosisRow(*row) for row in self._rows(sql, values)]

    def labels(self) -> list[HumanLabel]:
        """The imported labels, in the order of their import."""
        if not self._has("labels"):
            return []
        columns = ", ".join(field.name for field in fields(HumanLabel))
        rows = self._rows(f"SELECT {columns} FROM labels ORDER BY rowid", [])
        return [HumanLabel(*row) for row in rows]

    def write_parquet(self, table: RunTable, run_id: str, path: Path) -> None:
        """Write the rows of one run as a Parquet file, in the order in which they were recorded.

        Raises:
            OSError: the file cannot be written.
        """
        if self._connection is None:
            return
        import duckdb

        sql = f"SELECT * FROM {table} WHERE run_id = $1 ORDER BY rowid"
        try:
            self._connection.execute(f"COPY ({sql}) TO $2 (FORMAT parquet)", [run_id, str(path)])
        except duckdb.IOException as error:
            raise OSError(errno.EIO, str(error).splitlines()[0], str(path)) from error

    def _has(self, table: str) -> bool:
        """Whether the store, which an older version may have written, has a table."""
        return bool(self._rows("SELECT 1 FROM duckdb_tables() WHERE table_name = $1", [table]))

    def _of_run(
        self, table: RunTable, kind: type[T], run_id: str, case_ids: Sequence[str] | None = None
    ) -> list[T]:
        sql = f"SELECT * FROM {table} WHERE run_id = $1"
        values: list[Any] = [run_id]
        if case_ids is not None:
            sql += " AND case_id IN (SELECT unnest($2::VARCHAR[]))"
            values.append(list(case_ids))
        return [kind(*row) for row in self._rows(f"{sql} ORDER BY rowid", values)]

    def _of_settled(self, table: str, columns: str, settled: Mapping[str, str]) -> list[Any]:
        return self._rows(
            f"SELECT {columns} FROM {table} c JOIN (SELECT unnest($1::VARCHAR[]) AS case_id, "
            "unnest($2::VARCHAR[]) AS run_id) w USING (run_id, case_id) ORDER BY c.rowid",
            [list(settled), list(settled.values())],
        )

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
