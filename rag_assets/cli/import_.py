"""`rag-assets import`: a ready project from the files of another tool."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_assets.cli.group import ExampleCommand, ExampleGroup, option
from rag_assets.cli.new_folder import filling, refuse_used
from rag_assets.cli.output import show, width
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.loading import without_bytecode
from rag_assets.evaluation.places import PROBLEMS_SHOWN
from rag_assets.reports.import_report import import_report

if TYPE_CHECKING:
    from rag_assets.formats.project import ImportedProject

out_option = option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    required=True,
    section="Output",
    help="The folder of the project, which must be new or empty.",
)
_FILE = click.Path(path_type=Path)


class Formats(ExampleGroup):
    """The formats, and a word about those that are none."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a format.

        Raises:
            InputError: it is none of this version.
        """
        if args[0] not in self.commands:
            raise InputError(
                f'The format "{args[0]}" is not in this version. The formats are: '
                f"{', '.join(self.commands)}. Traces (OpenInference, OpenTelemetry) cannot be "
                "imported: write what they hold as rows of system.recorded, one for each case, "
                "and choose yourself which span is the retrieval."
            )
        return super().resolve_command(ctx, args)


@click.group(
    "import",
    cls=Formats,
    short_help="Make a project from the files of another tool.",
    examples=[
        "rag-assets import trec qrels.txt bm25.txt dense.txt --out my-runs",
        "rag-assets import ragas samples.jsonl --out my-samples",
    ],
)
def import_() -> None:
    """Make a ready project of recorded results from the files of another tool.

    The files are only read. The project is written whole or not at all, and says what became of
    every line.
    """


@import_.command(
    "trec",
    cls=ExampleCommand,
    short_help="TREC judgments (qrels) and runs.",
    examples=[
        "rag-assets import trec qrels.txt bm25.txt --out my-run",
        "rag-assets import trec qrels.txt bm25.txt dense.txt --out my-runs",
    ],
)
@click.argument("qrels", metavar="QRELS", type=_FILE)
@click.argument("runs", metavar="RUN...", type=_FILE, nargs=-1, required=True)
@out_option
def trec(qrels: Path, runs: tuple[Path, ...], out: Path) -> int:
    """TREC judgments and one or more runs: a topic becomes a case, a run a config.

    QRELS has lines of `topic iteration document grade`, RUN of
    `topic Q0 document rank score run_tag`. Results are ordered by score, and equal scores by
    document id, the last first, as trec_eval does, so that its measures come out; the rank column
    decides nothing, and what contradicts it is counted.
    """
    from rag_assets.formats.trec_project import read_trec

    return _import(lambda problems: read_trec(qrels, runs, _name(out), problems), out)


@import_.command(
    "ragas",
    cls=ExampleCommand,
    short_help="Samples of Ragas, as JSON Lines or CSV.",
    examples=["rag-assets import ragas samples.jsonl --out my-samples"],
)
@click.argument("file", metavar="FILE", type=_FILE)
@out_option
def ragas(file: Path, out: Path) -> int:
    """Single-turn samples of Ragas: a row becomes a case and its recorded result.

    FILE is JSON Lines or CSV with the column `user_input`, and with what there is of
    `retrieved_contexts`, `retrieved_context_ids`, `response`, `reference`, `reference_contexts`,
    `reference_context_ids` and `id`. All other columns become metadata of the case.
    """
    from rag_assets.formats.ragas_project import read_ragas

    return _import(lambda problems: read_ragas(file, _name(out), problems), out)


def _import(read: Callable[[list[Problem]], ImportedProject | None], out: Path) -> int:
    refuse_used(out)
    problems: list[Problem] = []
    project = read(problems)
    if project is None:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
    with filling(out) as draft:
        project.write(draft)
        _check(draft, project.configs)
    show(import_report(project, shlex.quote(str(out)), width()))
    return 0


def _check(folder: Path, configs: Sequence[str]) -> None:
    """Load every config, as `check` does.

    Raises:
        InputError: one of them cannot be used.
    """
    with redirect_stdout(sys.stderr), without_bytecode():
        from rag_assets.evaluation.project import load_project

        for config in configs:
            load_project(folder / config)


def _name(folder: Path) -> str:
    return folder.resolve().name or "imported"
