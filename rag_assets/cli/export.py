"""`rag-assets export`: a run or a comparison as plain files, for other programs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, option
from rag_assets.cli.output import note, show
from rag_assets.evaluation.wording import counted
from rag_assets.reports.layout import line


@click.command(
    "export",
    cls=ExampleCommand,
    short_help="Write a run or a comparison as plain files.",
    examples=["rag-assets export latest", "rag-assets export latest --out for-review"],
)
@click.argument("reference", metavar="REF")
@config_option
@option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    section="Output",
    help="The folder to write (default: bundles/ID beside the config).",
)
@option(
    "--include-restricted",
    is_flag=True,
    section="Output",
    help="Also write what the users of the cases may not see, as it was recorded.",
)
@click.pass_obj
def export(
    invocation: Invocation,
    reference: str,
    config: Path | None,
    out: Path | None,
    include_restricted: bool,
) -> int:
    """Write a bundle: everything on record of a run or a comparison, as JSON and Parquet.

    REF is a run or a comparison, named as for inspect. Only records are read. The same run makes
    the same bytes. An earlier bundle of the same run or comparison is replaced as long as its files
    are as they were exported; any other folder that is not empty is refused.
    Passages that are not admissible for the user of their case are replaced by length and digest,
    and masked in answers, unless --include-restricted is given.
    """
    from rag_assets.evaluation.exporting import export as write_bundle

    made = write_bundle(
        invocation.locate(config), reference, out, include_restricted=include_restricted
    )
    if include_restricted:
        note("The bundle holds what users of the cases may not see. Keep it as you keep the store.")
    place = os.path.relpath(made.path) if made.path.is_relative_to(Path.cwd()) else made.path
    show([line(f"{place} holds {counted(made.lines, made.unit)} of {made.subject}.")])
    return 0
