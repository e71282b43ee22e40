"""The version of the index: a string, the content of a file, or what a function returns."""

from __future__ import annotations

import inspect
from pathlib import Path

from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.loading import forget_project_modules, load_object, user_frames
from rag_assets.contracts.system_config import CallableVersion, FileVersion
from rag_assets.contracts.text import shown
from rag_assets.systems.declaration import ATTRIBUTE, Declaration

KEY = "system.rag.index_version"


def resolve_index_version(
    declared: str | FileVersion | CallableVersion | None, root: Path
) -> str | None:
    """Resolve what config or decorator declare, as it is now.

    Args:
        declared: the declaration; None where there is none.
        root: the project folder.

    Raises:
        InputError: the file or the function gives no string.
    """
    if declared is None or isinstance(declared, str):
        return declared
    if isinstance(declared, FileVersion):
        return _content(declared.file, root)
    return _returned(declared.callable, root)


def read_index_version(config: Config) -> str | None:
    """Read the version again without the rest of the project.

    What this process has imported of the project is imported again, so that the next run, which
    has a process of its own, sees the same version.

    Args:
        config: the config as it is now.

    Returns:
        The version; None where nothing declares one, and for a system that is not staged.

    Raises:
        InputError: the version cannot be read; the problem names file, line and key.
    """
    settings = config.system.rag
    if settings is None:
        return None
    forget_project_modules()
    try:
        declared = settings.index_version
        if declared is None:
            loaded = load_object(settings.object, config.root)
            system = loaded if inspect.isclass(loaded) else type(loaded)
            declared = (getattr(system, ATTRIBUTE, None) or Declaration()).index_version
        return resolve_index_version(declared, config.root)
    except InputError as error:
        line = config.lines.get(KEY) or config.lines.get("system.rag") or 0
        raise InputError([Problem(config.path.name, line, KEY, str(error))]) from None


def _content(file: Path, root: Path) -> str:
    try:
        return (root / file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InputError(f"cannot be read from {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot be read from {file}: it is not UTF-8.") from None


def _returned(reference: str, root: Path) -> str:
    function = load_object(reference, root)
    try:
        value = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"{reference} raised.\n{user_frames(error, root)}") from None
    if not isinstance(value, str):
        raise InputError(f"{reference} must return a string, got {shown(value)}.")
    return value
