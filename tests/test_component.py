"""The component, in a Dagster project of someone else."""

from __future__ import annotations

import tomllib
from pathlib import Path

import dagster as dg
import pytest
from dagster.components.core.package_entry import discover_package_objects
from dagster.components.testing import create_defs_folder_sandbox

import rag_assets
from projects import SampleProject
from rag_assets.contracts.errors import InputError

ROOT = Path(__file__).parents[1]


# Dagster notes the source file of each component with a class of its own that is in beta.
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
@pytest.mark.parametrize("project", ["evaluation", "evaluation/rag_assets.yaml"])
def test_a_component_is_a_suite(project: str) -> None:
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=rag_assets.RagEvaluation,
            defs_path="quality",
            defs_yaml_contents={
                "type": "rag_assets.RagEvaluation",
                "attributes": {"project": project, "key_prefix": ["quality"]},
            },
        )
        (folder / "evaluation").mkdir()
        SampleProject(folder / "evaluation")
        with sandbox.load_component_and_build_defs(folder) as (component, definitions):
            assert isinstance(component, rag_assets.RagEvaluation)
            assert component.project == project
            keys = {key.to_user_string() for key in definitions.resolve_all_asset_keys()}
            assert {f"quality/sample/{name}" for name in ("generation", "gate", "index")} < keys
            repository = definitions.get_repository_def()
            assert repository.get_schedule_def("sample_nightly").cron_schedule == "0 2 * * *"
            assert repository.get_sensor_def("sample_index_version").job_name == "sample_evaluation"


def test_a_wrong_project_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "evaluation").mkdir()
    sample = SampleProject(tmp_path / "evaluation")
    sample.replace("rag_assets.yaml", "project: sample", "project:")
    context = dg.ComponentTree.for_test().load_context
    component = rag_assets.RagEvaluation(project=str(tmp_path / "evaluation"))
    with pytest.raises(InputError, match=r"rag_assets\.yaml:2: project: "):
        component.build_defs(context)


def test_dg_finds_the_component() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    modules = pyproject["project"]["entry-points"]["dagster_dg_cli.registry_modules"]
    found = {key.to_typename() for key in discover_package_objects(list(modules.values()))}
    assert found == {"rag_assets.RagEvaluation"}
