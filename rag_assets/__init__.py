"""rag-assets: find out which stage of a RAG system failed.

This module is the SDK for systems under evaluation. Its names are loaded when they are first
used, and none but `build_definitions` and `RagEvaluation` loads dagster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_assets.assets import build_definitions
    from rag_assets.assets.component import RagEvaluation
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
    from rag_assets.systems.declaration import rag_system, system

__all__ = [
    "ArtifactError",
    "Citations",
    "Context",
    "ContextItem",
    "CurrentCase",
    "DroppedItem",
    "Passage",
    "RagAssetsError",
    "RagEvaluation",
    "Retrieval",
    "build_definitions",
    "current_case",
    "rag_system",
    "system",
]

_HOMES = {
    "ArtifactError": "contracts.errors",
    "Citations": "contracts.artifacts",
    "Context": "contracts.artifacts",
    "ContextItem": "contracts.artifacts",
    "CurrentCase": "systems.current",
    "DroppedItem": "contracts.artifacts",
    "Passage": "contracts.artifacts",
    "RagAssetsError": "contracts.errors",
    "RagEvaluation": "assets.component",
    "Retrieval": "contracts.artifacts",
    "build_definitions": "assets",
    "current_case": "systems.current",
    "rag_system": "systems.declaration",
    "system": "systems.declaration",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"rag_assets.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    # What is not loaded yet is listed too: `dg` looks for components here.
    return __all__
