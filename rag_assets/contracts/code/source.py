"""The project's modules, read from their files."""

from __future__ import annotations

import ast
import hashlib
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rag_assets.contracts.code.body import Body
from rag_assets.contracts.code.paths import Import, path_of
from rag_assets.contracts.loading import is_project_file

_OUR_DECORATORS = ("rag_system", "system")
_parsed: dict[tuple[str, Path], tuple[tuple[int, int], Module]] = {}
"""Modules by name and file, each with the time (ns) and size of the file that was read."""


class Module:
    """One module of the project.

    Attributes:
        name: dotted name.
        path: its file, or the folder of a namespace package.
        body: its statements; empty when the file is not Python that can be parsed.
        unparsed: SHA-256 of such a file's content, else "".
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.unparsed = ""
        content = b"" if path.is_dir() else path.read_bytes()
        try:
            with warnings.catch_warnings(action="ignore"):
                nodes = ast.parse(content).body
        except (SyntaxError, ValueError):
            nodes = []
            self.unparsed = hashlib.sha256(content).hexdigest()
        self.body = Body(nodes, in_class=False)
        for node in nodes:
            self._drop_settings(node)

    @property
    def is_package(self) -> bool:
        """Whether it can have submodules."""
        return self.path.is_dir() or self.path.name == "__init__.py"

    @property
    def folder(self) -> Path:
        """Where its submodules lie."""
        return self.path if self.path.is_dir() else self.path.parent

    def absolute(self, target: Import) -> str:
        """The dotted name of the module that an import in this module names."""
        if not target.level:
            return target.module
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        package = package[: len(package) - target.level + 1]
        return ".".join([*package, *filter(None, [target.module])])

    def uses(self, name: str) -> bool:
        """Whether its code uses one of its names anywhere, annotations included."""
        statements = self.body.statements
        return any(
            mention.path[:1] == (name,) and mention.origin in ("module", "class")
            for one in statements
            for mention in one.scan.mentions
        ) or any(
            isinstance(node, ast.Name) and node.id == name
            for one in statements
            for node in ast.walk(one.node)
        )

    def _drop_settings(self, node: ast.stmt) -> None:
        """Cut the arguments of our own decorators: they are settings and not code."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        for index, decorator in enumerate(decorators):
            if isinstance(decorator, ast.Call) and self._is_ours(decorator.func):
                decorators[index] = decorator.func

    def _is_ours(self, decorator: ast.expr) -> bool:
        path = path_of(decorator)
        if path is None:
            return False
        return any(
            target.module.partition(".")[0] == "rag_assets"
            and (target.attribute, *path.names)[-1] in _OUR_DECORATORS
            for target in self.body.imports.get(str(path.base), ())
        )


class Project:
    """Finds the modules of a project by name.

    Args:
        root: the project folder, resolved.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._found: dict[str, Module | None] = {}

    def find(self, name: str) -> Module | None:
        """The module of a name; None when it is installed, or does not exist."""
        if name not in self._found:
            path = self._locate(name) if name else None
            self._found[name] = self._read(name, path) if path is not None else None
        return self._found[name]

    def loaded(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and namespaces of the project's modules that are imported, by name."""
        # A copy: while it is walked through, another thread may import something.
        for name, module in sorted(sys.modules.copy().items()):
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str) and _is_project(file, self._root):
                yield name, vars(module)

    def _read(self, name: str, path: Path) -> Module | None:
        if name.partition(".")[0] == "rag_assets" or not is_project_file(path, self._root):
            return None
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = _parsed.get((name, path))
            if known is None or known[0] != stamp:
                known = _parsed[name, path] = (stamp, Module(name, path))
        except OSError:
            return None
        return known[1]

    def _locate(self, name: str) -> Path | None:
        """Where Python would find a module, without importing anything."""
        loaded = sys.modules.get(name)
        file = getattr(loaded, "__dict__", {}).get("__file__")
        if isinstance(file, str):
            return Path(file).resolve()
        if loaded is not None and not hasattr(loaded, "__path__"):
            return None
        parent, _, last = name.rpartition(".")
        folders = list(self._folders(parent))
        for folder in folders:
            for path in (folder / last / "__init__.py", folder / f"{last}.py"):
                if path.is_file():
                    return path.resolve()
        return next((folder / last for folder in folders if (folder / last).is_dir()), None)

    def _folders(self, parent: str) -> Iterator[Path]:
        if parent:
            package = self.find(parent)
            if package is not None and package.is_package:
                yield package.folder
            return
        yield self._root
        for entry in sys.path:
            folder = Path(entry).resolve()
            if folder != self._root and is_project_file(folder, self._root):
                yield folder


@cache
def _is_project(file: str, root: Path) -> bool:
    return is_project_file(_resolved(file), root)


# Of all files that are imported: for one project after another it would be the same.
@cache
def _resolved(file: str) -> Path:
    return Path(file).resolve()
