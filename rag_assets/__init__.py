"""rag-assets: find out which stage of a RAG system failed.

This module is the SDK for systems under evaluation, and nothing in it imports dagster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_assets.contracts.artifacts import (
    Citations,
    Context,
    ContextItem,
    DroppedItem,
    Passage,
    Retrieval,
)
from rag_assets.contracts.errors import ArtifactError, RagAssetsError
from rag_assets.systems.current import CurrentCase, current_case
from rag_assets.systems.declaration import rag_system

if TYPE_CHECKING:
    from rag_assets.assets import build_definitions as build_definitions

__all__ = [
    "ArtifactError",
    "Citations",
    "Context",
    "ContextItem",
    "CurrentCase",
    "DroppedItem",
    "Passage",
    "RagAssetsError",
    "Retrieval",
    "build_definitions",
    "current_case",
    "rag_system",
]


def __getattr__(name: str) -> Any:
    if name == "build_definitions":
        from rag_assets.assets import build_definitions

        return build_definitions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
