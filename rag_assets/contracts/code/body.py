"""The statements of a module or class, by the names that they make."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from rag_assets.contracts.code.mentions import Scan, scan
from rag_assets.contracts.code.paths import SELF, Base, Import, path_of
from rag_assets.contracts.code.text import code_text

_MAKE_NAMES = ("calls exec", "calls globals")
"""What may make names of a module that stand nowhere in its text."""

_NEVER_TRUE = ("__name__ == '__main__'", "TYPE_CHECKING", "typing.TYPE_CHECKING")


class Statement:
    """One statement of a module's top level or of a class body."""

    def __init__(self, node: ast.stmt, *, in_class: bool) -> None:
        self.node = node
        self._in_class = in_class

    @cached_property
    def text(self) -> str:
        """Its canonical text."""
        return code_text(self.node, in_class=self._in_class)

    @cached_property
    def scan(self) -> Scan:
        """What it binds and mentions."""
        return scan(self.node, in_class=self._in_class)

    @cached_property
    def head(self) -> Statement:
        """Of a class statement, the part before the body: decorators, bases and keywords."""
        node = self.node
        assert isinstance(node, ast.ClassDef)
        empty = ast.ClassDef(node.name, node.bases, node.keywords, [], node.decorator_list)
        return Statement(empty, in_class=False)

    @cached_property
    def members(self) -> Body:
        """The body of a class statement."""
        assert isinstance(self.node, ast.ClassDef)
        return Body(self.node.body, in_class=True)

    @property
    def is_function(self) -> bool:
        """Whether it is a `def`, with or without `async`."""
        return isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef))

    @property
    def is_import(self) -> bool:
        """Whether it is an import by itself, not one inside `try` or `if`."""
        return isinstance(self.node, (ast.Import, ast.ImportFrom))

    @property
    def is_definition(self) -> bool:
        """Whether it is a `def` or a class."""
        return self.is_function or isinstance(self.node, ast.ClassDef)

    @property
    def bound(self) -> frozenset[str]:
        """Names that it binds at its own level."""
        if isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return frozenset({self.node.name})  # Without a scan: many are never reached.
        return self.scan.bound

    @property
    def made(self) -> frozenset[str]:
        """Names that it binds at its own level, or whose value it changes."""
        if self.is_definition:
            return self.bound
        changed = {
            mention.path[0]
            for mention in self.scan.mentions
            if mention.how in ("set", "change") and mention.origin in ("module", "class")
        }
        return self.bound | changed

    def decorated_by(self) -> Iterator[tuple[Base, bool]]:
        """The base of each decorator, and whether attributes follow it."""
        for decorator in getattr(self.node, "decorator_list", ()):
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            path = path_of(callee)
            if path is not None:
                yield path.base, bool(path.names)


class Body:
    """The statements of a module or of a class.

    Attributes:
        statements: all of them, without `if __name__ == "__main__":` and `if TYPE_CHECKING:`.
        imports: name → what the imports of that name stand for.
        bindings: name → the statements that bind it or change what it holds, in order. A method
            of a name that is called for its effect (`TABLE.update()`, `@agent.tool`) changes it.
        effects: statements that do something that has no name: `setup()`, `exec(text)`.
    """

    def __init__(self, nodes: Sequence[ast.stmt], *, in_class: bool) -> None:
        self.statements = tuple(
            Statement(node, in_class=in_class) for node in nodes if not _never_runs(node)
        )
        self.imports: dict[str, list[Import]] = {}
        self.bindings: dict[str, list[Statement]] = {}
        self.effects: list[Statement] = []
        for statement in self.statements:
            for name in statement.made:
                self.bindings.setdefault(name, []).append(statement)
            if not statement.is_definition:
                for name, targets in statement.scan.imports.items():
                    self.imports.setdefault(name, []).extend(targets)
        for statement in self.statements:
            self._add_effects(statement)

    def _add_effects(self, statement: Statement) -> None:
        """File calls whose value nobody keeps under the name that they may change."""
        definition = statement.is_definition
        if not definition and any(one.note in _MAKE_NAMES for one in statement.scan.mentions):
            self.effects.append(statement)
        for base, has_names in statement.decorated_by() if definition else statement.scan.called:
            if has_names and base in self.bindings and base not in self.imports:
                changed = self.bindings[str(base)]
            elif definition:
                continue
            else:
                changed = self.effects
            if statement not in changed:
                changed.append(statement)

    def makers(self, name: str) -> list[Statement]:
        """The statements behind a name, apart from plain imports."""
        return [one for one in self.bindings.get(name, ()) if not one.is_import]

    @cached_property
    def writers(self) -> dict[str, list[Statement]]:
        """Name → functions that assign it or fill it, and what these functions decorate."""
        found: dict[str, list[Statement]] = {}
        for statement in self.statements:
            if statement.is_function:
                for mention in statement.scan.mentions:
                    if mention.origin == "module" and mention.how in ("set", "change"):
                        found.setdefault(mention.path[0], []).append(statement)
        for writers in found.values():
            names = {name for writer in writers for name in writer.made}
            writers += [
                statement
                for statement in self.statements
                if any(base in names and not path for base, path in statement.decorated_by())
            ]
        return found

    @cached_property
    def setters(self) -> dict[str, list[str]]:
        """Of a class body: attribute → names of the methods that assign it on `self`."""
        found: dict[str, list[str]] = {}
        for name, statements in self.bindings.items():
            for statement in statements:
                for mention in statement.scan.mentions:
                    if mention.origin == SELF and mention.how == "set" and len(mention.path) == 1:
                        found.setdefault(mention.path[0], []).append(name)
        return found


def _never_runs(node: ast.stmt) -> bool:
    """Whether importing skips a statement: `if __name__ == "__main__"`, `if TYPE_CHECKING`."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) in _NEVER_TRUE
