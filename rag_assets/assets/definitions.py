"""Suites as one Dagster code location."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from rag_assets.assets.automation import index_version_sensor, nightly_schedule
from rag_assets.assets.execution import SuiteRun
from rag_assets.assets.graph import resource_name, suite_assets
from rag_assets.assets.keys import INDEX, asset_key, suite_name
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import Project, load_project


def build_definitions(*configs: str | Path) -> dg.Definitions:
    """The Dagster definitions of one or more projects.

    Args:
        configs: config files (`rag_assets.yaml`), or folders that hold one. Each becomes a group
            of assets named after its `project`.

    Raises:
        InputError: a project is wrong, or two have the same name in Dagster.
    """
    return project_definitions([load_project(_config_file(Path(config))) for config in configs])


def project_definitions(projects: list[Project]) -> dg.Definitions:
    """The Dagster definitions of loaded projects.

    Raises:
        InputError: two projects have the same name in Dagster.
    """
    suites: dict[str, Project] = {}
    for project in projects:
        suite = suite_name(project.config.project)
        if suite in suites:
            raise InputError(
                f'{suites[suite].config.path} and {project.config.path} are both named "{suite}" '
                "in Dagster; give one of them another project name."
            )
        suites[suite] = project
    return dg.Definitions(
        assets=[
            asset for suite, project in suites.items() for asset in suite_assets(project, suite)
        ],
        jobs=[evaluation_job(suite) for suite in suites],
        schedules=[
            nightly_schedule(suite, job_name(suite), project.config.dagster.cron)
            for suite, project in suites.items()
        ],
        sensors=[
            index_version_sensor(suite, job_name(suite), project.config.path)
            for suite, project in suites.items()
        ],
        resources={resource_name(suite): SuiteRun() for suite in suites},
        # The stages of a run share a process: a process for each would cost seconds.
        executor=dg.in_process_executor,
    )


def job_name(suite: str) -> str:
    """The name of the job that runs a whole suite."""
    return f"{suite}_evaluation"


def evaluation_job(suite: str) -> dg.UnresolvedAssetJobDefinition:
    """The job that goes through all stages of a suite."""
    index = dg.AssetSelection.assets(asset_key(suite, INDEX))
    return dg.define_asset_job(job_name(suite), selection=dg.AssetSelection.groups(suite) - index)


def _config_file(path: Path) -> Path:
    return (path / "rag_assets.yaml" if path.is_dir() else path).resolve()
