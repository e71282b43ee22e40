"""Runs as a list shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_assets.evaluation.views import completeness_of, state_of
from rag_assets.store import RunRow
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run of a list. `rules` holds (rule id, state), in the order of the policy."""

    row: RunRow
    state: str
    completeness: str | None
    rules: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """One object."""
        return {
            "run": self.row.id,
            "project": self.row.project,
            "created_at": self.row.created_at,
            "finished_at": self.row.finished_at,
            "origin": self.row.origin,
            "parent": self.row.parent,
            "state": self.state,
            "completeness": self.completeness,
            "gate": self.row.gate,
            "rules": [{"rule": rule, "state": state} for rule, state in self.rules],
        }


def list_runs(
    reader: Reader, limit: int, *, project: str | None, everything: bool
) -> list[ListedRun]:
    """The newest runs, with the states of their rules.

    Args:
        reader: the open store.
        limit: the most to return.
        project: the name of the project; None for all projects in the store.
        everything: also runs of other projects, children of other runs, and materializations that
            came to no metrics.
    """
    only = None if everything else project
    rows = reader.listed_runs(limit, project=only, everything=everything)
    rules: dict[str, list[tuple[str, str]]] = {row.id: [] for row in rows}
    for decision in reader.decisions_of(list(rules)):
        rules[decision.run_id].append((decision.rule, decision.state))
    return [
        ListedRun(row, state_of(row), completeness_of(row), tuple(rules[row.id])) for row in rows
    ]
