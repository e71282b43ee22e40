"""How far the reviewers of a run's answers agree, from the labels that its judgments read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from rag_assets.contracts.human_labels import NO_CLAIMS
from rag_assets.evaluation.replicates import samples_of
from rag_assets.evaluation.views import RunView
from rag_assets.evaluators.registry import EVALUATORS
from rag_assets.statistics.agreement import cohen_kappa
from rag_assets.store.reader import Reader

TYPES = frozenset(one.type for one in EVALUATORS if one.reads_labels)
"""Types of the evaluators whose details hold labels."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One unit that two reviewers label differently: `by` maps reviewers to labels."""

    case: str
    about: str
    unit: str
    by: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two reviewers agree on what both of them labelled for a criterion.

    Attributes:
        criterion: the criterion.
        reviewers: the two, sorted.
        agreed, labels: how many units both labelled alike, and how many both labelled.
        kappa: Cohen's kappa; None where both gave one and the same label to all units.
        disagreements: the units that they label differently, in the order of the cases.
    """

    criterion: str
    reviewers: tuple[str, str]
    agreed: int
    labels: int
    kappa: float | None
    disagreements: tuple[Disagreement, ...]

    def as_json(self) -> dict[str, Any]:
        """One object."""
        found = asdict(self)
        disagreements = [asdict(one) for one in self.disagreements]
        return {**found, "reviewers": list(self.reviewers), "disagreements": disagreements}


def agreements(reader: Reader, view: RunView) -> list[Agreement]:
    """Every pair of reviewers that labelled a unit in common, by criterion.

    Args:
        reader: the open store.
        view: the run.
    """
    evaluators = view.record["evaluators"]
    units: dict[str, list[Disagreement]] = {
        one["criterion"]: [] for one in evaluators if one["type"] in TYPES
    }
    if not units:
        return []
    for row in reader.run_judgments(view.row.id):
        if row.criterion in units and row.detail:
            own: list[Disagreement] = []
            for one in _labels(json.loads(row.detail)):
                unit = Disagreement(row.case_id, one["about"], one["unit"], one["by"])
                # Samples with the same answer have the same labels.
                if unit not in own:
                    own.append(unit)
            units[row.criterion] += own
    # A criterion that takes the labels of another one says nothing of its own.
    first: dict[str, str] = {}
    for name, found in units.items():
        first.setdefault(json.dumps([asdict(one) for one in found]), name)
    return [
        _agreement(criterion, pair, found)
        for criterion, found in units.items()
        if first[json.dumps([asdict(one) for one in found])] == criterion
        for pair in _pairs(found)
    ]


def _labels(detail: Any) -> Iterator[Mapping[str, Any]]:
    for one in samples_of(detail) or ({"detail": detail},):
        if isinstance(one["detail"], Mapping):
            labels = one["detail"].get("labels", ())
            yield from labels
            yield from _whether_claims(labels)


def _whether_claims(labels: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Who says that an answer makes no claim, and who labels one, where both are there."""
    by = {
        reviewer: "makes claims"
        for one in labels
        if one["about"] == "claim"
        for reviewer in one["by"]
    }
    none = [
        reviewer
        for one in labels
        for reviewer, label in one["by"].items()
        if label == NO_CLAIMS and reviewer not in by
    ]
    if by and none:
        by |= dict.fromkeys(none, NO_CLAIMS)
        yield {"about": "answer", "unit": "", "by": dict(sorted(by.items()))}


def _pairs(units: list[Disagreement]) -> list[tuple[str, str]]:
    found = {pair for one in units for pair in combinations(sorted(one.by), 2)}
    return sorted(found)


def _agreement(criterion: str, pair: tuple[str, str], units: list[Disagreement]) -> Agreement:
    first, second = pair
    both = [one for one in units if first in one.by and second in one.by]
    differing = tuple(
        Disagreement(one.case, one.about, one.unit, {name: one.by[name] for name in pair})
        for one in both
        if one.by[first] != one.by[second]
    )
    kappa = cohen_kappa([one.by[first] for one in both], [one.by[second] for one in both])
    return Agreement(criterion, pair, len(both) - len(differing), len(both), kappa, differing)
