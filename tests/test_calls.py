"""Calls to user code: real threads and a real loop, told what to do by events."""

import asyncio
import contextvars
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rag_assets.contracts.artifacts import Passage, Retrieval, parse_retrieval
from rag_assets.contracts.errors import ArtifactError, RagAssetsError
from rag_assets.systems.attempts import CallError
from rag_assets.systems.calls import Call, CallResult, CallSettings, CallWindow, EventLoop
from rag_assets.systems.current import CurrentCase, current_case

HERE = Path(__file__).resolve().parent
PATIENCE_S = 10.0
BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


class Gate:
    """Something that user code waits for, sync or async."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def open(self) -> None:
        self.event.set()

    def wait(self) -> None:
        assert self.event.wait(PATIENCE_S)

    async def wait_async(self) -> None:
        while not self.event.is_set():
            await asyncio.sleep(0.005)


def kept(value: Any) -> Any:
    return value


def call(key: str, invoke: Callable[[], Any], accept: Callable[[Any], Any] = kept) -> Call:
    return Call(key, invoke, accept, CurrentCase({"model": "m"}, user=key))


def window(loop: EventLoop, *, stop: threading.Event | None = None, **settings: Any) -> CallWindow:
    chosen = {"limit": 4, "timeout_s": PATIENCE_S, "root": HERE, "wait_s": 0.0, **settings}
    return CallWindow(CallSettings(**chosen), loop, stop or threading.Event())


def results(
    loop: EventLoop, calls: Iterable[Call], *, asynchronous: bool = False, **settings: Any
) -> dict[str, CallResult]:
    found = window(loop, **settings).run(calls, asynchronous=asynchronous)
    return {result.key: result for result in found if result is not None}


def one(
    loop: EventLoop,
    invoke: Callable[[], Any],
    accept: Callable[[Any], Any] = kept,
    *,
    asynchronous: bool = False,
    **settings: Any,
) -> CallResult:
    made = [call("c", invoke, accept)]
    return results(loop, made, asynchronous=asynchronous, **settings)["c"]


def coroutine(function: Callable[[], Any]) -> Callable[[], Any]:
    async def run() -> Any:
        return function()

    return run


def either(function: Callable[[], Any], asynchronous: bool) -> Callable[[], Any]:
    return coroutine(function) if asynchronous else function


def reason(result: CallResult) -> str:
    assert result.failure is not None
    return result.failure.reason


def states(result: CallResult) -> list[str]:
    return [attempt.state for attempt in result.attempts]


# Results


@BOTH
def test_the_accepted_value_comes_back(loop: EventLoop, asynchronous: bool) -> None:
    result = one(
        loop, either(lambda: 20, asynchronous), lambda value: value + 1, asynchronous=asynchronous
    )
    assert (result.value, result.failure, states(result)) == (21, None, ["ok"])
    assert result.attempts[0].error == ""
    assert result.latency_ms == result.attempts[-1].duration_ms
    assert 0 <= result.latency_ms < PATIENCE_S * 1000


@BOTH
def test_results_stream_while_others_are_in_flight(loop: EventLoop, asynchronous: bool) -> None:
    gate = Gate()
    slow = gate.wait_async if asynchronous else gate.wait
    calls = [call("slow", slow), call("fast", either(lambda: 1, asynchronous))]
    stream = (
        result
        for result in window(loop).run(calls, asynchronous=asynchronous)
        if result is not None
    )
    assert next(stream).key == "fast"
    gate.open()
    assert next(stream).key == "slow"
    assert list(stream) == []


def test_nothing_to_do_starts_nothing(loop: EventLoop) -> None:
    before = threading.active_count()
    assert results(loop, []) == {}
    assert results(loop, [], asynchronous=True) == {}
    assert threading.active_count() == before


def test_none_is_yielded_when_nothing_has_come_for_a_while(loop: EventLoop) -> None:
    gate = Gate()
    stream = window(loop).run([call("slow", gate.wait)], asynchronous=False)
    assert next(stream) is None
    gate.open()
    assert [result.key for result in stream if result is not None] == ["slow"]


def test_calls_are_taken_as_they_are_needed(loop: EventLoop) -> None:
    taken: list[int] = []

    def calls() -> Iterator[Call]:
        for index in range(100):
            taken.append(index)
            yield call(str(index), lambda: None)

    stream = window(loop, limit=2).run(calls(), asynchronous=False)
    next(stream)
    assert len(taken) <= 6
    assert len([result for result in stream if result is not None]) == 99


# The limit


class Crowd:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.inside = self.most = self.entered = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.entered += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1

    def visit(self) -> None:
        self.enter()
        time.sleep(0.002)
        self.leave()

    async def visit_async(self) -> None:
        self.enter()
        await asyncio.sleep(0.002)
        self.leave()


@BOTH
@pytest.mark.parametrize("limit", [1, 3])
def test_the_limit_is_reached_and_never_passed(
    loop: EventLoop, asynchronous: bool, limit: int
) -> None:
    crowd = Crowd()
    visit = crowd.visit_async if asynchronous else crowd.visit
    calls = [call(str(index), visit) for index in range(30)]
    assert len(results(loop, calls, asynchronous=asynchronous, limit=limit)) == 30
    assert (crowd.entered, crowd.most) == (30, limit)


# Time-outs


def test_a_hanging_thread_gives_its_slot_back_and_its_late_result_is_discarded(
    loop: EventLoop,
) -> None:
    gate, late = Gate(), threading.Event()

    def hang() -> str:
        gate.wait()
        late.set()
        return "too late"

    accepted: list[str] = []

    def accept(value: str) -> str:
        accepted.append(value)
        return value

    crowd = Crowd()
    calls = [
        call("hangs", hang, accept),
        *(call(f"c{index}", crowd.visit) for index in range(5)),
    ]
    began = time.monotonic()
    stream = window(loop, limit=1, timeout_s=0.2).run(calls, asynchronous=False)
    found = []
    for result in stream:
        if result is not None:
            found.append(result)
            if result.key == "c1":
                # The late result arrives while later cases are being called.
                gate.open()
                assert late.wait(PATIENCE_S)
    assert time.monotonic() - began < 2.0
    assert [result.key for result in found] == ["hangs", "c0", "c1", "c2", "c3", "c4"]
    assert found[0].failure is not None
    assert (found[0].failure.reason, found[0].failure.type) == ("timeout", "TimeoutError")
    assert found[0].failure.message == "no result after 0.2 s"
    assert found[0].value is None
    assert [(a.state, a.error) for a in found[0].attempts] == [
        ("timeout", "TimeoutError: no result after 0.2 s")
    ]
    assert 200 <= found[0].latency_ms < 2000
    assert all(result.failure is None for result in found[1:])
    assert (crowd.entered, crowd.most) == (5, 1)


def test_a_run_ends_without_waiting_for_what_hangs(loop: EventLoop) -> None:
    gate = Gate()
    calls = [call(f"h{index}", gate.wait) for index in range(3)]
    began = time.monotonic()
    found = results(loop, [*calls, call("fine", lambda: 1)], limit=2, timeout_s=0.2)
    assert time.monotonic() - began < 2.0
    assert [reason(found[f"h{index}"]) for index in range(3)] == ["timeout"] * 3
    assert found["fine"].value == 1
    gate.open()


def test_a_process_ends_without_waiting_for_what_hangs() -> None:
    script = """
