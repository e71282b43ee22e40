"""`rag-assets compare`: paired differences of two runs, and what they decide."""

from __future__ import annotations

from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import (
    ExampleCommand,
    config_option,
    json_option,
    option,
    policy_option,
)
from rag_assets.cli.output import note, show, show_json, width
from rag_assets.evaluation.comparison_view import ComparisonView


@click.command(
    "compare",
    cls=ExampleCommand,
    short_help="Compare two runs case by case.",
    examples=[
        "rag-assets compare latest latest~1",
        "rag-assets compare latest latest~1 --policy compare.yaml --slices",
    ],
)
@click.argument("candidate", metavar="CANDIDATE")
@click.argument("baseline", metavar="BASELINE")
@config_option
@policy_option("compare.yaml beside the config, or else release.yaml")
@option("--slices", is_flag=True, section="Output", help="Show the difference of every slice.")
@json_option
@click.pass_obj
def compare(
    invocation: Invocation,
    candidate: str,
    baseline: str,
    config: Path | None,
    policy: Path | None,
    slices: bool,
    as_json: bool,
) -> int:
    """Compare two runs case by case, and decide whether the candidate is as good.

    CANDIDATE and BASELINE are run ids, unique beginnings of one, latest, or latest~N. Only records
    are read. The comparison is stored; rag-assets inspect prints it again.

    Exit code: 0 nothing blocks, 1 a rule FAILed, 2 the input is wrong, 3 blocked without a FAIL.
    """
    from rag_assets.evaluation.comparing import compare_runs

    found = compare_runs(invocation.locate(config), candidate, baseline, policy)
    show_comparison(found.view, all_slices=slices, as_json=as_json)
    for text in found.notes:
        note(text)
    return found.view.exit_code


def show_comparison(view: ComparisonView, *, all_slices: bool, as_json: bool) -> None:
    """Print a comparison, new or stored."""
    if as_json:
        show_json(view.as_json())
        return
    from rag_assets.reports.comparison_report import comparison_report

    show(comparison_report(view, width(), all_slices=all_slices))
