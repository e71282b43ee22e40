"""What the records of a run say about its cases."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rag_assets.contracts.policy import MetricKind
from rag_assets.evaluation.grouping import GroupKey, group_keys
from rag_assets.evaluation.views import RunView
from rag_assets.evaluators import Outcome
from rag_assets.store import CaseStage, RunJudgment
from rag_assets.store.reader import Reader

Row = TypeVar("Row", CaseStage, RunJudgment)

NOT_EXECUTED = Outcome.missing("not_executed")
"""The outcome of a case that a run never came to."""


def keys_of(reader: Reader, view: RunView, case_ids: Sequence[str]) -> tuple[GroupKey, ...] | None:
    """The group of each case as the run recorded it; None where no cases belong together."""
    if not view.record.get("grouped"):
        return None
    groups = {
        case_id: case.get("group")
        for case_id, case in stage_payloads(reader, view.row.id, "cases", case_ids)
    }
    return group_keys((case_id, groups.get(case_id)) for case_id in case_ids)


def by_case(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    """Case id → its rows, in their order."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.case_id].append(row)
    return found


def recorded_outcome(row: RunJudgment) -> Outcome:
    """The outcome that a row records."""
    return Outcome.recall(row.status, row.value, row.reason, row.detail)


def recorded_kinds(*records: Mapping[str, Any]) -> dict[str, MetricKind]:
    """Metric → kind and range, for the checks of a policy.

    Args:
        records: what runs froze at their start; a metric of several is as in the first.
    """
    grouped = any(record.get("grouped") for record in records)
    kinds = {
        one["criterion"]: MetricKind(
            one["kind"],
            (one["range"][0], one["range"][1]),
            grouped,
            max(samples_in(run, one["criterion"]) for run in records),
        )
        for record in reversed(records)
        for one in record["evaluators"]
    }
    return kinds | {
        one["id"]: MetricKind("quantile", (0.0, math.inf))
        for record in records
        for one in record.get("metrics", ())
    }


def samples_in(record: Mapping[str, Any], criterion: str) -> int:
    """How many samples of a case a run's value of a criterion is the mean of; 1 where it has none.

    Args:
        record: what the run froze at its start.
        criterion: the name.
    """
    found = (one for one in record["evaluators"] if one["criterion"] == criterion)
    return max((int(one.get("samples", 1)) for one in found), default=1)


def stage_payloads(
    reader: Reader, run_id: str, stage: str, case_ids: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """(case id, what a stage of the run produced), for the cases where it did."""
    digests = reader.stage_digests(run_id, stage)
    payloads = reader.payloads([digests[one] for one in case_ids if one in digests])
    for case_id in case_ids:
        payload = payloads.get(digests.get(case_id, ""))
        if payload is not None:
            yield case_id, json.loads(payload)
