"""Executing a planned diagnosis, labelling its cases and storing it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rag_assets.contracts.artifacts import Context, Retrieval
from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.evaluation.diagnosis.children import Parent, execute_child, judging_only
from rag_assets.evaluation.diagnosis.findings import Findings
from rag_assets.evaluation.diagnosis.labels import Evidence, evidence_of
from rag_assets.evaluation.diagnosis.planning import Plan
from rag_assets.evaluation.diagnosis.record import DiagnosisView, diagnosis_id, diagnosis_view
from rag_assets.evaluation.owner import now
from rag_assets.evaluation.session import Observer
from rag_assets.store import CaseStage, DiagnosisRow
from rag_assets.store.reader import Reader


def diagnose(plan: Plan, observer: Observer, dagster_run_id: str | None) -> Iterator[DiagnosisView]:
    """Execute what is planned, one child run after the other, and store what it comes to.

    Args:
        plan: as `plan_diagnosis` makes it.
        observer: who is told how it goes on.
        dagster_run_id: the Dagster run that executes it.

    Yields:
        One diagnosis for each intervention, in their order, as soon as it is stored; none when no
        case is selected.

    Raises:
        ContractError: a reranker or `count_tokens` broke its contract.
        KeyboardInterrupt: it was interrupted; child runs that have ended stay.
    """
    cases = plan.selection.cases
    if not cases:
        return
    with plan.project.store.reading() as reader:
        rows = reader.case_stages(plan.run.row.id, plan.selection.ids)
        stages = {(row.stage, row.case_id): row for row in rows}
        evidence = _evidence(reader, plan, stages)
    if plan.project.is_whole:
        findings = Findings(plan, plan.interventions[0], None, None, evidence, None)
        yield _store(findings, dagster_run_id)
        return
    parent = Parent(plan.run.row.id, stages, plan.request.criterion, plan.request.below)
    project = judging_only(plan.project, plan.request.criterion)
    control = None
    if plan.request.control:
        control = execute_child(project, parent, cases, None, observer, dagster_run_id)
    gold = diagnosis_view(plan.builds_on) if plan.builds_on else None
    for one in plan.interventions:
        child = execute_child(project, parent, cases, one, observer, dagster_run_id)
        labels = gold if one.is_replay else None
        findings = Findings(plan, one, control, child, evidence, labels)
        view = _store(findings, dagster_run_id)
        yield view
        gold = gold or view


def _evidence(
    reader: Reader, plan: Plan, stages: Mapping[tuple[str, str], CaseStage]
) -> dict[str, Evidence]:
    """Where the relevant evidence of each selected case stood in the run."""
    kinds = ("retrieval", "assembled_context")
    wanted = {
        (kind, case.id): row.digest
        for kind in kinds
        for case in plan.selection.cases
        if (row := stages.get((kind, case.id))) and row.digest
    }
    payloads = reader.payloads(list(wanted.values()))

    def record(kind: str, case: Case) -> Any:
        found = wanted.get((kind, case.id))
        return None if found is None else json.loads(payloads[found])

    top_k = None if plan.project.is_whole else plan.project.system.top_k
    unit = plan.run.record["relevance_unit"]
    evidence: dict[str, Evidence] = {}
    for case in plan.selection.cases:
        retrieval, context = (record(kind, case) for kind in kinds)
        evidence[case.id] = evidence_of(
            case,
            None if retrieval is None else Retrieval.recall(retrieval).candidates,
            None if context is None else Context.recall(context).items,
            unit,
            top_k,
        )
    return evidence


def _store(findings: Findings, dagster_run_id: str | None) -> DiagnosisView:
    """Put a diagnosis on record, and link its child runs to it."""
    record, plan = findings.record(), findings.plan
    row = DiagnosisRow(
        id=diagnosis_id(record),
        created_at=now(),
        run_id=plan.run.row.id,
        criterion=plan.request.criterion,
        intervention=findings.intervention.kind,
        dagster_run_id=dagster_run_id,
        payload=canonical_json(record),
    )
    with plan.project.store.writing() as writer:
        writer.put_diagnosis(row)
        for child in (findings.control, findings.child):
            run = writer.reader.run(child.run_id) if child else None
            # A control that several diagnoses share belongs to the first of them.
            if run is not None and run.parent == plan.run.row.id:
                writer.update_run(run.id, parent=row.id)
    return diagnosis_view(row)
