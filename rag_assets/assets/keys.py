"""Names in Dagster: suites, asset keys and checks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import dagster as dg

from rag_assets.contracts.rules import Rule

INDEX = "index"


def suite_name(project: str) -> str:
    """The suite's name: the project's, with `_` for every character that Dagster refuses."""
    return re.sub(r"\W", "_", project, flags=re.ASCII)


def asset_key(suite: str, name: str) -> dg.AssetKey:
    """The key of a stage's asset (or of the index) in a suite."""
    return dg.AssetKey([suite, name])


def check_names(rules: Sequence[Rule]) -> dict[str, Rule]:
    """Check name → rule. Names are rule ids in Dagster's alphabet, kept distinct by a number."""
    names: dict[str, Rule] = {}
    for rule in rules:
        base = name = re.sub(r"\W", "_", rule.id, flags=re.ASCII)
        number = 2
        while name in names:
            name, number = f"{base}_{number}", number + 1
        names[name] = rule
    return names
