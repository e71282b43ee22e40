"""The code location that `rag-assets ui` serves: the project named by `RAG_ASSETS_PROJECT`."""

import os

from rag_assets.assets.definitions import build_definitions

defs = build_definitions(os.environ["RAG_ASSETS_PROJECT"])
