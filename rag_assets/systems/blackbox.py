"""A system that is called as a whole: one protocol for callables, HTTP and recorded results.

```
case ──► invoke(case) ──► value ──► accept(value) ──► Execution(output, artifacts, state)
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import ArtifactError
from rag_assets.contracts.fingerprint import CodeDigest
from rag_assets.contracts.identities import execution_key
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.contracts.system_config import SystemKind
from rag_assets.contracts.timing import Retries

RetrievalState = Literal["valid", "empty", "denied"]

_NOT_RECORDED = "was not recorded, although the system declares it"
_TWICE = "was recorded twice, and neither counts; record each kind once a case"
_NOTHING: Mapping[str, Mapping[str, Any]] = {
    RETRIEVAL: {"query": None, "depth": None, "candidates": []},
    CONTEXT: {"items": [], "dropped": [], "token_budget": None, "source": "retrieval"},
    CITATIONS: {"ids": []},
}
"""Kind → what somebody has who was denied access: a result that can be judged."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What one call of a system came to.

    Attributes:
        output: the answer, any JSON.
        artifacts: kind → artifact in the form in which it is stored.
        state: what came of the retrieval; None where none is on record.
        unusable: kind → why there is no artifact of it, for kinds that were declared but not
            recorded and for kinds that were recorded twice. What reads them is missing with
            `artifact_absent`.
    """

    output: Any
    artifacts: Mapping[str, Any]
    state: RetrievalState | None
    unusable: Mapping[str, str]

    @classmethod
    def of(
        cls,
        output: Any,
        artifacts: Mapping[str, Any],
        *,
        declared: frozenset[str] = frozenset(),
        repeated: frozenset[str] = frozenset(),
        is_denied: bool = False,
    ) -> Execution:
        """The execution of what a system returned and recorded.

        Args:
            output, artifacts: as above.
            declared: kinds that the system promises.
            repeated: kinds that were recorded more than once.
            is_denied: whether the system reported that access was refused.

        Raises:
            ArtifactError: access was denied, and yet there are candidates.
        """
        if is_denied:
            nothing = {kind: _NOTHING[kind] for kind in _NOTHING if kind in declared - repeated}
            artifacts = {**nothing, **artifacts}
            if RETRIEVAL in artifacts:
                artifacts[RETRIEVAL] = denied_retrieval(artifacts[RETRIEVAL], f"{RETRIEVAL} ")
        retrieval = artifacts.get(RETRIEVAL)
        # Whoever is denied owes nothing of the other kinds either.
        absent = frozenset() if is_denied else declared - artifacts.keys()
        unusable = dict.fromkeys(sorted(absent), _NOT_RECORDED)
        unusable.update(dict.fromkeys(sorted(repeated), _TWICE))
        return cls(output, artifacts, _state(retrieval, is_denied), unusable)

    def complete(self) -> Execution:
        """The execution, where every kind that it owes is there.

        Raises:
            ArtifactError: one of them is not; the field is its kind.
        """
        for kind, why in self.unusable.items():
            raise ArtifactError(kind, why)
        return self


def denied_retrieval(retrieval: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """The retrieval of somebody who was denied access, as it is stored.

    It has no depth, so that no metric finds it too shallow: whoever was denied found nothing.

    Raises:
        ArtifactError: there are candidates all the same; the field begins with `place`.
    """
    if retrieval["candidates"]:
        message = "must be empty, because the system reported that access was denied"
        raise ArtifactError(f"{place}candidates", message)
    return {**retrieval, "depth": None, "state": "denied"}


def _state(retrieval: Mapping[str, Any] | None, is_denied: bool) -> RetrievalState | None:
    if is_denied:
        return "denied"
    if retrieval is None:
        return None
    return "valid" if retrieval["candidates"] else "empty"


@dataclass(frozen=True, kw_only=True)
class BlackBox(ABC):
    """The loaded system of a project that is called as a whole.

    Attributes:
        name, version, config: parts of every identity.
        records: kinds of artifacts that it records.
        code: `run` → digest of what a callable reaches; empty for the other kinds.
        timeout_s: seconds for one attempt.
        retries: how often an attempt is made, and how long to wait in between.
        seed: of the run.
    """

    kind: ClassVar[SystemKind]
    retries_timeouts: ClassVar[bool] = False
    """Whether a time-out may be retried."""

    name: str
    version: str | None
    config: Mapping[str, Any]
    records: frozenset[str]
    timeout_s: float
    retries: Retries
    seed: int
    code: Mapping[str, CodeDigest] = field(default_factory=dict)

    @property
    def declared_name(self) -> str | None:
        """The name that the code gives itself; None where there is none."""
        return None

    @property
    @abstractmethod
    def is_async(self) -> bool:
        """Whether `invoke` returns an awaitable that belongs on the loop."""

    @abstractmethod
    def invoke(self, case: Case) -> Any:
        """Call the system for a case; may return an awaitable."""

    @abstractmethod
    def accept(self, value: Any) -> Execution:
        """What a call came to; asked in the attempt that made the value.

        Raises:
            ArtifactError: an artifact is malformed; the field names its kind.
        """

    @property
    @abstractmethod
    def own_settings(self) -> Mapping[str, Any]:
        """What of this kind of system decides its answers, as JSON."""

    @property
    def takes_seed(self) -> bool:
        """Whether the seed of the run reaches the system."""
        return False

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every part of the system identity, as JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "version": self.version,
            "config": self.config,
            "records": sorted(self.records),
            "code": {stage: code.digest for stage, code in sorted(self.code.items())},
            **self.own_settings,
        }

    @cached_property
    def identity(self) -> str:
        """Digest of `settings`: two systems with one identity are the same system."""
        return digest(self.settings)

    def execution_of(self, case: Case, sample: int = 0) -> str:
        """Identity of the execution of one case: equal identities may share one execution."""
        seeds = {"run": self.seed} if self.takes_seed else {}
        return execution_key(self.identity, seeds, case, sample)

    async def close(self) -> None:  # noqa: B027
        """Give back what the calls of a run held open; awaited on the loop that made them."""
