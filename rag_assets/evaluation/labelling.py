"""The human labels of a project: those of its files, and those in its store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.human_labels import HumanLabel, Labelling
from rag_assets.contracts.label_files import read_label_file
from rag_assets.contracts.label_rows import Known
from rag_assets.evaluation.checks import relative
from rag_assets.evaluators import Evaluator

_WILDCARDS = frozenset("*?[")


def known_to(dataset: Dataset, evaluators: Iterable[Evaluator]) -> Known:
    """What labels may be about in a project."""
    return Known(
        facts={case.id: case.expectation.facts for case in dataset.cases},
        criteria={
            one.criterion: Labelling(one.labelled_about, one.kind, one.value_range)
            for one in evaluators
        },
    )


def load_labels(config: Config, known: Known, problems: list[Problem]) -> tuple[HumanLabel, ...]:
    """Read the label files that a config names, in the order of their names.

    Args:
        config: the config; a glob may match nothing yet, a path has to be a file.
        known: what labels may be about.
        problems: every problem of the files is appended here.
    """
    found: dict[str, HumanLabel] = {}
    for index, pattern in enumerate(config.labels):
        paths = sorted(path for path in config.root.glob(pattern) if path.is_file())
        if not paths and not _WILDCARDS & set(pattern):
            key = "labels" if "labels.0" not in config.lines else f"labels.{index}"
            message = f"There is no file {pattern} in the folder of the config file."
            problems.append(Problem(config.path.name, config.lines.get(key, 0), key, message))
        for path in paths:
            name = relative(path, config.root)
            for one in read_label_file(path, known, problems, name=name):
                found.setdefault(one.key, one)
    return tuple(found.values())


def unmatched_labels(config: Config) -> list[str]:
    """The globs of a config that match no file."""
    return [one for one in config.labels if not any(map(Path.is_file, config.root.glob(one)))]


def labels_record(
    config: Config, labels: Sequence[HumanLabel], evaluators: Iterable[Evaluator]
) -> dict[str, Any] | None:
    """What a run freezes of the labels that it may read, as JSON; None where it reads none."""
    if not any(one.reads_labels for one in evaluators):
        return None
    return {
        "labels": len(labels),
        "digest": digest(sorted(one.key for one in labels)),
        "disagreement": config.label_disagreement,
    }


def with_labels(dataset: Dataset, labels: Iterable[HumanLabel]) -> Dataset:
    """The dataset with the labels of its cases; those of other cases are left aside."""
    by_case: dict[str, list[HumanLabel]] = {}
    for one in labels:
        by_case.setdefault(one.case_id, []).append(one)
    return replace(
        dataset,
        cases=tuple(
            replace(case, human_labels=tuple(by_case.get(case.id, ()))) for case in dataset.cases
        ),
    )


def united(*sources: Iterable[HumanLabel]) -> tuple[HumanLabel, ...]:
    """Labels of several sources; the same one counts once."""
    found: Mapping[str, HumanLabel] = {one.key: one for source in sources for one in source}
    return tuple(found.values())
