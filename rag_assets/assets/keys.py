"""Names in Dagster: suites, asset keys and checks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.words import Stage

INDEX = "index"
CORPUS = "corpus_manifest"
DIAGNOSIS = "diagnosis"
# A suite's name is a tag's value too, and those have at most 63 characters.
_LONGEST_NAME = 60
_DIGEST = 8


@dataclass(frozen=True, slots=True)
class Suite:
    """A project under the names that it has in Dagster.

    Attributes:
        name: of its group, and the first part of the names of its job, ops and automation.
        prefix: what its asset keys begin with.
    """

    name: str
    prefix: tuple[str, ...] = ()

    def key(self, name: str) -> dg.AssetKey:
        """The key of a stage's asset, or of the index."""
        return dg.AssetKey([*self.prefix, self.name, name])

    @property
    def job(self) -> str:
        """The job that runs the whole suite."""
        return f"{self.name}_evaluation"

    def step_key(self, stages: Sequence[Stage]) -> str:
        """The key in Dagster of the step that goes through stages."""
        return f"{self.name}__evaluate.{step_name(stages)}"

    @property
    def diagnosis_job(self) -> str:
        """The job that diagnoses a run of the suite."""
        return f"{self.name}_diagnosis"

    @property
    def diagnosis_op(self) -> str:
        """Its only op, whose config says what to diagnose."""
        return f"{self.name}__diagnose"

    @property
    def resource(self) -> str:
        """The suite's run resource, in run config."""
        return f"{self.name}_run"

    @property
    def pool(self) -> str:
        """The pool that lets one run go on at a time."""
        return f"rag_{self.name}"


def step_name(stages: Sequence[Stage]) -> str:
    """The step that goes through stages: named after its stage, or `answer` for several."""
    return stages[0] if len(stages) == 1 else "answer"


def suite_name(project: str) -> str:
    """The suite's name: the project's, with `_` for every character that Dagster refuses.

    A name that begins with no letter gets one, and a long one is cut and ends in its digest.
    """
    name = re.sub(r"\W", "_", project, flags=re.ASCII)
    if not name[0].isalpha():
        # It is part of the name of a resource, which has to be a name in Python as well.
        name = f"suite_{name}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(project.encode()).hexdigest()[:_DIGEST]
        name = f"{name[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"
    return name


def check_names(rules: Sequence[Rule]) -> dict[str, Rule]:
    """Check name → rule. Names are rule ids in Dagster's alphabet, kept distinct by a number."""
    return dict(zip(distinct_names([rule.id for rule in rules]), rules, strict=True))


def distinct_names(texts: Sequence[str]) -> list[str]:
    """Texts in Dagster's alphabet, kept distinct by a number."""
    names: dict[str, None] = {}
    for text in texts:
        base = name = re.sub(r"\W", "_", text, flags=re.ASCII)
        number = 2
        while name in names:
            name, number = f"{base}_{number}", number + 1
        names[name] = None
    return list(names)
