"""Where a name leads: through imports and re-exports to its definition, and up the bases."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

from rag_assets.contracts.code.body import Body, Statement
from rag_assets.contracts.code.paths import Import, path_of
from rag_assets.contracts.code.source import Module, Project


class Found(NamedTuple):
    """A definition in a project module, with the attributes that are taken of it.

    An empty path is the module itself. `star` names the module that takes it by a star import,
    where that may have given the name.
    """

    module: Module
    path: tuple[str, ...]
    star: str = ""


class ProjectClass(NamedTuple):
    """A class of the project that one plain class statement makes.

    Attributes:
        module: where it stands.
        qualname: "Outer.Inner" for a class in a class.
        statement: the class statement.
        changes: other statements of the module that change it: `Bot.depth = 3`.
    """

    module: Module
    qualname: str
    statement: Statement
    changes: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """`module:qualname`."""
        return f"{self.module.name}:{self.qualname}"

    @property
    def node(self) -> ast.ClassDef:
        """Its syntax."""
        assert isinstance(self.statement.node, ast.ClassDef)
        return self.statement.node

    @property
    def body(self) -> Body:
        """Its members."""
        return self.statement.members


class Resolver:
    """Follows names through the modules of one project.

    Attributes:
        links: (module, name, target) of every import that was followed. They are part of a
            digest: `from a import f` and `from b import f` make the same code do other things.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self.links: set[tuple[str, str, str]] = set()
        self._orders: dict[str, tuple[ProjectClass, ...]] = {}

    def find(self, module: Module, path: tuple[str, ...]) -> list[Found]:
        """The definitions that a path may lead to, seen from a module; installed ones drop out.

        There are several where `try` or `if` choose between imports.
        """
        return list(dict.fromkeys(self._find(module, path, frozenset())))

    def follow(self, module: Module, target: Import, path: tuple[str, ...]) -> list[Found]:
        """The definitions that an import in a module, with attributes after it, leads to."""
        return list(dict.fromkeys(self._follow(module, target, path, frozenset())))

    def _find(
        self, module: Module, path: tuple[str, ...], passed: frozenset[tuple[str, str]]
    ) -> Iterator[Found]:
        name = path[0]
        if (module.name, name) in passed:
            return
        passed |= {(module.name, name)}
        targets = module.body.imports.get(name, [])
        for target in targets:
            full = f"{module.absolute(target)}:{target.attribute or ''}"
            self.links.add((module.name, name, full))
            yield from self._follow(module, target, path[1:], passed)
        if module.body.makers(name):
            yield Found(module, path)
        elif not targets:
            yield from self._find_unbound(module, path, passed)

    def _find_unbound(
        self, module: Module, path: tuple[str, ...], passed: frozenset[tuple[str, str]]
    ) -> Iterator[Found]:
        """A submodule, a name that a star import gave, or one that `__getattr__` makes."""
        if module.is_package and (inner := self._project.find(f"{module.name}.{path[0]}")):
            yield from self._find(inner, path[1:], passed) if path[1:] else [Found(inner, ())]
            return
        if path[0] == "__dict__":
            yield Found(module, ())
        if module.unparsed:
            yield Found(module, path)
        if "__getattr__" in module.body.bindings:
            yield Found(module, ("__getattr__",))
        for target in module.body.imports.get("*", ()):
            for found in self._follow(module, target, (), passed):
                if path[0] in found.module.body.bindings or not hasattr(builtins, path[0]):
                    yield found

    def _follow(
        self,
        module: Module,
        target: Import,
        path: tuple[str, ...],
        passed: frozenset[tuple[str, str]],
    ) -> Iterator[Found]:
        source = self._project.find(module.absolute(target))
        if source is None:
            return
        if target.attribute == "*":
            yield Found(source, (), star=module.name)
            return
        path = (target.attribute, *path) if target.attribute else path
        yield from self._find(source, path, passed) if path else [Found(source, ())]

    def class_at(self, module: Module, qualname: str) -> ProjectClass | None:
        """The class of a name, or None when the name is not made by one plain class statement."""
        body, found = module.body, None
        for name in qualname.split("."):
            statements = body.bindings.get(name, [])
            binding = [statement for statement in statements if name in statement.bound]
            if len(binding) != 1 or not isinstance(binding[0].node, ast.ClassDef):
                return None
            changes = tuple(statement for statement in statements if statement is not binding[0])
            found = ProjectClass(module, qualname, binding[0], changes)
            body = found.body
        return found

    def order(self, cls: ProjectClass) -> tuple[ProjectClass, ...]:
        """The class and its bases in the project, in the order in which members are looked up.

        Depth first, and the last of repeats counts: for classes that Python accepts this is its
        own order in all but contrived cases.
        """
        if cls.name not in self._orders:
            self._orders[cls.name] = (cls,)  # Ends a circle of bases in broken code.
            every = [cls, *(one for base in self._bases(cls) for one in self.order(base))]
            last = {one.name: one for one in reversed(every)}
            self._orders[cls.name] = tuple(reversed(last.values()))
        return self._orders[cls.name]

    def is_closed(self, cls: ProjectClass) -> bool:
        """Whether all bases that could add members are classes of the project."""
        return all(
            self._project_classes(one.module, base) or _adds_nothing(base)
            for one in self.order(cls)
            for base in one.node.bases
        )

    def _bases(self, cls: ProjectClass) -> Iterator[ProjectClass]:
        for base in cls.node.bases:
            yield from self._project_classes(cls.module, base)

    def _project_classes(self, module: Module, base: ast.expr) -> list[ProjectClass]:
        path = path_of(base.value if isinstance(base, ast.Subscript) else base)
        if path is None or not isinstance(path.base, str):
            return []
        found = self.find(module, (path.base, *path.names))
        classes = [self.class_at(one.module, ".".join(one.path)) for one in found if one.path]
        return [one for one in classes if one is not None]


def is_exact(cls: ProjectClass, name: str) -> bool:
    """Whether `Class.name` leads to that member alone, and not to an object of the class.

    Members of an enumeration are objects of it, and a base may put anything under a name.
    """
    statements = cls.body.bindings.get(name, ())
    plain = not cls.node.bases and not cls.node.keywords
    return bool(statements) and (plain or all(one.is_function for one in statements))


def _adds_nothing(base: ast.expr) -> bool:
    path = path_of(base.value if isinstance(base, ast.Subscript) else base)
    return path is not None and (path.base, *path.names)[-1] in (
        "object",
        "ABC",
        "Generic",
        "Protocol",
    )
