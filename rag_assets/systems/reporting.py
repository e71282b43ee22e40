"""Problems of a system, with the line of the key concerned."""

from __future__ import annotations

from collections.abc import Callable

from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import Problem

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
