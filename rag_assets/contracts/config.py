"""The project's config file (`rag_assets.yaml`) as one typed model."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cron import must_be_cron
from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.human_labels import Disagreement
from rag_assets.contracts.metric_config import MetricEntry, OperationalMetric, check_metrics
from rag_assets.contracts.system_config import SystemConfig, check_system
from rag_assets.contracts.text import shown
from rag_assets.contracts.timing import SecondsOrZero
from rag_assets.contracts.validation import (
    FileModel,
    FormatVersion,
    NonEmpty,
    PositiveInt,
    Texts,
    validate,
)
from rag_assets.contracts.yaml_source import YamlSource, read_yaml

STAGED_SLICES = ("relevant_position", "context_truncated")
STAGED_SOURCES = ("retrieval_ms", "generation_ms")
METADATA_SLICE = "metadata."

SOURCE_SLICES = ("stale_source", "admissible_source")


# What Dagster takes; it would say so when the definitions are made, where no line is known.
_OWNER = re.compile(r"\w[\w.%+-]*@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}|team:\S.*", re.ASCII)


def _must_be_owner(value: str) -> str:
    if _OWNER.fullmatch(value) is None:
        raise ValueError(f"must be an e-mail address, or a team as team:NAME, got {shown(value)}")
    return value


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Owner = Annotated[str, AfterValidator(_must_be_owner)]


Globs = Annotated[tuple[NonEmpty, ...], Field(strict=False), BeforeValidator(_one_or_more)]


class Concurrency(FileModel):
    """Cases in flight, and judge calls in flight."""

    system: PositiveInt = 8
    judge: PositiveInt = 4


class RunSettings(FileModel):
    """`run`: how a run ends."""

    fail_on_case_errors: bool = True


class DagsterSettings(FileModel):
    """`dagster`: how runs appear in the Dagster UI, and when the nightly schedule starts one.

    Attributes:
        cron: of the nightly schedule, in UTC.
        owners: of every asset: e-mail addresses and `team:NAME`.
    """

    rich_metadata_cases: Annotated[int, Field(ge=0)] = 1000
    cron: Annotated[str, AfterValidator(must_be_cron)] = "0 2 * * *"
    owners: Annotated[tuple[Owner, ...], Field(strict=False)] = ()
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"


class StoreSettings(FileModel):
    """`store`: how long to wait for another process, in seconds."""

    lock_timeout_s: SecondsOrZero = 60.0


class EvaluatorEntry(FileModel):
    """One evaluator as written; its type decides later which parameters it takes.

    Attributes:
        parameters: every key except `type` and `criterion`.
        line: line of the entry in the config file.
        lines: key (nested ones dotted) → line, `type` and `criterion` included.
    """

    type: NonEmpty = Field(description="what the evaluator computes, such as contains or recall")
    criterion: NonEmpty | None = None
    parameters: Mapping[str, Any] = {}
    line: int = 0
    lines: Mapping[str, int] = {}


class Config(FileModel):
    """The config file.

    Attributes:
        dataset, corpus: absolute paths; the corpus is None where no manifest is declared.
        labels: globs of files with human labels, from the folder of the file.
        label_disagreement: what the labels of reviewers who disagree come to.
        path: the config file, absolute.
        root: its folder; relative paths start here.
        digest: SHA-256 of the canonical JSON of the file's content.
        lines: dotted key → line, for checks that come later.
    """

    later_keys: ClassVar[frozenset[str]] = frozenset({"budget"})

    version: FormatVersion = 1
    project: NonEmpty = Field(description="a label for the project")
    dataset: Path = Field(description="the path of the cases, a JSON Lines file")
    corpus: Path | None = None
    labels: Globs = ()
    label_disagreement: Disagreement = "exclude"
    suite: Literal["regression", "sample"] = "regression"
    system: SystemConfig = Field(description="a mapping with the system that is evaluated")
    evaluators: Annotated[tuple[EvaluatorEntry, ...], Field(strict=False)] = Field(
        description="a list of at least one evaluator"
    )
    slices: Texts = ()
    min_slice_support: PositiveInt = 30
    concurrency: Concurrency = Concurrency()
    seed: int = 0
    replicates: PositiveInt = 1
    replicate_retrieval: bool = False
    metrics: Annotated[tuple[MetricEntry, ...], Field(strict=False)] = ()
    run: RunSettings = RunSettings()
    dagster: DagsterSettings = DagsterSettings()
    store: StoreSettings = StoreSettings()
    path: Path
    root: Path
    digest: str
    lines: Mapping[str, int]

    @property
    def operational_metrics(self) -> tuple[OperationalMetric, ...]:
        """The declared metrics that are quantiles of what the cases took."""
        return tuple(
            OperationalMetric(id=one.id, source=one.source, quantile=one.quantile)
            for one in self.metrics
            if one.source is not None and one.quantile is not None
        )


def read_config(path: Path, problems: list[Problem], *, name: str | None = None) -> Config | None:
    """Read the config file.

    Args:
        path: the file.
        problems: every problem of the file is appended here, in the order of the lines.
        name: the file as messages shall name it (default: the path as given).

    Returns:
        The config, or None when anything is wrong with it.
    """
    found: list[Problem] = []
    source = read_yaml(path, found, name=name)
    config = None if source is None else _config(source, path.resolve(), found)
    problems += sorted(found)
    return None if found else config


def _config(source: YamlSource, path: Path, problems: list[Problem]) -> Config | None:
    content = dict(source.content)
    check_system(source, problems)
    _check_slices(source, problems)
    check_metrics(source, problems)
    for key, what in (("dataset", "dataset"), ("corpus", "manifest")):
        if isinstance(content.get(key), str):
            content[key] = _file_path(source, key, what, path.parent, problems)
    if isinstance(content.get("evaluators"), list):
        content["evaluators"] = _evaluators(source, problems)
    computed = {
        "path": path,
        "root": path.parent,
        "digest": digest(source.content),
        "lines": source.lines,
    }
    return validate(Config, content, source, problems, computed=computed)


def _file_path(
    source: YamlSource, key: str, what: str, root: Path, problems: list[Problem]
) -> Path:
    written = source.content[key]
    path = Path(os.path.abspath(root / written))
    if not path.is_file():
        message = (
            f"There is no file {shown(written)} in the folder of the config file; write the path "
            f"of the {what} relative to that folder."
        )
        problems.append(source.problem(key, message))
    return path


def _evaluators(source: YamlSource, problems: list[Problem]) -> tuple[EvaluatorEntry, ...]:
    entries = source.content["evaluators"]
    if not entries:
        message = "evaluators must hold at least one evaluator."
        problems.append(source.problem("evaluators", message))
    made = [_evaluator(index, entry, source, problems) for index, entry in enumerate(entries)]
    return tuple(entry for entry in made if entry is not None)


def _evaluator(
    index: int, entry: Any, source: YamlSource, problems: list[Problem]
) -> EvaluatorEntry | None:
    key = f"evaluators.{index}"
    if not isinstance(entry, dict):
        message = f"The entry must be a mapping with a type, got {shown(entry)}."
        problems.append(source.problem(key, message))
        return None
    own = {name: entry[name] for name in ("type", "criterion") if name in entry}
    prefix = f"{key}."
    computed = {
        "parameters": {name: value for name, value in entry.items() if name not in own},
        "line": source.line(key),
        "lines": {
            place.removeprefix(prefix): line
            for place, line in source.lines.items()
            if place.startswith(prefix)
        },
    }
    return validate(EvaluatorEntry, own, source, problems, key=key, computed=computed)


def _check_slices(source: YamlSource, problems: list[Problem]) -> None:
    names = source.content.get("slices")
    if not isinstance(names, list):
        return
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            continue
        message = _slice_problem(name)
        if message is None and seen[name]:
            message = f"The slice {shown(name)} is declared twice; keep one."
        if message is not None:
            problems.append(source.problem(f"slices.{index}", message))
        seen[name] += 1


def _slice_problem(name: str) -> str | None:
    if name in (*STAGED_SLICES, *SOURCE_SLICES) or (
        name.startswith(METADATA_SLICE) and name != METADATA_SLICE
    ):
        return None
    known = (f"{METADATA_SLICE}<key>", *STAGED_SLICES, *SOURCE_SLICES)
    return (
        f"The slice {shown(name)} is not known; write {' or '.join(known)}.{nearest(name, known)}"
    )
