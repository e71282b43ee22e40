"""What starts a suite by itself: a nightly schedule, and a sensor on the version of its index."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

import dagster as dg

from rag_assets.assets.keys import INDEX, Suite
from rag_assets.evaluation.places import load_config
from rag_assets.systems.index_version import read_index_version

# Longer versions, such as the content of a whole manifest, are named by their digest.
_LONGEST_NAME = 64
_SENSOR_TAG = "dagster/sensor_name"
# Reading a version imports the user's modules anew, and modules belong to the process.
_reading = Lock()


def nightly_schedule(suite: Suite, cron: str) -> dg.ScheduleDefinition:
    """The schedule that runs a whole suite. It is off until someone switches it on.

    Args:
        suite: its names in Dagster.
        cron: when, in UTC.
    """
    return dg.ScheduleDefinition(
        name=f"{suite.name}_nightly",
        job_name=suite.job,
        cron_schedule=cron,
        description="Runs the whole suite (dagster.cron in the config; times are UTC).",
    )


def index_version_sensor(suite: Suite, config_path: Path) -> dg.SensorDefinition:
    """The sensor that runs a suite when the version of its index has changed.

    Each tick reads config and version anew. The first one records the version, because there is
    nothing to compare it with. A change is requested once, whatever becomes of that run: a run
    that failed is started again from the UI. It is off until someone switches it on.

    Args:
        suite: its names in Dagster.
        config_path: the config file of its project.
    """
    name = f"{suite.name}_index_version"

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        version = _read(config_path)
        if version is None:
            return dg.SkipReason(
                "No index_version is declared. Set system.rag.index_version in "
                f"{config_path.name} to a string, a file or a callable."
            )
        seen = _Seen.of(context.cursor)
        named = _name(version)
        observed = dg.AssetObservation(suite.key(INDEX), tags={"dagster/data_version": version})
        if seen is None:
            # Counting on from the runs there are keeps run keys new when the cursor was cleared.
            earlier = context.instance.get_runs_count(dg.RunsFilter(tags={_SENSOR_TAG: name}))
            return dg.SensorResult(
                skip_reason=f"index_version is {named}; a run is requested when it changes.",
                cursor=_Seen(named, earlier).cursor,
                asset_events=[observed],
            )
        if seen.version == named:
            return dg.SkipReason(f"index_version is still {named}.")
        changed = _Seen(named, seen.requests + 1)
        key = f"{suite.name}:{seen.version}->{named}:{changed.requests}"
        return dg.SensorResult(
            run_requests=[dg.RunRequest(run_key=key)],
            cursor=changed.cursor,
            asset_events=[observed],
        )

    return dg.SensorDefinition(
        name=name,
        job_name=suite.job,
        evaluation_fn=evaluate,
        description=(
            "Runs the whole suite once when index_version has changed. The first tick only "
            "records the version. Start a run that failed again from its page."
        ),
    )


@dataclass(frozen=True)
class _Seen:
    """What the cursor keeps.

    Attributes:
        version: the name of the version that was seen last.
        requests: how many runs were requested; part of the run key, which never fires twice.
    """

    version: str
    requests: int

    @classmethod
    def of(cls, cursor: str | None) -> _Seen | None:
        """What a cursor says; None when it is empty or was written by someone else."""
        try:
            return cls(**json.loads(cursor or ""))
        except (ValueError, TypeError):
            return None

    @property
    def cursor(self) -> str:
        return json.dumps(asdict(self))


def _read(config_path: Path) -> str | None:
    with _reading:
        return read_index_version(load_config(config_path))


def _name(version: str) -> str:
    """A version as it stands in run keys and messages."""
    if len(version) <= _LONGEST_NAME and version.isprintable():
        return version
    return f"sha256:{hashlib.sha256(version.encode()).hexdigest()}"
