"""What is kept of a diagnosis: one JSON document, of which the id names the parts that make it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.canonical import digest
from rag_assets.evaluation.diagnosis.labels import LABELS, RULES_VERSION
from rag_assets.store import DiagnosisRow

if TYPE_CHECKING:
    from rag_assets.evaluation.diagnosis.interventions import Intervention
    from rag_assets.evaluation.diagnosis.planning import Request


@dataclass(frozen=True)
class DiagnosisView:
    """A stored diagnosis.

    Attributes:
        id: `sha256:` and a digest.
        record: all of it.
    """

    id: str
    record: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The intervention as people read it."""
        return str(self.record["intervention"]["name"])

    @property
    def cases(self) -> Sequence[Mapping[str, Any]]:
        """One record for each diagnosed case, sorted by id."""
        found: Sequence[Mapping[str, Any]] = self.record["cases"]
        return found

    @property
    def gold(self) -> Mapping[str, Any] | None:
        """The gold-context diagnosis that the labels of a replay come from."""
        found: Mapping[str, Any] | None = self.record["gold"]
        return found

    def case(self, case_id: str) -> Mapping[str, Any] | None:
        """One of them."""
        return self._by_id.get(case_id)

    @cached_property
    def _by_id(self) -> dict[str, Mapping[str, Any]]:
        return {one["id"]: one for one in self.cases}

    def counts(self) -> dict[str, int]:
        """Label → number of cases, for the labels that occur."""
        counted = Counter(one["label"] for one in self.cases)
        return {label: counted[label] for label in LABELS if counted[label]}

    def as_json(self) -> dict[str, Any]:
        """The whole diagnosis as one object."""
        return {"diagnosis": self.id, **self.record}


def diagnosis_view(row: DiagnosisRow) -> DiagnosisView:
    """Read a stored diagnosis."""
    return DiagnosisView(row.id, json.loads(row.payload))


def diagnosis_id(record: Mapping[str, Any]) -> str:
    """The digest over what makes a diagnosis: its selection, its runs and its rules."""
    parts = ("rules", "run", "criterion", "intervention", "control", "children")
    return "sha256:" + digest([*(record[one] for one in parts), record["selection"]["selected"]])


def intervention_record(intervention: Intervention) -> dict[str, Any]:
    """An intervention as JSON."""
    return {**asdict(intervention), "name": intervention.name}


def criterion_record(request: Request) -> dict[str, Any]:
    """The criterion as JSON."""
    return {"name": request.criterion, "below": request.below}


def is_under_same_terms(row: DiagnosisRow, request: Request, selected: Sequence[str]) -> bool:
    """Whether an earlier diagnosis was of the same cases, bar and control setting."""
    record = json.loads(row.payload)
    return bool(
        record["rules"] == RULES_VERSION
        and record["criterion"] == criterion_record(request)
        and record["control"] == request.control
        and record["selection"]["selected"] == list(selected)
    )
