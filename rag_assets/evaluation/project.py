"""A project: everything that a run needs, loaded and checked together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import Config, ConfigDraft, read_draft
from rag_assets.contracts.dataset import read_dataset
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.identities import StageKeys
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.contracts.loading import forget_project_modules, load_object
from rag_assets.contracts.policy import Policy
from rag_assets.contracts.text import names
from rag_assets.evaluation.checks import (
    absent_slices,
    check_body,
    check_metric_ids,
    check_names,
    check_slices,
    relative,
)
from rag_assets.evaluation.matching import Unit
from rag_assets.evaluation.places import (
    COMPARE_POLICY_FILE,
    PROBLEMS_SHOWN,
    open_store,
)
from rag_assets.evaluation.places import state_folder as state_folder
from rag_assets.evaluation.project_policy import (
    all_metrics,
    is_grouped,
    known_metrics,
    read_checked_policy,
)
from rag_assets.evaluation.replicates import Criterion, criteria_of
from rag_assets.evaluators import Evaluator, build_evaluators
from rag_assets.evaluators.ranking import RankingParameters
from rag_assets.store import Store
from rag_assets.systems.blackbox import BlackBox
from rag_assets.systems.load import load_system
from rag_assets.systems.staged import StagedSystem


@dataclass(frozen=True)
class Project:
    """A checked project.

    Attributes:
        config, dataset, evaluators: as the config names them.
        evaluated: the system, of whichever kind.
        policy: what decides, or None without a policy file.
        retry_on: exception classes that a stage is tried again for.
        warnings: sentences for the person who starts a run.
    """

    config: Config
    dataset: Dataset
    evaluated: StagedSystem | BlackBox
    evaluators: tuple[Evaluator, ...]
    policy: Policy | None
    retry_on: tuple[type[BaseException], ...]
    warnings: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the system is called as a whole."""
        return isinstance(self.evaluated, BlackBox)

    @property
    def system(self) -> StagedSystem:
        """The system, where stages are to be called.

        Raises:
            InputError: it is called as a whole.
        """
        if isinstance(self.evaluated, BlackBox):
            raise InputError(
                f"A system of the kind {self.evaluated.kind} is called as a whole: it has no "
                "stages that could be called one by one."
            )
        return self.evaluated

    @cached_property
    def relevance_unit(self) -> Unit:
        """The unit of the retrieval evaluators if they agree, otherwise `doc`."""
        units = {
            evaluator.parameters.relevance_unit
            for evaluator in self.evaluators
            if isinstance(evaluator.parameters, RankingParameters)
        }
        return "chunk" if units == {"chunk"} else "doc"

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """Everything that a run has one outcome of for each case."""
        return criteria_of(self.config, self.evaluators)

    @cached_property
    def is_grouped(self) -> bool:
        """Whether cases of the dataset belong together."""
        return is_grouped(self.dataset)

    @cached_property
    def store(self) -> Store:
        """The project's store."""
        return open_store(self.config)

    @cached_property
    def keys(self) -> StageKeys:
        """The fixed parts of the stage identities."""
        system = self.system
        return StageKeys.of(
            name=system.name,
            version=system.version,
            config=system.config,
            code={stage: code.digest for stage, code in system.code.items()},
            index_version=system.index_version,
            depth=system.depth,
            seeds={
                stage: self.config.seed
                for stage in ("retrieve", "generate")
                if system.takes_seed(stage)
            },
            system_identity=system.identity,
        )


def load_project(
    config_path: Path, policy_path: Path | None = None, *, with_policy: bool = True
) -> Project:
    """Load and check the whole project; nothing of it is executed.

    Args:
        config_path: the config file.
        policy_path: a policy file; None for `release.yaml` beside the config, if it exists.
        with_policy: False reads no policy at all.

    Raises:
        InputError: with every problem of config, dataset, system, evaluators and policy.
    """
    forget_project_modules(config_path.parent)
    problems: list[Problem] = []
    draft = read_draft(config_path, problems, name=config_path.name)
    if draft is None:
        raise InputError(problems)
    config, dataset = draft.config, _dataset(draft, problems)
    check_names(draft.path.parent, config_path.name, problems)
    system = load_system(config, config_path.name, dataset, problems) if config else None
    evaluators = build_evaluators(
        draft.evaluators,
        file=config_path.name,
        depth=system.depth if isinstance(system, StagedSystem) else None,
        is_depth_known=system is not None,
        recorded=_recorded(system),
        dataset=dataset,
        root=draft.path.parent,
        problems=problems,
    )
    if dataset is not None:
        check_slices(draft, dataset, problems)
        check_body(draft, dataset, problems)
    check_metric_ids(draft, evaluators, problems)
    policy = None
    if with_policy:
        known = known_metrics(draft, evaluators, dataset)
        policy = read_checked_policy(draft.path.parent, policy_path, known, problems)
    retry_on = _retry_on(config, problems) if config else ()
    if problems or config is None or dataset is None or system is None:
        raise InputError(_ordered(problems, config_path.name), shown=PROBLEMS_SHOWN)
    warnings = _warnings(config, system, evaluators, dataset)
    return Project(config, dataset, system, evaluators, policy, retry_on, warnings)


