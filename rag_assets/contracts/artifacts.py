"""The typed artifacts that stages and recorders hand over: part of the public SDK.

Every model is frozen and strict: nothing is coerced, unknown fields are refused, and the order of
a sequence is kept exactly. A malformed value raises `ArtifactError` with the dotted field. While a
stage runs, such an error is also remembered (`noting_malformed`), so that user code which swallows
the exception cannot hide a broken contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rag_assets.contracts.canonical import NotJsonError, canonical_json
from rag_assets.contracts.errors import ArtifactError

_noted: ContextVar[list[ArtifactError] | None] = ContextVar("malformed_artifacts", default=None)


@contextmanager
def noting_malformed() -> Iterator[list[ArtifactError]]:
    """Collect every `ArtifactError` raised by a constructor inside the block, caught or not."""
    noted: list[ArtifactError] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def _identifier(value: str) -> str:
    if value != value.strip():
        raise ValueError(f"must not begin or end with white space, got {value!r}")
    return value


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _json(value: Any) -> Any:
    canonical_json(value)
    return value


Text = Annotated[str, Field(min_length=1)]
Identifier = Annotated[Text, AfterValidator(_identifier)]
Json = Annotated[Any, AfterValidator(_json)]
ListOf = BeforeValidator(_listed)


class Artifact(BaseModel):
    """Base of the artifact models: frozen, strict, no extra fields."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        # A copy with other values was never checked.
        revalidate_instances="always",
    )

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise note_malformed(_artifact_error(error)) from None

    # Tells pydantic that nested models need no call of this constructor (paths stay whole).
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def parse(cls, value: Any) -> Self:
        """The artifact from an instance of this class or an equivalent mapping.

        Raises:
            ArtifactError: the value is something else, or a field is malformed.
        """
        if isinstance(value, cls):
            value = vars(value)
        if not isinstance(value, Mapping):
            name = cls.__name__
            raise note_malformed(
                ArtifactError("", f"must be a {name} or a mapping, got {_shown(value)}")
            )
        for key in value:
            if not isinstance(key, str):
                raise note_malformed(
                    ArtifactError("", f"has the key {_shown(key)}, and keys are strings")
                )
        return cls(**value)


