"""`rag-assets run`: execute, measure, decide."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_assets.cli.errors import INPUT_ERROR, Invocation, error_event
from rag_assets.cli.group import (
    ExampleCommand,
    config_option,
    json_option,
    option,
    policy_option,
)
from rag_assets.cli.importing import importing
from rag_assets.cli.output import note, show, show_json, width
from rag_assets.contracts.errors import Problem, RagAssetsError
from rag_assets.evaluation.places import config_argument

if TYPE_CHECKING:
    from rag_assets.evaluation.agreement import Agreement
    from rag_assets.evaluation.constraints import Violated
    from rag_assets.evaluation.project import Project
    from rag_assets.evaluation.views import RunView
    from rag_assets.store import RunJudgment


@click.command(
    "run",
    cls=ExampleCommand,
    short_help="Execute, measure and decide.",
    examples=[
        "rag-assets run",
        "rag-assets run --cases 'refund_*' --slices",
        "rag-assets run --policy strict.yaml --json > run.jsonl",
    ],
)
@config_option
@policy_option("release.yaml beside the config, where it exists")
@option("--cases", "pattern", metavar="GLOB", section="Cases", help="Only cases whose id matches.")
@option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    section="Cases",
    help="Only the first N cases (of those that match).",
)
@option("--no-cache", is_flag=True, section="Cases", help="Execute everything anew.")
@option("--slices", is_flag=True, section="Output", help="Show every slice, with its support.")
@json_option
@click.pass_obj
def run(
    invocation: Invocation,
    config: Path | None,
    policy: Path | None,
    pattern: str | None,
    limit: int | None,
    no_cache: bool,
    slices: bool,
    as_json: bool,
) -> int:
    """Run the suite: execute every stage, judge, measure and decide.

    Finished stages come from the cache. Cases with equal inputs are executed once, and the others
    are counted as shared. One run of a project goes on at a time: another one waits for it.

    Exit code: 0 nothing blocks, 1 a rule FAILed, 2 the input is wrong, 3 a policy blocks without a
    FAIL or every case failed, 130 interrupted.
    """
    config_path = invocation.locate(config)
    # What the user's code prints is not the answer of this command.
    with redirect_stdout(sys.stderr), importing():
        from rag_assets.evaluation.project import load_project
        from rag_assets.evaluation.readiness import selection

        project = load_project(config_path, policy)
    for warning in project.warnings:
        note(warning)
    cases = selection(project.dataset, pattern, limit)
    if as_json:
        _show_start(project, cases, use_cache=not no_cache)
    ended = _execute(project, cases, use_cache=not no_cache, as_json=as_json)
    view, named = ended.view, f"latest{config_argument(config_path)}"
    if as_json:
        _show_events(view, ended.judgments)
    else:
        from rag_assets.reports.run_report import run_report

        show(
            run_report(
                view,
                width(),
                all_slices=slices,
                named=named,
                violated=ended.violated,
                agreed=ended.agreed,
            )
        )
    return _concluded(view, shlex.join(["rag-assets", *invocation.arguments]), named)


def _show_start(project: Project, cases: Sequence[str] | None, *, use_cache: bool) -> None:
    from rag_assets.evaluation.lifecycle import frozen_record
    from rag_assets.reports.events import start_event

    show_json(start_event(frozen_record(project, cases, use_cache)))


@dataclass(frozen=True)
class _Ended:
    """A run and what of it is shown: lists for a report, or every judgment."""

    view: RunView
    violated: Sequence[Violated] = ()
    agreed: Sequence[Agreement] = ()
    judgments: Sequence[RunJudgment] = ()


def _execute(
    project: Project, cases: Sequence[str] | None, *, use_cache: bool, as_json: bool
) -> _Ended:
    """Run the suite and read back what it recorded."""
    from rag_assets.cli.progress import progress
    from rag_assets.evaluation.agreement import agreements
    from rag_assets.evaluation.constraints import violated
    from rag_assets.evaluation.views import run_view

    with progress(as_json) as observer, redirect_stdout(sys.stderr):
        # Importing dagster takes a second, and the bars already say that something goes on.
        with importing():
            from rag_assets.assets.running import run_suite

        run_id = run_suite(project, cases=cases, use_cache=use_cache, observer=observer)
    with project.store.reading() as reader:
        row = reader.run(run_id)
        if row is None or row.state == "RUNNING":
            # A signal between two stages: no stage was there to record it.
            raise KeyboardInterrupt
        view = run_view(reader, row)
        if as_json:
            return _Ended(view, judgments=reader.run_judgments(run_id))
        return _Ended(view, violated(reader, view), agreements(reader, view))


def _show_events(view: RunView, judgments: Sequence[RunJudgment]) -> None:
    from rag_assets.reports.events import result_events

    if view.state == "STOPPED":
        show_json(error_event(INPUT_ERROR, [Problem("", 0, "", view.row.error or "")]))
    for event in result_events(view, judgments):
        show_json(event)


def _concluded(view: RunView, command: str, named: str) -> int:
    """Say on stderr what else there is to say, and return the exit code."""
    from rag_assets.reports.run_report import notes

    for text in notes(view, command, named):
        note(text)
    if view.exit_code is None:
        raise RagAssetsError(f"{view.row.id} was decided without an exit code.")
    return view.exit_code
