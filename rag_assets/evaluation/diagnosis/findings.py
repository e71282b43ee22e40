"""What a diagnosis found, as the document that is kept of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.concluding import DEFAULT_LEVEL
from rag_assets.evaluation.diagnosis.children import Child, Replayed
from rag_assets.evaluation.diagnosis.implicated import implicated_factors
from rag_assets.evaluation.diagnosis.interventions import Intervention
from rag_assets.evaluation.diagnosis.labels import (
    RULES_VERSION,
    CaseLabel,
    Evidence,
    label_case,
)
from rag_assets.evaluation.diagnosis.planning import Plan
from rag_assets.evaluation.diagnosis.record import (
    DiagnosisView,
    criterion_record,
    intervention_record,
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What one intervention came to.

    Attributes:
        intervention: what was changed.
        control, child: the child runs without and with it; None where none was executed.
        evidence: case id → where its relevant evidence stood in the run.
        gold: the gold-context diagnosis that a replay takes its labels from.
    """

    plan: Plan
    intervention: Intervention
    control: Child | None
    child: Child | None
    evidence: Mapping[str, Evidence]
    gold: DiagnosisView | None

    def record(self) -> dict[str, Any]:
        """Label the cases, and write everything down as JSON."""
        plan, child, control, gold = self.plan, self.child, self.control, self.gold
        cases = [self._case_record(case) for case in plan.selection.cases]
        record = {
            "rules": RULES_VERSION,
            "run": plan.run.row.id,
            "criterion": criterion_record(plan.request),
            "intervention": intervention_record(self.intervention),
            "control": plan.request.control,
            "children": {
                "intervention": child.run_id if child else None,
                "control": control.run_id if control else None,
            },
            "system": _system_record(plan),
            "relevance_unit": plan.run.record["relevance_unit"],
            "selection": selection_record(plan),
            "control_passed": sum(_passed(one["control"]) for one in cases),
            "recovered": sum(one["recovered"] for one in cases),
            "cases": cases,
            "implicated": [],
            "gold": gold and _gold_record(gold, self.intervention, cases),
        }
        if child and gold is None:
            record["implicated"] = _implicated(plan, record)
        return record

    def _case_record(self, case: Case) -> dict[str, Any]:
        before = self.control.cases[case.id] if self.control else None
        after = self.child.cases[case.id] if self.child else None
        recovered = (
            after is not None
            and after.verdict == "passed"
            and (before is None or before.verdict == "failed")
        )
        found = {
            "id": case.id,
            "control": before and asdict(before),
            "intervention": after and asdict(after),
            "recovered": recovered,
        }
        if self.gold is not None:
            return found | _label_from(self.gold, case.id, self.intervention, after, recovered)
        evidence = self.evidence[case.id]
        label = label_case(
            is_staged=after is not None,
            control=before.verdict if before else None,
            intervention=after.verdict if after else "no_verdict",
            is_labelled=any(one.grade > 0 for one in case.relevant),
            evidence=evidence,
        )
        return found | _label_record(label, evidence.best_position)


def _label_record(label: CaseLabel, best_position: int | None) -> dict[str, Any]:
    return {**asdict(label), "notes": list(label.notes), "best_position": best_position}


def _label_from(
    gold: DiagnosisView,
    case_id: str,
    intervention: Intervention,
    after: Replayed | None,
    recovered: bool,
) -> dict[str, Any]:
    """The label that gold context gave, as a replay carries it on."""
    one = gold.case(case_id)
    assert one is not None
    label = {key: one[key] for key in ("label", "reason", "strength", "notes", "best_position")}
    if after is not None and after.verdict == "error":
        label["notes"] = [*label["notes"], "intervention_error"]
    if recovered and one["label"] == intervention.confirms:
        label["strength"] = "replay_confirmed"
    return label


def _gold_record(
    gold: DiagnosisView, intervention: Intervention, cases: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What a replay says of the diagnosis that its labels come from."""
    concerned = [one for one in cases if one["label"] == intervention.confirms]
    return {
        "diagnosis": gold.id,
        "children": gold.record["children"],
        "recovered": gold.record["recovered"],
        "confirms": intervention.confirms,
        "confirmed": sum(one["recovered"] for one in concerned),
        "confirmable": len(concerned),
    }


def _passed(replayed: Mapping[str, Any] | None) -> bool:
    return replayed is not None and replayed["verdict"] == "passed"


def _system_record(plan: Plan) -> dict[str, Any]:
    system = plan.project.evaluated
    if plan.project.is_whole:
        return {"kind": plan.run.system_kind, "name": system.name}
    staged = plan.project.system
    return {
        "kind": "rag",
        "name": staged.name,
        "depth": staged.depth,
        "top_k": staged.top_k,
        "token_budget": staged.token_budget,
    }


def selection_record(plan: Plan) -> dict[str, Any]:
    """Which failed cases a diagnosis goes through, as JSON."""
    selection = plan.selection
    interval = None
    # Cases that belong together are no independent draws.
    if plan.run.record["suite"] == "sample" and not plan.run.record["grouped"]:
        from rag_assets.statistics.rates import clopper_pearson

        policy = plan.run.record["policy"]
        level = policy["confidence_level"] if policy else DEFAULT_LEVEL
        found = clopper_pearson(selection.failing, selection.observed, selection.unjudged, level)
        interval = {"lower": found.lower, "upper": found.upper, "level": level}
    return {
        "selected": list(selection.ids),
        "without_gold": list(selection.without_gold),
        "not_selected": dict(selection.not_selected),
        "failing": selection.failing,
        "observed": selection.observed,
        "failing_interval": interval,
        "dataset": plan.project.config.dataset.name,
    }


def _implicated(plan: Plan, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    cases = record["cases"]
    positions = [
        one["best_position"]
        for one in cases
        if one["label"] == "RANKED_OUT" and one["best_position"] is not None
    ]
    factors = implicated_factors(
        Counter(one["label"] for one in cases),
        positions,
        selected=len(cases),
        recovered=record["recovered"],
        depth=plan.project.system.depth,
    )
    return [
        {**asdict(one), "experiments": [tried.text for tried in one.experiments]} for one in factors
    ]
