"""Which cases of a run a diagnosis goes through, and why not the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.recorded_sources import RecordedCases
from rag_assets.evaluation.views import RunView
from rag_assets.evaluators import Evaluator
from rag_assets.store import RunJudgment
from rag_assets.store.reader import Reader


@dataclass(frozen=True, slots=True)
class Selection:
    """The failed cases of a run under one criterion.

    Attributes:
        cases: those that are diagnosed, sorted by id.
        without_gold: ids of those without gold passages.
        not_selected: reason → number of cases without a verdict, or that are another case now.
        failing, observed, unjudged: numbers of cases of the run.
    """

    cases: tuple[Case, ...]
    without_gold: tuple[str, ...]
    not_selected: Mapping[str, int]
    failing: int
    observed: int
    unjudged: int

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the selected cases."""
        return tuple(case.id for case in self.cases)


def is_failed(value: float, below: float | None) -> bool:
    """Whether an outcome failed: a verdict below a pass, or a score below the bar."""
    return value < (1.0 if below is None else below)


def select_cases(
    reader: Reader, project: Project, run: RunView, criterion: str, below: float | None
) -> Selection:
    """Select the observed failures of a criterion.

    Args:
        reader: the open store.
        project: the project as it is now; its dataset may have got labels and gold passages since.
        run: the run.
        criterion: a criterion of that run.
        below: the bar of a score criterion; None for a verdict.
    """
    run_id = run.row.id
    rows = [row for row in reader.run_judgments(run_id) if row.criterion == criterion]
    observed = [row for row in rows if row.status == "observed" and row.value is not None]
    failing = [row for row in observed if row.value is not None and is_failed(row.value, below)]
    missing = [row.reason or "not_judged" for row in rows if row.status == "missing"]
    not_selected = Counter(missing)
    if run.cases > len(rows):
        # The run ended before it came to them.
        not_selected["not_judged"] += run.cases - len(rows)
    unjudged = not_selected.total()
    evaluator = evaluator_of(project, criterion)
    now = {case.id: case for case in project.dataset.cases}
    selected: list[Case] = []
    recorded = _cases_of(run, project)
    for row, record in _recorded(reader, run_id, failing):
        change = _change(recorded.case(record), now.get(row.case_id), evaluator)
        if change is None:
            selected.append(now[row.case_id])
        else:
            not_selected[change] += 1
    # A system that is called as a whole is not executed again, so it needs no gold passages.
    needs_gold = not project.is_whole
    selected.sort(key=lambda case: case.id)
    return Selection(
        cases=tuple(case for case in selected if case.gold_passages or not needs_gold),
        without_gold=tuple(case.id for case in selected if needs_gold and not case.gold_passages),
        not_selected=dict(sorted(not_selected.items())),
        failing=len(failing),
        observed=len(observed),
        unjudged=unjudged,
    )


def _cases_of(run: RunView, project: Project) -> RecordedCases:
    """What makes cases of the records of a run whose manifest is still that of the project.

    Where the manifest matters to the criterion, it is known to be the same. Of the run's own one
    the texts are not recorded.
    """
    manifest = run.record.get("manifest")
    if project.corpus is None or not manifest:
        return RecordedCases()
    return RecordedCases(project.corpus, manifest["as_of"])


def _recorded(
    reader: Reader, run_id: str, rows: Sequence[RunJudgment]
) -> list[tuple[RunJudgment, Mapping[str, Any]]]:
    digests = reader.stage_digests(run_id, "cases")
    payloads = reader.payloads([digests[row.case_id] for row in rows if row.case_id in digests])
    return [
        (row, json.loads(payloads[digests[row.case_id]])) for row in rows if row.case_id in digests
    ]


def evaluator_of(project: Project, criterion: str) -> Evaluator:
    """The evaluator that a criterion is of, or is made of."""
    chosen = next(one for one in project.criteria if one.criterion == criterion)
    own = chosen.every or criterion
    return next(one for one in project.evaluators if one.criterion == own)


def _change(then: Case, now: Case | None, evaluator: Evaluator) -> str | None:
    """Why the recorded verdict does not speak of a case as it is now; None when it does."""
    if now is None:
        return "not_in_dataset"
    if (then.input_digest, then.user, then.as_of) != (now.input_digest, now.user, now.as_of):
        return "input_changed"
    judging = (evaluator, *evaluator.parts)
    read = [digest([one.reads_of_case(case) for one in judging]) for case in (then, now)]
    # What it does not read may change: labels and gold passages are often declared afterwards.
    return "expected_changed" if read[0] != read[1] else None
