"""A project: everything that a run needs, loaded and checked together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import Config
from rag_assets.contracts.corpus import Corpus
from rag_assets.contracts.dataset import read_dataset
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.human_labels import HumanLabel
from rag_assets.contracts.identities import StageKeys
from rag_assets.contracts.loading import forget_project_modules
from rag_assets.contracts.metric_config import OperationalMetric
from rag_assets.contracts.policy import MetricKind, Policy, check_policy, read_policy
from rag_assets.evaluation.checks import (
    check_metric_ids,
    check_names,
    check_replicates,
    check_slices,
    check_source_slices,
    check_staged_metrics,
    check_staged_slices,
    relative,
)
from rag_assets.evaluation.corpora import (
    checked_reference_sets,
    load_corpus,
    today,
    with_reference_sets,
)
from rag_assets.evaluation.grouping import group_keys
from rag_assets.evaluation.labelling import known_to, load_labels, united, with_labels
from rag_assets.evaluation.matching import Unit
from rag_assets.evaluation.places import (
    COMPARE_POLICY_FILE,
    POLICY_FILE,
    PROBLEMS_SHOWN,
    load_config,
    open_store,
)
from rag_assets.evaluation.places import state_folder as state_folder
from rag_assets.evaluation.readiness import recorded_parts, retry_exceptions, warnings_of
from rag_assets.evaluation.replicates import Criterion, criteria_of
from rag_assets.evaluation.retrieval_valid import retrieval_criterion
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
        config, evaluators: as the config names them.
        dataset: the cases; where there is a corpus, with their reference sets.
        corpus: the manifest; None where the config declares none.
        as_of: the date of the cases that name none.
        evaluated: the system, of whichever kind.
        policy: what decides, or None without a policy file.
        retry_on: exception classes that a stage is tried again for.
        warnings: sentences for the person who starts a run.
        labels: of the label files, and once they are read those of the store; the cases have them.
    """

    config: Config
    dataset: Dataset
    evaluated: StagedSystem | BlackBox
    evaluators: tuple[Evaluator, ...]
    policy: Policy | None
    retry_on: tuple[type[BaseException], ...]
    warnings: tuple[str, ...]
    corpus: Corpus | None = None
    as_of: date = date.min
    labels: tuple[HumanLabel, ...] = ()

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
        """Everything that is judged of each case, or made of what is judged."""
        return criteria_of(self.config, self.evaluators)

    @cached_property
    def measured(self) -> tuple[Criterion, ...]:
        """Everything that a run has one outcome of for each case."""
        return measured_criteria(self.config, self.evaluated, self.evaluators)

    @cached_property
    def reads_corpus(self) -> bool:
        """Whether a judgment depends on the manifest."""
        return self.corpus is not None and any(one.reads_corpus for one in self.evaluators)

    @cached_property
    def is_grouped(self) -> bool:
        """Whether cases of the dataset belong together."""
        return is_grouped(self.dataset)

    @cached_property
    def store(self) -> Store:
        """The project's store."""
        return open_store(self.config)

    def on(self, day: date) -> Project:
        """The project on another day: what is admissible may have changed."""
        if day == self.as_of:
            return self
        return replace(self, dataset=with_reference_sets(self.dataset, self.corpus, day), as_of=day)

    @property
    def reads_labels(self) -> bool:
        """Whether a judgment is what reviewers said."""
        return any(one.reads_labels for one in self.evaluators)

    def labelled(self, stored: Iterable[HumanLabel]) -> Project:
        """The project with the labels of the store beside those of its files."""
        labels = united(stored, self.labels)
        return replace(self, dataset=with_labels(self.dataset, labels), labels=labels)

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
    config = load_config(config_path)
    problems: list[Problem] = []
    check_names(config, problems)
    dataset = read_dataset(config.dataset, problems, name=relative(config.dataset, config.root))
    corpus, as_of = load_corpus(config, problems), today()
    if dataset is not None:
        dataset = checked_reference_sets(config, dataset, corpus, as_of, problems)
    system = load_system(config, config_path.name, dataset, problems)
    evaluators = build_evaluators(
        config.evaluators,
        file=config_path.name,
        depth=system.depth if isinstance(system, StagedSystem) else None,
        recorded=recorded_parts(system),
        dataset=dataset,
        root=config.root,
        problems=problems,
        has_corpus=config.corpus is not None,
        label_disagreement=config.label_disagreement,
    )
    # What a label may be about is only known when all evaluators could be built.
    labels: tuple[HumanLabel, ...] = ()
    if dataset is not None and not problems:
        labels = load_labels(config, known_to(dataset, evaluators), problems)
    check_staged_slices(config, problems)
    check_source_slices(config, recorded_parts(system), problems)
    check_staged_metrics(config, problems)
    check_replicates(config, problems)
    if dataset is not None:
        check_slices(config, dataset, problems)
    check_metric_ids(config, evaluators, problems)
    policy = None
    if with_policy:
        criteria = measured_criteria(config, system, evaluators)
        policy = _policy(config, policy_path, criteria, dataset, problems)
    retry_on = retry_exceptions(config, problems)
    if problems or dataset is None or system is None:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
    warnings = warnings_of(system, evaluators, dataset)
    dataset = with_labels(dataset, labels) if labels else dataset
    parts = (config, dataset, system, evaluators, policy, retry_on, warnings)
    return Project(*parts, corpus=corpus, as_of=as_of, labels=labels)


def check_comparison_policy(project: Project) -> None:
    """Check the policy for comparisons beside the config, where there is one.

    Raises:
        InputError: with every problem of it.
    """
    config, problems = project.config, list[Problem]()
    path = config.root / COMPARE_POLICY_FILE
    if path.is_file():
        _policy(config, path, project.measured, project.dataset, problems)
    if problems:
        raise InputError(problems, shown=PROBLEMS_SHOWN)


def measured_criteria(
    config: Config, system: StagedSystem | BlackBox | None, evaluators: tuple[Evaluator, ...]
) -> tuple[Criterion, ...]:
    """The criteria of the evaluators, what is made of them, and run coverage."""
    is_recorded = system is not None and "retrieval" in recorded_parts(system)
    coverage = retrieval_criterion(config, is_recorded=is_recorded)
    return (*criteria_of(config, evaluators), *([coverage] if coverage else []))


def is_grouped(dataset: Dataset) -> bool:
    """Whether cases of a dataset belong together."""
    return group_keys((case.id, case.group) for case in dataset.cases) is not None


def metric_kinds(
    criteria: Sequence[Criterion], operational: tuple[OperationalMetric, ...], *, grouped: bool
) -> dict[str, MetricKind]:
    """Metric → kind and range, for the checks of a policy."""
    kinds = {
        one.criterion: MetricKind(one.kind, one.value_range, grouped, one.samples)
        for one in criteria
    }
    return kinds | {one.id: MetricKind("quantile", (0.0, math.inf)) for one in operational}


def _policy(
    config: Config,
    named: Path | None,
    criteria: tuple[Criterion, ...],
    dataset: Dataset | None,
    problems: list[Problem],
) -> Policy | None:
    path = named or config.root / POLICY_FILE
    if named is None and not path.exists():
        return None
    name = relative(path.resolve(), config.root)
    policy = read_policy(path, problems, name=name)
    # A metric can only be called unknown when all evaluators could be built.
    if policy is not None and dataset is not None and not problems:
        ids = [case.id for case in dataset.cases]
        check_policy(
            policy,
            metric_kinds(
                criteria,
                config.operational_metrics,
                grouped=is_grouped(dataset),
            ),
            ids,
            problems,
            name=name,
        )
    return policy
