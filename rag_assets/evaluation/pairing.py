"""Which cases of two runs are paired, which metrics are compared, and why others are not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_assets.contracts.canonical import digest
from rag_assets.store.reader import Reader

UnpairedReason = Literal["added", "removed", "input_changed", "expected_changed"]
UncomparedReason = Literal["evaluator_changed", "only_in_candidate", "only_in_baseline"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """The cases of two runs.

    Attributes:
        paired: ids of the cases with the same input and expectation in both runs.
        added: ids that only the candidate has.
        removed: ids that only the baseline has.
        input_changed: ids of both runs whose question, or who asks it, or when, is another one.
        expected_changed: ids of both runs whose right answer is another one.
    """

    paired: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    input_changed: tuple[str, ...]
    expected_changed: tuple[str, ...]

    def unpaired(self) -> dict[UnpairedReason, list[str]]:
        """Reason → ids, for JSON."""
        return {
            "added": list(self.added),
            "removed": list(self.removed),
            "input_changed": list(self.input_changed),
            "expected_changed": list(self.expected_changed),
        }


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A metric that cannot be compared, and why."""

    criterion: str
    reason: UncomparedReason


def pair_cases(reader: Reader, candidate: str, baseline: str) -> Pairing:
    """Pair the cases of two runs by id, where input and expectation agree.

    Args:
        reader: the open store.
        candidate, baseline: run ids.
    """
    ours, theirs = (reader.stage_digests(run, "cases") for run in (candidate, baseline))
    shared = [case_id for case_id in ours if case_id in theirs]
    edited = [case_id for case_id in shared if ours[case_id] != theirs[case_id]]
    changes = _changes(reader, {case_id: (ours[case_id], theirs[case_id]) for case_id in edited})
    return Pairing(
        paired=tuple(case_id for case_id in shared if case_id not in changes),
        added=tuple(case_id for case_id in ours if case_id not in theirs),
        removed=tuple(case_id for case_id in theirs if case_id not in ours),
        input_changed=_with(changes, "input_changed"),
        expected_changed=_with(changes, "expected_changed"),
    )


def pair_metrics(
    candidate: Iterable[Mapping[str, Any]], baseline: Iterable[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[Uncompared]]:
    """Which metrics have one definition in both runs.

    Args:
        candidate, baseline: the evaluators as the runs recorded them.

    Returns:
        The evaluators of the metrics that are compared, and the metrics that are not.
    """
    ours, theirs = ({one["criterion"]: one for one in side} for side in (candidate, baseline))
    compared: list[Mapping[str, Any]] = []
    others: list[Uncompared] = []
    for criterion, evaluator in ours.items():
        if criterion not in theirs:
            others.append(Uncompared(criterion, "only_in_candidate"))
        elif _definition(evaluator) != _definition(theirs[criterion]):
            others.append(Uncompared(criterion, "evaluator_changed"))
        else:
            compared.append(evaluator)
    others += [
        Uncompared(criterion, "only_in_baseline") for criterion in theirs if criterion not in ours
    ]
    return compared, others


def setting_changes(
    candidate: Mapping[str, Any], baseline: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """(what, candidate's, baseline's) of everything that two runs were asked to do differently.

    Args:
        candidate, baseline: what the runs froze at their start.
    """
    for what in ("dataset", "manifest", "labels"):
        digests = [(run.get(what) or {}).get("digest") for run in (candidate, baseline)]
        if digests[0] != digests[1]:
            yield what, digests[0], digests[1]
    manifests = [run.get("manifest") or {} for run in (candidate, baseline)]
    one, other = ([manifest.get(key) for key in ("digest", "passed")] for manifest in manifests)
    if one[0] == other[0] and one[1] != other[1]:
        # Only then does another date mean that other documents are admissible.
        yield "date", *(manifest["as_of"] for manifest in manifests)
    systems = (_settings(candidate["system"]), _settings(baseline["system"]))
    for name in sorted(systems[0].keys() | systems[1].keys()):
        ours, theirs = (system.get(name) for system in systems)
        if ours != theirs:
            yield name, ours, theirs
    for name, default in (("seed", 0), ("replicates", 1), ("replicate_retrieval", False)):
        ours, theirs = (run.get(name, default) for run in (candidate, baseline))
        if ours != theirs:
            yield name, ours, theirs


def _settings(system: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a system, with the code of each stage as one of them."""
    settings = {name: value for name, value in system.items() if name not in ("code", "identity")}
    code = system.get("code") or {}
    return settings | {f"code of {stage}": found for stage, found in code.items()}


def _definition(evaluator: Mapping[str, Any]) -> tuple[Any, ...]:
    return evaluator["kind"], evaluator["range"], evaluator["identity"]


def _changes(
    reader: Reader, edited: Mapping[str, tuple[str, str]]
) -> dict[str, Literal["input_changed", "expected_changed"]]:
    """What changed in the cases that differ: metadata alone leaves a case as it is."""
    payloads = reader.payloads([found for digests in edited.values() for found in digests])
    found: dict[str, Literal["input_changed", "expected_changed"]] = {}
    for case_id, digests in edited.items():
        ours, theirs = (json.loads(payloads[one]) for one in digests)
        if digest(_asked(ours)) != digest(_asked(theirs)):
            found[case_id] = "input_changed"
        elif digest(ours.get("expected")) != digest(theirs.get("expected")):
            found[case_id] = "expected_changed"
    return found


def _asked(case: Mapping[str, Any]) -> list[Any]:
    """What the system receives: the input, and who asks when."""
    return [case.get(key) for key in ("input", "user", "as_of")]


def _with(changes: Mapping[str, str], reason: str) -> tuple[str, ...]:
    return tuple(case_id for case_id, found in changes.items() if found == reason)
