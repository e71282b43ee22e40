"""Interventions: the one thing that is changed when a failed case is generated again."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

from rag_assets.contracts.artifacts import Passage
from rag_assets.contracts.cases import Case
from rag_assets.contracts.errors import ArtifactError, InputError, RerankerError
from rag_assets.contracts.fingerprint import code_digest
from rag_assets.contracts.loading import load_object
from rag_assets.evaluation.diagnosis.labels import LabelName
from rag_assets.evaluation.project import Project
from rag_assets.systems.signatures import accepts

Kind = Literal["gold-context", "top-k", "token-budget", "reranker"]
KINDS: tuple[Kind, ...] = ("gold-context", "top-k", "token-budget", "reranker")
UNLIMITED = "unlimited"
_SOURCES = {
    "gold-context": "gold_context",
    "top-k": "top_k_replay",
    "token-budget": "token_budget_replay",
    "reranker": "reranker",
}


@dataclass(frozen=True, slots=True)
class Intervention:
    """What is changed.

    Attributes:
        kind: which thing.
        value: the new top_k, the new token budget (`unlimited` for none), or the reference of a
            reranker; None for gold context.
    """

    kind: Kind
    value: int | str | None = None

    @property
    def name(self) -> str:
        """As people read it: "gold context", "top-k 4", "reranker rerank:by_length"."""
        return "gold context" if self.kind == "gold-context" else f"{self.kind} {self.value}"

    @property
    def source(self) -> str:
        """Where its passages come from, as the assembled context says it."""
        return _SOURCES[self.kind]

    @property
    def is_replay(self) -> bool:
        """Whether it works on the recorded retrieval; only gold context gives labels."""
        return self.kind != "gold-context"

    @property
    def confirms(self) -> LabelName:
        """The label whose cases it can confirm."""
        return "CONTEXT_ASSEMBLY_LOSS" if self.kind == "token-budget" else "RANKED_OUT"

    def applied_to(self, project: Project) -> Project:
        """The project with this one thing changed, where it is a setting of the system."""
        number = self.value if isinstance(self.value, int) else None
        if self.kind == "top-k" and number is not None:
            return replace(project, evaluated=replace(project.system, top_k=number))
        if self.kind == "token-budget":
            return replace(project, evaluated=replace(project.system, token_budget=number))
        return project


def token_budget(text: str | None) -> int | str | None:
    """A token budget as it is written: a whole number ≥ 1, or `unlimited`.

    Raises:
        InputError: it is something else.
    """
    if text is None or text == UNLIMITED:
        return text
    if text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    raise InputError(
        f'the token budget "{text}" is no budget: write a whole number ≥ 1, or {UNLIMITED}.'
    )


def check_intervention(intervention: Intervention, project: Project) -> None:
    """Check that an intervention changes something, and can be executed.

    Raises:
        InputError: it cannot, or it would change nothing; the message says what would.
    """
    system = project.system
    if intervention.kind == "top-k":
        _check_top_k(intervention.value, system.top_k, system.depth)
    elif intervention.kind == "token-budget":
        _check_token_budget(intervention.value, project)
    elif intervention.kind == "reranker":
        load_reranker(intervention, project)


def _check_top_k(value: Any, configured: int, depth: int) -> None:
    if not isinstance(value, int):
        raise InputError("top-k needs the new value: add --top-k N.")
    if not 1 <= value <= depth:
        raise InputError(
            f"--top-k {value} is not possible: retrieval was recorded to depth {depth}. "
            f"Use 1 to {depth}."
        )
    if value == configured:
        raise InputError(f"--top-k {value} changes nothing: it is the top_k of the system.")


def _check_token_budget(value: Any, project: Project) -> None:
    system = project.system
    if value is None:
        raise InputError(f"token-budget needs the new value: add --token-budget N, or {UNLIMITED}.")
    configured = UNLIMITED if system.token_budget is None else system.token_budget
    if value == configured:
        raise InputError(f"--token-budget {value} changes nothing: it is that of the system.")
    if value != UNLIMITED and (
        "count_tokens" not in system.code or system.is_async("count_tokens")
    ):
        raise InputError(
            "token-budget needs to count tokens, and the system has no synchronous "
            "count_tokens(passage). Add one that counts as your model does."
        )


@dataclass(frozen=True)
class FunctionReranker:
    """The user's function (input, candidates) → candidates.

    Attributes:
        reference: `module:function`.
        digest: of the code that it reaches.
    """

    reference: str
    function: Callable[..., Any]
    digest: str

    def reorder(
        self,
        case: Case,
        candidates: Sequence[Passage],
        then: Callable[[Sequence[int]], Any],
    ) -> Any:
        """See `Reranker`."""
        copies = [one.model_copy(deep=True) for one in candidates]
        returned = self.function(deepcopy(case.input), list(copies))
        if inspect.isawaitable(returned):
            return self._reorder_later(returned, copies, candidates, then)
        return then(self._positions(returned, copies, candidates))

    async def _reorder_later(
        self,
        returned: Awaitable[Any],
        copies: Sequence[Passage],
        candidates: Sequence[Passage],
        then: Callable[[Sequence[int]], Any],
    ) -> Any:
        return then(self._positions(await returned, copies, candidates))

    def _positions(
        self, returned: Any, copies: Sequence[Passage], candidates: Sequence[Passage]
    ) -> list[int]:
        """The 1-based retrieval positions of what was returned."""
        if not isinstance(returned, list | tuple):
            kind = type(returned).__name__
            message = f"must return a list or a tuple of the candidates, got {kind}"
            raise RerankerError(self.reference, message)
        own = {id(copy): position for position, copy in enumerate(copies, start=1)}
        taken = {position for value in returned if (position := own.get(id(value)))}
        found: list[int] = []
        for place, value in enumerate(returned, start=1):
            position = own.get(id(value))
            if position is None:
                position = self._equal(value, candidates, taken)
                taken.add(position or 0)
            if position is None or position in found:
                raise RerankerError(
                    self.reference,
                    f"returned a candidate (the one at place {place}) that is none of those that "
                    "were retrieved, or is there twice; it may put them into another order and "
                    "leave some out, and nothing else",
                )
            found.append(position)
        return found

    def _equal(
        self, value: Any, candidates: Sequence[Passage], taken: Collection[int]
    ) -> int | None:
        """The first candidate that is left and the same passage; a reranker may score anew."""
        try:
            wanted = _passage(Passage.parse(value))
        except ArtifactError as error:
            raise RerankerError(self.reference, f"returned no candidate: {error}") from None
        likes = (at for at, one in enumerate(candidates, start=1) if _passage(one) == wanted)
        return next((at for at in likes if at not in taken), None)


def _passage(passage: Passage) -> tuple[str, str | None, str | None]:
    return passage.doc_id, passage.chunk_id, passage.text


def load_reranker(intervention: Intervention, project: Project) -> FunctionReranker:
    """Import a reranker.

    Raises:
        InputError: it cannot be imported, or is no function of (input, candidates).
    """
    reference, root = intervention.value, project.config.root
    if not isinstance(reference, str):
        raise InputError("reranker needs a function: add --reranker module:function.")
    try:
        function = load_object(reference, root)
    except InputError as error:
        raise InputError(f"--reranker {reference}: {error}") from error
    if not inspect.isfunction(function):
        raise InputError(f"--reranker {reference} is not a function.")
    if not accepts(function, 2):
        raise InputError(
            f"--reranker {reference} must accept (input, candidates) and return candidates."
        )
    return FunctionReranker(reference, function, code_digest(function, root).digest)
