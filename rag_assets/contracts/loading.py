"""Importing the user's objects, and showing the user's part of a traceback."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from rag_assets.contracts.errors import InputError

_NOT_SOURCE = {
    "site-packages",
    "venv",
    ".venv",
    "node_modules",
    "__pycache__",
    ".git",
    ".rag_assets",
}

_ABSENT = object()

_ours: dict[str, Path] = {}
"""Names of the modules that were imported here, with the project root they were found in."""

_shelved: dict[Path, dict[str, ModuleType]] = {}
"""Modules of projects that are not active: two projects may both have a module of one name."""


def load_object(reference: str, root: Path) -> Any:
    """Import `module:attribute` with the project folder first on the path.

    Args:
        reference: "module:attribute"; both sides may be dotted.
        root: the project folder, absolute and without symbolic links.

    Raises:
        InputError: the reference has another form, the module raises anything while it is
            imported, or it has no such attribute. The message names the reference and shows
            the user's own frames.
    """
    module_name, colon, attribute = reference.partition(":")
    if not (module_name and colon and attribute):
        raise InputError(f'"{reference}" is not of the form module:attribute.')
    try:
        value: Any = _import(module_name, root)
        taken = _taken_by(module_name, root)
        for name in attribute.split("."):
            value = getattr(value, name, _ABSENT)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module_name:
            raise InputError(
                f"{reference} cannot be imported: there is no module {module_name} in {root}, "
                "and none is installed."
            ) from None
        raise InputError(f"{reference} cannot be imported.\n{user_frames(error, root)}") from error
    if taken is not None:
        raise InputError(
            f"{reference} cannot be imported: the name is taken by {taken}, which is imported "
            "already. Rename the module of your project."
        )
    if value is _ABSENT:
        raise InputError(
            f"{reference} cannot be imported: {module_name} has no attribute {attribute}."
        )
    return value


def forget_project_modules(root: Path | None = None) -> None:
    """Drop what was imported here for a project, so that the next import reads its files again.

    Only modules that this module imported itself are dropped; what the user's own program
    imported stays as it is.

    Args:
        root: the folder of the project; None for all projects.
    """
    for home in [root] if root else list(_shelved):
        _shelved.pop(home, None)
    _take_out([name for name, home in _ours.items() if root in (None, home)])


def activate(root: Path) -> None:
    """Make a project the one whose modules are imported: also those that it imports only later."""
    for name, home in [(name, home) for name, home in _ours.items() if home != root]:
        _shelved.setdefault(home, {}).update(_take_out([name]))
    for name, module in _shelved.pop(root, {}).items():
        sys.modules[name] = module
        _ours[name] = root
    if sys.path[:1] != [str(root)]:
        sys.path[:] = [str(root), *(entry for entry in sys.path if entry != str(root))]
        importlib.invalidate_caches()


def user_frames(error: BaseException, root: Path) -> str:
    """The traceback of an error, shortened to the frames of files under `root`.

    Where no frame is the user's, the last frame stands for all of them.
    """
    parts = [traceback.TracebackException.from_exception(error)]
    for part in parts:  # grows on the way
        mine = [frame for frame in part.stack if _is_users(frame.filename, root)]
        # A syntax error says itself where it is.
        last = [] if getattr(part, "filename", None) else list(part.stack[-1:])
        part.stack = traceback.StackSummary.from_list(mine or last)
        if part.__cause__ is None:
            part.__suppress_context__ = True
        else:
            parts.append(part.__cause__)
        parts += part.exceptions or ()
    return "".join(parts[0].format()).rstrip()


def is_project_file(path: Path, root: Path) -> bool:
    """Whether a file is the project's own: under the root, and neither installed nor made there."""
    depth = len(root.parts)
    return path.parts[:depth] == root.parts and _NOT_SOURCE.isdisjoint(path.parts[depth:])


def python_files(root: Path) -> Iterator[Path]:
    """The project's own Python files."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _NOT_SOURCE]
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


def _is_users(filename: str, root: Path) -> bool:
    return not filename.startswith("<") and is_project_file(Path(filename).resolve(), root)


def _import(name: str, root: Path) -> ModuleType:
    activate(root)
    before = set(sys.modules)
    try:
        with without_bytecode():
            return importlib.import_module(name)
    finally:
        for new in set(sys.modules) - before:
            if any(is_project_file(place, root) for place in _places(sys.modules[new])):
                _ours[new] = root


def _taken_by(name: str, root: Path) -> str | None:
    """What was imported in place of the project's own module, for instance by another project."""
    top = name.partition(".")[0]
    own = PathFinder.find_spec(top, [str(root)])
    if own is None or own.origin is None:
        return None
    imported = getattr(sys.modules[top], "__file__", None)
    if imported is None:
        return f"the built-in module {top}"
    return None if Path(imported).resolve() == Path(own.origin).resolve() else str(imported)


@contextmanager
def without_bytecode() -> Iterator[None]:
    """Import without leaving bytecode behind.

    A file that is edited within a second, to the same size, would be taken from its bytecode.
    """
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _places(module: ModuleType) -> Iterator[Path]:
    """The file of a module, or the folders of a package that has no file of its own."""
    file = getattr(module, "__file__", None)
    for place in [file] if file else list(getattr(module, "__path__", ())):
        yield Path(place).resolve()


def _take_out(names: list[str]) -> dict[str, ModuleType]:
    """Take modules out of Python's table."""
    taken: dict[str, ModuleType] = {}
    for name in names:
        del _ours[name]
        module = sys.modules.pop(name, None)
        if module is not None:
            taken[name] = module
        package, _, short = name.rpartition(".")
        # Otherwise `from package import module` finds it on a package that stays.
        if package in sys.modules and vars(sys.modules[package]).get(short, _ABSENT) is module:
            delattr(sys.modules[package], short)
    importlib.invalidate_caches()
    return taken
