"""A project: everything that a run needs, loaded and checked together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import Config, ConfigDraft, read_draft
from rag_assets.contracts.corpus import Corpus
from rag_assets.contracts.dataset import read_dataset
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.human_labels import HumanLabel
from rag_assets.contracts.identities import StageKeys
from rag_assets.contracts.loading import forget_project_modules
from rag_assets.contracts.policy import Policy
from rag_assets.evaluation.checks import (
    check_body,
    check_metric_ids,
    check_names,
    check_slices,
    check_stale_source,
    relative,
)
from rag_assets.evaluation.corpora import (
    checked_reference_sets,
    load_corpus,
    today,
    with_reference_sets,
)
from rag_assets.evaluation.labelling import known_to, load_labels, united, with_labels
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
from rag_assets.evaluation.readiness import recorded_parts, retry_exceptions, warnings_of
from rag_assets.evaluation.replicates import Criterion, criteria_of
from rag_assets.evaluation.retrieval_valid import retrieval_criterion
from rag_assets.evaluators import Evaluator, build_evaluators
from rag_assets.evaluators.labelled import Labelled
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
        is_recorded = "retrieval" in recorded_parts(self.evaluated)
        coverage = retrieval_criterion(self.config, is_recorded=is_recorded)
        return (*self.criteria, *([coverage] if coverage else []))

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
    def labelled_criteria(self) -> frozenset[str]:
        """The criteria whose labels a judgment reads."""
        found = (one.sources for one in self.evaluators if isinstance(one, Labelled))
        return frozenset(criterion for sources in found for criterion in sources)

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
    problems: list[Problem] = []
    draft = read_draft(config_path, problems, name=config_path.name)
    if draft is None:
        raise InputError(problems)
    as_of = today()
    corpus = load_corpus(draft, problems)
    config, dataset = draft.config, _dataset(draft, corpus, as_of, problems)
    check_names(draft.path.parent, config_path.name, problems)
    system = load_system(config, config_path.name, dataset, problems) if config else None
    recorded = recorded_parts(system)
    evaluators = build_evaluators(
        draft.evaluators,
        file=config_path.name,
        depth=system.depth if isinstance(system, StagedSystem) else None,
        is_depth_known=system is not None,
        recorded=recorded,
        dataset=dataset,
        root=draft.path.parent,
        problems=problems,
        has_corpus=draft.has_corpus,
        label_disagreement=draft.label_disagreement,
    )
    # What a label may be about is only known when all evaluators could be built.
    labels: tuple[HumanLabel, ...] = ()
    if config is not None and dataset is not None and not problems:
        labels = load_labels(config, known_to(dataset, evaluators), problems)
        dataset = with_labels(dataset, labels) if labels else dataset
    check_stale_source(draft, recorded, problems)
    if dataset is not None:
        check_slices(draft, dataset, problems)
        check_body(draft, dataset, problems)
    check_metric_ids(draft, evaluators, problems)
    policy = None
    if with_policy:
        has_retrieval = None if system is None else "retrieval" in recorded
        known = known_metrics(draft, evaluators, dataset, has_retrieval)
        policy = read_checked_policy(draft.path.parent, policy_path, known, problems)
    retry_on = retry_exceptions(config, problems) if config else ()
    if problems or config is None or dataset is None or system is None:
        raise InputError(_ordered(problems, config_path.name), shown=PROBLEMS_SHOWN)
    warnings = warnings_of(config, system, evaluators, dataset, corpus)
    parts = (config, dataset, system, evaluators, policy, retry_on, warnings)
    return Project(*parts, corpus=corpus, as_of=as_of, labels=labels)


def _ordered(problems: Sequence[Problem], file: str) -> list[Problem]:
    """The problems of the config file by line, and then those of other files as they were found."""
    ours = sorted((one for one in problems if one.file == file), key=lambda one: one.line)
    return [*ours, *(one for one in problems if one.file != file)]


def _dataset(
    draft: ConfigDraft, corpus: Corpus | None, as_of: date, problems: list[Problem]
) -> Dataset | None:
    if draft.dataset is None:
        return None
    name = relative(draft.dataset, draft.path.parent)
    dataset = read_dataset(draft.dataset, problems, name=name)
    if dataset is None or corpus is None:
        return dataset
    return checked_reference_sets(dataset, corpus, as_of, name, problems)


def check_comparison_policy(project: Project) -> None:
    """Check the policy for comparisons beside the config, where there is one.

    Raises:
        InputError: with every problem of it.
    """
    config, problems = project.config, list[Problem]()
    path = config.root / COMPARE_POLICY_FILE
    if path.is_file():
        operational = [one.id for one in config.operational_metrics]
        known = all_metrics(project.measured, operational, project.dataset)
        read_checked_policy(config.root, path, known, problems)
    if problems:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
