"""From a reference to a bundle: what is on record of a run or a comparison, as plain files.

Cases are read and written a batch at a time, and the store is closed between two batches: memory
grows with the batch, and a long export keeps no other process from writing. What a run recorded
does not change once it has ended, so the batches fit together. A bundle holds no time of day: the
same run makes the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.bundle import new_bundle, write_json, write_lines, write_manifest
from rag_assets.evaluation.case_record import case_record, judgment_record
from rag_assets.evaluation.comparison_view import ComparisonView, comparison_view
from rag_assets.evaluation.diagnosis.diagnosed_case import cases_of, diagnosed_case
from rag_assets.evaluation.diagnosis.record import DiagnosisView, diagnosis_view
from rag_assets.evaluation.pairing import pair_cases
from rag_assets.evaluation.places import reading_records
from rag_assets.evaluation.recorded_sources import recorded_cases
from rag_assets.evaluation.references import (
    find_by_digest,
    find_run,
    is_digest,
)
from rag_assets.evaluation.stored_cases import by_case
from rag_assets.evaluation.views import RunView, run_view
from rag_assets.store import DiagnosisRow
from rag_assets.store.reader import Reader, RunTable

FOLDER = "bundles"
_BATCH = 200
_TABLES: Final[dict[str, RunTable]] = {
    "executions": "run_cases",
    "judgments": "run_judgments",
    "metrics": "metrics",
    "decisions": "decisions",
}
_SAMPLED: Final[dict[str, RunTable]] = {"samples": "sample_stages"}

Opening = Callable[[], AbstractContextManager[Reader]]


@dataclass(frozen=True, slots=True)
class Exported:
    """A bundle that was just written.

    Attributes:
        path: the folder.
        subject: the id of the run, the comparison or the diagnosis.
        unit: what a line of it is about: `case` or `pair`.
        lines: number of lines.
    """

    path: Path
    subject: str
    unit: str
    lines: int


def export(
    config_path: Path, reference: str, out: Path | None, *, include_restricted: bool = False
) -> Exported:
    """Write the bundle of a run, of a comparison or of a diagnosis.

    Args:
        config_path: the project's config file.
        reference: names the run, the comparison or the diagnosis.
        out: the folder to write; None for `bundles/ID` beside the config, where `:` in the id
            becomes `-`. It may hold an earlier bundle of the same id, as it was exported, which is
            replaced.
        include_restricted: artifacts as they were recorded, with what users may not see.

    Raises:
        InputError: the reference names nothing, the run is going on, or the folder holds something
            else, or files that were edited, or cannot be written.
    """
    opening = partial(reading_records, config_path)
    with opening() as reader:
        found = _find(reader, reference, config_path)
    subject = found.row.id if isinstance(found, RunView) else found.id
    target = out or config_path.parent / FOLDER / subject.replace(":", "-")
    with new_bundle(target.resolve(), subject) as folder:
        if isinstance(found, RunView):
            facts = _write_run(opening, found, folder, include_restricted=include_restricted)
            unit = "case"
        elif isinstance(found, DiagnosisView):
            facts = _write_diagnosis(opening, found, folder, include_restricted=include_restricted)
            unit = "case"
        else:
            unit, facts = "pair", _write_comparison(opening, found, folder)
        write_manifest(folder, subject, facts)
    return Exported(target, subject, unit, facts["counts"][f"{unit}s"])


def _find(
    reader: Reader, reference: str, config_path: Path
) -> RunView | ComparisonView | DiagnosisView:
    if not is_digest(reference):
        return _ended(run_view(reader, find_run(reader, reference, config_path)))
    found = find_by_digest(reader, reference, config_path)
    if isinstance(found, DiagnosisRow):
        return diagnosis_view(found)
    return _ended_before(comparison_view(found))


def _ended(view: RunView) -> RunView:
    if view.state == "RUNNING":
        raise InputError(f"{view.row.id} is still going on. Export it when it has ended.")
    return view


def _ended_before(view: ComparisonView) -> ComparisonView:
    for side in (view.record["candidate"], view.record["baseline"]):
        if side["state"] == "RUNNING":
            raise InputError(
                f"{side['run']} was still going on when it was compared, so its records are not "
                "those of the comparison. Compare the runs again, and export that comparison."
            )
    return view


def _write_run(
    opening: Opening, view: RunView, folder: Path, *, include_restricted: bool
) -> dict[str, Any]:
    """Write all files of a run but the manifest, and return what the manifest says of them."""
    counts = _Counts()
    records = _cases(opening, view, include_restricted=include_restricted)
    write_lines(folder / "cases.jsonl", counts.counted(records))
    metrics, slices = ([one.as_json() for one in found] for found in (view.metrics, view.slices))
    write_json(folder / "metrics.json", {"metrics": metrics, "slices": slices})
    decisions = [one.as_json() for one in view.decisions]
    write_json(folder / "decisions.json", {"gate": view.row.gate, "decisions": decisions})
    tables = folder / "tables"
    tables.mkdir()
    with opening() as reader:
        has_samples = view.record.get("replicates", 1) > 1
        for name, table in (_TABLES | (_SAMPLED if has_samples else {})).items():
            reader.write_parquet(table, view.row.id, tables / f"{name}.parquet")
    return {
        "kind": "run",
        "project": view.row.project,
        "origin": view.row.origin,
        "parent": view.row.parent,
        "state": view.state,
        "completeness": view.completeness,
        "gate": view.row.gate,
        "exit_code": view.exit_code,
        "error": view.error,
        "restricted_text": _restricted(include_restricted),
        "counts": counts.as_json(),
        "record": dict(view.record),
        "summary": dict(view.summary),
    }


class _Counts:
    """Counts what passes by on its way into a file."""

    def __init__(self) -> None:
        self._cases = 0
        self._executions: Counter[str] = Counter()
        self._judgments: Counter[str] = Counter()

    def counted(self, records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for record in records:
            self._cases += 1
            self._executions.update(one["state"] for one in record["executions"])
            self._judgments.update(one["status"] for one in record["judgments"])
            yield record

    def as_json(self) -> dict[str, Any]:
        return {
            "cases": self._cases,
            "executions": dict(sorted(self._executions.items())),
            "judgments": dict(sorted(self._judgments.items())),
        }


def _cases(
    opening: Opening, view: RunView, *, include_restricted: bool
) -> Iterator[dict[str, Any]]:
    with opening() as reader:
        ids = reader.case_ids(view.row.id)
        cases = recorded_cases(reader, view.record)
    for batch in _batches(ids):
        with opening() as reader:
            rows = [
                *reader.case_stages(view.row.id, batch),
                *reader.sample_stages(view.row.id, batch),
            ]
            stages = by_case(rows)
            judgments = by_case(reader.run_judgments(view.row.id, batch))
            payloads = reader.payloads([row.digest for row in rows if row.digest])
        for case_id in batch:
            yield case_record(
                case_id,
                stages[case_id],
                judgments[case_id],
                payloads,
                view,
                cases,
                include_restricted=include_restricted,
            )


def _write_comparison(opening: Opening, view: ComparisonView, folder: Path) -> dict[str, Any]:
    """Write all files of a comparison but the manifest; the record as it makes up the id."""
    runs = {side: view.record[side]["run"] for side in ("candidate", "baseline")}
    with opening() as reader:
        paired = pair_cases(reader, runs["candidate"], runs["baseline"]).paired
        rows = {side: reader.run(run_id) for side, run_id in runs.items()}
        views = {side: run_view(reader, row) for side, row in rows.items() if row is not None}
    write_lines(folder / "pairs.jsonl", _pairs(opening, views, paired))
    write_json(folder / "comparison.json", view.record)
    return {
        "kind": "comparison",
        **runs,
        "gate": view.gate,
        "exit_code": view.exit_code,
        "counts": {"pairs": len(paired)},
    }


def _write_diagnosis(
    opening: Opening, view: DiagnosisView, folder: Path, *, include_restricted: bool
) -> dict[str, Any]:
    """Write all files of a diagnosis but the manifest; the record as it makes up the id."""
    records = _diagnosed(opening, view, include_restricted=include_restricted)
    write_lines(folder / "cases.jsonl", records)
    write_json(folder / "diagnosis.json", view.record)
    return {
        "kind": "diagnosis",
        "run": view.record["run"],
        "children": view.record["children"],
        "restricted_text": _restricted(include_restricted),
        "counts": {"cases": len(view.cases), "labels": view.counts()},
    }


def _restricted(is_included: bool) -> str:
    """What a bundle holds of what users of the cases may not see."""
    return "included" if is_included else "redacted"


def _diagnosed(
    opening: Opening, view: DiagnosisView, *, include_restricted: bool
) -> Iterator[dict[str, Any]]:
    """Each case with its label and what its executions made of it."""
    with opening() as reader:
        cases = None if include_restricted else cases_of(reader, view)
    for batch in _batches([one["id"] for one in view.cases]):
        with opening() as reader:
            found = [diagnosed_case(reader, view, one, cases).as_json() for one in batch]
        yield from found


def _pairs(
    opening: Opening, views: Mapping[str, RunView], paired: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The outcomes of both runs for each paired case."""
    for batch in _batches(paired):
        with opening() as reader:
            found = {
                side: by_case(reader.run_judgments(view.row.id, batch))
                for side, view in views.items()
            }
        for case_id in batch:
            yield {
                "id": case_id,
                **{
                    side: [judgment_record(row, view) for row in found[side][case_id]]
                    for side, view in views.items()
                },
            }


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
