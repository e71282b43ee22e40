"""Operational metrics: quantiles of time, tokens and money, one value for each case."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_assets.contracts.metric_config import OperationalMetric
from rag_assets.evaluation.metrics import MetricValue, count_reasons
from rag_assets.evaluation.replicates import combine
from rag_assets.evaluation.stored_cases import NOT_EXECUTED
from rag_assets.evaluators import Outcome
from rag_assets.statistics import order_statistic_quantile
from rag_assets.store.reader import Reader
from rag_assets.store.records import StageCost

# Source → the stages that it adds up.
_STAGES: Mapping[str, tuple[str, ...]] = {
    "latency_ms": ("retrieval", "assembled_context", "generation"),
    "retrieval_ms": ("retrieval",),
    "generation_ms": ("generation",),
}
_USAGE_STAGES = ("retrieval", "generation")
_WHOLE = "execution"
RANGE = (0.0, math.inf)


def operational_metrics(record: Mapping[str, Any]) -> tuple[OperationalMetric, ...]:
    """The operational metrics that a run froze at its start."""
    return tuple(OperationalMetric.model_validate(one) for one in record.get("metrics", ()))


def operational_outcomes(
    reader: Reader, run_id: str, case_ids: Sequence[str], metrics: Iterable[OperationalMetric]
) -> dict[str, list[Outcome]]:
    """Metric id → one outcome for each case, from what is recorded of its stages.

    Time is that of the attempt that made a result, in whichever run that was. Tokens and money
    are missing, `not_reported`, where no stage of the case reported any. The value of a case with
    several samples is the mean over them.
    """
    metrics = tuple(metrics)
    if not metrics:
        return {}
    costs: dict[str, dict[int, dict[str, StageCost]]] = {}
    for cost in reader.stage_costs(run_id):
        costs.setdefault(cost.case_id, {}).setdefault(cost.sample, {})[cost.stage] = cost
    return {
        metric.id: [_of_samples(metric.source, costs.get(case_id, {})) for case_id in case_ids]
        for metric in metrics
    }


def measure_quantile(
    metric: OperationalMetric, outcomes: Sequence[Outcome], level: float
) -> MetricValue:
    """The quantile of an operational metric with its interval.

    Args:
        metric: which quantile of what.
        outcomes: one for each case.
        level: two-sided confidence, strictly between 0 and 1.
    """
    values = [one.value for one in outcomes if one.value is not None]
    missing, _ = count_reasons(outcomes)
    lost = sum(missing.values())
    interval = order_statistic_quantile(values, metric.quantile, lost, level)
    return MetricValue(
        criterion=metric.id,
        kind=metric.source,
        value_range=RANGE,
        observed=len(values),
        missing=lost,
        excluded=0,
        passes=None,
        estimate=interval.estimate,
        interval=interval if values else None,
        missing_reasons=missing,
        quantile=metric.quantile,
    )


def _of_samples(source: str, samples: Mapping[int, Mapping[str, StageCost]]) -> Outcome:
    """A sample has the stages of the first one in common that were not executed for it anew."""
    first = samples.get(0, {})
    if len(samples) <= 1:
        return _outcome(source, first)
    return combine([_outcome(source, {**first, **samples[number]}) for number in sorted(samples)])


def _outcome(source: str, stages: Mapping[str, StageCost]) -> Outcome:
    # One call of a system that is called as a whole is all that there is to its stages.
    wanted = (_WHOLE,) if _WHOLE in stages else _STAGES.get(source, _USAGE_STAGES)
    costs = [stages.get(stage) for stage in wanted]
    for cost in costs:
        if cost is None:
            return NOT_EXECUTED
        if cost.digest is None:
            return Outcome.missing(_reason(cost))
    known = [cost for cost in costs if cost is not None]
    if source in _STAGES:
        return Outcome.score(math.fsum(cost.latency_ms for cost in known))
    usages = [json.loads(cost.usage) for cost in known if cost.usage]
    reported = [usage[source] for usage in usages if source in usage]
    return Outcome.score(math.fsum(reported)) if reported else Outcome.missing("not_reported")


def _reason(cost: StageCost) -> str:
    return str(json.loads(cost.failure)["reason"]) if cost.failure else "not_executed"
