"""`rag-assets plan`: what it would take to decide what was not decided."""

from __future__ import annotations

from pathlib import Path

import click

from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, json_option
from rag_assets.cli.output import show, show_json, width
from rag_assets.evaluation.comparison_view import comparison_view
from rag_assets.evaluation.places import reading_records
from rag_assets.evaluation.references import find_comparison, find_run, is_digest
from rag_assets.evaluation.views import DecisionView, run_view
from rag_assets.store.reader import Reader


@click.command(
    "plan",
    cls=ExampleCommand,
    short_help="Show what would decide an undecided rule.",
    examples=["rag-assets plan latest", "rag-assets plan sha256:2bf37f9f"],
)
@click.argument("reference", metavar="REF")
@config_option
@json_option
@click.pass_obj
def plan(invocation: Invocation, reference: str, config: Path | None, as_json: bool) -> int:
    """Show how many cases would decide each undecided rule, under every method.

    REF is a run or a comparison, named as for inspect. Only records are read; excluded cases
    never count. Some sizes take seconds to compute.
    """
    config_path = invocation.locate(config)
    with reading_records(config_path) as reader:
        subject, decisions = _decisions(reader, reference, config_path)
    from rag_assets.evaluation.planning_differences import with_complete_plan

    complete = [with_complete_plan(decision) for decision in decisions]
    if as_json:
        show_json({"subject": subject, "decisions": [one.as_json() for one in complete]})
        return 0
    from rag_assets.reports.plan_report import plan_report

    show(plan_report(subject, complete, width()))
    return 0


def _decisions(
    reader: Reader, reference: str, config_path: Path
) -> tuple[str, tuple[DecisionView, ...]]:
    if is_digest(reference):
        comparison = comparison_view(find_comparison(reader, reference, config_path))
        return comparison.id, comparison.decisions
    run = run_view(reader, find_run(reader, reference, config_path))
    return run.row.id, run.decisions
