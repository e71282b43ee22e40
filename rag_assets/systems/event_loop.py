"""The event loop that all asynchronous stages of a run share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

_ANSWER_S = 0.5


class EventLoop:
    """One asyncio loop in a daemon thread, started when it is first needed.

    It has nothing to do with a loop that may be running in the thread of the caller.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left: list[asyncio.AbstractEventLoop] = []
        self._starting = threading.Lock()

    def submit(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Schedule a coroutine that catches whatever it raises."""
        asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a coroutine from a thread without a loop; returns or raises what it does."""
        value, error = asyncio.run_coroutine_threadsafe(
            _caught(coroutine), self._running()
        ).result()
        if error is not None:
            raise error
        return value

    def leave_if_blocked(self) -> None:
        """Leave a loop that user code blocks to itself; the next call starts another one."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        answered = threading.Event()
        loop.call_soon_threadsafe(answered.set)
        if not answered.wait(_ANSWER_S):
            self._left.append(loop)
            self._loop = None

    def close(self) -> None:
        """Cancel what is still running and stop; nothing is waited for."""
        for loop in (*self._left, self._loop):
            # A loop that has ended is closed.
            with suppress(RuntimeError):
                if loop is not None:
                    loop.call_soon_threadsafe(loop.stop)
        self._left.clear()
        self._loop = None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None or self._loop.is_closed():
                # With a factory, the runner leaves the current loop of this thread alone.
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._loop = runner.get_loop()
                threading.Thread(
                    target=_serve, args=(runner,), name="rag-assets-async", daemon=True
                ).start()
            return self._loop


def _serve(runner: asyncio.Runner) -> None:
    with runner:
        runner.get_loop().run_forever()


async def _caught(coroutine: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """What a coroutine returns or raises: `SystemExit` must not reach the loop and end it."""
    try:
        return await coroutine, None
    except BaseException as error:
        return None, error
