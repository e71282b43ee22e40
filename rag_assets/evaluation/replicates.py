"""Replicates: several samples of generation for a case, and the one outcome that they come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.config import Config
from rag_assets.contracts.metric_config import MetricEntry
from rag_assets.evaluators import Evaluator, Outcome
from rag_assets.evaluators.base import Kind

_SAMPLES = "samples"


@dataclass(frozen=True, slots=True)
class Pooled:
    """Ratios of cases taken together: `part` of `whole`, of what they count ("claims")."""

    part: int
    whole: int
    unit: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a run has one outcome of for each case: of an evaluator, or made of one.

    Attributes:
        criterion, kind, value_range, identity, type, text: as of an evaluator.
        samples: how many samples of a case its value is the mean of; 1 for a single one.
        every: the criterion that all samples have to pass, where it is made of that.
        counts: what the ratio of a case is a share of ("claims"); None for all others.
        reads: the parts of a case that it is judged by, sorted.
    """

    criterion: str
    kind: Kind
    value_range: tuple[float, float]
    identity: str
    type: str
    text: str
    samples: int = 1
    every: str | None = None
    counts: str | None = None
    reads: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """What a run freezes of it, as JSON."""
        return {
            "criterion": self.criterion,
            "type": self.type,
            "text": self.text,
            "kind": self.kind,
            "range": list(self.value_range),
            "identity": self.identity,
            "samples": self.samples,
            "counts": self.counts,
            "reads": list(self.reads),
        }


def criteria_of(config: Config, evaluators: Sequence[Evaluator]) -> tuple[Criterion, ...]:
    """All criteria of a project: of its evaluators, then those made of them.

    What reads nothing but a retrieval that is executed once has one value for all samples.
    """
    sampled = {"output", "citations"}
    if config.replicate_retrieval or config.system.kind != "rag":
        sampled |= {"retrieval", "context"}
    return with_made(
        [
            criterion_of(one, 1 if sampled.isdisjoint(parts_read(one)) else config.replicates)
            for one in evaluators
        ],
        config.metrics,
    )


def with_made(
    criteria: Sequence[Criterion], metrics: Iterable[MetricEntry]
) -> tuple[Criterion, ...]:
    """The criteria of evaluators, and those that the declared metrics make of them."""
    own = {one.criterion: one for one in criteria}
    made = [
        Criterion(
            metric.id,
            "verdict",
            (0.0, 1.0),
            digest(
                [
                    "every_replicate/v1",
                    own[metric.every_replicate].identity,
                    own[metric.every_replicate].samples,
                ]
            ),
            "every_replicate",
            f"every_replicate of {metric.every_replicate}",
            every=metric.every_replicate,
        )
        for metric in metrics
        if metric.every_replicate in own
    ]
    return (*criteria, *made)


def parts_read(evaluator: Evaluator) -> set[str]:
    """What an evaluator and those that it is made of read."""
    return {*evaluator.reads, *(part for one in evaluator.parts for part in one.reads)}


def criterion_of(evaluator: Evaluator, samples: int = 1) -> Criterion:
    """The criterion of an evaluator."""
    return Criterion(
        evaluator.criterion,
        evaluator.kind,
        evaluator.value_range,
        evaluator.identity,
        evaluator.type,
        str(evaluator),
        samples,
        counts=evaluator.counts,
        reads=tuple(sorted(parts_read(evaluator))),
    )


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a case: the mean over its observed samples, which stay in its detail.

    It is missing when no sample is observed and any is missing, and else excluded. Where a sample
    is observed below the highest value, the reason is the first that such a sample has.

    Args:
        outcomes: one for each sample, in the order of the samples.
    """
    detail = {
        _SAMPLES: [
            {
                "status": one.status,
                "value": one.value,
                "reason": one.reason,
                "detail": one.detail,
            }
            for one in outcomes
        ]
    }
    observed = [one for one in outcomes if one.value is not None]
    if observed:
        value = fsum(one.value for one in observed if one.value is not None) / len(observed)
        return Outcome("observed", value, _first_reason(observed), detail)
    missing = [one for one in outcomes if one.status == "missing"]
    status = missing[0].status if missing else outcomes[0].status
    return Outcome(status, None, _first_reason(missing or outcomes), detail)


def every_sample(outcome: Outcome) -> Outcome:
    """Whether all samples of a case pass a verdict; a missing one leaves that open.

    Args:
        outcome: of the verdict, combined or of a single sample.
    """
    if outcome.status == "excluded":
        return Outcome("excluded", None, outcome.reason)
    values = sample_values(outcome)
    if any(value == 0.0 for value in values):
        return Outcome.verdict(False, outcome.reason)
    if not values or None in values:
        return Outcome("missing", None, _missing_reason(outcome))
    return Outcome.verdict(True)


def sample_values(outcome: Outcome) -> tuple[float | None, ...]:
    """The value of each sample; None for one that is not observed."""
    samples = samples_of(outcome.detail)
    if samples is None:
        return (outcome.value,)
    return tuple(one["value"] for one in samples)


def samples_of(detail: Any) -> Sequence[Mapping[str, Any]] | None:
    """The samples in the detail of a combined outcome; None in any other."""
    found = detail.get(_SAMPLES) if isinstance(detail, Mapping) else None
    return found if isinstance(found, list) else None


def sample_reasons(outcome: Outcome) -> set[str | None]:
    """Why samples of a case are missing or excluded, or have failed."""
    samples = samples_of(outcome.detail)
    return {outcome.reason} if samples is None else {one["reason"] for one in samples}


def evaluator_errors(outcome: Outcome) -> set[str]:
    """The errors that an evaluator raised at the samples of a case."""
    single = [{"reason": outcome.reason, "detail": outcome.detail}]
    return {
        str(one["detail"]["error"])
        for one in samples_of(outcome.detail) or single
        if one["reason"] == "evaluator_error"
    }


def pooled(outcomes: Sequence[Outcome], counts: str) -> Pooled:
    """The counts of ratios over all observed samples of all cases.

    Args:
        outcomes: of a criterion whose details hold `counts`.
        counts: what is counted.
    """
    details = [
        one["detail"]
        for outcome in outcomes
        for one in samples_of(outcome.detail) or [asdict(outcome)]
        if one["value"] is not None
    ]
    parts, wholes = (sum(one["counts"][place] for one in details) for place in (0, 1))
    return Pooled(parts, wholes, counts)


def is_flaky(outcome: Outcome) -> bool:
    """Whether the observed samples of a case disagree."""
    return len({value for value in sample_values(outcome) if value is not None}) > 1


def _first_reason(outcomes: Sequence[Outcome]) -> str | None:
    return next((one.reason for one in outcomes if one.reason is not None), None)


def _missing_reason(outcome: Outcome) -> str | None:
    samples = samples_of(outcome.detail) or ()
    reasons = (one["reason"] for one in samples if one["status"] == "missing")
    return next(reasons, outcome.reason)