def _ordered(problems: Sequence[Problem], file: str) -> list[Problem]:
    """The problems of the config file by line, and then those of other files as they were found."""
    ours = sorted((one for one in problems if one.file == file), key=lambda one: one.line)
    return [*ours, *(one for one in problems if one.file != file)]


def _dataset(draft: ConfigDraft, problems: list[Problem]) -> Dataset | None:
    if draft.dataset is None:
        return None
    name = relative(draft.dataset, draft.path.parent)
    return read_dataset(draft.dataset, problems, name=name)


def check_comparison_policy(project: Project) -> None:
    """Check the policy for comparisons beside the config, where there is one.

    Raises:
        InputError: with every problem of it.
    """
    config, problems = project.config, list[Problem]()
    path = config.root / COMPARE_POLICY_FILE
    if path.is_file():
        operational = [one.id for one in config.operational_metrics]
        known = all_metrics(project.criteria, operational, project.dataset)
        read_checked_policy(config.root, path, known, problems)
    if problems:
        raise InputError(problems, shown=PROBLEMS_SHOWN)


def _retry_on(config: Config, problems: list[Problem]) -> tuple[type[BaseException], ...]:
    classes: list[type[BaseException]] = []
    for index, reference in enumerate(config.system.retries.retry_on):
        key = f"system.retries.retry_on.{index}"
        place = (config.path.name, config.lines.get(key, 0), key)
        try:
            loaded = load_object(reference, config.root)
        except InputError as error:
            problems.append(Problem(*place, str(error)))
            continue
        if isinstance(loaded, type) and issubclass(loaded, BaseException):
            classes.append(loaded)
        else:
            problems.append(Problem(*place, f"{reference} is not an exception class."))
    return tuple(classes)


def _recorded(system: StagedSystem | BlackBox | None) -> frozenset[str]:
    """The parts that evaluators can read; of a staged system, citations only where a path is."""
    if isinstance(system, BlackBox):
        kinds = {"retrieval": RETRIEVAL, "context": CONTEXT, "citations": CITATIONS}
        return frozenset(part for part, kind in kinds.items() if kind in system.records)
    cites = system is None or system.citations_path is not None
    return frozenset({"retrieval", "context", *(["citations"] if cites else [])})


def _warnings(
    config: Config,
    system: StagedSystem | BlackBox,
    evaluators: Sequence[Evaluator],
    dataset: Dataset,
) -> tuple[str, ...]:
    found = list(absent_slices(config.slices, dataset))
    if isinstance(system, StagedSystem) and system.index_version is None:
        found.append(
            "No index_version is declared: retrieval stays cached until the code changes. Set "
            "system.rag.index_version to a string, a file or a callable that changes with the "
            "index."
        )
    for evaluator in evaluators:
        # The first case that is not excluded settles it.
        if all(evaluator.exclusion(case) for case in dataset.cases):
            reasons = sorted({str(evaluator.exclusion(case)) for case in dataset.cases})
            found.append(
                f"{evaluator.criterion} excludes every case ({', '.join(reasons)}): it "
                f"measures nothing. Check the parameters of {evaluator} against the dataset."
            )
    return tuple(found)


def selection(dataset: Dataset, pattern: str | None, limit: int | None) -> tuple[str, ...] | None:
    """The ids of the cases that a run is restricted to; None for all of them.

    Args:
        dataset: the suite.
        pattern: a glob over case ids.
        limit: the first so many of those that match, ≥ 1.

    Raises:
        InputError: the pattern matches nothing; the nearest ids are listed.
    """
    import difflib

    if pattern is None and limit is None:
        return None
    ids = [case.id for case in dataset.cases]
    chosen = [one for one in ids if pattern is None or names(pattern, one)]
    if not chosen:
        near = difflib.get_close_matches(pattern or "", ids, n=3, cutoff=0.3)
        hint = f" Nearest ids: {', '.join(near)}." if near else ""
        of = (
            "does not match the 1 case"
            if len(ids) == 1
            else f"matches none of the {len(ids)} cases"
        )
        raise InputError(f'--cases "{pattern}" {of}.{hint}')
    return tuple(chosen[:limit])
