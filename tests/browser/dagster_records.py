"""What Dagster has on record, asked through the GraphQL that the UI uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.evaluation.words import STAGES
from serving import Session, until

LAUNCHES = """
{
  partitionBackfillsOrError { ... on PartitionBackfills { results { id status } } }
  runsOrError {
    ... on Runs {
      results { runId status startTime endTime assetSelection { path } tags { key value } }
    }
  }
}
"""
ASSETS = """
query ($keys: [AssetKeyInput!]) {
  assetNodes(assetKeys: $keys) {
    assetKey { path }
    partitionStats { numMaterialized numPartitions numFailed numMaterializing }
    assetMaterializations(limit: 10000) { partition runId }
  }
}
"""
ENDED = {"SUCCESS", "FAILURE", "CANCELED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED"}


@dataclass(frozen=True)
class DagsterRun:
    """A run as Dagster knows it.

    Attributes:
        started, ended: seconds since 1970; None for what has not happened yet.
        stages: whose assets it was launched for.
    """

    id: str
    status: str
    started: float | None
    ended: float | None
    stages: list[str]
    tags: Mapping[str, str]

    @property
    def record(self) -> str:
        """The id of the run in the store."""
        return self.tags["rag/run_id"]

    def cases(self, all_cases: Sequence[str]) -> list[str]:
        """The partitions it was launched for; none for a run of unpartitioned assets."""
        if "dagster/partition" in self.tags:
            return [self.tags["dagster/partition"]]
        if "dagster/asset_partition_range_start" not in self.tags:
            return []
        first = all_cases.index(self.tags["dagster/asset_partition_range_start"])
        last = all_cases.index(self.tags["dagster/asset_partition_range_end"])
        return list(all_cases[first : last + 1])


@dataclass(frozen=True)
class Launches:
    """What was launched.

    Attributes:
        backfills: id → status.
        runs: in the order in which they were created.
    """

    backfills: Mapping[str, str]
    runs: list[DagsterRun]

    @property
    def have_ended(self) -> bool:
        """Whether there was something, and all of it has come to its end."""
        statuses = {*self.backfills.values(), *(run.status for run in self.runs)}
        return bool(self.runs) and statuses <= ENDED

    def since(self, before: Launches) -> Launches:
        """What came later."""
        known = {run.id for run in before.runs}
        return Launches(
            {id: state for id, state in self.backfills.items() if id not in before.backfills},
            [run for run in self.runs if run.id not in known],
        )


def launches(session: Session) -> Launches:
    """Everything that was ever launched in this instance."""
    found = session.ask(LAUNCHES)
    backfills = found["partitionBackfillsOrError"]["results"]
    runs = [_run(one) for one in found["runsOrError"]["results"]]
    return Launches({one["id"]: one["status"] for one in backfills}, runs[::-1])


def launched(session: Session, launch: Callable[[], Any]) -> Launches:
    """Launch something, and wait until all of it has ended."""
    before = launches(session)
    launch()
    until(lambda: launches(session).since(before).have_ended, "the end of what was launched")
    return launches(session).since(before)


def events(session: Session, suite: str, runs: Sequence[DagsterRun]) -> Counter[Any]:
    """(stage, case or None, run id) → how many materializations those runs have written."""
    ids = {run.id for run in runs}
    return Counter(
        (node["assetKey"]["path"][-1], event["partition"], event["runId"])
        for node in _assets(session, suite)
        for event in node["assetMaterializations"]
        if event["runId"] in ids
    )


def partitions(session: Session, suite: str) -> dict[str, tuple[int, int, int, int]]:
    """Case stage → its materialized, missing, failed and materializing partitions."""
    found = {}
    for node in _assets(session, suite):
        stats = node["partitionStats"]
        if stats is not None:
            done, failed = stats["numMaterialized"], stats["numFailed"]
            doing = stats["numMaterializing"]
            missing = stats["numPartitions"] - done - failed - doing
            found[node["assetKey"]["path"][-1]] = (done, missing, failed, doing)
    return found


def _assets(session: Session, suite: str) -> list[dict[str, Any]]:
    keys = [{"path": [suite, stage]} for stage in STAGES]
    return list(session.ask(ASSETS, keys=keys)["assetNodes"])


def _run(run: Mapping[str, Any]) -> DagsterRun:
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    stages = [key["path"][-1] for key in run["assetSelection"]]
    times = run["startTime"], run["endTime"]
    return DagsterRun(run["runId"], run["status"], *times, stages, tags)
