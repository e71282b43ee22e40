"""The Dagster code location of a checkout: the project named by `RAG_ASSETS_PROJECT`."""

import os
from pathlib import Path

from rag_assets import build_definitions

EXAMPLE = Path(__file__).parent / "examples" / "support_rag"

defs = build_definitions(os.environ.get("RAG_ASSETS_PROJECT", EXAMPLE))
