"""`python -m rag_assets.assets.server MODULE …`: a Dagster server that ends with its starter.

The module is run as `python -m MODULE …` would run it. Its standard input is a pipe from the
process that started it, and the end of that process, whatever the cause, closes the pipe.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

DAEMON = "dagster._daemon"
_INTERVAL = "DEFAULT_DAEMON_INTERVAL_SECONDS"
_INTERVAL_SECONDS = 3
_STDIN = 0


def main(arguments: Sequence[str]) -> None:
    """Run a module with the rest of the arguments, until stdin is closed."""
    if arguments[0] == DAEMON:
        from dagster._daemon import controller

        shorten_interval(controller)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    sys.argv = list(arguments)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def shorten_interval(controller: Any) -> bool:
    """Let the daemon look for backfills every 3 seconds instead of every 30.

    Materializing a few cases takes it more than one look. Nothing but a private constant sets
    the interval.

    Args:
        controller: Dagster's module that keeps the constant.

    Returns:
        False when it is not there; the daemon then works at its own pace.
    """
    if not hasattr(controller, _INTERVAL):
        return False
    setattr(controller, _INTERVAL, _INTERVAL_SECONDS)
    return True


def _end_with_stdin() -> None:
    # Not through sys.stdin: a lock that is held there would stand in the way of a clean exit.
    while os.read(_STDIN, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])
