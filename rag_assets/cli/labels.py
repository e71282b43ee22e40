"""`rag-assets labels`: what people say of the answers, out to them and back into the store."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, ExampleGroup, config_option, option
from rag_assets.cli.output import note, show
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.loading import without_bytecode
from rag_assets.evaluation.places import PROBLEMS_SHOWN, reading_records, writing_records
from rag_assets.evaluation.wording import counted
from rag_assets.reports.layout import line


@click.group(
    "labels",
    cls=ExampleGroup,
    short_help="Write a worksheet for reviewers, and read labels back.",
    examples=[
        "rag-assets labels export latest --criterion claim_support --out to-label.csv",
        "rag-assets labels import to-label.csv",
    ],
)
def labels() -> None:
    """Human labels: what reviewers say of answers, of the claims in them, and of expected facts.

    A label is bound to the answer that was labelled: the same answer in a later run keeps it, and
    another answer has none.
    """


@labels.command(
    "export",
    cls=ExampleCommand,
    short_help="Write the worksheet for a criterion of a run.",
    examples=[
        "rag-assets labels export latest --criterion claim_support",
        "rag-assets labels export latest --criterion fact_coverage --out to-label.csv",
    ],
)
@click.argument("reference", metavar="RUN")
@config_option
@option(
    "--criterion",
    metavar="CRITERION",
    required=True,
    section="Worksheet",
    help="The criterion that is to be labelled.",
)
@option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    section="Worksheet",
    help="The new file to write (default: standard output).",
)
@option(
    "--include-restricted",
    is_flag=True,
    section="Worksheet",
    help="Write also what users may not see, for reviewers who may.",
)
@click.pass_obj
def export(
    invocation: Invocation,
    reference: str,
    config: Path | None,
    criterion: str,
    out: Path | None,
    include_restricted: bool,
) -> int:
    """Write a CSV file with one row for each answer of a run, and empty columns for labels.

    Question, context and answer are there to be read. For several claims or facts of one answer,
    copy its row. Rows that nobody fills in are no labels. What the user of a case may not see is
    hidden, and cells that a spreadsheet would execute begin with an apostrophe, which is taken away
    when they are read.
    """
    from rag_assets.evaluation.references import find_run
    from rag_assets.evaluation.views import run_view
    from rag_assets.evaluation.worksheet import worksheet

    if out is not None and out.exists():
        raise InputError(f"{out} exists; it may hold labels. Name a new file, or remove this one.")
    place = invocation.locate(config)
    with reading_records(place) as reader:
        run = run_view(reader, find_run(reader, reference, place))
        made = worksheet(reader, run, criterion, include_restricted=include_restricted)
    if not made.is_read:
        note(f"No evaluator reads the labels of {criterion}: they would change no metric.")
    if made.unanswered:
        without = counted(len(made.unanswered), "case")
        note(f"{without} without an answer left out: {', '.join(made.unanswered)}")
    if out is None:
        click.echo(made.text, nl=False)
        return 0
    try:
        out.write_text(made.text, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}.") from None
    show([line(f"{os.path.relpath(out)} holds {counted(made.rows, 'answer')} to label.")])
    return 0


@labels.command(
    "import",
    cls=ExampleCommand,
    short_help="Read labels into the store.",
    examples=["rag-assets labels import to-label.csv"],
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@config_option
@click.pass_obj
def import_(invocation: Invocation, file: Path, config: Path | None) -> int:
    """Read the labels of a file (CSV, TSV or JSON Lines) into the store, all of them or none.

    Every problem is reported with its line: an unknown case or criterion, a value out of range, a
    row that names no answer. A label that is in the store already counts once.
    """
    with redirect_stdout(sys.stderr), without_bytecode():
        from rag_assets.contracts.label_files import read_label_file
        from rag_assets.evaluation.labelling import known_to
        from rag_assets.evaluation.project import load_project

        place = invocation.locate(config)
        project = load_project(place, with_policy=False)
        problems: list[Problem] = []
        known = known_to(project.dataset, project.evaluators)
        found = read_label_file(file, known, problems)
    if problems:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
    with writing_records(place) as writer:
        new = writer.put_labels(found)
    unread = {one.criterion for one in found} - project.labelled_criteria
    for criterion in sorted(unread):
        note(f"No evaluator reads the labels of {criterion}: they are kept, and change no metric.")
    show([line(f"{file.name} holds {counted(len(found), 'label')}; {new} new.")])
    return 0
