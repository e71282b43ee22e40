"""One call to the user's code: its attempts, what each came to, and whether another follows."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rag_assets.contracts.artifacts import noting_malformed
from rag_assets.contracts.errors import ArtifactError
from rag_assets.contracts.loading import user_frames
from rag_assets.systems.current import CurrentCase, RecorderError, serving

FailureReason = Literal[
    "execution_error",
    "timeout",
    "malformed_artifact",
    "artifact_absent",
    "not_executed",
    "not_recorded",
]
LONGEST_ASKED_S = 120.0
"""Seconds that are waited because a service asks for them, where `max_wait_s` is not longer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call has no result.

    Attributes:
        reason: the missing reason that metrics count.
        type: class name of the exception ("TimeoutError", "ArtifactError", …).
        message: its text; for a malformed artifact "field: what is wrong".
        traceback: shortened to the user's own frames, "" where there is none.
    """

    reason: FailureReason
    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a call.

    Attributes:
        state: what it came to.
        error: class and text of the exception, "" where there was none.
        duration_ms: how long it took, without the wait before it.
        status: the HTTP status of an answer that was an error; None otherwise.
    """

    state: Literal["ok", "error", "timeout"]
    error: str
    duration_ms: float
    status: int | None = None


class CallError(Exception):
    """A call failed in a way that the system knows more about than its text.

    Attributes:
        reason: the missing reason that it counts as.
        status: the HTTP status, where there is one.
        may_pass: whether another attempt can succeed.
        wait_s: the least seconds to wait before it.
    """

    reason: FailureReason = "execution_error"
    status: int | None = None
    may_pass: bool = False
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made: slots, seconds per attempt, tries, and which exceptions are retried.

    A `CallError` says itself whether it may be retried; `retries_timeouts` says it of time-outs.
    """

    limit: int
    timeout_s: float
    root: Path
    attempts: int = 1
    wait_s: float = 0.5
    max_wait_s: float = 30.0
    retry_on: tuple[type[BaseException], ...] = ()
    retries_timeouts: bool = False

    @property
    def longest_asked_s(self) -> float:
        """A service that asks for a longer wait is not asked again."""
        return max(self.max_wait_s, LONGEST_ASKED_S)


@dataclass(frozen=True, slots=True)
class Pause:
    """The wait before another attempt, in seconds; `is_asked` says that the service asks for it."""

    seconds: float
    is_asked: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """One call to make.

    Attributes:
        key: what the result is reported under.
        invoke: calls the user's function; may return an awaitable.
        accept: turns the returned value into what is kept. Raises `ArtifactError` for a broken
            contract, anything else for an error of this case.
        case: what `current_case()` gives.
        attempts: those that are over.
        started: when its attempt began, or will begin after a wait (monotonic seconds).
        has_contract: whether a malformed artifact breaks a contract, even when the user's code
            caught the error; otherwise it is an error like any other.
    """

    key: str
    invoke: Callable[[], Any]
    accept: Callable[[Any], Any]
    case: CurrentCase
    attempts: list[Attempt] = field(default_factory=list)
    started: float | None = None
    has_contract: bool = True
    _decided: threading.Lock = field(default_factory=threading.Lock)

    def decide(self) -> bool:
        """Whether the one who asks decides what comes of the call: the first one does."""
        return self._decided.acquire(blocking=False)


class AttemptTimeoutError(Exception):
    """One attempt took longer than `timeout_s`."""

    def __init__(self, settings: CallSettings) -> None:
        super().__init__(f"no result after {settings.timeout_s:g} s")


@contextmanager
def attempt(call: Call, settings: CallSettings) -> Iterator[None]:
    """Record what the block comes to; it serves the call's case and keeps the time limit.

    Raises:
        AttemptTimeoutError: the block took too long, whatever came of it.
        ArtifactError: a malformed artifact was made in it, even when the user's code caught that.
    """
    began = call.started = time.monotonic()
    error: BaseException | None = None
    try:
        with serving(call.case), noting_malformed() as noted:
            yield
    except BaseException as raised:
        error = raised
    broken = next((one for one in noted if _breaks_contract(call, one)), None)
    if broken is not None:
        error = broken
    if time.monotonic() - began > settings.timeout_s:
        error = AttemptTimeoutError(settings)
    record(call, began, error)
    if error is not None:
        raise error


def record(call: Call, began: float, error: BaseException | None) -> None:
    """Add an attempt that began at a monotonic time and is over now."""
    state: Literal["ok", "error", "timeout"] = "ok"
    text = ""
    if error is not None:
        state = "timeout" if _is_timeout(error) else "error"
        text = ": ".join(part for part in _described(error) if part)
    status = error.status if isinstance(error, CallError) else None
    call.attempts.append(Attempt(state, text, (time.monotonic() - began) * 1000, status))


def pause_before_next(call: Call, settings: CallSettings, error: BaseException) -> Pause | None:
    """The wait before the next attempt (exponential, full jitter); None when there is none.

    What the service asks to wait is the least; where that is too long, there is no next attempt. A
    malformed artifact is never retried.
    """
    tried = len(call.attempts)
    asked = error.wait_s if isinstance(error, CallError) else 0.0
    if not _has_next(call, settings, error) or asked > settings.longest_asked_s:
        return None
    longest = min(settings.max_wait_s, settings.wait_s * 2.0 ** min(tried - 1, 30))
    own = random.uniform(0.0, longest)
    pause = Pause(max(own, asked), is_asked=asked > own)
    call.started = time.monotonic() + pause.seconds
    return pause


def _has_next(call: Call, settings: CallSettings, error: BaseException) -> bool:
    return len(call.attempts) < settings.attempts and _may_pass(error, settings)


def _may_pass(error: BaseException, settings: CallSettings) -> bool:
    if isinstance(error, ArtifactError):
        return False
    if isinstance(error, AttemptTimeoutError):
        return settings.retries_timeouts
    if isinstance(error, CallError):
        return error.may_pass
    return isinstance(error, settings.retry_on)


def failure_of(call: Call, error: BaseException, settings: CallSettings) -> Failure:
    """The failure of a call whose last attempt raised an error."""
    name, text = _described(error)
    if isinstance(error, ArtifactError) and _breaks_contract(call, error):
        return Failure("malformed_artifact", name, text)
    if isinstance(error, AttemptTimeoutError):
        return Failure("timeout", name, text)
    if isinstance(error, CallError):
        return Failure(error.reason, name, f"{text}{_unwaited(call, error, settings)}")
    frames = user_frames(error, settings.root)
    return Failure("execution_error", name, text, _printable(frames))


def _unwaited(call: Call, error: CallError, settings: CallSettings) -> str:
    """Why the service was not asked again, where it wanted too long a wait for that."""
    longest = settings.longest_asked_s
    if error.wait_s <= longest or not _has_next(call, settings, error):
        return ""
    return (
        f"; the service asks to wait {error.wait_s:.0f} s, and at most {longest:.0f} s are waited "
        "(retries.max_wait_s)"
    )


def _breaks_contract(call: Call, error: ArtifactError) -> bool:
    return call.has_contract or isinstance(error, RecorderError)


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, AttemptTimeoutError) or (
        isinstance(error, CallError) and error.reason == "timeout"
    )


def _described(error: BaseException) -> tuple[str, str]:
    """Class name and printable text of an exception of the user's code."""
    name = "TimeoutError" if _is_timeout(error) else type(error).__name__
    try:
        return name, _printable(str(error))
    except Exception:
        return name, "(its text cannot be shown)"


def _printable(text: str) -> str:
    """A text that UTF-8 can hold: half a surrogate pair is written as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
