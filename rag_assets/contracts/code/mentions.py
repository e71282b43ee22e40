"""What a piece of code mentions of the world outside it.

One look over the syntax tree. Names that are local (parameters, assignments, comprehension
variables, nested functions) drop out; what is left is the module's own names, what local imports
name, members of `self`, and places where a name is computed while the program runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from rag_assets.contracts.code.paths import (
    UNKNOWN,
    Base,
    Import,
    called_name,
    import_targets,
    literal,
    path_of,
    reads_hints,
)
from rag_assets.contracts.code.scopes import How, Mention, Scope

_COMPUTED_IMPORT = "imports a module by a computed name (add its files to system.code_paths)"
_COMPUTED = {
    "getattr": "calls getattr with a computed name",
    "eval": "calls eval",
    "exec": "calls exec",
    "globals": "calls globals",
    "import_module": _COMPUTED_IMPORT,
    "__import__": _COMPUTED_IMPORT,
}

_HARMLESS = ("hasattr", "id", "isinstance")
"""Functions that call nothing of the object that is their first argument."""

_FILLERS = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update"})
"""Methods that fill a container. Inside functions only calls of these count as a change:
two functions that call `logger.info()` do not depend on each other."""


class Scan(NamedTuple):
    """What the nodes of one scope do.

    Attributes:
        bound: the names that they bind in their scope; "*" for a star import.
        imports: those of them that are imports, with their targets.
        called: of calls whose value nobody keeps, the base and whether attributes follow it:
            ("TABLE", True) for `TABLE.update()`, ("setup", False) for `setup()`.
        mentions: what they mention, nested functions included; no repeats.
    """

    bound: frozenset[str]
    imports: dict[str, list[Import]]
    called: tuple[tuple[Base, bool], ...]
    mentions: tuple[Mention, ...]


def scan(*nodes: ast.AST, in_class: bool = False) -> Scan:
    """Look over nodes of a module's top level, or of a class body.

    Args:
        nodes: statements or expressions.
        in_class: they stand in a class body; the first parameter of its functions is `self`.
    """
    scope = Scope("members" if in_class else "module")
    for node in nodes:
        _visit(node, scope)
    mentions = dict.fromkeys(
        found.settle("class" if in_class and not found.inner else "module") for found in scope.found
    )
    return Scan(frozenset(scope.bound), scope.imports, tuple(scope.called), tuple(mentions))


def _visit(node: ast.AST, scope: Scope) -> None:
    handler = _HANDLERS.get(type(node))
    if handler is None:
        _visit_children(node, scope)
    else:
        handler(node, scope)


def _visit_children(node: ast.AST, scope: Scope) -> None:
    for name in _fields(type(node)):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            _visit(value, scope)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    _visit(item, scope)


@cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple(name for name in kind._fields if name not in ("ctx", "op", "ops"))


def _visit_path(node: ast.expr, scope: Scope, how: How = "read", note: str = "") -> bool:
    """Note the path that an expression is; False when it is none."""
    path = path_of(node)
    if path is None:
        return False
    scope.add(path.base, path.names, how, note)
    if "__subclasses__" in path.names:
        scope.add(UNKNOWN, (), "computed", "uses __subclasses__")
    if (path.base, *path.names)[:2] == ("sys", "modules"):
        scope.add(UNKNOWN, (), "computed", "uses sys.modules")
    for passed in path.passed:
        _visit(passed, scope)
    return True


def _name(node: ast.Name, scope: Scope) -> None:
    if isinstance(node.ctx, ast.Load):
        scope.add(node.id)
    else:
        scope.bound.add(node.id)


def _attribute(node: ast.Attribute, scope: Scope) -> None:
    how: How = "read" if isinstance(node.ctx, ast.Load) else "set"
    if not _visit_path(node, scope, how):
        _visit(node.value, scope)


def _subscript(node: ast.Subscript, scope: Scope) -> None:
    how: How = "read" if isinstance(node.ctx, ast.Load) else "change"
    if not _visit_path(node.value, scope, how):
        _visit(node.value, scope)
    _visit(node.slice, scope)


def _augmented(node: ast.AugAssign, scope: Scope) -> None:
    """`x += 1` reads and changes; for a local name it binds as well."""
    if isinstance(node.target, ast.Name):
        scope.bound.add(node.target.id)
    target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
    if not _visit_path(target, scope, "change"):
        _visit(target, scope)
    if isinstance(node.target, ast.Subscript):
        _visit(node.target.slice, scope)
    _visit(node.value, scope)


def _annotated(node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None or scope.kind != "module":
        _visit(node.target, scope)
    if node.value is not None:
        _visit(node.value, scope)
    if scope.kind in ("members", "class"):
        _visit(node.annotation, scope)


def _expression(node: ast.Expr, scope: Scope) -> None:
    """A call whose value nobody keeps is there for what it changes."""
    if isinstance(node.value, ast.Call) and scope.kind != "function":
        path = path_of(node.value.func)
        scope.called.append((path.base, bool(path.names)) if path else (UNKNOWN, False))
    _visit(node.value, scope)


def _call(node: ast.Call, scope: Scope) -> None:
    if _visit_path(node, scope):
        return
    callee, args = called_name(node), node.args
    plain = isinstance(node.func, ast.Name)
    if plain and callee == "getattr" and len(args) > 1 and literal(args[1]) is None:
        if _visit_path(args[0], scope, "computed", _COMPUTED[callee]):
            args = args[1:]
        else:
            scope.add(UNKNOWN, (), "computed", _COMPUTED[callee])
    elif plain and callee == "setattr" and len(args) > 1 and (name := literal(args[1])):
        if path := path_of(args[0]):
            scope.add(path.base, (*path.names, name), "set")
            args = args[2:]
    elif callee in _COMPUTED and (plain or callee == "import_module"):
        scope.add(UNKNOWN, (), "computed", _COMPUTED[callee])
    elif plain and callee in _HARMLESS and args and isinstance(args[0], ast.Name):
        args = args[1:]
    filled = isinstance(node.func, ast.Attribute) and callee in _FILLERS and node.func.value
    if not (filled and _visit_path(filled, scope, "change")):
        _visit(node.func, scope)
    for child in (*args, *node.keywords):
        _visit(child, scope)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    scope.bound.add(node.name)
    for decorator in node.decorator_list:
        _visit(decorator, scope)
    decorators = {path.base for d in node.decorator_list if (path := path_of(d))}
    is_method = scope.kind == "members" and "staticmethod" not in decorators
    _parameters_and_body(node, scope, is_method, reads_hints(node))


def _lambda(node: ast.Lambda, scope: Scope) -> None:
    _parameters_and_body(node, scope, scope.kind == "members", False)


def _parameters_and_body(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    scope: Scope,
    is_method: bool,
    hints: bool,
) -> None:
    """Defaults belong to the scope around; annotations too, where decorators may read them."""
    args = node.args
    every = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    given = [arg for arg in every if arg is not None]
    outside: list[ast.AST | None] = [*args.defaults, *args.kw_defaults]
    if hints:
        outside += [arg.annotation for arg in given]
        outside.append(getattr(node, "returns", None))
    for part in outside:
        if part is not None:
            _visit(part, scope)
    inside = Scope("function", given[0].arg if given and is_method else "")
    inside.bound.update(arg.arg for arg in given)
    for part in node.body if isinstance(node.body, list) else [node.body]:
        _visit(part, inside)
    inside.close_into(scope)


def _class(node: ast.ClassDef, scope: Scope) -> None:
    scope.bound.add(node.name)
    for part in (*node.decorator_list, *node.bases, *node.keywords):
        _visit(part, scope)
    inside = Scope("class")
    for statement in node.body:
        _visit(statement, inside)
    inside.close_into(scope)


def _comprehension(node: Any, scope: Scope) -> None:
    """The first iterable belongs to the scope around."""
    _visit(node.generators[0].iter, scope)
    inside = Scope("function")
    for index, generator in enumerate(node.generators):
        for part in (generator.target, *generator.ifs, *([generator.iter] if index else [])):
            _visit(part, inside)
    for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
        _visit(part, inside)
    inside.close_into(scope)


def _import(node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    for name, target in import_targets(node):
        scope.bound.add(name)
        scope.imports.setdefault(name, []).append(target)


def _outside(node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
    scope.outside.update(node.names)


def _named(node: Any, scope: Scope) -> None:
    """Exception handlers and patterns bind a name that is a plain string."""
    name = node.rest if isinstance(node, ast.MatchMapping) else node.name
    if name is not None:
        scope.bound.add(name)
    _visit_children(node, scope)


def _nothing(_node: ast.AST, _scope: Scope) -> None:
    """Constants mention nothing."""


_HANDLERS: dict[type[ast.AST], Callable[[Any, Scope], None]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.AugAssign: _augmented,
    ast.AnnAssign: _annotated,
    ast.Expr: _expression,
    ast.Call: _call,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Global: _outside,
    ast.Nonlocal: _outside,
    ast.ExceptHandler: _named,
    ast.MatchAs: _named,
    ast.MatchStar: _named,
    ast.MatchMapping: _named,
    ast.Constant: _nothing,
}
