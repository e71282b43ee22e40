"""Signals while user code runs: the first lets calls in flight finish, the second does not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rag_assets.evaluation.session import Session


@contextmanager
def finishing_calls(session: Session) -> Iterator[None]:
    """Turn the first SIGINT or SIGTERM inside the block into a polite stop of the session.

    At the end of the block an interrupted session raises `KeyboardInterrupt`; what has finished
    until then is committed. A second signal raises it at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if session.interrupted.is_set():
            raise KeyboardInterrupt
        session.interrupted.set()
        session.stop.set()
        session.observer.stopping()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, handle)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if session.interrupted.is_set():
        raise KeyboardInterrupt
