"""Deciding again on the records of a run, with any policy. Nothing is executed or stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.policy import Policy, check_policy, read_policy
from rag_assets.evaluation.deciding import decide_on_run, rules_for, run_decision_record
from rag_assets.evaluation.gate import GateDecision, gate_of, required_ids
from rag_assets.evaluation.grouping import GroupKey
from rag_assets.evaluation.metrics import MetricValue, measure
from rag_assets.evaluation.operational import (
    measure_quantile,
    operational_metrics,
    operational_outcomes,
)
from rag_assets.evaluation.places import PROBLEMS_SHOWN
from rag_assets.evaluation.retrieval_valid import NAME as RETRIEVAL_VALID
from rag_assets.evaluation.retrieval_valid import recorded_outcomes
from rag_assets.evaluation.stored_cases import (
    NOT_EXECUTED,
    keys_of,
    recorded_kinds,
    recorded_outcome,
)
from rag_assets.evaluation.views import DecisionView, RunView, decision_view
from rag_assets.evaluation.words import Completeness
from rag_assets.evaluators import Outcome
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class Redecided:
    """What a policy decides on a run.

    Attributes:
        policy: the policy.
        decisions: one for each of its rules for one run.
        records: the same as JSON, with every number that they rest on.
        gate: None without a rule for one run.
        skipped: number of rules that decide on comparisons.
    """

    policy: Policy
    decisions: tuple[DecisionView, ...]
    records: tuple[dict[str, Any], ...]
    gate: GateDecision | None
    skipped: int

    @property
    def exit_code(self) -> int:
        """Of the gate; 0 where nothing was decided."""
        return self.gate.exit_code if self.gate else 0


def redecide(reader: Reader, view: RunView, policy_path: Path) -> Redecided:
    """Decide a policy's rules on what a run recorded.

    Args:
        reader: the open store.
        view: the run.
        policy_path: the policy file.

    Raises:
        InputError: the policy is invalid, or does not fit the metrics and cases of the run.
    """
    case_ids = list(reader.stage_digests(view.row.id, "cases"))
    policy = _policy(policy_path, view, case_ids)
    outcomes = _outcomes(reader, view, case_ids)
    keys = keys_of(reader, view, case_ids)
    metrics = _metrics(view, outcomes, policy.confidence_level, keys)
    # A required id outside of a selection is known by its name; a pattern is not.
    named = [one for one in policy.required_cases if not set(one) & set("*?[")]
    required = required_ids(policy, [*case_ids, *named])
    decisions = decide_on_run(policy, required, case_ids, outcomes, metrics, keys)
    records = [run_decision_record(one, policy, outcomes) for one in decisions]
    rules = rules_for(policy, "run")
    completeness: Completeness = "COMPLETE" if view.completeness == "COMPLETE" else "PARTIAL"
    return Redecided(
        policy=policy,
        decisions=tuple(
            decision_view(one.state, record) for one, record in zip(decisions, records, strict=True)
        ),
        records=tuple(
            {"state": one.state, **record} for one, record in zip(decisions, records, strict=True)
        ),
        gate=gate_of(policy, decisions, completeness) if rules else None,
        skipped=len(policy.rules) - len(rules),
    )


def _policy(path: Path, view: RunView, case_ids: Sequence[str]) -> Policy:
    problems: list[Problem] = []
    policy = read_policy(path, problems, name=path.name)
    if policy is not None:
        kinds = recorded_kinds(view.record)
        is_selection = view.record["selection"] is not None
        known = [*case_ids, *policy.required_cases] if is_selection else case_ids
        check_policy(policy, kinds, known, problems, name=path.name)
    if policy is None or problems:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
    return policy


def _outcomes(reader: Reader, view: RunView, case_ids: Sequence[str]) -> dict[str, list[Outcome]]:
    """Criterion → one outcome for each case; what the run never came to is missing."""
    found: dict[str, dict[str, Outcome]] = {
        one["criterion"]: {} for one in view.record["evaluators"]
    }
    for one in reader.run_judgments(view.row.id):
        found[one.criterion][one.case_id] = recorded_outcome(one)
    if RETRIEVAL_VALID in found:
        found[RETRIEVAL_VALID] = recorded_outcomes(reader, view.row.id)
    operational = operational_metrics(view.record)
    return {
        criterion: [by_case.get(case_id, NOT_EXECUTED) for case_id in case_ids]
        for criterion, by_case in found.items()
    } | operational_outcomes(reader, view.row.id, case_ids, operational)


def _metrics(
    view: RunView,
    outcomes: Mapping[str, Sequence[Outcome]],
    level: float,
    keys: Sequence[GroupKey] | None,
) -> list[MetricValue]:
    return [
        measure(
            one["criterion"],
            one["kind"],
            (one["range"][0], one["range"][1]),
            outcomes[one["criterion"]],
            level=level,
            keys=keys,
            samples=one.get("samples", 1),
            counts=one.get("counts"),
        )
        for one in view.record["evaluators"]
    ] + [measure_quantile(one, outcomes[one.id], level) for one in operational_metrics(view.record)]
