"""Problems of a system, with the line of the key concerned."""

from __future__ import annotations

from collections.abc import Callable

from rag_assets.contracts.canonical import NotJsonError, canonical_json
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.text import shown

Report = Callable[[str, str], None]
"""Takes the dotted key below `system`, and the message."""


def reporter(config: Config, name: str, problems: list[Problem]) -> Report:
    """What appends problems of the system of a config.

    Args:
        config: the parsed config.
        name: how messages name the config file.
        problems: the list to append to.
    """

    def report(key: str, message: str) -> None:
        dotted = f"system.{key}"
        kind = f"system.{config.system.kind}"
        line = config.lines.get(dotted) or config.lines.get(kind) or 0
        problems.append(Problem(name, line, dotted, message))

    return report


def check_declared_text(key: str, name: str, value: object, report: Report) -> None:
    """A text in a decorator is None or a non-empty string."""
    if value is not None and (not isinstance(value, str) or not value):
        wanted = "must be a non-empty string"
        report(key, f"{name} in the decorator {wanted}, got {shown(value)}.")


def check_declared_config(key: str, config: object, report: Report) -> None:
    """The `config` in a decorator is JSON."""
    try:
        canonical_json(config)
    except NotJsonError as error:
        place = ".".join(part for part in ("config", error.path) if part)
        report(key, f"{place} in the decorator must be JSON, but {error.message}.")