import sys, threading
from pathlib import Path
from rag_assets.systems.calls import Call, CallSettings, CallWindow, EventLoop
from rag_assets.systems.current import CurrentCase
settings = CallSettings(limit=1, timeout_s=0.1, root=Path.cwd())
hang = Call("c", threading.Event().wait, lambda value: value, CurrentCase({}))
window = CallWindow(settings, EventLoop(), threading.Event())
print([r.failure.reason for r in window.run([hang], asynchronous=False) if r])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert (done.stdout, done.stderr) == ("['timeout']\n", "")


def test_a_result_that_waits_for_a_slow_reader_is_no_time_out(loop: EventLoop) -> None:
    finished = threading.Semaphore(0)

    def quick() -> int:
        finished.release()
        return 1

    calls = [call(str(index), quick) for index in range(4)]
    stream = window(loop, limit=4, timeout_s=0.1).run(calls, asynchronous=False)
    first = next(stream)
    for _ in range(4):
        assert finished.acquire(timeout=PATIENCE_S)
    time.sleep(0.25)
    found = [first, *stream]
    assert [result.failure for result in found if result is not None] == [None] * 4


@BOTH
def test_what_takes_too_long_is_a_time_out_although_nobody_looked(
    loop: EventLoop, asynchronous: bool
) -> None:
    async def slow_async() -> int:
        await asyncio.sleep(0.2)
        return 1

    def slow() -> int:
        time.sleep(0.2)
        return 1

    calls = [call("quick", either(lambda: 1, asynchronous))]
    calls.append(call("slow", slow_async if asynchronous else slow))
    stream = window(loop, timeout_s=0.1).run(calls, asynchronous=asynchronous)
    assert next(stream) is not None
    time.sleep(0.3)
    (found,) = [result for result in stream if result is not None]
    assert (found.key, reason(found), states(found)) == ("slow", "timeout", ["timeout"])


