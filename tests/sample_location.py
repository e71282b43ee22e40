"""The code location that tests of the UI load: the project named by the environment."""

import os

from rag_assets import build_definitions

defs = build_definitions(os.environ["RAG_ASSETS_PROJECT"])
