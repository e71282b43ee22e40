"""`rag-assets runs`: this project's runs."""

from __future__ import annotations

from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, json_option, option
from rag_assets.cli.output import note, show, show_json, width
from rag_assets.evaluation.listing import list_runs
from rag_assets.evaluation.places import project_name, reading_records
from rag_assets.evaluation.references import no_run, others_text
from rag_assets.reports.layout import line
from rag_assets.reports.run_list import run_list


@click.command(
    "runs",
    cls=ExampleCommand,
    short_help="List this project's runs.",
    examples=["rag-assets runs", "rag-assets runs --limit 5 --json"],
)
@config_option
@option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    section="Runs",
    help="The newest N.",
)
@option(
    "--all",
    "everything",
    is_flag=True,
    section="Runs",
    help="Also runs of other projects in the same folder, materializations of single stages or "
    "cases, and children of other runs.",
)
@json_option
@click.pass_obj
def runs(
    invocation: Invocation, config: Path | None, limit: int, everything: bool, as_json: bool
) -> int:
    """List this project's runs, newest first: id, time, state, gate and the state of each rule.

    A run belongs to the project that its config names (key project); two configs in one folder
    share a store, and each has its own runs.
    """
    config_path = invocation.locate(config)
    project = project_name(config_path)
    with reading_records(config_path) as reader:
        found = list_runs(reader, limit, project=project, everything=everything)
        others = reader.other_projects(project)
    if as_json:
        runs_found = [one.as_json() for one in found]
        show_json({"project": project, "runs": runs_found, "other_projects": others})
        return 0
    show(run_list(found, project, width()) or [line(no_run(config_path))])
    if others and not everything:
        note(others_text(others, config_path))
    return 0
