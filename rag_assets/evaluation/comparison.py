"""Comparing two runs, from records only. The id of a comparison is the digest of its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.policy import Policy
from rag_assets.evaluation.comparison_slices import slice_differences
from rag_assets.evaluation.deciding import decision_record, rules_for
from rag_assets.evaluation.differences import Difference, OutcomePair, difference
from rag_assets.evaluation.gate import GateDecision, RuleDecision, decide, gate_of, required_ids
from rag_assets.evaluation.pairing import (
    Pairing,
    pair_cases,
    pair_metrics,
    setting_changes,
)
from rag_assets.evaluation.planning_differences import plan_for_difference
from rag_assets.evaluation.retrieval_valid import NAME as RETRIEVAL_VALID
from rag_assets.evaluation.retrieval_valid import recorded_outcomes
from rag_assets.evaluation.stored_cases import NOT_EXECUTED, keys_of, recorded_outcome, samples_in
from rag_assets.evaluation.views import RunView
from rag_assets.evaluators import Outcome
from rag_assets.store.reader import Reader

DEFAULT_LEVEL = 0.95

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""Criterion → case id → outcome, of one run."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What is read of the two runs.

    Attributes:
        candidate, baseline: the runs.
        ours, theirs: the outcomes of the candidate and of the baseline.
        pairing: which cases are paired.
    """

    candidate: RunView
    baseline: RunView
    ours: Outcomes
    theirs: Outcomes
    pairing: Pairing

    def pairs(self, criterion: str) -> dict[str, OutcomePair]:
        """Case id → both outcomes; what a run never came to is missing."""
        ours, theirs = self.ours.get(criterion, {}), self.theirs.get(criterion, {})
        return {
            case_id: (ours.get(case_id, NOT_EXECUTED), theirs.get(case_id, NOT_EXECUTED))
            for case_id in self.pairing.paired
        }


def compare(
    reader: Reader, candidate: RunView, baseline: RunView, policy: Policy | None
) -> dict[str, Any]:
    """Compare two runs and decide the policy's rules on their differences.

    Args:
        reader: the open store.
        candidate, baseline: two different runs.
        policy: checked against their metrics; its rules for one run are left aside.

    Returns:
        The record of the comparison, as JSON; `comparison_id` names it.
    """
    sides = Sides(
        candidate,
        baseline,
        _outcomes(reader, candidate.row.id),
        _outcomes(reader, baseline.row.id),
        pair_cases(reader, candidate.row.id, baseline.row.id),
    )
    level = policy.confidence_level if policy else DEFAULT_LEVEL
    compared, others = pair_metrics(candidate.record["evaluators"], baseline.record["evaluators"])
    paired = sides.pairing.paired
    found = keys_of(reader, candidate, paired)
    keys = dict(zip(paired, found, strict=True)) if found else None
    differences = {
        one["criterion"]: difference(
            one["criterion"],
            one["kind"],
            (one["range"][0], one["range"][1]),
            sides.pairs(one["criterion"]),
            keys,
            max(samples_in(run.record, one["criterion"]) for run in (candidate, baseline)),
        ).bounded(level)
        for one in compared
    }
    # What a slice of the cases came to says nothing about how many of them there are.
    sliced = {name: one for name, one in differences.items() if name != RETRIEVAL_VALID}
    decisions, gate = _decide(sides, differences, policy)
    return {
        "format": "comparison/v1",
        "candidate": _run_record(candidate),
        "baseline": _run_record(baseline),
        "policy": policy
        and {"file": policy.path.name, "digest": policy.digest, "confidence_level": level},
        "pairs": len(sides.pairing.paired),
        "unpaired": sides.pairing.unpaired(),
        "differs": [
            {"what": what, "candidate": ours, "baseline": theirs}
            for what, ours, theirs in setting_changes(candidate.record, baseline.record)
        ],
        "denominators": _denominators(sides, list(differences)),
        "not_compared": [asdict(one) for one in others],
        "metrics": [difference_record(one) for one in differences.values()],
        "operational": _side_by_side(candidate, baseline),
        "slices": slice_differences(
            reader, candidate.record, baseline, sides.pairing, sliced, sides.pairs, level, keys
        ),
        "decisions": [_decision(one, policy, level) for one in decisions] if policy else [],
        "gate": gate and {"state": gate.state, "reasons": list(gate.reasons)},
        "exit_code": gate.exit_code if gate else 0,
    }


def comparison_id(record: Mapping[str, Any]) -> str:
    """The id of a comparison: the digest of its record."""
    return f"sha256:{digest(record)}"


