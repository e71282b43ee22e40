"""What the records of a run say about its cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from rag_assets.evaluation.grouping import GroupKey, group_keys
from rag_assets.evaluation.views import RunView
from rag_assets.store.reader import Reader


def keys_of(reader: Reader, view: RunView, case_ids: Sequence[str]) -> tuple[GroupKey, ...] | None:
    """The group of each case as the run recorded it; None where no cases belong together."""
    if not view.record.get("grouped"):
        return None
    groups = {
        case_id: case.get("group")
        for case_id, case in stage_payloads(reader, view.row.id, "cases", case_ids)
    }
    return group_keys((case_id, groups.get(case_id)) for case_id in case_ids)


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
