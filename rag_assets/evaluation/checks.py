"""Checks of a project that need more than one of its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import ConfigDraft
from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.paths import NOTHING, value_at
from rag_assets.contracts.slice_config import METADATA
from rag_assets.contracts.template import template_problems, unanswered
from rag_assets.evaluation.retrieval_valid import NAME as RETRIEVAL_VALID
from rag_assets.evaluators import Evaluator

_NEEDED = (
    *("dagster", "duckdb", "numpy", "scipy", "sqlalchemy", "pydantic", "yaml", "rich", "ulid"),
    "httpx",
)
_BODY = "system.http.body"
_TAKEN = f'"{RETRIEVAL_VALID}" is the metric that every run with a retrieval has anyway.'


def check_names(root: Path, file: str, problems: list[Problem]) -> None:
    """A module of the project must not stand in the way of a package that is needed here.

    Args:
        root: the project folder.
        file: the config file as messages name it.
        problems: the list to append to.
    """
    for name in _NEEDED:
        for path in (root / f"{name}.py", root / name / "__init__.py"):
            if path.exists():
                message = (
                    f"{relative(path, root)} has the name of a package that rag-assets "
                    "needs, and would be imported instead of it. Rename it."
                )
                problems.append(Problem(file, 0, "", message))


def check_metric_ids(
    draft: ConfigDraft, evaluators: Sequence[Evaluator], problems: list[Problem]
) -> None:
    """The id of a declared metric is no criterion, and what it is made of is one, of verdicts.

    Args:
        draft: the config file.
        evaluators: those of its evaluators that could be built.
        problems: the list to append to.
    """
    kinds = {evaluator.criterion: evaluator.kind for evaluator in evaluators}
    verdicts = [criterion for criterion, kind in kinds.items() if kind == "verdict"]
    are_known = len(evaluators) == len(draft.evaluators)
    for index, entry in enumerate(draft.evaluators):
        if entry is not None and entry.criterion == RETRIEVAL_VALID:
            key = f"evaluators.{index}.criterion"
            problems.append(draft.source.problem(key, f"{_TAKEN} Take another name."))
    for index, metric in enumerate(draft.metrics):
        if metric is None:
            continue
        if metric.id == RETRIEVAL_VALID:
            message = f"{_TAKEN} Take another id."
            problems.append(draft.source.problem(f"metrics.{index}.id", message))
        if metric.id in kinds:
            message = f'The id "{metric.id}" is the criterion of an evaluator; take another one.'
            problems.append(draft.source.problem(f"metrics.{index}.id", message))
        every = metric.every_replicate
        if every not in (None, *verdicts) and (are_known or every in kinds):
            message = (
                f'"{every}" is no criterion of verdicts; those are '
                f"{', '.join(verdicts) or 'absent here'}."
            )
            problems.append(draft.source.problem(f"metrics.{index}.every_replicate", message))


def check_slices(draft: ConfigDraft, dataset: Dataset, problems: list[Problem]) -> None:
    """The value of a metadata slice must be a scalar in every case."""
    for index, name in enumerate(draft.slices):
        if not name.startswith(METADATA):
            continue
        key = name.removeprefix(METADATA)
        for case in dataset.cases:
            if isinstance(case.metadata.get(key), (dict, list)):
                kind = "an object" if isinstance(case.metadata[key], dict) else "a list"
                message = (
                    f"{name} cannot be a slice: it is {kind} in case {case.id} (line {case.line}). "
                    "Slice on a string, number or boolean."
                )
                problems.append(draft.source.problem(f"slices.{index}", message))
                break


def check_stale_source(
    draft: ConfigDraft, recorded: frozenset[str], problems: list[Problem]
) -> None:
    """The slice `stale_source` asks what reached the model.

    Args:
        draft: the config file.
        recorded: which of retrieval, context and citations the system can record.
        problems: the list to append to.
    """
    if "stale_source" in draft.slices and "context" not in recorded:
        message = (
            "stale_source asks what reached the model, and this system never records that. Let "
            "the system record its context, or remove this slice."
        )
        key = f"slices.{draft.slices.index('stale_source')}"
        problems.append(draft.source.problem(key, message))


def check_body(draft: ConfigDraft, dataset: Dataset, problems: list[Problem]) -> None:
    """What a request asks of the cases, at least one of them has."""
    body = value_at(draft.source.content, _BODY)
    # What is wrong with the body itself has been said.
    if body is not NOTHING and not list(template_problems(body, _BODY)):
        problems += [
            draft.source.problem(key, message)
            for key, message in unanswered(body, _BODY, dataset.cases)
        ]


def absent_slices(slices: Sequence[str], dataset: Dataset) -> Iterator[str]:
    """A sentence for each metadata slice whose key no case has."""
    keys = list(dict.fromkeys(key for case in dataset.cases for key in case.metadata))
    for name in slices:
        key = name.removeprefix(METADATA)
        if key != name and key not in keys:
            known = f" The metadata keys are {', '.join(keys)}." if keys else ""
            yield (
                f"No case has {name}: the slice holds every case under one value.{known}"
                f"{nearest(key, keys)}"
            )


def relative(path: Path, root: Path) -> str:
    """A path as messages show it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
