"""What the record of a comparison says, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rag_assets.evaluation.views import DecisionView, SliceFacts, decision_view
from rag_assets.store import ComparisonRow


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """One metric over the paired cases, candidate minus baseline, unrounded.

    Attributes:
        criterion, kind, range: of the metric.
        estimate, lower, upper, method, level: None where there is none.
        observed, missing, excluded: numbers of pairs.
        groups: number of groups, where cases belong together, else None.
        missing_reasons, excluded_reasons: reason → number of pairs.
        gained, lost: ids of the cases whose verdict flipped, in each direction.
    """

    criterion: str
    kind: str
    range: tuple[float, float]
    estimate: float | None
    lower: float | None
    upper: float | None
    method: str | None
    level: float | None
    observed: int
    missing: int
    excluded: int
    groups: int | None
    missing_reasons: Mapping[str, int]
    excluded_reasons: Mapping[str, int]
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SliceDifference:
    """One metric over the paired cases of one slice value."""

    criterion: str
    estimate: float | None
    lower: float | None
    upper: float | None
    facts: SliceFacts


@dataclass(frozen=True)
class ComparisonView:
    """A comparison of two runs.

    Attributes:
        id: `sha256:` and the digest of the record.
        record: all of it.
        metrics: in the order of the candidate's config.
        slices: in the order of the candidate's config.
        decisions: in the order of the policy.
    """

    id: str
    record: Mapping[str, Any]
    metrics: tuple[DifferenceView, ...]
    slices: tuple[SliceDifference, ...]
    decisions: tuple[DecisionView, ...]

    @property
    def gate(self) -> str | None:
        """BLOCK, WARN or ALLOW; None where nothing was decided."""
        return self.record["gate"]["state"] if self.record["gate"] else None

    @property
    def exit_code(self) -> int:
        """Of the command that made the comparison."""
        return int(self.record["exit_code"])

    def as_json(self) -> dict[str, Any]:
        """The whole comparison as one object."""
        return {"comparison": self.id, **self.record}


def comparison_view(row: ComparisonRow) -> ComparisonView:
    """Read a stored comparison."""
    record = json.loads(row.payload)
    return ComparisonView(
        id=row.id,
        record=record,
        metrics=tuple(_difference(one) for one in record["metrics"]),
        slices=tuple(_slice(one) for one in record["slices"]["rows"]),
        decisions=tuple(decision_view(one["state"], one) for one in record["decisions"]),
    )


def _difference(one: Mapping[str, Any]) -> DifferenceView:
    low, high = one["range"]
    rest = {field.name: one[field.name] for field in fields(DifferenceView)}
    flips = {name: tuple(one[name]) for name in ("gained", "lost")}
    return DifferenceView(**{**rest, **flips, "range": (low, high)})


def _slice(one: Mapping[str, Any]) -> SliceDifference:
    compared = (one[key] for key in ("support", "p_value", "p_adjusted", "mark"))
    return SliceDifference(
        one["criterion"],
        one["estimate"],
        one["lower"],
        one["upper"],
        SliceFacts(*one["slice"], *compared),
    )
