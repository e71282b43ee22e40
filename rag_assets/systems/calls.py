"""A bounded window of calls to the user's code: threads for sync functions, a loop for async ones.

Time-outs hold per attempt. A call that hangs gives its slot back at once and its late result is
discarded: a worker thread that hangs is replaced, and nothing ever waits for it (daemon threads).
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
import time
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag_assets.systems.attempts import (
    Attempt,
    AttemptTimeoutError,
    Call,
    CallSettings,
    Failure,
    attempt,
    failure_of,
    pause_before_next,
    record,
)
from rag_assets.systems.event_loop import EventLoop

__all__ = ["Attempt", "Call", "CallResult", "CallSettings", "CallWindow", "EventLoop", "Failure"]

_POLL_S = 0.05
_STUCK_LOOP_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of one call; `failure` is None when `value` counts."""

    key: str
    value: Any
    failure: Failure | None
    attempts: tuple[Attempt, ...]
    usage: Mapping[str, float]

    @property
    def latency_ms(self) -> float:
        """Duration of the attempt that decided, in milliseconds."""
        return self.attempts[-1].duration_ms if self.attempts else 0.0


class CallWindow:
    """Makes calls with at most `settings.limit` in flight and yields results as they arrive.

    Args:
        settings: limits and time-outs.
        loop: the loop for asynchronous functions.
        stop: when set, no further call or attempt is started; those in flight are waited for.
    """

    def __init__(self, settings: CallSettings, loop: EventLoop, stop: threading.Event) -> None:
        self._settings = settings
        self._loop = loop
        self._stop = stop
        self._tasks: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Call, Any, Failure | None]] = queue.SimpleQueue()
        self._asked: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        self._in_flight: set[Call] = set()

    def run(self, calls: Iterable[Call], *, asynchronous: bool) -> Iterator[CallResult | None]:
        """Make the calls; results come in the order in which they finish.

        Args:
            calls: consumed lazily, so that a large suite is never held as a whole.
            asynchronous: whether `invoke` returns an awaitable that belongs on the loop.

        Yields:
            One result for each call that was started; None whenever a while has passed without
            one, so that the caller can put away what it has.
        """
        start = self._start_async if asynchronous else self._tasks.put
        # Threads find their next call waiting, so that none idles while a batch is committed.
        ahead = 1 if asynchronous else 2
        waiting = iter(calls)
        in_flight = self._in_flight
        workers = 0
        last_scan = time.monotonic()
        try:
            while True:
                if self._stop.is_set():
                    self._withdraw(in_flight)
                while len(in_flight) < ahead * self._settings.limit and not self._stop.is_set():
                    call = next(waiting, None)
                    if call is None:
                        break
                    in_flight.add(call)
                    if not asynchronous and workers < self._settings.limit:
                        self._start_worker()
                        workers += 1
                    start(call)
                if not in_flight:
                    return
                try:
                    call, value, failure = self._done.get(timeout=_POLL_S)
                    in_flight.remove(call)
                    yield self._result(call, value, failure)
                except queue.Empty:
                    yield None
                if time.monotonic() - last_scan > _POLL_S:
                    last_scan = time.monotonic()
                    for call in self._overdue(in_flight, asynchronous):
                        # What has finished in time waits in the queue, however late we look.
                        if call.decide():
                            in_flight.remove(call)
                            yield self._give_up(call, asynchronous)
        finally:
            self._withdraw(in_flight)
            for _ in range(workers):
                self._tasks.put(None)

    def longest(self) -> tuple[str, float] | None:
        """The call whose attempt has been going on for longest: its key, and for how many seconds.

        None when none has been started.
        """
        begun = [(call.started, call.key) for call in self._in_flight if call.started is not None]
        if not begun:
            return None
        started, key = min(begun)
        return key, time.monotonic() - started

    def asked_waits(self) -> Iterator[tuple[str, float]]:
        """What services have asked to wait since the last call: (key of the call, seconds)."""
        while True:
            try:
                yield self._asked.get_nowait()
            except queue.Empty:
                return

    def _pause(self, call: Call, error: BaseException) -> float | None:
        """Seconds until the next attempt of a call; None when there is none."""
        pause = pause_before_next(call, self._settings, error)
        if pause is not None and pause.is_asked:
            self._asked.put((call.key, pause.seconds))
        return pause.seconds if pause else None

    def _withdraw(self, in_flight: set[Call]) -> None:
        """Take back the calls that no thread has begun."""
        while True:
            try:
                call = self._tasks.get_nowait()
            except queue.Empty:
                return
            if call is not None:
                in_flight.remove(call)

    def _result(self, call: Call, value: Any, failure: Failure | None) -> CallResult:
        return CallResult(call.key, value, failure, tuple(call.attempts), call.case.reported_usage)

    def _overdue(self, in_flight: Collection[Call], asynchronous: bool) -> list[Call]:
        # A loop ends its attempts itself, unless it is blocked or they refuse to be cancelled.
        limit = self._settings.timeout_s + (_STUCK_LOOP_GRACE_S if asynchronous else 0.0)
        now = time.monotonic()
        return [
            call for call in in_flight if call.started is not None and now - call.started > limit
        ]

    def _give_up(self, call: Call, asynchronous: bool) -> CallResult:
        assert call.started is not None
        error = AttemptTimeoutError(self._settings)
        record(call, call.started, error)
        if not asynchronous:
            self._start_worker()
        self._loop.leave_if_blocked()
        return self._result(call, None, failure_of(call, error, self._settings))

    # Threads

    def _start_worker(self) -> None:
        threading.Thread(target=self._work, name="rag-assets-call", daemon=True).start()

    def _work(self) -> None:
        while (call := self._tasks.get()) is not None:
            value, failure = contextvars.copy_context().run(self._execute, call)
            if not call.decide():
                return  # It was given up, and another thread has this one's place.
            self._done.put((call, value, failure))

    def _execute(self, call: Call) -> tuple[Any, Failure | None]:
        while True:
            try:
                with attempt(call, self._settings):
                    value = call.invoke()
                    if inspect.isawaitable(value):
                        value = self._loop.run(self._in_time(value))
                    value = call.accept(value)
                return value, None
            except BaseException as error:
                pause = self._pause(call, error)
                if pause is None or self._stop.wait(pause):
                    return None, failure_of(call, error, self._settings)

    # The loop

    def _start_async(self, call: Call) -> None:
        call.started = time.monotonic()
        self._loop.submit(self._work_async(call))

    async def _work_async(self, call: Call) -> None:
        value, failure = await self._execute_async(call)
        if call.decide():
            self._done.put((call, value, failure))

    async def _execute_async(self, call: Call) -> tuple[Any, Failure | None]:
        while True:
            try:
                with attempt(call, self._settings):
                    value = call.accept(await self._in_time(call.invoke()))
                return value, None
            except BaseException as error:
                pause = self._pause(call, error)
                if pause is None or await self._is_stopped_within(pause):
                    return None, failure_of(call, error, self._settings)

    async def _in_time(self, awaitable: Awaitable[Any]) -> Any:
        limit = asyncio.timeout(self._settings.timeout_s)
        try:
            async with limit:
                return await awaitable
        finally:
            # Also when the user's code caught the cancellation and returned something.
            if limit.expired():
                raise AttemptTimeoutError(self._settings) from None

    async def _is_stopped_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not self._stop.is_set() and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _POLL_S))
        return self._stop.is_set()
