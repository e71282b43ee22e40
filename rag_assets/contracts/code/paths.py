"""Dotted paths in code: `helpers.clean`, `self.index`, and what an import names."""

from __future__ import annotations

import ast
from typing import NamedTuple

SELF = "<self>"
SUPER = "<super>"
UNKNOWN = "<unknown>"

_PLAIN_DECORATORS = (
    "abstractmethod",
    "cached_property",
    "classmethod",
    "property",
    "setter",
    "staticmethod",
    "system",
)


class Import(NamedTuple):
    """The target of an import.

    Attributes:
        module: dotted name; of `import a.b` it is "a", which is what the name `a` stands for.
        level: the dots of a relative import.
        attribute: the name taken from the module, or None for the module itself.
        inner: the further modules that are loaded: "b" for `import a.b`.
    """

    module: str
    level: int = 0
    attribute: str | None = None
    inner: str = ""

    @property
    def loaded(self) -> Import:
        """The module that is loaded last: `a.b` for `import a.b`."""
        return Import(f"{self.module}.{self.inner}", self.level) if self.inner else self


Base = str | Import
"""What a path starts from: an identifier, one of the three above, or an imported module."""


class DottedPath(NamedTuple):
    """A base and the attributes that follow it.

    `passed` holds expressions inside the path that are evaluated as well: the default in
    `getattr(x, "a", default)`.
    """

    base: Base
    names: tuple[str, ...]
    passed: tuple[ast.expr, ...] = ()


def path_of(node: ast.AST) -> DottedPath | None:
    """The path that an expression is, or None for any other kind of expression.

    The class of an object stands for the object: `type(x).a` and `x.__class__.a` are `x.a`.
    `getattr(x, "a")`, `super().a` and `import_module("m").a` are paths as well.
    """
    if isinstance(node, ast.Name):
        return DottedPath(node.id, ())
    if isinstance(node, ast.Attribute):
        path = path_of(node.value)
        if path is None or node.attr == "__class__":
            return path
        return path._replace(names=(*path.names, node.attr))
    if isinstance(node, ast.Call):
        return _path_of_call(node)
    return None


def _path_of_call(call: ast.Call) -> DottedPath | None:
    callee, args = called_name(call), call.args
    if callee in ("import_module", "__import__") and args and (name := literal(args[0])):
        module = name.lstrip(".")
        passed = (call.func, *args[1:])
        return DottedPath(Import(module, len(name) - len(module)), (), passed)
    if not isinstance(call.func, ast.Name):
        return None
    if callee == "super":
        return DottedPath(SUPER, ())
    if callee == "type" and len(args) == 1:
        return path_of(args[0])
    if callee in ("getattr", "hasattr") and len(args) > 1:
        member, path = literal(args[1]), path_of(args[0])
        if member is not None and path is not None:
            return DottedPath(path.base, (*path.names, member), (*path.passed, *args[2:]))
    return None


def reads_hints(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether decorators of a function may read its annotations while the program runs."""
    for decorator in function.decorator_list:
        path = path_of(decorator)
        if path is None or (path.base, *path.names)[-1] not in _PLAIN_DECORATORS:
            return True
    return False


def called_name(call: ast.Call) -> str:
    """The last name of what is called: "clean" for `helpers.clean()`; "" where it has none."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def literal(node: ast.AST) -> str | None:
    """The text of a string literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def import_targets(node: ast.Import | ast.ImportFrom) -> list[tuple[str, Import]]:
    """The names that an import statement binds ("*" for a star), each with its target."""
    if isinstance(node, ast.ImportFrom):
        module, level = node.module or "", node.level
        return [(a.asname or a.name, Import(module, level, a.name)) for a in node.names]
    bound: list[tuple[str, Import]] = []
    for alias in node.names:
        top, _, inner = alias.name.partition(".")
        if alias.asname:
            bound.append((alias.asname, Import(alias.name)))
        else:
            bound.append((top, Import(top, inner=inner)))
    return bound
