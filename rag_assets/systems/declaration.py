"""`@rag_system` and `@system`: what a system says about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
ATTRIBUTE = "__rag_system__"
CALLABLE_ATTRIBUTE = "__rag_callable__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """The arguments of `rag_system`; None leaves a value to the config file."""

    name: str | None = None
    version: str | None = None
    depth: int | None = None
    top_k: int | None = None
    token_budget: int | None = None
    index_version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    citations_path: str | None = "citations"


def rag_system(
    *,
    name: str | None = None,
    version: str | None = None,
    depth: int | None = None,
    top_k: int | None = None,
    token_budget: int | None = None,
    index_version: str | None = None,
    config: Mapping[str, Any] | None = None,
    citations_path: str | None = "citations",
) -> Callable[[T], T]:
    """Declare a class as a staged RAG system.

    The class has `retrieve(self, input, depth)`, which returns a `Retrieval`, and
    `generate(self, input, context)`, which gets the passages of the assembled context as a list
    and returns any JSON value. Both may be `async`. With a token budget it also has
    `count_tokens(self, passage)`, which returns an int ≥ 0. A stage that has a parameter named
    `seed` is given the config's seed.

    Args:
        name: the system's name; part of every identity.
        version: a declared version; part of every identity.
        depth: how many candidates a retrieval asks for, ≥ 1.
        top_k: how many candidates may reach the context, 1 … depth.
        token_budget: the most tokens that a context may hold, ≥ 1; None for no limit.
        index_version: the version of what is searched; part of the retrieval's identity.
        config: settings of the system (model names, endpoints, parameters), as JSON; part of
            every identity, readable in the stages as `current_case().config`.
        citations_path: dotted path in the output to the list of cited ids; None for no citations.

    A value that is not null in the config file replaces the one given here.
    """
    declaration = Declaration(
        name=name,
        version=version,
        depth=depth,
        top_k=top_k,
        token_budget=token_budget,
        index_version=index_version,
        config=dict(config or {}),
        citations_path=citations_path,
    )

    def declare(cls: T) -> T:
        setattr(cls, ATTRIBUTE, declaration)
        return cls

    return declare


@dataclass(frozen=True, slots=True)
class CallableDeclaration:
    """The arguments of `system`; None leaves a value to the config file."""

    name: str | None = None
    version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    records: tuple[str, ...] = ()


def system(
    *,
    name: str | None = None,
    version: str | None = None,
    config: Mapping[str, Any] | None = None,
    timeout_s: float | None = None,
    records: Iterable[str] = (),
) -> Callable[[F], F]:
    """Declare a function as a system that is called as a whole.

    The function gets the input of a case and returns its output, any JSON value; it may be
    `async`. What happens inside is reported through `current_case()`: `retrieval(…)`,
    `context(…)`, `citations(…)`, `artifact(…)`, `denied()` and `usage(…)`. A parameter named `seed`
    is given the config's seed.

    Args:
        name: the system's name; part of every identity.
        version: a declared version; part of every identity.
        config: settings of the system (model names, endpoints, parameters), as JSON; part of
            every identity, readable as `current_case().config`.
        timeout_s: seconds for one call, above 0.
        records: the kinds of artifacts that every call records, such as `retrieval/v1`,
            `context/v1`, `citations/v1`.

    A value that is not null in the config file replaces the one given here.
    """
    kinds = (records,) if isinstance(records, str) else tuple(records)
    declaration = CallableDeclaration(name, version, dict(config or {}), timeout_s, kinds)

    def declare(function: F) -> F:
        setattr(function, CALLABLE_ATTRIBUTE, declaration)
        return function

    return declare
