"""`rag-assets gate`: decide again on what a run recorded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, json_option, policy_option
from rag_assets.cli.output import note, show, show_json, width
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.places import POLICY_FILE, reading_records
from rag_assets.evaluation.references import find_run
from rag_assets.evaluation.views import run_view


@click.command(
    "gate",
    cls=ExampleCommand,
    short_help="Decide a run again from its records.",
    examples=["rag-assets gate latest --policy strict.yaml"],
)
@click.argument("reference", metavar="REF")
@config_option
@policy_option("release.yaml beside the config")
@json_option
@click.pass_obj
def gate(
    invocation: Invocation, reference: str, config: Path | None, policy: Path | None, as_json: bool
) -> int:
    """Decide a run again, from stored evidence only: nothing is executed.

    REF is a run, named as for inspect. With --json every decision comes with all its inputs:
    counts, unrounded bounds, method, level and the digest of the policy.

    Exit code: 0 nothing blocks, 1 a rule FAILed, 2 the input is wrong, 3 blocked without a FAIL.
    """
    from rag_assets.evaluation.redeciding import redecide

    config_path = invocation.locate(config)
    with reading_records(config_path) as reader:
        view = run_view(reader, find_run(reader, reference, config_path))
        found = redecide(reader, view, policy or _policy_beside(config_path))
    if as_json:
        show_json(
            {
                "run": view.row.id,
                "policy_digest": found.policy.digest,
                "gate": found.gate and found.gate.state,
                "gate_reasons": list(found.gate.reasons) if found.gate else [],
                "exit_code": found.exit_code,
                "decisions": list(found.records),
            }
        )
    else:
        from rag_assets.reports.gate_report import gate_report

        show(gate_report(view, found, width()))
    _note_changes(config_path, view.record)
    return found.exit_code


def _policy_beside(config_path: Path) -> Path:
    path = config_path.parent / POLICY_FILE
    if not path.is_file():
        raise InputError(
            f"There is no {POLICY_FILE} beside {config_path.name}, so nothing says what to decide. "
            "Write one, or name a policy with --policy."
        )
    return path


def _note_changes(config_path: Path, record: Mapping[str, Any]) -> None:
    """Say what the decisions no longer speak of, because it is another one now."""
    from rag_assets.evaluation.changes import changes_since
    from rag_assets.evaluation.project import load_project

    try:
        # What the user's code prints is not the answer of this command.
        with redirect_stdout(sys.stderr):
            project = load_project(config_path, with_policy=False)
    except InputError as error:
        note(f"The project cannot be loaded, so what changed since this run is not known: {error}")
        return
    changed = changes_since(record, project)
    if changed:
        note(f"the project has changed since this run: {', '.join(changed)}")