def test_an_async_time_out_cancels_and_the_others_go_on(loop: EventLoop) -> None:
    cancelled = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(PATIENCE_S)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    calls = [call("hangs", hang), *(call(f"c{i}", coroutine(lambda: 1)) for i in range(5))]
    found = results(loop, calls, asynchronous=True, limit=2, timeout_s=0.2)
    assert cancelled.wait(PATIENCE_S)
    assert found["hangs"].failure is not None
    assert found["hangs"].failure.message == "no result after 0.2 s"
    assert [(a.state, a.error) for a in found["hangs"].attempts] == [
        ("timeout", "TimeoutError: no result after 0.2 s")
    ]
    assert [found[f"c{index}"].value for index in range(5)] == [1] * 5


def test_a_coroutine_that_catches_its_cancellation_has_timed_out_all_the_same(
    loop: EventLoop,
) -> None:
    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENCE_S)
        return "too late"

    result = one(loop, stubborn, asynchronous=True, timeout_s=0.05)
    assert (result.value, reason(result)) == (None, "timeout")


@BOTH
def test_a_time_out_of_the_users_own_is_an_error(loop: EventLoop, asynchronous: bool) -> None:
    def fail() -> None:
        raise TimeoutError("the database is slow")

    result = one(loop, either(fail, asynchronous), asynchronous=asynchronous)
    assert result.failure is not None
    assert (reason(result), result.failure.type) == ("execution_error", "TimeoutError")
    assert result.failure.message == "the database is slow"


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.systems.calls._STUCK_LOOP_GRACE_S", 0.2)


@pytest.mark.usefixtures("short_grace")
def test_blocking_code_in_an_async_stage_stops_nobody_for_good(loop: EventLoop) -> None:
    gate = Gate()
    calls = [
        call("blocks", coroutine(gate.wait)),
        *(call(f"c{index}", coroutine(lambda: 1)) for index in range(3)),
    ]
    began = time.monotonic()
    found = results(loop, calls, asynchronous=True, limit=1, timeout_s=0.05)
    assert time.monotonic() - began < 4.0
    assert reason(found["blocks"]) == "timeout"
    assert all(found[f"c{index}"].failure is None for index in range(3))
    gate.open()


@pytest.mark.usefixtures("short_grace")
def test_a_coroutine_that_refuses_to_end_leaves_the_loop_to_the_others(loop: EventLoop) -> None:
    loops = set()
    gate = Gate()

    async def refuse() -> None:
        loops.add(asyncio.get_running_loop())
        while not gate.event.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    async def remember() -> None:
        loops.add(asyncio.get_running_loop())

    calls = [call("refuses", refuse), call("next", remember)]
    found = results(loop, calls, asynchronous=True, limit=1, timeout_s=0.05)
    assert (reason(found["refuses"]), found["next"].failure) == ("timeout", None)
    assert len(loops) == 1
    gate.open()


