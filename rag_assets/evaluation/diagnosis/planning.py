"""What a diagnosis is asked for, and what it will execute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.changes import changes_since
from rag_assets.evaluation.diagnosis.interventions import (
    UNLIMITED,
    Intervention,
    Kind,
    check_intervention,
)
from rag_assets.evaluation.diagnosis.record import is_under_same_terms
from rag_assets.evaluation.diagnosis.selection import Selection, select_cases
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.references import find_run
from rag_assets.evaluation.replicates import parts_read
from rag_assets.evaluation.views import RunView, run_view
from rag_assets.store import DiagnosisRow
from rag_assets.store.reader import Reader

GOLD = Intervention("gold-context")
ALL: Literal["all"] = "all"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks for.

    Attributes:
        run: a reference to the run.
        criterion: what its cases failed.
        intervention: one kind, or `all` for gold context and the replays that need no argument.
        top_k, token_budget, reranker: the value of the replay that takes one.
        below: for a score criterion, the bar that failed cases are below.
        control: whether the cases are executed without the intervention as well.
    """

    run: str
    criterion: str
    intervention: Kind | Literal["all"] = "gold-context"
    top_k: int | None = None
    token_budget: int | str | None = None
    reranker: str | None = None
    below: float | None = None
    control: bool = True


@dataclass(frozen=True)
class Plan:
    """What will be executed.

    Attributes:
        interventions: in the order in which they are executed.
        builds_on: an earlier gold-context diagnosis that a replay takes its labels from.
        notes: sentences for the person who asked.
    """

    project: Project
    request: Request
    run: RunView
    selection: Selection
    interventions: tuple[Intervention, ...]
    builds_on: DiagnosisRow | None = None
    notes: tuple[str, ...] = ()

    @property
    def generations(self) -> int:
        """How many generations will be executed: all share one control."""
        if self.project.is_whole:
            return 0
        each = len(self.interventions) + self.request.control
        return len(self.selection.cases) * each


def plan_diagnosis(reader: Reader, project: Project, request: Request) -> Plan:
    """Select the cases and decide what has to be executed; nothing is.

    Args:
        reader: the open store.
        project: the project as it is now.
        request: what is asked for.

    Raises:
        InputError: the run, the criterion or the intervention cannot be diagnosed.
    """
    run = run_view(reader, find_run(reader, request.run, project.config.path))
    _check_run(run)
    _check_criterion(run, project, request)
    _check_unchanged(run, project, request.criterion)
    wanted, notes = _wanted(project, request)
    selection = select_cases(reader, project, run, request.criterion, request.below)
    plan = Plan(project, request, run, selection, wanted, notes=tuple(notes))
    if project.is_whole or not wanted[0].is_replay or not selection.cases:
        return plan
    known = reader.diagnoses_of(run.row.id, request.criterion, GOLD.kind)
    same = (one for one in known if is_under_same_terms(one, request, selection.ids))
    earlier = next(same, None)
    if earlier is not None:
        return Plan(project, request, run, selection, wanted, earlier, plan.notes)
    note = (
        "There is no gold-context diagnosis of these cases yet, and only that one gives labels: "
        "it is executed first."
    )
    return Plan(project, request, run, selection, (GOLD, *wanted), notes=(*plan.notes, note))


def _wanted(project: Project, request: Request) -> tuple[tuple[Intervention, ...], list[str]]:
    if project.is_whole:
        # Nothing can be re-executed, whatever would be changed.
        return (GOLD,), []
    if request.intervention != ALL:
        values = {
            "top-k": request.top_k,
            "token-budget": request.token_budget,
            "reranker": request.reranker,
        }
        chosen = Intervention(request.intervention, values.get(request.intervention))
        foreign = [
            kind for kind, value in values.items() if value is not None and kind != chosen.kind
        ]
        if foreign:
            raise InputError(
                f"--{foreign[0]} is the value of the intervention {foreign[0]}, not of "
                f"{chosen.kind}. Ask for one intervention at a time."
            )
        check_intervention(chosen, project)
        return (chosen,), []
    found, notes = [GOLD], []
    for one in (
        Intervention("top-k", project.system.depth),
        Intervention("token-budget", UNLIMITED),
    ):
        try:
            check_intervention(one, project)
            found.append(one)
        except InputError as error:
            notes.append(f"{one.name} is left out. {error}")
    return tuple(found), notes


def _check_run(run: RunView) -> None:
    if run.row.parent is not None:
        raise InputError(
            f"{run.row.id} is a part of a diagnosis itself. Name the run that was diagnosed."
        )
    if run.state == "RUNNING":
        raise InputError(f"{run.row.id} is still going on. Diagnose it when it has ended.")


def _check_criterion(run: RunView, project: Project, request: Request) -> None:
    recorded = {one["criterion"]: one for one in run.record["evaluators"]}
    name = request.criterion
    if name not in recorded:
        raise InputError(f'{run.row.id} has no criterion "{name}". It has {", ".join(recorded)}.')
    kind = recorded[name]["kind"]
    if kind == "score" and request.below is None:
        low, high = recorded[name]["range"]
        raise InputError(
            f"{name} is a score: say from where on a case counts as failed, with --below X "
            f"({low:g} to {high:g})."
        )
    if request.below is not None and kind == "score":
        low, high = recorded[name]["range"]
        if not low < request.below <= high:
            raise InputError(
                f"--below {request.below:g} is outside of the range of {name}: it selects cases "
                f"whose score is lower, so it is above {low:g} and at most {high:g}."
            )
    if kind == "verdict" and request.below is not None:
        raise InputError(f"{name} is a verdict, which passes or fails: leave --below out.")
    usable = diagnosable_criteria(project)
    if name not in usable and name in {one.criterion for one in project.measured}:
        raise InputError(
            f"{name} reads nothing that generation makes, so generating again cannot change it. "
            f"Diagnose {' or '.join(usable) or 'a criterion that reads the answer'}."
        )


def diagnosable_criteria(project: Project) -> tuple[str, ...]:
    """The criteria that another generation can change: those that read what it makes."""
    own = {one.criterion: one for one in project.evaluators}
    made = {"output", "citations"}
    return tuple(
        one.criterion
        for one in project.criteria
        if not made.isdisjoint(parts_read(own[one.every or one.criterion]))
    )


def _check_unchanged(run: RunView, project: Project, criterion: str) -> None:
    """A re-execution speaks of the run only when the system and the evaluator are the same."""
    concerned = ["system", f"evaluator {criterion}"]
    if any(one.criterion == criterion and one.reads_corpus for one in project.evaluators):
        concerned.append("manifest")
    changed = [one for one in changes_since(run.record, project) if one in concerned]
    if not project.is_whole and run.record["seed"] != project.config.seed:
        changed.append("seed")
    if changed:
        raise InputError(
            f"The project has changed since {run.row.id}: {', '.join(changed)}. What is executed "
            "now would say nothing of that run. Run again and diagnose the new run, or put the "
            "change back."
        )
