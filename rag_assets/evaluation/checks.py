"""Checks of a project that need more than one of its files."""

from __future__ import annotations

from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import SOURCE_SLICES, STAGED_SLICES, STAGED_SOURCES, Config
from rag_assets.contracts.errors import Problem
from rag_assets.evaluation.retrieval_valid import NAME as RETRIEVAL_VALID
from rag_assets.evaluators import Evaluator

_NEEDED = (
    *("dagster", "duckdb", "numpy", "scipy", "sqlalchemy", "pydantic", "yaml", "rich", "ulid"),
    "httpx",
)


_TAKEN = f'"{RETRIEVAL_VALID}" is the metric that every run with a retrieval has anyway.'


def check_names(config: Config, problems: list[Problem]) -> None:
    """A module of the project must not stand in the way of a package that is needed here."""
    for name in _NEEDED:
        for file in (config.root / f"{name}.py", config.root / name / "__init__.py"):
            if file.exists():
                message = (
                    f"{relative(file, config.root)} has the name of a package that rag-assets "
                    "needs, and would be imported instead of it. Rename it."
                )
                problems.append(Problem(config.path.name, 0, "", message))


def check_staged_slices(config: Config, problems: list[Problem]) -> None:
    """Slices that compare positions with `top_k` need a system that declares it."""
    if config.system.kind == "rag":
        return
    for index, name in enumerate(config.slices):
        if name in STAGED_SLICES:
            key = f"slices.{index}"
            message = (
                f"{name} compares positions with top_k, which only a staged system (system.rag) "
                "declares. Remove this slice."
            )
            problems.append(_problem(config, key, message))


def check_source_slices(config: Config, recorded: frozenset[str], problems: list[Problem]) -> None:
    """Slices that ask the manifest need one, and `stale_source` a recorded context."""
    for index, name in enumerate(config.slices):
        message = None
        if name in SOURCE_SLICES and config.corpus is None:
            message = (
                f"{name} asks the manifest, and this config declares none. Name it with the key "
                "corpus, or remove this slice."
            )
        elif name == "stale_source" and "context" not in recorded:
            message = (
                "stale_source asks what reached the model, and this system never records that. "
                "Let the system record its context, or remove this slice."
            )
        if message is not None:
            problems.append(_problem(config, f"slices.{index}", message))


def check_staged_metrics(config: Config, problems: list[Problem]) -> None:
    """The time of one stage is only known where stages are called one by one."""
    if config.system.kind == "rag":
        return
    for index, metric in enumerate(config.metrics):
        if metric.source in STAGED_SOURCES:
            key = f"metrics.{index}.source"
            message = (
                f"{metric.source} is the time of one stage, and only a staged system (system.rag) "
                "is called stage by stage. Take latency_ms, the time of the whole call."
            )
            problems.append(_problem(config, key, message))


def check_replicates(config: Config, problems: list[Problem]) -> None:
    """Samples need a system that can be asked again."""
    if config.system.kind == "recorded" and config.replicates > 1:
        message = (
            f"replicates is {config.replicates}, and system.recorded holds one answer for each "
            "case, which cannot be sampled again. Remove replicates."
        )
        problems.append(_problem(config, "replicates", message))


def check_metric_ids(
    config: Config, evaluators: tuple[Evaluator, ...], problems: list[Problem]
) -> None:
    """The id of a declared metric is no criterion, and what it is made of is one, of verdicts."""
    kinds = {evaluator.criterion: evaluator.kind for evaluator in evaluators}
    verdicts = [criterion for criterion, kind in kinds.items() if kind == "verdict"]
    for index, evaluator in enumerate(config.evaluators):
        if evaluator.criterion == RETRIEVAL_VALID:
            problems.append(
                _problem(config, f"evaluators.{index}.criterion", f"{_TAKEN} Take another name.")
            )
    for index, metric in enumerate(config.metrics):
        messages: dict[str, str] = {}
        if metric.id == RETRIEVAL_VALID:
            messages["id"] = f"{_TAKEN} Take another id."
        if metric.id in kinds:
            messages["id"] = (
                f'The id "{metric.id}" is the criterion of an evaluator; take another one.'
            )
        # Which criteria there are is only known when all evaluators could be built.
        if metric.every_replicate not in (None, *verdicts) and not problems:
            messages["every_replicate"] = (
                f'"{metric.every_replicate}" is no criterion of verdicts; those are '
                f"{', '.join(verdicts) or 'absent here'}."
            )
        for name, message in messages.items():
            key = f"metrics.{index}.{name}"
            problems.append(_problem(config, key, message))


def check_slices(config: Config, dataset: Dataset, problems: list[Problem]) -> None:
    """The value of a metadata slice must be a scalar in every case."""
    for index, name in enumerate(config.slices):
        if not name.startswith("metadata."):
            continue
        key = name.removeprefix("metadata.")
        for case in dataset.cases:
            if isinstance(case.metadata.get(key), (dict, list)):
                kind = "an object" if isinstance(case.metadata[key], dict) else "a list"
                dotted = f"slices.{index}"
                message = (
                    f"{name} cannot be a slice: it is {kind} in case {case.id} (line {case.line}). "
                    "Slice on a string, number or boolean."
                )
                problems.append(_problem(config, dotted, message))
                break


def relative(path: Path, root: Path) -> str:
    """A path as messages show it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _problem(config: Config, key: str, message: str) -> Problem:
    """A problem with the line of its key in the config file."""
    return Problem(config.path.name, config.lines.get(key, 0), key, message)
