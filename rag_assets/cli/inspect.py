"""`rag-assets inspect`: a run, a comparison, a diagnosis or a case, from stored records only."""

from __future__ import annotations

from pathlib import Path

import click

from rag_assets.cli.compare import show_comparison
from rag_assets.cli.diagnose import show_diagnosis
from rag_assets.cli.errors import Invocation
from rag_assets.cli.group import ExampleCommand, config_option, json_option, option
from rag_assets.cli.output import show, show_json, width
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.comparison_view import comparison_view
from rag_assets.evaluation.constraints import violated
from rag_assets.evaluation.diagnosis.record import diagnosis_view
from rag_assets.evaluation.places import config_argument, reading_records
from rag_assets.evaluation.references import (
    find_by_digest,
    find_run,
    is_digest,
)
from rag_assets.evaluation.views import RunView, run_view
from rag_assets.store import ComparisonRow
from rag_assets.store.reader import Reader

SHOWN_FAILURES = 50


@click.command(
    "inspect",
    cls=ExampleCommand,
    short_help="Show a run, one of its cases, a comparison or a diagnosis.",
    examples=[
        "rag-assets inspect latest",
        "rag-assets inspect latest~1 --failures",
        "rag-assets inspect latest --violations",
        "rag-assets inspect latest --case refund_review",
    ],
)
@click.argument("reference", metavar="REF")
@config_option
@option("--failures", is_flag=True, section="Part of the run", help="The cases that failed.")
@option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    section="Part of the run",
    help=f"The first N (default: {SHOWN_FAILURES} failures, and all violations).",
)
@option(
    "--violations",
    is_flag=True,
    section="Part of the run",
    help="What users of the cases should not have been served.",
)
@option("--case", "case_id", metavar="ID", section="Part of the run", help="All about one case.")
@json_option
@click.pass_obj
def inspect(
    invocation: Invocation,
    reference: str,
    config: Path | None,
    failures: bool,
    violations: bool,
    limit: int | None,
    case_id: str | None,
    as_json: bool,
) -> int:
    """Show a run as it was recorded: state, decisions, metrics, failures, violations or one case.

    REF is a run id, the unique beginning of one, latest (this project's newest run), or latest~N
    for the N-th run before it, PROJECT:latest for another project in the same folder; or the id of
    a comparison or a diagnosis (sha256:…), or the unique beginning of one.
    Nothing is executed or decided again.
    """
    parts = {"--failures": failures, "--violations": violations, "--case": case_id is not None}
    asked = [name for name, is_asked in parts.items() if is_asked]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} exclude each other; use one of them.")
    config_path = invocation.locate(config)
    with reading_records(config_path) as reader:
        if is_digest(reference):
            if failures or violations:
                raise InputError(f"{asked[0]} is for a run; a digest names none.")
            _show_by_digest(reader, reference, config_path, case_id, as_json=as_json)
            return 0
        view = run_view(reader, find_run(reader, reference, config_path))
        named = f"{reference}{config_argument(config_path)}"
        if case_id is not None:
            _show_case(reader, view, case_id, as_json=as_json)
        elif failures:
            _show_failures(reader, view, named, limit or SHOWN_FAILURES, as_json=as_json)
        elif violations:
            _show_violations(reader, view, limit, as_json=as_json)
        else:
            _show_run(reader, view, named, as_json=as_json)
    return 0


def _show_by_digest(
    reader: Reader, reference: str, config_path: Path, case_id: str | None, *, as_json: bool
) -> None:
    """Show a diagnosis or a comparison: both are named by the digest of what they are."""
    found = find_by_digest(reader, reference, config_path)
    if isinstance(found, ComparisonRow):
        if case_id is not None:
            raise InputError(
                f"--case is for a run or a diagnosis, and {found.id} compares two runs."
            )
        show_comparison(comparison_view(found), all_slices=False, as_json=as_json)
        return
    view = diagnosis_view(found)
    if case_id is None:
        show_diagnosis(view, config_path, as_json=as_json)
        return
    from rag_assets.evaluation.diagnosis.diagnosed_case import cases_of, diagnosed_case
    from rag_assets.reports.diagnosis_report import diagnosed_case_report

    case = diagnosed_case(reader, view, case_id, cases_of(reader, view))
    if as_json:
        show_json(case.as_json())
    else:
        show(diagnosed_case_report(view, case, config_argument(config_path)))


def _show_run(reader: Reader, view: RunView, named: str, *, as_json: bool) -> None:
    from rag_assets.evaluation.agreement import agreements

    agreed = agreements(reader, view)
    if as_json:
        show_json(view.as_json() | {"agreement": [one.as_json() for one in agreed]})
        return
    from rag_assets.reports.run_detail import run_detail

    show(run_detail(view, named, width(), violated(reader, view), agreed))


def _show_violations(reader: Reader, view: RunView, limit: int | None, *, as_json: bool) -> None:
    from rag_assets.evaluation.violations import reason_counts
    from rag_assets.evaluation.violations import violations as find_violations

    found = find_violations(reader, view)
    reasons = reason_counts(found)
    if as_json:
        listed = [one.as_json() for one in found]
        show_json({"run": view.row.id, "reasons": reasons, "violations": listed})
        return
    from rag_assets.reports.violation_list import violation_list

    show(violation_list(view, found, reasons, limit, width()))


def _show_failures(reader: Reader, view: RunView, named: str, limit: int, *, as_json: bool) -> None:
    from rag_assets.evaluation.failures import failed_cases

    failed = failed_cases(reader, view)
    if as_json:
        found = [case.as_json() for case in failed]
        show_json({"run": view.row.id, "cases": view.cases, "failures": found})
        return
    from rag_assets.reports.failure_list import failure_list

    show(failure_list(view, failed, named, limit))


def _show_case(reader: Reader, view: RunView, case_id: str, *, as_json: bool) -> None:
    from rag_assets.evaluation.case_view import case_view

    case = case_view(reader, view, case_id)
    if as_json:
        show_json(case.as_json())
        return
    from rag_assets.reports.case_report import case_report

    show(case_report(case, width()))
