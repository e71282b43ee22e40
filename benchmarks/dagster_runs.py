"""Seconds from start to end of all Dagster runs of a project, as Dagster has them on record.

python -m benchmarks.dagster_runs CONFIG
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from rag_assets.assets.instance import open_instance, release_sqlite
from rag_assets.evaluation.places import load_config


def seconds_of_runs(config: Path) -> dict[str, Any]:
    """The sum over all runs of the instance, and over their steps by stage.

    Raises:
        SystemExit: a run has not ended well.
    """
    total, steps = 0.0, defaultdict[str, float](float)
    with open_instance(load_config(config)) as instance:
        for record in instance.get_run_records():
            run = record.dagster_run
            if not run.is_success or record.start_time is None or record.end_time is None:
                raise SystemExit(f"Run {run.run_id} has not ended well: {run.status.value}.")
            total += record.end_time - record.start_time
            for step in instance.get_run_step_stats(run.run_id):
                stage = step.step_key.rpartition(".")[2]
                steps[stage] += (step.end_time or 0.0) - (step.start_time or 0.0)
    release_sqlite()
    return {"seconds": total, "steps": steps}


if __name__ == "__main__":
    print(json.dumps(seconds_of_runs(Path(sys.argv[1])), indent=2))
