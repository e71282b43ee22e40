"""Which process a run belongs to, and whether that process still lives."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path


def this_process() -> str:
    """A description of the calling process (JSON) that survives the reuse of its pid."""
    pid = os.getpid()
    return json.dumps({"host": socket.gethostname(), "pid": pid, "started": _started(pid)})


def describe(owner: str) -> str:
    """The process as a person looks for it."""
    described = json.loads(owner)
    place = "" if described["host"] == socket.gethostname() else f" on {described['host']}"
    return f"process {described['pid']}{place}"


def is_alive(owner: str) -> bool:
    """Whether the process that an owner text describes is running.

    A process of another host counts as alive: nobody here can tell.
    """
    described = json.loads(owner)
    if described["host"] != socket.gethostname():
        return True
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
