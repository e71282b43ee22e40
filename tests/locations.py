"""Asking a project's code location through Dagster's own GraphQL, as the UI does.

Each question is asked by a process of its own, which loads the location anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from projects import SampleProject
from rag_assets.evaluation.words import CASE_STAGES

HERE = Path(__file__).parent
MARK = "answer: "
STALE = """
query($stages: [AssetKeyInput!], $whole: [AssetKeyInput!], $cases: [String!]) {
  byCase: assetNodes(assetKeys: $stages) {
    assetKey { path }
    staleStatusByPartition(partitions: $cases)
  }
  whole: assetNodes(assetKeys: $whole) { assetKey { path } staleStatus }
}
"""


def stale(
    sample: SampleProject, cases: Sequence[str], prefix: Sequence[str] = ()
) -> dict[str, Any]:
    """Case stage → its cases that are not fresh; metrics and gate → their status."""
    found: dict[str, Any] = {}
    whole = ("metrics", "gate")
    keys = {"stages": _keys(CASE_STAGES, prefix), "whole": _keys(whole, prefix)}
    data = ask(sample, STALE, prefix=prefix, **keys, cases=list(cases))
    for node in data["byCase"]:
        pairs = zip(cases, node["staleStatusByPartition"], strict=True)
        stage = node["assetKey"]["path"][-1]
        found[stage] = {case for case, status in pairs if status != "FRESH"}
    for node in data["whole"]:
        found[node["assetKey"]["path"][-1]] = node["staleStatus"]
    return found


def ask(sample: SampleProject, query: str, *, prefix: Sequence[str] = (), **variables: Any) -> Any:
    """The data of a query about the project, whose asset keys begin with a prefix."""
    done = subprocess.run(
        [sys.executable, str(HERE / "locations.py"), str(sample.root)],
        input=json.dumps([query, variables]),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"RAG_ASSETS_PROJECT": str(sample.root), "KEY_PREFIX": json.dumps(list(prefix))},
    )
    assert done.returncode == 0, done.stderr
    (answer,) = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    return json.loads(answer.removeprefix(MARK))


def _keys(stages: Sequence[str], prefix: Sequence[str]) -> list[dict[str, list[str]]]:
    return [{"path": [*prefix, "sample", stage]} for stage in stages]


def _answer(root: Path, query: str, variables: dict[str, Any]) -> Any:
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import PythonFileTarget
    from dagster_graphql.test.utils import execute_dagster_graphql

    from rag_assets.assets.instance import open_instance
    from rag_assets.evaluation.places import load_config

    target = PythonFileTarget(
        python_file=str(HERE / "sample_location.py"),
        attribute=None,
        working_directory=None,
        location_name="rag",
    )
    with (
        open_instance(load_config(root / "rag_assets.yaml")) as instance,
        WorkspaceProcessContext(instance, target) as process,
    ):
        context = process.create_request_context()
        return execute_dagster_graphql(context, query, variables=variables).data


if __name__ == "__main__":
    print(MARK + json.dumps(_answer(Path(sys.argv[1]), *json.loads(sys.stdin.read()))))
