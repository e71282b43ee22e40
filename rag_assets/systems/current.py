"""`current_case()`: what a stage may know of the case that it works for, and report about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

from rag_assets.contracts.errors import RagAssetsError

_current: ContextVar[CurrentCase | None] = ContextVar("current_case", default=None)


class CurrentCase:
    """The case in flight, isolated from all other cases in flight.

    Attributes:
        config: a copy of the system's config mapping.
        user: a copy of the case's user, None where it has none.
        as_of: the case's date, None where it has none.
    """

    def __init__(self, config: Mapping[str, Any], user: Any = None, as_of: str | None = None):
        self.config = deepcopy(config)
        self.user = deepcopy(user)
        self.as_of = as_of
        self._usage: dict[str, float] = {}

    def usage(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Report what a call has used; several reports of one stage add up.

        Args:
            input_tokens: tokens sent, ≥ 0.
            output_tokens: tokens received, ≥ 0.
            cost_usd: money, in US dollars, ≥ 0.

        Raises:
            ValueError: a value is negative or not a finite number.
        """
        given = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cost_usd": cost_usd,
        }
        for name, value in given.items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{name} must be a number, got {value!r}")
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be finite and ≥ 0, got {value!r}")
            self._usage[name] = self._usage.get(name, 0) + value

    @property
    def reported_usage(self) -> Mapping[str, float]:
        """What was reported so far."""
        return dict(self._usage)


def current_case() -> CurrentCase:
    """The case that the calling stage works for.

    Raises:
        RagAssetsError: called outside a stage, or in a thread that the stage started itself.
    """
    case = _current.get()
    if case is None:
        raise RagAssetsError(
            "current_case() works in the thread or task in which rag-assets calls a stage. "
            "In a thread of your own, take what you need before you start it."
        )
    return case


@contextmanager
def serving(case: CurrentCase) -> Iterator[None]:
    """Make a case the current one inside the block."""
    token = _current.set(case)
    try:
        yield
    finally:
        _current.reset(token)