class Passage(Artifact):
    """One retrieved passage.

    Attributes:
        doc_id: the document, a non-empty string that labels and citations name.
        chunk_id: the chunk inside the document, where there is one.
        score: the retriever's own score; finite; recorded, and never used to order anything.
            Whatever has a float value will do, such as NumPy's numbers, and is kept as a float.
        text: what the model is shown; not empty when given.
        metadata: anything else, as JSON.
    """

    doc_id: Identifier
    chunk_id: Identifier | None = None
    score: float | None = None
    text: Text | None = None
    metadata: Annotated[dict[str, Any], AfterValidator(_json)] = Field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The JSON form, without fields that say nothing."""
        return _record(self)


class Retrieval(Artifact):
    """What a retriever returned, in its own order (`retrieval/v1`).

    Attributes:
        query: the query that was run, any JSON.
        depth: how many candidates were asked for; None means the depth that the stage was given.
        candidates: the passages, best first as the retriever says; at most `depth`.
    """

    query: Json
    depth: Annotated[int, Field(ge=1)] | None = None
    candidates: Annotated[tuple[Passage, ...], ListOf]

    def record(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "query": self.query,
            "depth": self.depth,
            "candidates": [candidate.record() for candidate in self.candidates],
        }

    @classmethod
    def recall(cls, record: Mapping[str, Any]) -> Retrieval:
        """The retrieval that a `record()` was made of; nothing is checked again."""
        return cls.model_construct(
            query=record["query"],
            depth=record["depth"],
            candidates=tuple(Passage.model_construct(**one) for one in record["candidates"]),
        )


class ContextItem(Artifact):
    """One passage of an assembled context.

    Attributes:
        doc_id, chunk_id, text: as in `Passage`.
        position: its 1-based position in the retrieval.
        tokens: its token count, where tokens were counted.
    """

    doc_id: Identifier
    chunk_id: Identifier | None = None
    position: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    text: Text | None = None

    def record(self) -> dict[str, Any]:
        """The JSON form, without fields that say nothing."""
        return _record(self)


class DroppedItem(ContextItem):
    """A candidate that did not reach the context, with the reason."""

    reason: Literal["top_k", "token_budget"]


class Context(Artifact):
    """The passages that the model was given, and those it was not (`context/v1`).

    Attributes:
        items: what the model was given, in order.
        dropped: budget drops first, then rank drops, each in rank order.
        token_budget: the budget that applied, None without one.
        source: where the passages came from (`retrieval`, or the name of an intervention).
    """

    items: Annotated[tuple[ContextItem, ...], ListOf]
    dropped: Annotated[tuple[DroppedItem, ...], ListOf] = ()
    token_budget: Annotated[int, Field(ge=0)] | None = None
    source: Text = "retrieval"

    def record(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "items": [item.record() for item in self.items],
            "dropped": [item.record() for item in self.dropped],
            "token_budget": self.token_budget,
            "source": self.source,
        }

    @classmethod
    def recall(cls, record: Mapping[str, Any]) -> Context:
        """The context that a `record()` was made of; nothing is checked again."""
        return cls.model_construct(
            items=tuple(ContextItem.model_construct(**one) for one in record["items"]),
            dropped=tuple(DroppedItem.model_construct(**one) for one in record["dropped"]),
            token_budget=record["token_budget"],
            source=record["source"],
        )


class Citations(Artifact):
    """The ids that an answer cites (`citations/v1`), as "doc_id" or "doc_id#chunk_id"."""

    ids: Annotated[tuple[Text, ...], ListOf]

    @classmethod
    def parse(cls, value: Any) -> Self:
        """As for every artifact; a list of ids will do as well."""
        if isinstance(value, (list, tuple)):
            value = {"ids": value}
        elif not isinstance(value, (cls, Mapping)):
            message = f"must be a list of ids, or a mapping with ids, got {_shown(value)}"
            raise note_malformed(ArtifactError("", message))
        return super().parse(value)

    def record(self) -> dict[str, Any]:
        """The JSON form."""
        return {"ids": list(self.ids)}


def parse_retrieval(value: Any, depth: int) -> Retrieval:
    """What `retrieve(input, depth)` returned, checked against the depth that was asked for.

    Args:
        value: a `Retrieval` or an equivalent mapping.
        depth: the requested depth, ≥ 1.

    Returns:
        The retrieval with `depth` filled in, candidates in the order given.

    Raises:
        ArtifactError: another type, a malformed field, another depth, or too many candidates.
    """
    retrieval = Retrieval.parse(value)
    if retrieval.depth is None:
        retrieval = retrieval.model_copy(update={"depth": depth})
    elif retrieval.depth != depth:
        raise ArtifactError("depth", f"is {retrieval.depth}, but depth {depth} was asked for")
    if len(retrieval.candidates) > depth:
        raise ArtifactError(
            "candidates",
            f"holds {len(retrieval.candidates)} candidates, but depth {depth} was asked for; "
            f"return at most {depth}",
        )
    return retrieval


def _record(model: Artifact) -> dict[str, Any]:
    return {name: value for name, value in model.__dict__.items() if value not in (None, {})}


def note_malformed(error: ArtifactError) -> ArtifactError:
    """Remember an error for whoever collects them (`noting_malformed`); returns it."""
    noted = _noted.get()
    if noted is not None:
        noted.append(error)
    return error


def _artifact_error(error: ValidationError) -> ArtifactError:
    first = error.errors(include_url=False)[0]
    kind, value, details = first["type"], first["input"], first.get("ctx", {})
    place = [str(part) for part in first["loc"]]
    cause = details.get("error")
    if isinstance(cause, NotJsonError):
        return ArtifactError(".".join([*place, *filter(None, [cause.path])]), cause.message)
    if place[-1:] == ["[key]"]:
        where = ".".join(place[:-2])
        return ArtifactError(where, f"has the key {_shown(value)}, and keys are strings")
    return ArtifactError(".".join(place), _explain(kind, value, details))


_WANTED = {
    "string_type": "must be a string",
    "string_unicode": "must be text that UTF-8 can hold",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge}",
    "literal_error": "must be {expected}",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}


def _explain(kind: str, value: Any, details: Mapping[str, Any]) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return "is not a field of this artifact; extra values belong into metadata"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "value_error":
        return str(details["error"])
    wanted = _WANTED.get(kind, "must be something else").format(**details)
    return f"{wanted}, got {_shown(value)}"


def _shown(value: Any) -> str:
    """A value and its type for a message, cut."""
    name = type(value).__name__
    try:
        text = repr(value)
    except Exception:
        return f"a {name}"
    return f"{text if len(text) <= 80 else text[:79] + '…'} ({name})"