def difference_record(metric: Difference) -> dict[str, Any]:
    """A difference as it is stored."""
    interval = metric.interval
    return {
        "criterion": metric.criterion,
        "kind": metric.kind,
        "range": list(metric.value_range),
        "estimate": metric.estimate,
        "lower": interval.lower if interval else None,
        "upper": interval.upper if interval else None,
        "method": interval.method if interval else None,
        "level": interval.level if interval else None,
        "observed": metric.observed,
        "missing": metric.missing,
        "excluded": metric.excluded,
        "groups": len(metric.groups.lowest) if metric.groups else None,
        "missing_reasons": dict(metric.missing_reasons),
        "excluded_reasons": dict(metric.excluded_reasons),
        "gained": list(metric.gained),
        "lost": list(metric.lost),
    }


def _outcomes(reader: Reader, run_id: str) -> Outcomes:
    found = {RETRIEVAL_VALID: recorded_outcomes(reader, run_id)}
    for one in reader.run_judgments(run_id):
        found.setdefault(one.criterion, {})[one.case_id] = recorded_outcome(one)
    return found


def _decide(
    sides: Sides, differences: Mapping[str, Difference], policy: Policy | None
) -> tuple[list[RuleDecision[Difference]], GateDecision | None]:
    rules = rules_for(policy, "comparison")
    if policy is None or not rules:
        return [], None
    unpaired = [case_id for ids in sides.pairing.unpaired().values() for case_id in ids]
    required = required_ids(policy, [*sides.pairing.paired, *unpaired])
    decisions: list[RuleDecision[Difference]] = []
    for rule in rules:
        metric = differences.get(rule.metric) or _no_difference(sides, rule.metric)
        if rule.method is not None:
            metric = metric.bounded(policy.confidence_level, rule.method)
        pairs = sides.pairs(rule.metric)
        lacking = any(
            case_id not in pairs or any(one.status == "missing" for one in pairs[case_id])
            for case_id in required
        )
        decisions.append(decide(rule, metric, required_missing=lacking))
    runs = (sides.candidate, sides.baseline)
    complete = all(run.completeness == "COMPLETE" for run in runs)
    return decisions, gate_of(policy, decisions, "COMPLETE" if complete else "PARTIAL")


def _no_difference(sides: Sides, criterion: str) -> Difference:
    """A metric that is not compared: no pair of it is observed."""
    evaluators = (*sides.candidate.record["evaluators"], *sides.baseline.record["evaluators"])
    one = next(one for one in evaluators if one["criterion"] == criterion)
    return difference(criterion, one["kind"], (one["range"][0], one["range"][1]), {})


def _decision(decision: RuleDecision[Difference], policy: Policy, level: float) -> dict[str, Any]:
    """A decision with every number that it rests on."""
    plan = plan_for_difference(decision, level)
    metric = decision.metric
    return {
        **decision_record(decision, policy),
        "state": decision.state,
        "kind": metric.kind,
        "range": list(metric.value_range),
        "excluded": metric.excluded,
        "estimate": metric.estimate,
        "gained": len(metric.gained),
        "lost": len(metric.lost),
        "plan": plan.as_json() if plan else None,
    }


def _run_record(view: RunView) -> dict[str, Any]:
    return {"run": view.row.id, "state": view.state, "completeness": view.completeness}


def _side_by_side(candidate: RunView, baseline: RunView) -> list[dict[str, Any]]:
    """Operational metrics have no difference: what each run recorded, as it is."""
    ours, theirs = (
        {one["id"]: one for one in run.record.get("metrics", ())} for run in (candidate, baseline)
    )
    return [
        {
            "metric": name,
            "source": definition["source"],
            "candidate": _quantile(candidate, name),
            "baseline": _quantile(baseline, name),
        }
        for name, definition in ours.items()
        if theirs.get(name) == definition
    ]


def _quantile(run: RunView, name: str) -> dict[str, float | None]:
    found = next((one.measure for one in run.metrics if one.criterion == name), None)
    return {key: getattr(found, key, None) for key in ("estimate", "lower", "upper")}


def _denominators(sides: Sides, criteria: Sequence[str]) -> list[dict[str, Any]]:
    """The counts and the estimate of each whole run, where the counts differ."""
    found: list[dict[str, Any]] = []
    for criterion in criteria:
        counts = [
            Counter(one.status for one in outcomes.get(criterion, {}).values())
            for outcomes in (sides.ours, sides.theirs)
        ]
        if counts[0] != counts[1]:
            ours, theirs = (
                {
                    **{status: count[status] for status in ("observed", "missing", "excluded")},
                    "estimate": _estimate(run, criterion),
                }
                for count, run in zip(counts, (sides.candidate, sides.baseline), strict=True)
            )
            found.append({"metric": criterion, "candidate": ours, "baseline": theirs})
    return found


def _estimate(run: RunView, criterion: str) -> float | None:
    """What the whole run came to; None where it did not come to its metrics."""
    found = (one.measure.estimate for one in run.metrics if one.criterion == criterion)
    return next(found, None)
