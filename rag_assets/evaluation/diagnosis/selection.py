"""Which cases of a run a diagnosis goes through, and why not the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.project import Project
from rag_assets.store import RunJudgment
from rag_assets.store.reader import Reader

# Declared for measuring and diagnosing: to add them changes nothing about the recorded verdict.
_LABELS = frozenset({"relevant", "gold_context", "requires"})


@dataclass(frozen=True, slots=True)
class Selection:
    """The failed cases of a run under one criterion.

    Attributes:
        cases: those that are diagnosed, sorted by id.
        without_gold: ids of those that lack `expected.gold_context`.
        not_selected: reason → number of cases without a verdict, or that are another case now.
        failing, observed: numbers of cases of the run.
    """

    cases: tuple[Case, ...]
    without_gold: tuple[str, ...]
    not_selected: Mapping[str, int]
    failing: int
    observed: int

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the selected cases."""
        return tuple(case.id for case in self.cases)


def is_failed(value: float, below: float | None) -> bool:
    """Whether an outcome failed: a verdict below a pass, or a score below the bar."""
    return value < (1.0 if below is None else below)


def select_cases(
    reader: Reader, project: Project, run_id: str, criterion: str, below: float | None
) -> Selection:
    """Select the observed failures of a criterion.

    Args:
        reader: the open store.
        project: the project as it is now; its dataset may have got labels and gold passages since.
        run_id: the run.
        criterion: a criterion of that run.
        below: the bar of a score criterion; None for a verdict.
    """
    rows = [row for row in reader.run_judgments(run_id) if row.criterion == criterion]
    observed = [row for row in rows if row.status == "observed" and row.value is not None]
    failing = [row for row in observed if row.value is not None and is_failed(row.value, below)]
    not_selected = Counter(row.reason or "not_judged" for row in rows if row.status == "missing")
    now = {case.id: case for case in project.dataset.cases}
    selected: list[Case] = []
    for row, recorded in _recorded(reader, run_id, failing):
        change = _change(recorded, now.get(row.case_id))
        if change is None:
            selected.append(now[row.case_id])
        else:
            not_selected[change] += 1
    # A system that is called as a whole is not executed again, so it needs no gold passages.
    needs_gold = not project.is_whole
    selected.sort(key=lambda case: case.id)
    return Selection(
        cases=tuple(case for case in selected if case.gold_context or not needs_gold),
        without_gold=tuple(case.id for case in selected if needs_gold and not case.gold_context),
        not_selected=dict(sorted(not_selected.items())),
        failing=len(failing),
        observed=len(observed),
    )


def _recorded(
    reader: Reader, run_id: str, rows: Sequence[RunJudgment]
) -> list[tuple[RunJudgment, Mapping[str, Any]]]:
    digests = reader.stage_digests(run_id, "cases")
    payloads = reader.payloads([digests[row.case_id] for row in rows if row.case_id in digests])
    return [
        (row, json.loads(payloads[digests[row.case_id]])) for row in rows if row.case_id in digests
    ]


def _change(recorded: Mapping[str, Any], case: Case | None) -> str | None:
    """Why the recorded verdict does not speak of a case as it is now; None when it does."""
    if case is None:
        return "not_in_dataset"
    asked = (case.input, case.user, case.as_of)
    if asked != (recorded["input"], recorded.get("user"), recorded.get("as_of")):
        return "input_changed"
    if _expectation(case.expected) != _expectation(recorded.get("expected")):
        return "expected_changed"
    return None


def _expectation(expected: Any) -> Any:
    if not isinstance(expected, Mapping):
        return expected
    return {key: value for key, value in expected.items() if key not in _LABELS} or None
