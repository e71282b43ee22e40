"""Suites as one Dagster code location."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from rag_assets.assets.automation import index_version_sensor, nightly_schedule
from rag_assets.assets.diagnosis import diagnosis_asset, diagnosis_job
from rag_assets.assets.execution import SuiteRun
from rag_assets.assets.graph import suite_assets
from rag_assets.assets.keys import Suite, suite_name
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import Project, load_project
from rag_assets.evaluation.words import STAGES


def build_definitions(*configs: str | Path, key_prefix: str | Sequence[str] = ()) -> dg.Definitions:
    """The Dagster definitions of one or more projects.

    Args:
        configs: config files (`rag_assets.yaml`), or folders that hold one. Each becomes a group
            of assets named after its `project`.
        key_prefix: what every asset key begins with, as Dagster's own factories take it: one
            part, or several.

    Raises:
        InputError: a project is wrong, or two have the same name in Dagster.
    """
    projects = [load_project(_config_file(Path(config))) for config in configs]
    parts = [key_prefix] if isinstance(key_prefix, str) else key_prefix
    return project_definitions(projects, tuple(parts))


def project_definitions(projects: list[Project], prefix: tuple[str, ...] = ()) -> dg.Definitions:
    """The Dagster definitions of loaded projects.

    Raises:
        InputError: two projects have the same name in Dagster.
    """
    suites: dict[Suite, Project] = {}
    for project in projects:
        suite = Suite(suite_name(project.config.project), prefix)
        if suite in suites:
            raise InputError(
                f"{suites[suite].config.path} and {project.config.path} are both named "
                f'"{suite.name}" in Dagster; give one of them another project name.'
            )
        suites[suite] = project
    return dg.Definitions(
        assets=[
            asset
            for suite, project in suites.items()
            for asset in (*suite_assets(project, suite), diagnosis_asset(project, suite))
        ],
        jobs=[
            *(_evaluation_job(suite) for suite in suites),
            *(diagnosis_job(project, suite) for suite, project in suites.items()),
        ],
        schedules=[
            nightly_schedule(suite, project.config.dagster.cron)
            for suite, project in suites.items()
        ],
        # A system that is called as a whole declares no version of what it searches.
        sensors=[
            index_version_sensor(suite, project.config.path)
            for suite, project in suites.items()
            if not project.is_whole
        ],
        resources={suite.resource: SuiteRun() for suite in suites},
        # The stages of a run share a process: a process for each would cost seconds.
        executor=dg.in_process_executor,
    )


def _evaluation_job(suite: Suite) -> dg.UnresolvedAssetJobDefinition:
    """The job that goes through all stages of a suite."""
    # By key: a group may hold assets of the user's own.
    stages = dg.AssetSelection.assets(*(suite.key(stage) for stage in STAGES))
    return dg.define_asset_job(suite.job, selection=stages)


def _config_file(path: Path) -> Path:
    return (path / "rag_assets.yaml" if path.is_dir() else path).resolve()
