"""The text of a piece of code: its syntax tree without what does not run.

Comments and formatting are no part of a syntax tree. Left out besides: strings that stand alone
(docstrings), type parameters, and annotations. Annotations stay where they are read while the
program runs: in class bodies (fields of dataclasses and models) and in the signatures of
decorated functions (decorators that validate). The text is written here and not by `ast.dump`,
whose form differs between Python versions.
"""

from __future__ import annotations

import ast
from functools import cache

from rag_assets.contracts.code.paths import reads_hints

_LEFT_OUT = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params"})
_HINTS = frozenset({"annotation", "returns"})


def code_text(node: ast.AST, *, in_class: bool = False) -> str:
    """The canonical text of a node; `in_class` when it stands in a class body."""
    written: list[str] = []
    _write(node, written, in_class)
    return "".join(written)


def _write(node: ast.AST, written: list[str], hints: bool) -> None:
    """Append the text of a node; `hints` says whether annotations count here."""
    if isinstance(node, ast.Name):
        written.append(node.id)
        return
    if isinstance(node, ast.Constant):
        written.append(f"={node.value!r}")
        return
    if isinstance(node, ast.AnnAssign) and node.value and not hints:
        node = ast.Assign([node.target], node.value)
    inner = hints
    kind = type(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner, hints = False, reads_hints(node)
    elif kind is ast.ClassDef:
        inner = True
    written.append(f"{kind.__name__}(")
    for name in _fields(kind, hints):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            written.append(f"{name}:")
            _write(value, written, hints)
        elif isinstance(value, list):
            if value:
                written.append(f"{name}:")
                _write_list(value, written, inner if name == "body" else hints)
        elif value is not None:
            written.append(f"{name}={value!r},")
    written.append(")")


def _write_list(items: list[ast.AST | str | None], written: list[str], hints: bool) -> None:
    for item in items:
        if not isinstance(item, ast.AST):
            written.append(f"{item!r},")
        elif not _says_nothing(item, hints):
            _write(item, written, hints)
            written.append(",")


def _says_nothing(node: ast.AST, hints: bool) -> bool:
    """A string that stands alone, or an annotation without a value where these do not count."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.AnnAssign) and node.value is None and not hints


@cache
def _fields(kind: type[ast.AST], hints: bool) -> tuple[str, ...]:
    left_out = _LEFT_OUT if hints else _LEFT_OUT | _HINTS
    return tuple(name for name in kind._fields if name not in left_out)
