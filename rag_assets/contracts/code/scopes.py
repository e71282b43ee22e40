"""Names of one scope of Python code: which of them are local, and which come from outside."""

from __future__ import annotations

from typing import Literal, NamedTuple

from rag_assets.contracts.code.paths import SELF, SUPER, UNKNOWN, Base, Import

How = Literal["read", "set", "change", "computed"]


class Mention(NamedTuple):
    """One use of something from outside.

    Attributes:
        origin: what `path` starts from: "module" (its names), "class" (names of the class body,
            then the module's), SELF, SUPER, UNKNOWN, or the target of a local import.
        path: ("helpers", "clean") for `helpers.clean`; ("clean",) for `self.clean`.
        how: "read"; "set" (the end of the path is assigned); "change" (what it holds is changed);
            "computed" (a part of it with a computed name is used).
        note: of a computed one, the clause that says what happens.
    """

    origin: Base
    path: tuple[str, ...]
    how: How = "read"
    note: str = ""


class Found(NamedTuple):
    """A mention whose base may still turn out to be local; `inner`: in a nested function."""

    base: Base
    path: tuple[str, ...]
    how: How = "read"
    note: str = ""
    inner: bool = False

    def settle(self, home: str) -> Mention:
        """The mention that it is, when the base is a name of the outermost scope."""
        if isinstance(self.base, Import) or self.base in (SELF, SUPER, UNKNOWN):
            return Mention(self.base, self.path, self.how, self.note)
        return Mention(home, (self.base, *self.path), self.how, self.note)


class Scope:
    """The names of one scope while it is looked over.

    `kind` is "members" for the class body that is looked over by itself, "class" for nested ones.
    """

    __slots__ = ("bound", "called", "found", "imports", "kind", "outside", "self_name")

    def __init__(
        self, kind: Literal["module", "members", "class", "function"], self_name: str = ""
    ) -> None:
        self.kind = kind
        self.self_name = self_name
        self.bound: set[str] = set()
        self.outside: set[str] = set()
        self.imports: dict[str, list[Import]] = {}
        self.called: list[tuple[Base, bool]] = []
        self.found: list[Found] = []

    def add(
        self, base: Base, path: tuple[str, ...] = (), how: How = "read", note: str = ""
    ) -> None:
        """Note a mention at this scope's own level."""
        self.found.append(Found(base, path, how, note))

    def close_into(self, parent: Scope) -> None:
        """Hand on to the parent scope what is not local here."""
        is_function = self.kind == "function"
        for name in sorted(self.outside & self.bound):
            self.add(name, (), "set")
        local = self.bound - self.outside
        for found in self.found:
            hidden = found.base in local and (is_function or not found.inner)
            for base in self._outer_bases(found) if hidden else [found.base]:
                inner = found.inner or is_function
                parent.found.append(Found(base, found.path, found.how, found.note, inner))
        used = {found.base for found in self.found}
        for name in self.imports.keys() - used:
            for target in self.imports[name]:
                if target.attribute is None:
                    parent.found.append(Found(target.loaded, (), inner=True))

    def _outer_bases(self, found: Found) -> list[Base]:
        """What a mention of a local name means outside: mostly nothing."""
        if found.base == self.self_name:
            return [SELF]
        if found.base in self.imports:
            return list(self.imports[str(found.base)])
        return [UNKNOWN] if found.how == "computed" else []
