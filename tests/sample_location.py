"""The code location that tests of the UI load: the project and key prefix of the environment."""

import json
import os

from rag_assets import build_definitions

defs = build_definitions(
    os.environ["RAG_ASSETS_PROJECT"], key_prefix=json.loads(os.environ.get("KEY_PREFIX", "[]"))
)
