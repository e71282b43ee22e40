"""The project's config file (`rag_assets.yaml`) as one typed model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cron import must_be_cron
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.human_labels import DISAGREEMENTS, Disagreement
from rag_assets.contracts.metric_config import MetricEntry, OperationalMetric, read_metrics
from rag_assets.contracts.slice_config import check_slices
from rag_assets.contracts.system_config import SystemConfig, check_system, declared_kind
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

# What Dagster takes; it would say so when the definitions are made, where no line is known.
_OWNER = re.compile(r"\w[\w.%+-]*@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}|team:\S.*", re.ASCII)


def _must_be_owner(value: str) -> str:
    if _OWNER.fullmatch(value) is None:
        raise ValueError(f"must be an e-mail address, or a team as team:NAME, got {shown(value)}")
    return value


Owner = Annotated[str, AfterValidator(_must_be_owner)]


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


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
        is_nameless: whether a criterion stands there that cannot be read.
        line: line of the entry in the config file.
        lines: key (nested ones dotted) → line, `type` and `criterion` included.
    """

    type: NonEmpty = Field(description="what the evaluator computes, such as contains or recall")
    criterion: NonEmpty | None = None
    parameters: Mapping[str, Any] = {}
    is_nameless: bool = False
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


@dataclass(frozen=True, slots=True)
class ConfigDraft:
    """A config file as far as it can be read, for checks that need only a part of it.

    Attributes:
        source: the file with its lines.
        path: the file, absolute.
        config: the whole; None when anything is wrong with the file.
        dataset, corpus: absolute paths; None when they are not known.
        slices: the names; an empty one for what is no name.
        evaluators, metrics: the entries; None for one that cannot be read, and where there may be
            one that is not found.
        may_sample: whether a case may have several samples.
    """

    source: YamlSource
    path: Path
    config: Config | None
    dataset: Path | None
    corpus: Path | None
    slices: tuple[str, ...]
    evaluators: tuple[EvaluatorEntry | None, ...]
    metrics: tuple[MetricEntry | None, ...]
    may_sample: bool

    @property
    def has_corpus(self) -> bool:
        """Whether a manifest is declared, readable or not."""
        return "corpus" in self.source.content

    @property
    def label_disagreement(self) -> Disagreement:
        """The declared rule; the default where none can be read."""
        written = self.source.content.get("label_disagreement")
        return next((one for one in DISAGREEMENTS if one == written), "exclude")


def read_config(path: Path, problems: list[Problem], *, name: str | None = None) -> Config | None:
    """Read the config file; arguments as of `read_draft`.

    Returns:
        The config, or None when anything is wrong with it.
    """
    draft = read_draft(path, problems, name=name)
    return draft.config if draft else None


def read_draft(
    path: Path, problems: list[Problem], *, name: str | None = None
) -> ConfigDraft | None:
    """Read the config file as far as that is possible.

    Args:
        path: the file.
        problems: every problem of the file is appended here, in the order of the lines.
        name: the file as messages shall name it (default: the path as given).

    Returns:
        What could be read, or None when there is no mapping of keys.
    """
    found: list[Problem] = []
    source = read_yaml(path, found, name=name)
    draft = None if source is None else _draft(source, path.resolve(), found)
    problems += sorted(found)
    return draft


def _draft(source: YamlSource, path: Path, problems: list[Problem]) -> ConfigDraft:
    content = dict(source.content)
    check_system(source, problems)
    check_slices(source, problems)
    _check_replicates(source, problems)
    files: dict[str, Path | None] = {}
    for key, what in (("dataset", "dataset"), ("corpus", "manifest")):
        if isinstance(content.get(key), str):
            content[key] = _file_path(source, key, what, path.parent, problems)
            files[key] = content[key] if content[key].is_file() else None
    lists: dict[str, list[Any]] = {"evaluators": [None], "metrics": []}
    for key, read in (("evaluators", _evaluators), ("metrics", read_metrics)):
        if isinstance(content.get(key), list):
            lists[key] = read(content[key], source, problems)
            content[key] = tuple(one for one in lists[key] if one is not None)
        elif key in content:
            lists[key] = [None]
    if not content.keys() <= Config.model_fields.keys():
        # Any list may be the one whose key is misspelt.
        lists["metrics"].append(None)
    computed = {
        "path": path,
        "root": path.parent,
        "digest": digest(source.content),
        "lines": source.lines,
    }
    config = validate(Config, content, source, problems, computed=computed)
    slices = content["slices"] if isinstance(content.get("slices"), list) else []
    return ConfigDraft(
        source=source,
        path=path,
        config=None if problems else config,
        dataset=files.get("dataset"),
        corpus=files.get("corpus"),
        slices=tuple(one if isinstance(one, str) else "" for one in slices),
        evaluators=tuple(lists["evaluators"]),
        metrics=tuple(lists["metrics"]),
        may_sample=content.get("replicates", 1) != 1 or None in lists["metrics"],
    )


def _check_replicates(source: YamlSource, problems: list[Problem]) -> None:
    """Samples need a system that can be asked again."""
    replicates = source.content.get("replicates")
    if declared_kind(source) == "recorded" and type(replicates) is int and replicates > 1:
        message = (
            f"replicates is {replicates}, and system.recorded holds one answer for each case, "
            "which cannot be sampled again. Remove replicates."
        )
        problems.append(source.problem("replicates", message))


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


def _evaluators(
    entries: list[Any], source: YamlSource, problems: list[Problem]
) -> list[EvaluatorEntry | None]:
    if not entries:
        message = "evaluators must hold at least one evaluator."
        problems.append(source.problem("evaluators", message))
    return [_evaluator(index, entry, source, problems) for index, entry in enumerate(entries)]


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
    computed: dict[str, Any] = {
        "parameters": {name: value for name, value in entry.items() if name not in own},
        "is_nameless": False,
        "line": source.line(key),
        "lines": {
            place.removeprefix(prefix): line
            for place, line in source.lines.items()
            if place.startswith(prefix)
        },
    }
    made = validate(EvaluatorEntry, own, source, problems, key=key, computed=computed)
    if made is None and isinstance(own.get("type"), str) and own["type"]:
        # Its parameters can be judged without the name.
        return EvaluatorEntry(type=own["type"], **computed | {"is_nameless": True})
    return made
