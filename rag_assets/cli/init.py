"""`rag-assets init`: a project to start from."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

import rag_assets
from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, option
from rag_assets.cli.new_folder import refuse_used
from rag_assets.cli.output import show, width
from rag_assets.contracts.errors import InputError, nearest
from rag_assets.contracts.loading import without_bytecode
from rag_assets.evaluation.places import (
    COMPARE_POLICY_FILE,
    CONFIG_FILE,
    POLICY_FILE,
    STATE_FOLDER,
)
from rag_assets.reports.layout import Line, blocks, line, rows

_MINIMAL = Path(__file__).parent / "templates" / "minimal"
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc", STATE_FOLDER)


@click.command(
    "init",
    cls=ExampleCommand,
    short_help="Start a project.",
    examples=[
        "rag-assets init --example support_rag my-rag",
        "rag-assets init --example list",
        "rag-assets init my-rag",
    ],
)
@click.argument("folder", metavar="DIR", required=False, type=click.Path(path_type=Path))
@option(
    "--example",
    metavar="NAME",
    section="Example",
    help="Copy this example; `list` names them. Without it: a minimal project with comments.",
)
@click.pass_obj
def init(invocation: Invocation, folder: Path | None, example: str | None) -> int:
    """Start a project in DIR, which must be new or empty."""
    if example == "list":
        show(rows([(name, _title(path)) for name, path in examples().items()], width()))
        return 0
    if folder is None:
        raise click.UsageError("Name the folder of the new project: rag-assets init my-rag")
    source = _MINIMAL if example is None else _example(example)
    refuse_used(folder)
    # Only contents are copied: the permissions of an installed package are its own affair.
    try:
        shutil.copytree(
            source, folder, ignore=_NOT_COPIED, copy_function=shutil.copyfile, dirs_exist_ok=True
        )
    except OSError as error:
        raise InputError(f"{folder} cannot be created: {error.strerror}.") from error
    what = "a minimal project" if example is None else f"the example {example}"
    config = _config(folder)
    named = "" if config == CONFIG_FILE else f" --config {config}"
    go = f"cd {shlex.quote(str(folder))} && rag-assets run{named}"
    show(blocks([line(f"{folder} holds {what}.")], _decidable(folder), [line(f"Next: {go}")]))
    return 0


def examples() -> dict[str, Path]:
    """Name → folder of the examples: inside the installed package, or in the repository."""
    package = Path(rag_assets.__file__).parent
    folders = (package / "_examples", package.parent / "examples")
    home = next((folder for folder in folders if folder.is_dir()), None)
    found = sorted(home.iterdir()) if home else []
    return {path.name: path for path in found if _config(path)}


def _config(folder: Path) -> str | None:
    """The first config of a project: an example may have several, which then have other names."""
    if (folder / CONFIG_FILE).is_file():
        return CONFIG_FILE
    policies = (POLICY_FILE, COMPARE_POLICY_FILE)
    names = sorted(path.name for path in folder.glob("*.yaml") if path.name not in policies)
    return names[0] if names else None


def _example(name: str) -> Path:
    known = examples()
    if name not in known:
        hint = nearest(name, list(known))
        raise InputError(
            f'There is no example "{name}".{hint} The examples are: {", ".join(known)}.'
        )
    return known[name]


def _title(example: Path) -> str:
    """What the first line of an example's README says after the name."""
    readme = example / "README.md"
    first = readme.read_text(encoding="utf-8").partition("\n")[0] if readme.is_file() else ""
    return first.partition(": ")[2]


def _decidable(folder: Path) -> list[Line]:
    """What the new suite can decide, as `check` says it."""
    with redirect_stdout(sys.stderr), without_bytecode():
        from rag_assets.evaluation.attainable import attainable_decisions
        from rag_assets.evaluation.project import load_project
        from rag_assets.reports.suite_summary import decidable

        project = load_project((folder / (_config(folder) or CONFIG_FILE)).resolve())
    return decidable(list(attainable_decisions(project)), width())