# Retries


class BusyError(Exception):
    pass


class VeryBusyError(BusyError):
    pass


class Flaky:
    """Raises its errors one after the other, then returns what is left."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.called = 0

    def __call__(self) -> Any:
        self.called += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


@BOTH
def test_listed_errors_are_retried_and_only_the_last_attempt_decides(
    loop: EventLoop, asynchronous: bool
) -> None:
    flaky = Flaky(BusyError("503"), VeryBusyError("429"), "answer")
    result = one(
        loop,
        either(flaky, asynchronous),
        asynchronous=asynchronous,
        attempts=3,
        retry_on=(BusyError,),
    )
    assert (result.value, result.failure, flaky.called) == ("answer", None, 3)
    assert [(attempt.state, attempt.error) for attempt in result.attempts] == [
        ("error", "BusyError: 503"),
        ("error", "VeryBusyError: 429"),
        ("ok", ""),
    ]


@BOTH
def test_attempts_count_all_tries(loop: EventLoop, asynchronous: bool) -> None:
    flaky = Flaky(BusyError("1"), BusyError("2"), "never")
    result = one(
        loop,
        either(flaky, asynchronous),
        asynchronous=asynchronous,
        attempts=2,
        retry_on=(BusyError,),
    )
    assert result.failure is not None
    assert (result.failure.type, result.failure.message) == ("BusyError", "2")
    assert (states(result), flaky.called) == (["error", "error"], 2)


@BOTH
@pytest.mark.parametrize(
    ("error", "retry_on", "attempts"),
    [
        (ValueError("maximum 500 tokens, see timeout guide"), (BusyError,), 3),
        (BusyError("not listed"), (), 3),
        (BusyError("one attempt"), (BusyError,), 1),
        (BusyError("of another class"), (VeryBusyError,), 3),
    ],
)
def test_other_errors_are_not_retried(
    loop: EventLoop,
    asynchronous: bool,
    error: Exception,
    retry_on: tuple[type[BaseException], ...],
    attempts: int,
) -> None:
    flaky = Flaky(error, "never")
    result = one(
        loop,
        either(flaky, asynchronous),
        asynchronous=asynchronous,
        attempts=attempts,
        retry_on=retry_on,
    )
    assert (states(result), flaky.called) == (["error"], 1)


@BOTH
def test_a_malformed_artifact_is_not_retried(loop: EventLoop, asynchronous: bool) -> None:
    flaky = Flaky(*[{"query": 1, "candidates": [{"doc_id": 7}]}] * 2)
    result = one(
        loop,
        either(flaky, asynchronous),
        lambda value: parse_retrieval(value, 5),
        asynchronous=asynchronous,
        attempts=2,
        retry_on=(Exception,),
    )
    assert (reason(result), flaky.called) == ("malformed_artifact", 1)


@BOTH
def test_a_time_out_is_not_retried(loop: EventLoop, asynchronous: bool) -> None:
    gate, called = Gate(), []

    def hang() -> None:
        called.append(1)
        gate.wait()

    async def hang_async() -> None:
        called.append(1)
        await gate.wait_async()

    result = one(
        loop,
        hang_async if asynchronous else hang,
        asynchronous=asynchronous,
        timeout_s=0.05,
        attempts=3,
        retry_on=(BaseException,),
    )
    gate.open()
    assert (reason(result), states(result), called) == ("timeout", ["timeout"], [1])


@BOTH
def test_the_wait_between_attempts_is_no_time_out(
    loop: EventLoop, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[float, float]] = []

    def longest(low: float, high: float) -> float:
        asked.append((low, high))
        return high

    monkeypatch.setattr("rag_assets.systems.attempts.random.uniform", longest)
    flaky = Flaky(*[BusyError()] * 4, "answer")
    result = one(
        loop,
        either(flaky, asynchronous),
        asynchronous=asynchronous,
        timeout_s=0.1,
        attempts=5,
        wait_s=0.05,
        max_wait_s=0.15,
        retry_on=(BusyError,),
    )
    assert (result.value, states(result)) == ("answer", ["error"] * 4 + ["ok"])
    assert asked == [(0.0, 0.05), (0.0, 0.1), (0.0, 0.15), (0.0, 0.15)]


@BOTH
def test_what_a_service_asks_to_wait_is_told(loop: EventLoop, asynchronous: bool) -> None:
    class AskedError(CallError):
        may_pass = True
        wait_s = 0.02

    class NotAskedError(AskedError):
        wait_s = 0.0

    flaky = Flaky(AskedError("once"), NotAskedError("twice"), "answer")
    made = window(loop, attempts=3)
    found = list(made.run([call("c", either(flaky, asynchronous))], asynchronous=asynchronous))
    assert [one.value for one in found if one is not None] == ["answer"]
    assert list(made.asked_waits()) == [("c", 0.02)]
    assert list(made.asked_waits()) == []


def test_many_attempts_do_not_overflow_the_wait(loop: EventLoop) -> None:
    flaky = Flaky(*[BusyError()] * 1100, "answer")
    result = one(loop, flaky, attempts=1200, retry_on=(BusyError,))
    assert (result.value, flaky.called) == ("answer", 1101)


# Errors in user code


@BOTH
@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (SystemExit(3), "SystemExit", "3"),
        (KeyboardInterrupt(), "KeyboardInterrupt", ""),
        (asyncio.CancelledError("gone"), "CancelledError", "gone"),
        (BaseException("odd"), "BaseException", "odd"),
        (GeneratorExit(), "GeneratorExit", ""),
        (RuntimeError("half \ud800 pair"), "RuntimeError", "half \\ud800 pair"),
    ],
)
def test_whatever_user_code_raises_is_a_failure_of_its_case(
    loop: EventLoop, asynchronous: bool, error: BaseException, name: str, message: str
) -> None:
    calls = [
        call("bad", either(Flaky(error), asynchronous)),
        *(call(f"c{index}", either(lambda: 1, asynchronous)) for index in range(3)),
    ]
    found = results(loop, calls, asynchronous=asynchronous, limit=1)
    failure = found["bad"].failure
    assert failure is not None
    assert (failure.reason, failure.type, failure.message) == ("execution_error", name, message)
    assert f'File "{__file__}"' in failure.traceback
    assert "rag_assets" not in failure.traceback
    assert json.dumps(failure.traceback, ensure_ascii=False).encode("utf-8")
    assert found["bad"].attempts[0].error == (f"{name}: {message}" if message else name)
    assert [found[f"c{index}"].value for index in range(3)] == [1] * 3


def test_an_iteration_that_stops_is_a_failure_too(loop: EventLoop) -> None:
    result = one(loop, Flaky(StopIteration("no hits")))
    assert result.failure is not None
    assert (result.failure.type, result.failure.message) == ("StopIteration", "no hits")


def test_an_error_whose_text_cannot_be_made_is_named(loop: EventLoop) -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    calls = [call("bad", Flaky(SilentError())), call("next", lambda: 1)]
    found = results(loop, calls, limit=1, timeout_s=1.0)
    failure = found["bad"].failure
    assert failure is not None
    assert (failure.reason, failure.type) == ("execution_error", "SilentError")
    assert failure.message == "(its text cannot be shown)"
    assert found["next"].value == 1


def test_an_error_of_accept_is_a_failure_of_the_case(loop: EventLoop) -> None:
    def accept(value: Any) -> Any:
        raise TypeError("generate must return JSON")

    result = one(loop, lambda: {1}, accept)
    assert result.failure is not None
    assert (result.failure.type, result.failure.message) == (
        "TypeError",
        "generate must return JSON",
    )


# Malformed artifacts


@BOTH
def test_a_malformed_artifact_names_the_field(loop: EventLoop, asynchronous: bool) -> None:
    returned = {"query": 1, "candidates": [{"doc_id": "a"}, {"doc_id": "b", "score": "x"}]}
    result = one(
        loop,
        either(lambda: returned, asynchronous),
        lambda value: parse_retrieval(value, 5),
        asynchronous=asynchronous,
    )
    assert result.failure is not None
    assert result.failure.reason == "malformed_artifact"
    assert result.failure.type == "ArtifactError"
    assert result.failure.message == "candidates.1.score: must be a number, got 'x' (str)"
    assert result.failure.traceback == ""


def swallow() -> str:
    with suppress(ArtifactError):
        Passage.parse({"doc_id": 7})
    return "as if nothing had happened"


def swallow_and_fail() -> None:
    swallow()
    raise KeyError("later")


def swallow_and_exit() -> None:
    swallow()
    raise SystemExit


@BOTH
@pytest.mark.parametrize("function", [swallow, swallow_and_fail, swallow_and_exit])
def test_a_malformed_artifact_counts_whatever_user_code_does_afterwards(
    loop: EventLoop, asynchronous: bool, function: Callable[[], Any]
) -> None:
    result = one(loop, either(function, asynchronous), asynchronous=asynchronous)
    assert result.failure is not None
    assert (result.failure.reason, result.failure.message) == (
        "malformed_artifact",
        "doc_id: must be a string, got 7 (int)",
    )


def test_a_malformed_artifact_is_noted_in_tasks_and_threads_with_the_context(
    loop: EventLoop,
) -> None:
    async def helper() -> None:
        swallow()

    async def in_task() -> None:
        await asyncio.create_task(helper())

    async def in_thread() -> None:
        await asyncio.to_thread(swallow)

    for function in (in_task, in_thread):
        assert reason(one(loop, function, asynchronous=True)) == "malformed_artifact"


@BOTH
def test_one_case_does_not_answer_for_another(loop: EventLoop, asynchronous: bool) -> None:
    fine = lambda: Retrieval(query=1, candidates=())  # noqa: E731
    calls = [
        call(str(index), either(fine if index % 2 else swallow, asynchronous))
        for index in range(20)
    ]
    found = results(loop, calls, asynchronous=asynchronous)
    assert [found[str(index)].failure is None for index in range(20)] == [False, True] * 10


# Stopping


@BOTH
def test_stop_lets_calls_in_flight_finish_and_starts_nothing_more(
    loop: EventLoop, asynchronous: bool
) -> None:
    gate, stop, crowd = Gate(), threading.Event(), Crowd()

    def visit() -> str:
        crowd.enter()
        gate.wait()
        return "finished"

    async def visit_async() -> str:
        crowd.enter()
        await gate.wait_async()
        return "finished"

    calls = [call(str(index), visit_async if asynchronous else visit) for index in range(20)]
    found = []
    for result in window(loop, limit=3, stop=stop).run(calls, asynchronous=asynchronous):
        if result is not None:
            found.append(result)
        elif crowd.entered == 3:
            stop.set()
            gate.open()
    assert [result.value for result in found] == ["finished"] * 3
    assert crowd.entered == 3


@BOTH
def test_stop_ends_the_wait_for_another_attempt(loop: EventLoop, asynchronous: bool) -> None:
    stop = threading.Event()
    flaky = Flaky(BusyError("first"), "never")
    began = time.monotonic()
    for result in window(
        loop,
        stop=stop,
        attempts=2,
        wait_s=2.0 * PATIENCE_S,
        max_wait_s=2.0 * PATIENCE_S,
        retry_on=(BusyError,),
    ).run([call("c", either(flaky, asynchronous))], asynchronous=asynchronous):
        if result is None:
            stop.set()
        else:
            assert result.failure is not None
            assert (result.failure.message, states(result)) == ("first", ["error"])
    assert flaky.called == 1
    assert time.monotonic() - began < PATIENCE_S


def test_a_stopped_window_starts_nothing(loop: EventLoop) -> None:
    stop = threading.Event()
    stop.set()
    assert results(loop, [call("c", lambda: 1)], stop=stop) == {}


def test_a_hanging_call_does_not_hold_up_the_stop(loop: EventLoop) -> None:
    gate, stop = Gate(), threading.Event()

    def hang() -> None:
        stop.set()
        gate.wait()

    calls = [call("hangs", hang), call("never", lambda: 1)]
    found = results(loop, calls, limit=1, timeout_s=0.1, stop=stop)
    assert list(found) == ["hangs"]
    gate.open()


def test_a_reader_that_fails_leaves_no_calls_behind(loop: EventLoop) -> None:
    crowd, gate = Crowd(), Gate()

    def visit() -> None:
        crowd.enter()
        gate.wait()

    calls = [call("first", lambda: 1), *(call(str(index), visit) for index in range(20))]
    stream = window(loop, limit=2).run(calls, asynchronous=False)
    while next(stream) is None:
        pass
    stream.close()  # type: ignore[attr-defined]
    gate.open()
    deadline = time.monotonic() + PATIENCE_S
    while any(thread.name == "rag-assets-call" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert crowd.entered <= 2


# The current case


@BOTH
def test_64_cases_in_flight_see_themselves_only(loop: EventLoop, asynchronous: bool) -> None:
    all_inside = threading.Barrier(64)

    def look() -> tuple[Any, Any]:
        first = current_case().user
        all_inside.wait(PATIENCE_S)
        current_case().usage(input_tokens=int(first))
        return first, current_case().user

    inside = 0

    async def look_async() -> tuple[Any, Any]:
        nonlocal inside
        first = current_case().user
        inside += 1
        while inside < 64:
            await asyncio.sleep(0.001)
        current_case().usage(input_tokens=int(first))
        return first, current_case().user

    calls = [call(str(index), look_async if asynchronous else look) for index in range(64)]
    found = results(loop, calls, asynchronous=asynchronous, limit=64)
    for index in range(64):
        key = str(index)
        assert found[key].value == (key, key)
        assert found[key].usage == {"input_tokens": index}


def test_there_is_no_current_case_outside_of_a_stage(loop: EventLoop) -> None:
    said = "current_case() works in the thread or task in which rag-assets calls your code."
    with pytest.raises(RagAssetsError, match="In a thread of your own") as caught:
        current_case()
    assert str(caught.value).startswith(said)

    def in_own_thread() -> str:
        answers: list[str] = []

        def ask() -> None:
            try:
                current_case()
            except RagAssetsError as error:
                answers.append(str(error))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return answers[0]

    assert one(loop, in_own_thread).value.startswith(said)
    copied = contextvars.copy_context()
    assert one(loop, lambda: current_case().user).value == "c"
    with pytest.raises(RagAssetsError):
        copied.run(current_case)


def test_the_current_case_is_a_copy() -> None:
    config, user = {"models": ["small"]}, {"id": "u", "roles": ["a"]}
    case = CurrentCase(config, user, "2026-09-16")
    case.config["models"].append("changed")
    case.user["roles"].append("admin")
    assert (config, user) == ({"models": ["small"]}, {"id": "u", "roles": ["a"]})
    assert case.as_of == "2026-09-16"


@BOTH
def test_usage_adds_up_over_reports_and_attempts(loop: EventLoop, asynchronous: bool) -> None:
    flaky = Flaky(BusyError(), "answer")

    def spend() -> Any:
        current_case().usage(input_tokens=10, output_tokens=2)
        current_case().usage(input_tokens=5, cost_usd=0.25)
        return flaky()

    result = one(
        loop,
        either(spend, asynchronous),
        asynchronous=asynchronous,
        attempts=2,
        retry_on=(BusyError,),
    )
    assert result.usage == {"input_tokens": 30, "output_tokens": 4, "cost_usd": 0.5}


def test_usage_of_a_failed_call_is_kept(loop: EventLoop) -> None:
    def spend() -> None:
        current_case().usage(output_tokens=0, cost_usd=0.5)
        raise ValueError

    assert one(loop, spend).usage == {"output_tokens": 0, "cost_usd": 0.5}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"input_tokens": -1}, "input_tokens must be finite and ≥ 0, got -1"),
        ({"cost_usd": float("nan")}, "cost_usd must be finite and ≥ 0, got nan"),
        ({"cost_usd": float("inf")}, "cost_usd must be finite and ≥ 0, got inf"),
        ({"output_tokens": True}, "output_tokens must be a number, got True"),
        ({"output_tokens": "7"}, "output_tokens must be a number, got '7'"),
    ],
)
def test_usage_must_be_a_number_of_at_least_zero(values: dict[str, Any], message: str) -> None:
    case = CurrentCase({})
    with pytest.raises(ValueError, match="must be") as caught:
        case.usage(**values)
    assert str(caught.value) == message
    assert case.reported_usage == {}


# Sync functions and awaitables, loops of the caller


def test_a_sync_function_may_return_an_awaitable(loop: EventLoop) -> None:
    async def answer() -> Any:
        await asyncio.sleep(0)
        return current_case().user, threading.current_thread().name

    found = results(loop, [call(key, lambda: answer()) for key in ("a", "b")])
    assert {key: result.value for key, result in found.items()} == {
        "a": ("a", "rag-assets-async"),
        "b": ("b", "rag-assets-async"),
    }


def test_an_awaitable_of_a_sync_function_keeps_all_rules(loop: EventLoop) -> None:
    async def hang() -> None:
        await asyncio.sleep(PATIENCE_S)

    async def leave() -> None:
        raise SystemExit(1)

    async def bend() -> str:
        return swallow()

    calls = [call(f.__name__, lambda f=f: f()) for f in (hang, leave, bend)]  # type: ignore[misc]
    found = results(loop, calls, limit=1, timeout_s=0.2)
    assert [reason(found[key]) for key in ("hang", "leave", "bend")] == [
        "timeout",
        "execution_error",
        "malformed_artifact",
    ]


@BOTH
def test_a_loop_in_the_thread_of_the_caller_does_not_matter(
    loop: EventLoop, asynchronous: bool
) -> None:
    def own_loop() -> int:
        return asyncio.run(asyncio.sleep(0, 7))

    async def on_the_loop() -> int:
        return await asyncio.sleep(0, 7)

    async def notebook() -> tuple[Any, bool]:
        mine = asyncio.get_running_loop()
        result = one(loop, on_the_loop if asynchronous else own_loop, asynchronous=asynchronous)
        return result.value, asyncio.get_running_loop() is mine

    assert asyncio.run(notebook()) == (7, True)


def test_all_async_calls_share_one_loop_of_their_own(loop: EventLoop) -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    first = results(loop, [call(str(index), where) for index in range(5)], asynchronous=True)
    second = one(loop, where, asynchronous=True)
    assert len({id(result.value) for result in (*first.values(), second)}) == 1


def test_a_closed_loop_cancels_what_runs_and_ends_its_thread() -> None:
    made = EventLoop()
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(PATIENCE_S)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    stream = window(made).run([call("c", wait)], asynchronous=True)
    assert next(stream) is None
    stream.close()  # type: ignore[attr-defined]
    threads = [t for t in threading.enumerate() if t.name == "rag-assets-async"]
    made.close()
    assert cancelled.wait(PATIENCE_S)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert one(made, coroutine(lambda: 1), asynchronous=True).value == 1
    made.close()


def test_importing_the_package_leaves_asyncio_alone() -> None:
    script = """
import asyncio
names = ("run", "get_event_loop", "new_event_loop", "wait_for")
before = [getattr(asyncio, name) for name in names], type(asyncio.get_event_loop_policy())
import rag_assets, rag_assets.systems.calls
after = [getattr(asyncio, name) for name in names], type(asyncio.get_event_loop_policy())
print(before == after)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.stdout == "True\n"
