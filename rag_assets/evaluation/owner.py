"""Which process a run belongs to, and whether that process still lives."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

HEARTBEAT_S = 90.0
"""Seconds of silence after which a process of another host counts as dead."""

DIED = "its process ended before the run did"
"""What is said of a run that nobody could end."""


def this_process() -> str:
    """A description of the calling process (JSON) that survives the reuse of its pid."""
    pid = os.getpid()
    return json.dumps({"host": socket.gethostname(), "pid": pid, "started": _started(pid)})


def describe(owner: str) -> str:
    """The process as a person looks for it."""
    described = json.loads(owner)
    place = "" if described["host"] == socket.gethostname() else f" on {described['host']}"
    return f"process {described['pid']}{place}"


def now() -> str:
    """The time now, as ISO 8601 text in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def is_alive(owner: str, heartbeat: str) -> bool:
    """Whether the process that an owner text describes is running.

    Nobody here can see a process of another host: it is alive as long as its last sign of life
    is not older than `HEARTBEAT_S`.

    Args:
        owner: from `this_process`.
        heartbeat: the last sign of life, from `now`.
    """
    described = json.loads(owner)
    if described["host"] != socket.gethostname():
        silence = datetime.now(UTC) - datetime.fromisoformat(heartbeat)
        return silence.total_seconds() <= HEARTBEAT_S
    pid = int(described["pid"])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return bool(_started(pid) == described["started"])


def _started(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot, where /proc tells it.

    None for a process that has ended and is only not collected by its parent yet.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]
