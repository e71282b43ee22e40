"""All rows of one case in one run as one JSON object: a line of an exported bundle.

A case may have several rows of a stage or a criterion, so everything is a list in the order of
recording, and nothing is looked up in another run: what was recorded once reads the same forever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.evaluation.candidates import candidates
from rag_assets.evaluation.case_view import cited, stage_state
from rag_assets.evaluation.recorded_sources import RecordedCases
from rag_assets.evaluation.redaction import EXECUTION, GENERATION, leaks_of
from rag_assets.evaluation.retrieval_valid import state_of
from rag_assets.evaluation.views import RunView
from rag_assets.store import CaseStage, RunJudgment

_JSON = ("failure", "attempts", "usage")
_KINDS = {
    "execution": EXECUTION,
    "retrieval": RETRIEVAL,
    "assembled_context": CONTEXT,
    "citations": CITATIONS,
    "generation": GENERATION,
}
"""Stage → kind of what it produces."""


def case_record(
    case_id: str,
    stages: Sequence[CaseStage],
    judgments: Sequence[RunJudgment],
    payloads: Mapping[str, str],
    view: RunView,
    cases: RecordedCases,
    *,
    include_restricted: bool,
) -> dict[str, Any]:
    """Everything that a run recorded of a case.

    Args:
        case_id: the case.
        stages, judgments: its rows, in the order of recording.
        payloads: digest → canonical JSON, of all that its stages produced.
        view: the run.
        cases: makes the case of its record.
        include_restricted: False hides what the user of the case may not see.

    Returns:
        `case` as in the dataset (None where the run did not come to it); `executions` with state
        and digest; `artifacts` by digest; `redacted`, the digests of those that are not as they
        were recorded; `judgments`; and two views of the artifacts: `retrieval` and `citations`,
        with the digest of what each is a view of.
    """
    known = [row.digest for row in stages if row.stage == "cases" and row.digest in payloads]
    case: Any = json.loads(payloads[str(known[0])]) if known else None
    parsed = None if case is None else cases.case(case)
    kinds = {
        row.digest: _KINDS[row.stage]
        for row in stages
        if row.digest in payloads and row.stage in _KINDS
    }
    artifacts = {digest: json.loads(payloads[digest]) for digest in sorted(filter(None, kinds))}
    redacted: list[str] = []
    if parsed is not None and not include_restricted:
        found = (one for digest, one in artifacts.items() if kinds[digest] in (RETRIEVAL, CONTEXT))
        redactor, leaks = cases.redactor(parsed, found), _leaks(judgments)
        case = redactor.case_record(case)
        recorded = dict(artifacts)
        artifacts |= {one: redactor.artifact(kinds[one], recorded[one], leaks) for one in recorded}
        redacted = [one for one in recorded if artifacts[one] != recorded[one]]
    return {
        "id": case_id,
        "case": case,
        "executions": [execution_record(row) for row in stages],
        "artifacts": artifacts,
        **({"redacted": redacted} if cases.has_corpus else {}),
        "judgments": [judgment_record(row, view) for row in judgments],
        "retrieval": list(_retrieval(stages, artifacts, parsed, view)) if parsed else [],
        "citations": list(_citations(stages, artifacts, view)),
    }


def _leaks(judgments: Sequence[RunJudgment]) -> list[Mapping[str, Any]]:
    """What `no_leak` found in any sample: an answer of one is masked wherever one of them leaks."""
    details = [json.loads(row.detail) for row in judgments if row.detail]
    return [leak for detail in details for leak in leaks_of(detail, None)]


def execution_record(row: CaseStage) -> dict[str, Any]:
    """What a stage came to, as JSON."""
    found = _without_place(asdict(row))
    opened = {key: json.loads(found[key]) for key in _JSON if found[key] is not None}
    return {**found, **opened, "state": stage_state(row)}


def judgment_record(row: RunJudgment, view: RunView) -> dict[str, Any]:
    """An outcome, as JSON; the value of a verdict is true or false."""
    return _without_place({**asdict(row), **view.judgment(row).as_json()})


def _without_place(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What stands on every line of the run, or of the case, is said once."""
    return {key: value for key, value in fields.items() if key not in ("run_id", "case_id", "case")}


def _retrieval(
    stages: Sequence[CaseStage],
    artifacts: Mapping[str, Any],
    case: Case,
    view: RunView,
) -> Iterator[dict[str, Any]]:
    """Each retrieval with the relevance of its candidates, and which of them the model saw."""
    contexts = _of_stage(stages, "assembled_context")
    for row, context in zip_longest(_of_stage(stages, "retrieval"), contexts):
        retrieval, assembled = (
            artifacts.get(one.digest or "") if one else None for one in (row, context)
        )
        if row is None or retrieval is None:
            continue
        unit = view.record["relevance_unit"]
        found = [asdict(one) for one in candidates(retrieval, assembled, case, unit)]
        for one in found:
            # The text stands in the artifact.
            del one["text"]
        yield {"digest": row.digest, "state": state_of(row, retrieval), "candidates": found}


def _citations(
    stages: Sequence[CaseStage], artifacts: Mapping[str, Any], view: RunView
) -> Iterator[dict[str, Any]]:
    """What each output cites, where it cites anything."""
    recorded = _of_stage(stages, "citations")
    for row in recorded or _of_stage(stages, "generation"):
        artifact = artifacts.get(row.digest or "")
        value = cited(None, artifact, view) if recorded else cited(artifact, None, view)
        if value is not None:
            yield {"digest": row.digest, "value": value}


def _of_stage(stages: Sequence[CaseStage], stage: str) -> list[CaseStage]:
    return [row for row in stages if row.stage == stage]
