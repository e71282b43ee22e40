"""`rag-assets diagnose`: which stage failed, shown by changing it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, json_option, option
from rag_assets.cli.importing import importing
from rag_assets.cli.output import note, show, show_json, width
from rag_assets.evaluation.places import config_argument

if TYPE_CHECKING:
    from rag_assets.evaluation.diagnosis.planning import Plan
    from rag_assets.evaluation.diagnosis.record import DiagnosisView
    from rag_assets.evaluation.project import Project

_VALUES = "Value of the intervention"


@click.command(
    "diagnose",
    cls=ExampleCommand,
    short_help="Find out which stage failed, by changing it.",
    examples=[
        "rag-assets diagnose latest --criterion answer_correct",
        "rag-assets diagnose latest --criterion answer_correct --all --dry-run",
        "rag-assets diagnose latest --criterion answer_correct --intervention top-k --top-k 4",
    ],
)
@click.argument("reference", metavar="RUN")
@config_option
@option("--criterion", required=True, metavar="C", section="What", help="What the cases failed.")
@option(
    "--intervention",
    type=click.Choice(["gold-context", "top-k", "token-budget", "reranker"]),
    section="What",
    help="The one thing that is changed (default: gold-context).",
)
@option(
    "--all",
    "everything",
    is_flag=True,
    section="What",
    help="Gold context, top-k at the depth, and token-budget unlimited.",
)
@option("--top-k", type=int, metavar="N", section=_VALUES, help="top-k: the new top_k.")
@option(
    "--token-budget",
    metavar="N",
    section=_VALUES,
    help="token-budget: the new token budget, or unlimited.",
)
@option(
    "--reranker",
    metavar="MODULE:FUNCTION",
    section=_VALUES,
    help="reranker: (input, candidates) → candidates, reordered or fewer.",
)
@option(
    "--below",
    type=float,
    metavar="X",
    section="What",
    help="For a score criterion: cases below X have failed.",
)
@option("--no-control", is_flag=True, section="What", help="Leave out the control.")
@option("--dry-run", is_flag=True, section="Output", help="Only say what would be executed.")
@json_option
@click.pass_obj
def diagnose(
    invocation: Invocation,
    /,
    reference: str,
    config: Path | None,
    everything: bool,
    no_control: bool,
    dry_run: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Execute the failed cases of a run again with one thing changed, beside a control.

    RUN is a run id, the unique beginning of one, latest, or latest~N. Retrievals are those on
    record; generation is executed anew. Only gold context (the passages that a case declares to
    hold its answer) gives labels; the other interventions confirm them.

    Exit code: 0 whatever is found, 2 the input is wrong, 130 interrupted.
    """
    if everything and settings["intervention"]:
        raise click.UsageError("--all and --intervention exclude each other; use one of them.")
    config_path = invocation.locate(config)
    # What the user's code prints is not the answer of this command.
    with redirect_stdout(sys.stderr), importing():
        from rag_assets.evaluation.project import load_project

        project = load_project(config_path, with_policy=False)
    settings["intervention"] = "all" if everything else settings["intervention"] or "gold-context"
    settings |= {"run": reference, "control": not no_control}
    plan = _plan(project, settings)
    settings["run"] = plan.run.row.id
    if not plan.selection.failing:
        _show_nothing(plan, as_json=as_json)
    elif dry_run or not plan.selection.cases:
        _show_plan(plan, as_json=as_json)
    else:
        _show(plan, _execute(plan, settings, as_json=as_json), as_json=as_json)
    return 0


def show_diagnosis(view: DiagnosisView, config_path: Path, *, as_json: bool) -> None:
    """Print a stored diagnosis, with a line for each case."""
    if as_json:
        show_json(view.as_json())
        return
    from rag_assets.reports.diagnosis_report import case_lines, diagnosis_report
    from rag_assets.reports.layout import blocks

    show(blocks(diagnosis_report(view, config_argument(config_path)), case_lines(view)))


def _plan(project: Project, settings: dict[str, Any]) -> Plan:
    from rag_assets.evaluation.diagnosis.interventions import token_budget
    from rag_assets.evaluation.diagnosis.planning import Request, plan_diagnosis

    budget = token_budget(settings["token_budget"])
    with redirect_stdout(sys.stderr), project.store.reading() as reader:
        return plan_diagnosis(reader, project, Request(**settings | {"token_budget": budget}))


def _execute(plan: Plan, settings: dict[str, Any], *, as_json: bool) -> list[DiagnosisView]:
    from rag_assets.cli.progress import progress
    from rag_assets.reports.diagnosis_report import generations_text

    if as_json:
        _show_plan(plan, as_json=True)
    else:
        for text in (*plan.notes, generations_text(plan.generations)):
            note(text)
    with progress(as_json) as observer, redirect_stdout(sys.stderr):
        with importing():
            from rag_assets.assets.running import run_diagnosis

        given = {name: value for name, value in settings.items() if value is not None}
        try:
            return run_diagnosis(plan.project, given, observer=observer)
        except KeyboardInterrupt:
            note(
                "What was executed is listed by rag-assets runs --all"
                f"{config_argument(plan.project.config.path)}. Asked for again, a diagnosis "
                "begins anew."
            )
            raise


def _show(plan: Plan, views: Sequence[DiagnosisView], *, as_json: bool) -> None:
    from rag_assets.reports.diagnosis_report import all_report, diagnosis_report

    config = config_argument(plan.project.config.path)
    if as_json:
        for view in views:
            show_json({"event": "diagnosis", **view.as_json()})
    elif plan.request.intervention == "all":
        show(all_report(views, width(), config))
    else:
        # A gold-context diagnosis that had to come first stands in the lines of the replay.
        show(diagnosis_report(views[-1], config))


def _show_nothing(plan: Plan, *, as_json: bool) -> None:
    from rag_assets.reports.diagnosis_report import nothing_failed

    if as_json:
        _show_plan(plan, as_json=True)
    else:
        show(nothing_failed(plan.request.criterion, plan.selection.not_selected))


def _show_plan(plan: Plan, *, as_json: bool) -> None:
    from rag_assets.evaluation.diagnosis.findings import selection_record
    from rag_assets.reports.diagnosis_report import plan_lines

    selection = selection_record(plan)
    if as_json:
        show_json(
            {
                "event": "plan",
                "run": plan.run.row.id,
                "interventions": [one.name for one in plan.interventions],
                "generations": plan.generations,
                "notes": list(plan.notes),
                "selection": selection,
            }
        )
        return
    for text in plan.notes:
        note(text)
    is_staged = not plan.project.is_whole
    show(plan_lines(selection, plan.generations, is_staged=is_staged))
