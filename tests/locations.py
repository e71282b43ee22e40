"""Asking a project's code location through Dagster's own GraphQL, as the UI does.

Each question loads the location anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget

from projects import SampleProject
from rag_assets.evaluation.words import CASE_STAGES

NAME = "sample_location"
FILE = Path(__file__).parent / f"{NAME}.py"
STALE = """
query($stages: [AssetKeyInput!], $whole: [AssetKeyInput!], $cases: [String!]) {
  byCase: assetNodes(assetKeys: $stages) {
    assetKey { path }
    staleStatusByPartition(partitions: $cases)
  }
  whole: assetNodes(assetKeys: $whole) { assetKey { path } staleStatus }
}
"""

FRESH: dict[str, Any] = {stage: set() for stage in CASE_STAGES} | {
    "metrics": "FRESH",
    "gate": "FRESH",
}


def stale(
    sample: SampleProject, cases: Sequence[str], prefix: Sequence[str] = ()
) -> dict[str, Any]:
    """Case stage → its cases that are not fresh; metrics and gate → their status.

    The asset keys of the project begin with the prefix.
    """
    with location_of(sample, prefix):
        return stale_by(partial(_answer, sample), cases, prefix)


def stale_by(
    ask: Callable[..., Any], cases: Sequence[str], prefix: Sequence[str] = ()
) -> dict[str, Any]:
    """The same, by whoever answers a query and its variables with data."""
    found: dict[str, Any] = {}
    whole = ("metrics", "gate")
    keys = {"stages": _keys(CASE_STAGES, prefix), "whole": _keys(whole, prefix)}
    data = ask(STALE, **keys, cases=list(cases))
    for node in data["byCase"]:
        pairs = zip(cases, node["staleStatusByPartition"], strict=True)
        stage = node["assetKey"]["path"][-1]
        found[stage] = {case for case, status in pairs if status != "FRESH"}
    for node in data["whole"]:
        found[node["assetKey"]["path"][-1]] = node["staleStatus"]
    return found


@contextmanager
def location_of(sample: SampleProject, prefix: Sequence[str] = ()) -> Iterator[None]:
    """Let the file of the location be the one of a project, which is not loaded yet."""
    sys.modules.pop(NAME, None)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PROJECT", str(sample.root))
        environment.setenv("KEY_PREFIX", json.dumps(list(prefix)))
        yield
    sys.modules.pop(NAME, None)


def _keys(stages: Sequence[str], prefix: Sequence[str]) -> list[dict[str, list[str]]]:
    return [{"path": [*prefix, "sample", stage]} for stage in stages]


def _answer(sample: SampleProject, query: str, **variables: Any) -> Any:
    # Makes the whole schema.
    from dagster_graphql.test.utils import execute_dagster_graphql

    file = LoadableTargetOrigin(executable_path=sys.executable, python_file=str(FILE))
    origin = InProcessCodeLocationOrigin(file, location_name="rag")
    with (
        sample.instance() as instance,
        WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as process,
    ):
        context = process.create_request_context()
        return execute_dagster_graphql(context, query, variables=variables).data
