"""Noticing that the files of a project have changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_assets.contracts.errors import InputError
from rag_assets.contracts.loading import python_files
from rag_assets.evaluation.places import POLICY_FILE, load_config

_State = tuple[int, int] | None


class Watch:
    """The files that the definitions of a project are made of.

    Args:
        config_path: the config file, absolute.
    """

    def __init__(self, config_path: Path) -> None:
        self._config_path = config_path
        self._seen = self._look()

    def changes(self) -> list[str]:
        """The files that were changed, made or removed since the last call.

        Returns:
            Their names, relative to the project's folder where they are in it.
        """
        changed = [path for path, state in self._seen.items() if _state(path) != state]
        if changed:
            self._seen = self._look()
        root = self._config_path.parent
        return [str(path.relative_to(root) if root in path.parents else path) for path in changed]

    def _look(self) -> dict[Path, _State]:
        return {path: _state(path) for path in _watched(self._config_path)}


def _watched(config_path: Path) -> Iterator[Path]:
    root = config_path.parent
    yield config_path
    yield root / POLICY_FILE
    yield from python_files(root)
    try:
        config = load_config(config_path)
    except InputError:
        return  # The config itself has to change before anything else matters.
    yield config.dataset
    if config.corpus is not None:
        yield config.corpus
    for pattern in config.system.code_paths:
        if not Path(pattern).is_absolute():
            yield from root.glob(pattern)


def _state(path: Path) -> _State:
    """What changes whenever a file is written; None when there is no such file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
