"""`rag-assets runs`: this project's runs."""

from __future__ import annotations

from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, json_option, option
from rag_assets.cli.output import show, show_json, width
from rag_assets.evaluation.listing import list_runs
from rag_assets.evaluation.places import reading_records
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
    help="Also materializations of single stages or cases, and children of other runs.",
)
@json_option
@click.pass_obj
def runs(
    invocation: Invocation, config: Path | None, limit: int, everything: bool, as_json: bool
) -> int:
    """List this project's runs, newest first: id, time, state, gate and the state of each rule."""
    config_path = invocation.locate(config)
    with reading_records(config_path) as reader:
        found = list_runs(reader, limit, everything=everything)
    if as_json:
        show_json({"runs": [one.as_json() for one in found]})
    else:
        show(run_list(found, width()))
    return 0
