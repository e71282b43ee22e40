"""`current_case()`: what the system may know of the case that it works for, and report about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

from rag_assets.contracts.artifacts import Citations, Context, Retrieval, note_malformed
from rag_assets.contracts.errors import ArtifactError, RagAssetsError
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.systems.recorder import Recorder

_current: ContextVar[CurrentCase | None] = ContextVar("current_case", default=None)


class RecorderError(ArtifactError):
    """A stage recorded an artifact, although what it returns is what is recorded."""


class CurrentCase:
    """The case in flight, isolated from all other cases in flight.

    Attributes:
        config: a copy of the system's config mapping.
        user: a copy of the case's `user`, or else of `input.user`; None where it has neither.
        as_of: the case's date, None where it has none.
        sample: which of the case's samples is generated, from 0 (config key `replicates`).

    Args:
        records: whether artifacts can be recorded: True for a system that is called as a whole.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        user: Any = None,
        as_of: str | None = None,
        *,
        records: bool = False,
        sample: int = 0,
    ):
        self.config = deepcopy(config)
        self.user = deepcopy(user)
        self.as_of = as_of
        self.sample = sample
        self._usage: dict[str, float] = {}
        self._records = records
        self._recorder = Recorder()

    def retrieval(
        self, retrieval: Retrieval | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> None:
        """Record what was retrieved (`retrieval/v1`), once a case.

        Args:
            retrieval: a `Retrieval` or an equivalent mapping; or its fields as keywords:
            query: the query that was run, any JSON.
            depth: how many candidates were asked for, ≥ 1.
            candidates: `Passage`s or equivalent mappings, best first, at most `depth`.

        Raises:
            ArtifactError: a field is malformed, or a stage of a staged system records.
        """
        self._record(RETRIEVAL, retrieval, fields)

    def context(self, context: Context | Mapping[str, Any] | None = None, /, **fields: Any) -> None:
        """Record what the model was given (`context/v1`), once a case.

        Args:
            context: a `Context` or an equivalent mapping; or its fields as keywords:
            items: `ContextItem`s or equivalent mappings, in order.
            dropped: `DroppedItem`s or equivalent mappings.
            token_budget: the budget that applied, ≥ 0.
            source: where the passages came from.

        Raises:
            ArtifactError: a field is malformed, or a stage of a staged system records.
        """
        self._record(CONTEXT, context, fields)

    def citations(self, ids: Citations | Mapping[str, Any] | Sequence[str]) -> None:
        """Record what the answer cites (`citations/v1`), once a case.

        Args:
            ids: the cited ids, each "doc_id" or "doc_id#chunk_id"; a `Citations` or an equivalent
                mapping will do as well.

        Raises:
            ArtifactError: it is no list of non-empty strings, or a stage of a staged system
                records.
        """
        self._record(CITATIONS, ids, {})

    def artifact(self, kind: str, value: Any) -> None:
        """Record anything else, once a case; it is stored as given.

        Args:
            kind: a name of your own; a typed kind such as `retrieval/v1` is checked as such.
            value: any JSON.

        Raises:
            ArtifactError: the value is malformed or not JSON, the kind is an unknown version of a
                typed kind, or a stage of a staged system records.
        """
        self._record(kind, value, {})

    def denied(self) -> None:
        """Report that access to the sources was refused: an outcome, and no error."""
        self._recorder.is_denied = True

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

    @property
    def recorder(self) -> Recorder:
        """What was recorded in the present attempt."""
        return self._recorder

    def begin_attempt(self) -> None:
        """Forget what an earlier attempt recorded; what it used stays."""
        self._recorder = Recorder()

    def _record(self, kind: str, value: Any, fields: Mapping[str, Any]) -> None:
        if not self._records:
            message = "cannot be recorded in a stage; what a stage returns is what is recorded"
            raise note_malformed(RecorderError(str(kind), message))
        if fields and value is not None:
            message = "is recorded from one value, or from keywords, but not from both"
            raise note_malformed(ArtifactError(kind, message))
        self._recorder.record(kind, fields if value is None and fields else value)


def current_case() -> CurrentCase:
    """The case that the calling stage works for.

    Raises:
        RagAssetsError: called outside a stage, or in a thread that the stage started itself.
    """
    case = _current.get()
    if case is None:
        raise RagAssetsError(
            "current_case() works in the thread or task in which rag-assets calls your code. "
            "In a thread of your own, take what you need before you start it."
        )
    return case


@contextmanager
def serving(case: CurrentCase) -> Iterator[None]:
    """Make a case the current one inside the block, which is one attempt."""
    case.begin_attempt()
    token = _current.set(case)
    try:
        yield
    finally:
        _current.reset(token)
