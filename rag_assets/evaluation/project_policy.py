"""The policy of a project, checked against what is known of the project's metrics and cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import ConfigDraft
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.policy import MetricKind, Policy, check_policy, read_policy
from rag_assets.evaluation.checks import relative
from rag_assets.evaluation.grouping import group_keys
from rag_assets.evaluation.places import POLICY_FILE
from rag_assets.evaluation.replicates import Criterion, criteria_of, criterion_of, with_made
from rag_assets.evaluation.retrieval_valid import NAME as RETRIEVAL_VALID
from rag_assets.evaluation.retrieval_valid import retrieval_criterion
from rag_assets.evaluation.stored_cases import recorded_kinds
from rag_assets.evaluators import Evaluator


@dataclass(frozen=True, slots=True)
class KnownMetrics:
    """What a policy is checked against.

    Attributes:
        kinds: metric → kind and range; None where no more than its name is known.
        dataset: None where it cannot be read.
        are_all: whether there are no other metrics.
    """

    kinds: Mapping[str, MetricKind | None]
    dataset: Dataset | None
    are_all: bool = True


def all_metrics(
    criteria: Sequence[Criterion], operational: Sequence[str], dataset: Dataset | None
) -> KnownMetrics:
    """The metrics of a project with the kinds that a run would record.

    Args:
        criteria: what a run has one outcome of for each case.
        operational: the ids of the operational metrics.
        dataset: all cases.
    """
    record = {
        "evaluators": [one.record() for one in criteria],
        "metrics": [{"id": one} for one in operational],
        "grouped": dataset is not None and is_grouped(dataset),
    }
    return KnownMetrics(recorded_kinds(record), dataset)


def known_metrics(
    draft: ConfigDraft,
    evaluators: Sequence[Evaluator],
    dataset: Dataset | None,
    has_retrieval: bool | None,
) -> KnownMetrics:
    """What is certain of the metrics, whatever else is wrong with the project.

    Args:
        draft: the config file.
        evaluators: those of its evaluators that could be built.
        dataset: all cases; None when the dataset is broken.
        has_retrieval: whether the system records a retrieval; None when that is not known.
    """
    metrics = [one for one in draft.metrics if one is not None]
    if draft.config is not None:
        coverage = retrieval_criterion(draft.config, is_recorded=bool(has_retrieval))
        criteria = (*criteria_of(draft.config, evaluators), *([coverage] if coverage else []))
    else:
        criteria = with_made([criterion_of(one) for one in evaluators], metrics)
    operational = [one.id for one in metrics if one.every_replicate is None]
    kinds = all_metrics(criteria, operational, dataset).kinds
    if dataset is None or (draft.config is None and draft.may_sample):
        kinds = dict.fromkeys(kinds)
    if has_retrieval is None:
        kinds = {**kinds, RETRIEVAL_VALID: None}
    are_all = len(evaluators) == len(draft.evaluators) and None not in draft.metrics
    return KnownMetrics(kinds, dataset, are_all)


def read_checked_policy(
    root: Path, named: Path | None, known: KnownMetrics, problems: list[Problem]
) -> Policy | None:
    """Read a policy and check it.

    Args:
        root: the project folder.
        named: the policy file; None for `release.yaml` in the folder, if it exists.
        known: what it is checked against.
        problems: what is wrong is appended here.

    Returns:
        The policy; None where there is none, or where it cannot be read.
    """
    path = named or root / POLICY_FILE
    if named is None and not path.exists():
        return None
    name = relative(path.resolve(), root)
    policy = read_policy(path, problems, name=name)
    if policy is not None:
        ids = [case.id for case in known.dataset.cases] if known.dataset else None
        check_policy(policy, known.kinds, ids, problems, name=name, are_all=known.are_all)
    return policy


def is_grouped(dataset: Dataset) -> bool:
    """Whether cases of a dataset belong together."""
    return group_keys((case.id, case.group) for case in dataset.cases) is not None
