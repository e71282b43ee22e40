"""The Dagster layer: suites as partitioned asset graphs over the stages of `evaluation`."""

from rag_assets.assets.definitions import build_definitions

__all__ = ["build_definitions"]
