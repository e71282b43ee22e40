"""The config key `slices`: the names that a slice can have."""

from __future__ import annotations

from collections import Counter

from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.system_config import declared_kind
from rag_assets.contracts.text import shown
from rag_assets.contracts.yaml_source import YamlSource

METADATA = "metadata."
_STAGED = ("relevant_position", "context_truncated")
_SOURCES = ("stale_source", "admissible_source")


def check_slices(source: YamlSource, problems: list[Problem]) -> None:
    """Names are known, stand there once, and fit the kind of system and what is declared.

    Args:
        source: the config file.
        problems: the list to append to.
    """
    names = source.content.get("slices")
    if not isinstance(names, list):
        return
    is_whole = declared_kind(source) not in ("rag", None)
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name:
            continue
        message = _problem(name)
        if message is None and seen[name]:
            message = f"The slice {shown(name)} is declared twice; keep one."
        if message is None and is_whole and name in _STAGED:
            message = (
                f"{name} compares positions with top_k, which only a staged system (system.rag) "
                "declares. Remove this slice."
            )
        if message is None and name in _SOURCES and "corpus" not in source.content:
            message = (
                f"{name} asks the manifest, and this config declares none. Name it with the key "
                "corpus, or remove this slice."
            )
        if message is not None:
            problems.append(source.problem(f"slices.{index}", message))
        seen[name] += 1


def _problem(name: str) -> str | None:
    if name in (*_STAGED, *_SOURCES) or (name.startswith(METADATA) and name != METADATA):
        return None
    known = (f"{METADATA}<key>", *_STAGED, *_SOURCES)
    return (
        f"The slice {shown(name)} is not known; write {' or '.join(known)}.{nearest(name, known)}"
    )
