"""From two references to a stored comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.policy import Policy, check_policy, read_policy
from rag_assets.evaluation.comparison import compare, comparison_id
from rag_assets.evaluation.comparison_view import ComparisonView, comparison_view
from rag_assets.evaluation.deciding import rules_for
from rag_assets.evaluation.places import (
    COMPARE_POLICY_FILE,
    POLICY_FILE,
    PROBLEMS_SHOWN,
    reading_records,
    writing_records,
)
from rag_assets.evaluation.references import find_run
from rag_assets.evaluation.stored_cases import recorded_kinds
from rag_assets.evaluation.views import RunView, run_view
from rag_assets.store import ComparisonRow, RunRow


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison that was just made, and what else there is to say about it."""

    view: ComparisonView
    notes: tuple[str, ...]


def compare_runs(
    config_path: Path, candidate: str, baseline: str, policy_path: Path | None
) -> Compared:
    """Compare two runs and store the comparison.

    Args:
        config_path: the project's config file.
        candidate, baseline: references to runs.
        policy_path: the policy; None for `compare.yaml` beside the config, or `release.yaml`.

    Raises:
        InputError: a run is not known, is a part of a diagnosis, or is named twice; or the policy
            is invalid, or was named and has no rule for a comparison.
    """
    path = policy_path or _default_policy(config_path.parent)
    policy = _read(path) if path else None
    with reading_records(config_path) as reader:
        rows = [find_run(reader, reference, config_path) for reference in (candidate, baseline)]
        _refuse(rows)
        ours, theirs = (run_view(reader, row) for row in rows)
        if policy is not None:
            _check(policy, ours, theirs)
            if policy_path is not None and not rules_for(policy, "comparison"):
                raise InputError(
                    f"{policy_path} has no rule for a comparison. Add one of kind "
                    "non_inferiority, superiority or equivalence, or name another file."
                )
        record = compare(reader, ours, theirs, policy)
    row = ComparisonRow(
        id=comparison_id(record),
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        candidate=ours.row.id,
        baseline=theirs.row.id,
        gate=record["gate"]["state"] if record["gate"] else None,
        exit_code=record["exit_code"],
        payload=canonical_json(record),
    )
    with writing_records(config_path) as writer:
        writer.put_comparison(row)
    return Compared(comparison_view(row), tuple(_notes(policy)))


def _default_policy(root: Path) -> Path | None:
    names = (COMPARE_POLICY_FILE, POLICY_FILE)
    return next((root / name for name in names if (root / name).is_file()), None)


def _read(path: Path) -> Policy:
    problems: list[Problem] = []
    policy = read_policy(path, problems, name=path.name)
    if policy is None:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
    return policy


def _check(policy: Policy, *runs: RunView) -> None:
    """Check the rules for comparisons against the metrics that the runs recorded."""
    kinds = recorded_kinds(*(run.record for run in runs))
    problems: list[Problem] = []
    # A required case that neither run has is found by the rules: it is not observed.
    check_policy(policy, kinds, policy.required_cases, problems, name=policy.path.name)
    others = {
        f"rules.{index}"
        for index, rule in enumerate(policy.rules)
        if rule.decides_on != "comparison"
    }
    problems = [one for one in problems if ".".join(one.key.split(".")[:2]) not in others]
    if problems:
        raise InputError(problems, shown=PROBLEMS_SHOWN)


def _refuse(rows: Sequence[RunRow]) -> None:
    for row in rows:
        if row.parent is not None:
            raise InputError(
                f"{row.id} is a part of {row.parent} and cannot be compared on its own."
            )
    if rows[0].id == rows[1].id:
        raise InputError(
            f"Both references name {rows[0].id}. Name two runs, like: "
            "rag-assets compare latest latest~1"
        )


def _notes(policy: Policy | None) -> list[str]:
    skipped = len(rules_for(policy, "run"))
    if not skipped:
        return []
    verb = "1 rule skipped: decides" if skipped == 1 else f"{skipped} rules skipped: decide"
    return [f"{verb} on one run, not on a comparison."]
