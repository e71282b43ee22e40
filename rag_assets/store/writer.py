"""Bulk writes of one transaction: a thousand rows a statement, and only what is not there yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.human_labels import HumanLabel
from rag_assets.store.reader import Reader
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
    StageResult,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HeadKey = tuple[str, str, str]
"""Instance, asset and case of a head."""

_ROWS_A_STATEMENT = 1000
# Case ids are the second value of a statement, and the runs that recorded them the third.
_SETTLED = (
    "(SELECT unnest($2::VARCHAR[]) AS case_id, unnest($3::VARCHAR[]) AS run_id, "
    "generate_subscripts($2::VARCHAR[], 1) AS place)"
)
_TABLES: dict[type, str] = {
    RunRow: "runs",
    StageResult: "stage_results",
    CaseStage: "run_cases",
    SampleStage: "sample_stages",
    Judgment: "judgments",
    RunJudgment: "run_judgments",
    Metric: "metrics",
    Decision: "decisions",
    Head: "heads",
    SettledCase: "settled_cases",
}


class Writer:
    """Writes rows inside the transaction that `Store.writing` opened."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection

    @property
    def reader(self) -> Reader:
        """Reads inside the same transaction."""
        return Reader(self._connection)

    def add_run(self, run: RunRow) -> None:
        """Record a new run."""
        self._append([run])

    def update_run(self, run_id: str, **columns: str | int | None) -> None:
        """Set columns of a run."""
        names = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, start=2))
        self._connection.execute(
            f"UPDATE runs SET {names} WHERE id = $1", [run_id, *columns.values()]
        )

    def put_artifacts(self, kind: str, payloads: Mapping[str, str]) -> None:
        """Store payloads (digest → canonical JSON) that are not stored yet."""
        rows = [(digest, kind, payload) for digest, payload in payloads.items()]
        self._insert_new("artifacts", "digest", ("digest", "kind", "payload"), rows)

    def put_stage_results(self, results: Sequence[StageResult], *, replace: bool = False) -> None:
        """Memoize results; an identity that is known keeps its result unless it is replaced."""
        self._insert_new("stage_results", "identity", *_columns(results), replace=replace)

    def put_judgments(self, judgments: Sequence[Judgment], *, replace: bool = False) -> None:
        """Memoize judgments; a key that is known keeps its judgment unless it is replaced."""
        self._insert_new("judgments", "key", *_columns(judgments), replace=replace)

    def add(
        self,
        rows: Sequence[CaseStage] | Sequence[RunJudgment] | Sequence[Metric] | Sequence[Decision],
    ) -> None:
        """Append rows of one run."""
        self._append(rows)

    def put_settled(self, cases: Sequence[SettledCase], *, replace: bool = False) -> None:
        """Note which records stand for later runs; a known key keeps its own unless replaced."""
        self._insert_new("settled_cases", "key", *_columns(cases), replace=replace)

    def forget_settled(self) -> None:
        """No record stands for a later run any more: results are about to be replaced."""
        self._connection.execute("DELETE FROM settled_cases")

    def repeat_case_stages(
        self, run_id: str, stages: Sequence[str], settled: Mapping[str, str]
    ) -> None:
        """Record stages of settled cases as hits of a run.

        Args:
            run_id: the run that records.
            stages: the stages.
            settled: case id → run whose records stand for it.
        """
        self._connection.execute(
            "INSERT INTO run_cases "
            "SELECT $1, case_id, stage, identity, digest, 'hit', 0, NULL, NULL, NULL "
            f"FROM run_cases JOIN {_SETTLED} USING (run_id, case_id) "
            "WHERE stage IN (SELECT unnest($4::VARCHAR[])) ORDER BY place",
            [run_id, list(settled), list(settled.values()), list(stages)],
        )

    def repeat_judgments(self, run_id: str, settled: Mapping[str, str]) -> None:
        """Record the judgments of settled cases as hits of a run; arguments as above."""
        self._connection.execute(
            "INSERT INTO run_judgments SELECT $1, case_id, criterion, key, "
            "CASE WHEN source = 'none' THEN source ELSE 'hit' END, status, value, reason, detail "
            f"FROM run_judgments j JOIN {_SETTLED} USING (run_id, case_id) "
            "ORDER BY place, j.rowid",
            [run_id, list(settled), list(settled.values())],
        )

    def put_comparison(self, comparison: ComparisonRow) -> None:
        """Store a comparison; an id that is known keeps its first time."""
        self._insert_new("comparisons", "id", *_columns([comparison]))

    def put_diagnosis(self, diagnosis: DiagnosisRow) -> None:
        """Store a diagnosis; an id that is known keeps its first time."""
        self._insert_new("diagnoses", "id", *_columns([diagnosis]))

    def put_labels(self, labels: Sequence[HumanLabel]) -> int:
        """Store labels that are not stored yet, and return how many those are."""
        names, rows = _columns(labels)
        keyed = [(one.key, *row) for one, row in zip(labels, rows, strict=True)]
        return self._insert_new("labels", "key", ("key", *names), keyed)

    def put_heads(self, heads: Mapping[HeadKey, Head | None]) -> None:
        """Set heads; None forgets one, so that the next success is emitted again."""
        for instances, assets, cases in _batches(list(heads)):
            self._connection.execute(
                "DELETE FROM heads USING (SELECT unnest($1::VARCHAR[]) AS instance, "
                "unnest($2::VARCHAR[]) AS asset, unnest($3::VARCHAR[]) AS case_id) AS gone "
                "WHERE heads.instance = gone.instance AND heads.asset = gone.asset "
                "AND heads.case_id = gone.case_id",
                [instances, assets, cases],
            )
        self._append([head for head in heads.values() if head is not None])

    def _append(self, rows: Sequence[Any]) -> None:
        if not rows:
            return
        self._append_rows(_TABLES[type(rows[0])], _columns(rows)[1])

    def _append_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        for batch in _batches(rows):
            places = ", ".join(f"unnest(${place + 1})" for place in range(len(batch)))
            self._connection.execute(f"INSERT INTO {table} SELECT {places}", batch)

    def _insert_new(
        self,
        table: str,
        key: str,
        names: Sequence[str],
        rows: Sequence[tuple[Any, ...]],
        *,
        replace: bool = False,
    ) -> int:
        """Append the rows whose key is not there yet, or all of them, and return how many."""
        if not rows:
            return 0
        at = names.index(key)
        unique = {row[at]: row for row in reversed(rows)}
        if replace:
            self._connection.execute(
                f"DELETE FROM {table} WHERE {key} IN (SELECT unnest($1))", [list(unique)]
            )
            self._append_rows(table, list(unique.values()))
            return len(unique)
        # Payloads are large: find out first which of them are new.
        known = self._connection.execute(
            f"SELECT {key} FROM {table} WHERE {key} IN (SELECT unnest($1))", [list(unique)]
        ).fetchall()
        for (known_key,) in known:
            unique.pop(known_key, None)
        self._append_rows(table, list(unique.values()))
        return len(unique)


def _columns(rows: Sequence[Any]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    if not rows:
        return (), []
    names = tuple(field.name for field in fields(rows[0]))
    return names, [tuple(getattr(row, name) for name in names) for row in rows]


def _batches(rows: Sequence[tuple[Any, ...]]) -> Iterable[list[list[Any]]]:
    """Rows as lists of columns, a thousand rows at a time."""
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        batch = rows[start : start + _ROWS_A_STATEMENT]
        yield [list(column) for column in zip(*batch, strict=True)]
