"""One case of a diagnosis, with what its child runs made of it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.diagnosis.labels import CONTROL
from rag_assets.evaluation.diagnosis.record import DiagnosisView
from rag_assets.evaluation.recorded_sources import RecordedCases, recorded_cases
from rag_assets.evaluation.redaction import leaks_of
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class Execution:
    """What a case came to in one run.

    Attributes:
        name: `run`, `control`, or the intervention.
        run_id: the run.
        passages: ids of the passages that the model was given, in order; None where unknown.
        has_output: whether there is an output.
        output: any JSON.
        verdict: passed, failed, error or no_verdict.
        why: the error, or the reason of what is missing.
    """

    name: str
    run_id: str
    passages: tuple[str, ...] | None
    has_output: bool
    output: Any
    verdict: str
    why: str | None


@dataclass(frozen=True, slots=True)
class DiagnosedCase:
    """One case of a diagnosis.

    Attributes:
        record: its label, as the diagnosis has it.
        executions: the run itself, then its child runs.
    """

    record: Mapping[str, Any]
    executions: tuple[Execution, ...]

    def as_json(self) -> dict[str, Any]:
        """One object."""
        return {**self.record, "executions": [asdict(one) for one in self.executions]}


def diagnosed_case(
    reader: Reader, view: DiagnosisView, case_id: str, cases: RecordedCases | None
) -> DiagnosedCase:
    """Read one case of a diagnosis.

    Args:
        reader: the open store.
        view: the diagnosis.
        case_id: one of its cases.
        cases: tells what of an output may be shown; None to show all of it.

    Raises:
        InputError: the diagnosis has no such case; the nearest ids are listed.
    """
    record = view.case(case_id)
    if record is None:
        ids = [one["id"] for one in view.cases]
        near = difflib.get_close_matches(case_id, ids, n=3, cutoff=0.3)
        hint = f" Nearest: {', '.join(near)}." if near else ""
        raise InputError(f'The diagnosis has no case "{case_id}".{hint}')
    children = view.record["children"]
    runs = [
        ("run", view.record["run"], {"verdict": "failed", "why": _mean(reader, view, case_id)}),
        (CONTROL, children["control"], record["control"]),
        (view.name, children["intervention"], record["intervention"]),
    ]
    return DiagnosedCase(
        record,
        tuple(
            _execution(reader, name, run_id, case_id, replayed, cases)
            for name, run_id, replayed in runs
            if run_id is not None
        ),
    )


def _mean(reader: Reader, view: DiagnosisView, case_id: str) -> str | None:
    """What to say of a run that had several samples of a case; None where there was one."""
    samples = reader.sample_stages(view.record["run"], [case_id])
    if not samples:
        return None
    name = view.record["criterion"]["name"]
    rows = reader.run_judgments(view.record["run"], [case_id])
    mean = next((row.value for row in rows if row.criterion == name), None)
    return f"the mean of its samples is {mean}; sample 0 is shown"


def cases_of(reader: Reader, view: DiagnosisView) -> RecordedCases:
    """What makes cases of the records of a diagnosis."""
    run = reader.run(view.record["run"])
    return RecordedCases() if run is None else recorded_cases(reader, json.loads(run.record))


def _execution(
    reader: Reader,
    name: str,
    run_id: str,
    case_id: str,
    replayed: Mapping[str, Any],
    cases: RecordedCases | None,
) -> Execution:
    digests = {row.stage: row.digest for row in reader.case_stages(run_id, [case_id])}
    kinds = ("cases", "retrieval", "assembled_context", "generation")
    payloads = reader.payloads([found for kind in kinds if (found := digests.get(kind))])
    case, retrieval, context, output = (
        json.loads(payloads[found]) if (found := digests.get(kind)) else None for kind in kinds
    )
    if cases is not None and case is not None:
        passages = [one for one in (retrieval, context) if one is not None]
        details = [row.detail for row in reader.run_judgments(run_id, [case_id]) if row.detail]
        leaks = [leak for one in details for leak in leaks_of(json.loads(one))]
        output = cases.redactor(cases.case(case), passages).answer(output, leaks)
    return Execution(
        name=name,
        run_id=run_id,
        passages=None if context is None else tuple(_name(item) for item in context["items"]),
        has_output=digests.get("generation") is not None,
        output=output,
        verdict=replayed["verdict"],
        why=replayed["why"],
    )


def _name(item: Mapping[str, Any]) -> str:
    return "#".join(item[key] for key in ("doc_id", "chunk_id") if item.get(key))
