"""What of a project has changed since a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.evaluation.project import Project


def changes_since(record: Mapping[str, Any], project: Project) -> list[str]:
    """What has another digest now: "system", "evaluator NAME", "dataset", "manifest".

    Args:
        record: what the run froze at its start.
        project: the project as it is now.
    """
    found: list[str] = []
    if project.evaluated.identity != record["system"]["identity"]:
        found.append("system")
    then = {one["criterion"]: one["identity"] for one in record["evaluators"]}
    now = {one.criterion: one.identity for one in project.measured}
    found += [
        f"evaluator {name}"
        for name in [*then, *(name for name in now if name not in then)]
        if then.get(name) != now.get(name)
    ]
    if project.dataset.digest != record["dataset"]["digest"]:
        found.append("dataset")
    if (project.corpus and project.corpus.digest) != (record.get("manifest") or {}).get("digest"):
        found.append("manifest")
    return found
