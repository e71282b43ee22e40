"""`rag-assets check`: validate everything, run nothing."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, policy_option
from rag_assets.cli.output import note, show, width
from rag_assets.evaluation.places import config_argument


@click.command(
    "check",
    cls=ExampleCommand,
    short_help="Validate everything, run nothing.",
    examples=["rag-assets check", "rag-assets check --policy strict.yaml"],
)
@config_option
@policy_option("release.yaml beside the config, where it exists")
@click.pass_obj
def check(invocation: Invocation, config: Path | None, policy: Path | None) -> int:
    """Check config, dataset, system and policy, and say what the suite can decide.

    The system is imported, and nothing of it is run.
    """
    config_path = invocation.locate(config)
    # What the user's code prints is not the answer of this command.
    with redirect_stdout(sys.stderr):
        from rag_assets.evaluation.project import check_comparison_policy, load_project

        project = load_project(config_path, policy)
    check_comparison_policy(project)
    from rag_assets.evaluation.attainable import attainable_decisions
    from rag_assets.reports.suite_summary import remarks, suite_summary

    for remark in remarks(project):
        note(remark)
    named = "" if policy is None else f" --policy {shlex.quote(str(policy))}"
    options = config_argument(config_path) + named
    show(suite_summary(project, list(attainable_decisions(project)), width(), options))
    return 0
