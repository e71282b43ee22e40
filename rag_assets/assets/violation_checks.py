"""A check for each hard constraint: a single violation turns it red, whatever the mean."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from rag_assets.assets.execution import SuiteExecution
from rag_assets.assets.keys import distinct_names
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.wording import counted

_SHOWN = 10


def violation_specs(
    project: Project, asset: dg.AssetKey
) -> Iterator[tuple[dg.AssetCheckSpec, str]]:
    """(check, criterion) of each hard constraint of a project.

    Args:
        project: the loaded project.
        asset: what the checks are of.
    """
    constraints = [one for one in project.evaluators if one.is_constraint]
    names = distinct_names([one.criterion for one in constraints])
    for name, one in zip(names, constraints, strict=True):
        text = f"No case fails {one.criterion}. {one.description}"
        yield dg.AssetCheckSpec(name, asset=asset, description=text), one.criterion


def violation_check(
    spec: dg.AssetCheckSpec, criterion: str, execution: SuiteExecution
) -> dg.AssetCheckResult:
    """Whether no observed case of a run fails a hard constraint."""
    session = execution.session
    outcomes = dict(
        zip((case.id for case in session.cases), session.outcomes[criterion], strict=True)
    )
    failed = {
        case_id: one
        for case_id, one in outcomes.items()
        if one.value is not None and one.value < 1.0
    }
    missing = sum(one.status == "missing" for one in outcomes.values())
    shown = [f"{case_id}: {one.reason}" for case_id, one in list(failed.items())[:_SHOWN]]
    more = [f"{len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
    text = f"{counted(len(failed), 'case')} failed"
    return dg.AssetCheckResult(
        asset_key=spec.asset_key,
        check_name=spec.name,
        passed=not failed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{text}: {'; '.join([*shown, *more])}" if failed else text,
        metadata={
            "failures": len(failed),
            "missing": missing,
            "inspect": f"rag-assets inspect {session.run_id} --violations",
        },
    )
