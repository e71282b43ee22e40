"""Kinds of artifacts that a system reports as a whole: three typed ones, and free ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rag_assets.contracts.artifacts import (
    Citations,
    Context,
    Retrieval,
    note_malformed,
    noting_malformed,
)
from rag_assets.contracts.canonical import NotJsonError, canonical_json
from rag_assets.contracts.errors import ArtifactError
from rag_assets.contracts.text import shown

RETRIEVAL = "retrieval/v1"
CONTEXT = "context/v1"
CITATIONS = "citations/v1"

_MODELS: Mapping[str, type[Retrieval] | type[Context] | type[Citations]] = {
    RETRIEVAL: Retrieval,
    CONTEXT: Context,
    CITATIONS: Citations,
}
TYPED = frozenset(_MODELS)
"""The kinds that are checked; all others are free."""

_VERSIONS = {kind.partition("/")[0]: kind for kind in _MODELS}


def kind_problem(kind: Any) -> str | None:
    """What is wrong with the name of a kind; None when it can be used."""
    if not isinstance(kind, str) or not kind or kind != kind.strip():
        return (
            "must be the name of an artifact kind, without white space around it, "
            f"got {shown(kind)}"
        )
    typed = _VERSIONS.get(kind.partition("/")[0], kind)
    if kind != typed:
        return f"must be {typed}, the one version there is, got {shown(kind)}"
    return None


def must_be_kind(kind: str) -> str:
    """The kind.

    Raises:
        ValueError: it cannot be used.
    """
    problem = kind_problem(kind)
    if problem is not None:
        raise ValueError(problem)
    return kind


def recorded_artifact(kind: str, value: Any) -> Any:
    """What a system reported of one kind, in the form in which it is stored.

    Args:
        kind: `retrieval/v1`, `context/v1`, `citations/v1`, or any other name for a free kind.
        value: a model or an equivalent mapping; for citations a list of ids will do as well; for a
            free kind any JSON.

    Raises:
        ArtifactError: the kind has an unknown version, or the value is malformed. The field names
            the kind and the place in it. The error is noted (see `noting_malformed`).
    """
    problem = kind_problem(kind)
    if problem is not None:
        raise note_malformed(ArtifactError(str(kind), problem))
    try:
        # What is noted inside would not name the kind.
        with noting_malformed():
            artifact = stored_artifact(kind, value)
            if kind == RETRIEVAL:
                _check_depth(artifact)
            return artifact
    except ArtifactError as error:
        field = f"{kind} {error.field}".rstrip()
        raise note_malformed(ArtifactError(field, error.message)) from None


def stored_artifact(kind: str, value: Any) -> Any:
    """A value of a kind in the form in which it is stored; a retrieval need not say its depth.

    Raises:
        ArtifactError: it is malformed, or not JSON; the field is the place in it.
    """
    model = _MODELS.get(kind)
    if model is None:
        return json_copy(value)
    artifact = model.parse(value)
    return json_copy(artifact.record())


def _check_depth(retrieval: Mapping[str, Any]) -> None:
    depth, candidates = retrieval["depth"], retrieval["candidates"]
    if depth is None:
        raise ArtifactError("depth", "is required: how many candidates were asked for")
    if len(candidates) > depth:
        message = f"holds {len(candidates)} candidates, more than the depth {depth}"
        raise ArtifactError("candidates", message)


def json_copy(value: Any) -> Any:
    """A copy of a JSON value, which its owner cannot change any more.

    Raises:
        ArtifactError: it is not JSON; the field is the place in it.
    """
    try:
        return json.loads(canonical_json(value))
    except NotJsonError as error:
        raise ArtifactError(error.path, error.message) from None
