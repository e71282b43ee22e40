"""The walk from a stage function to everything of the project that it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_assets.contracts.code.body import Statement
from rag_assets.contracts.code.paths import SELF, SUPER, UNKNOWN, Import
from rag_assets.contracts.code.resolve import Found, ProjectClass, Resolver, is_exact
from rag_assets.contracts.code.scopes import Mention
from rag_assets.contracts.code.source import Module, Project

_AS_A_WHOLE = "uses self as a whole"
_CONSTRUCTORS = ("__new__", "__init__", "__post_init__")


class Place(NamedTuple):
    """Where a mention stands.

    Attributes:
        module: the module.
        where: "module:qualname", for sentences.
        owner: the class whose body it stands in.
        this: the class of `self`: `owner` or one that derives from it.
        builds: the code only builds `this`, so its class by name is not all of its methods.
    """

    module: Module
    where: str
    owner: ProjectClass | None = None
    this: ProjectClass | None = None
    builds: bool = False


class Reach:
    """Collects what is reached.

    Attributes:
        project: where modules are found.
        units: "module:qualname" → canonical text of everything that was reached.
        resolver: how names were followed.
    """

    def __init__(self, project: Project) -> None:
        self.units: dict[str, str] = {}
        self.project = project
        self.resolver = Resolver(project)
        self._sentences: set[str] = set()
        self._of_class: dict[str, set[str]] = {}
        self._named: set[str] = set()
        self._seen: set[tuple[str, ...]] = set()
        self._todo: list[tuple[tuple[Mention, ...], Place]] = []

    def walk(self) -> None:
        """Follow everything that was taken so far, and what that leads to."""
        while self._todo:
            mentions, place = self._todo.pop()
            for mention in mentions:
                self._follow(mention, place)

    def sentences(self) -> tuple[str, ...]:
        """What could not be followed, sorted. A class that was reached by name is whole anyway."""
        of_class = [self._of_class[name] for name in self._of_class.keys() - self._named]
        return tuple(sorted(self._sentences.union(*of_class)))

    def note(self, sentence: str) -> None:
        """Say what could not be followed."""
        self._sentences.add(sentence)

    def take(self, found: Found) -> None:
        """Take a definition as a whole."""
        self._use(found, Mention("module", found.path), Place(found.module, found.module.name))

    def take_name(self, module: Module, name: str, *, reads: bool = True) -> None:
        """Take what makes a name of a module; reading it, also the functions that fill it."""
        where = f"{module.name}:{name}"
        if self._is_new("name", where, str(reads)):
            self._take(where, module.body.makers(name), Place(module, where))
            for writer in module.body.writers.get(name, ()) if reads else ():
                for made in writer.made:
                    self.take_name(module, made)

    def take_member(
        self,
        this: ProjectClass,
        name: str,
        where: str,
        *,
        above: ProjectClass | None = None,
        reads: bool = True,
    ) -> None:
        """Take a member that is looked up on an object of a class.

        A member that is no function is data: reading it depends on how the object was built.
        """
        self._take_heads(this)
        order = self.resolver.order(this)
        if above is not None:
            order = order[order.index(above) + 1 :] if above in order else ()
        owner = next((cls for cls in order if name in cls.body.bindings), None)
        if owner is not None:
            self._take_own(owner, name, this)
            if all(one.is_function for one in owner.body.bindings[name]):
                return
        if not reads or above is not None:
            return
        setters = [(cls, made) for cls in order for made in cls.body.setters.get(name, ())]
        for cls, made in setters:
            self._take_own(cls, made, this)
        if owner is None and not setters:
            self._take_unknown(this, name, where)
        self.take_construction(this)

    def take_construction(self, this: ProjectClass) -> None:
        """Take what runs when an object of a class is made."""
        self._take_heads(this)
        for name in _CONSTRUCTORS:
            for cls in self.resolver.order(this):
                if name in cls.body.bindings:
                    self._take_own(cls, name, this)
                    break

    def take_class(self, this: ProjectClass, where: str = "", why: str = "") -> None:
        """Take all members of a class and of its bases; unless it was named, say where and why."""
        if why:
            self._of_class.setdefault(this.name, set()).add(_sentence(where, why, this.name))
        else:
            self._named.add(this.name)
        if self._is_new("class", this.name):
            self._take_heads(this)
            for cls in self.resolver.order(this):
                for name in cls.body.bindings:
                    self._take_own(cls, name, this)

    def take_module(self, module: Module, where: str, why: str) -> None:
        """Take a whole module, and say where and why."""
        whole = f"{module.name}:*"
        if where != whole:
            self.note(_sentence(where, why, module.name))
        if not self._is_new("module", module.name):
            return
        self._enter(module)
        place = Place(module, whole)
        self._take(whole, module.body.statements, place)
        for name in module.body.bindings:
            for found in self.resolver.find(module, (name,)):
                if found.path or found.star or module.is_package:
                    self._use(found, Mention("module", (name,)), place)

    def take_building(self, module: Module, name: str, this: ProjectClass) -> None:
        """Take the statements that make an object under a name, without its other stages."""
        where = f"{module.name}:{name}"
        self.take_construction(this)
        statements = module.body.makers(name)
        self._write(where, statements)
        for mention in (mention for one in statements for mention in one.scan.mentions):
            if mention.path[:1] != (name,):
                self._todo.append(((mention,), Place(module, where, None, this, builds=True)))
            elif len(mention.path) > 1:
                self.take_member(this, mention.path[1], where, reads=mention.how != "set")

    def _follow(self, mention: Mention, place: Place) -> None:
        this, name = place.this, mention.path[0] if mention.path else ""
        if mention.how == "computed":
            self._widen(mention, place)
        elif mention.origin in (SELF, SUPER):
            if this is not None and name:
                above = place.owner if mention.origin == SUPER else None
                self.take_member(this, name, place.where, above=above, reads=_reads(mention))
            elif this is not None:
                self.take_class(this, place.where, _AS_A_WHOLE)
        elif (
            mention.origin == "class" and this and place.owner and name in place.owner.body.bindings
        ):
            self.take_member(this, name, place.where)
        else:
            for found in self._find(mention, place):
                self._use(found, mention, place)

    def _find(self, mention: Mention, place: Place) -> list[Found]:
        if isinstance(mention.origin, Import):
            return self.resolver.follow(place.module, mention.origin, mention.path)
        if mention.origin in ("module", "class"):
            return self.resolver.find(place.module, mention.path)
        return []

    def _use(self, found: Found, mention: Mention, place: Place) -> None:
        """Take a definition that code elsewhere mentions, or the part of it that is mentioned."""
        if not found.path:
            how = "takes names by a star import" if found.star else "uses a module as a whole"
            self.take_module(found.module, found.star or place.where, how)
            return
        name, *rest = found.path
        cls = self.resolver.class_at(found.module, name)
        if cls is None:
            self._enter(found.module)
            self.take_name(found.module, name, reads=mention.how in ("read", "computed"))
        elif place.this is not None and cls in self.resolver.order(place.this):
            if rest:
                self.take_member(place.this, rest[0], place.where)
            elif not place.builds:
                self.take_class(cls)
        elif rest and is_exact(cls, rest[0]):
            self.take_member(cls, rest[0], place.where)
        else:
            self.take_class(cls)

    def _widen(self, mention: Mention, place: Place) -> None:
        """Take the whole of what a computed name may be a part of."""
        if mention.origin == SELF and place.this is not None:
            if not mention.path:
                self.take_class(place.this, place.where, mention.note)
                return
            self.take_member(place.this, mention.path[0], place.where)
        found = self._find(mention, place)
        unclear = not found and mention.origin in (SELF, SUPER, UNKNOWN)
        for one in found:
            if one.path:
                self._use(one, mention, place)
                unclear |= self.resolver.class_at(one.module, ".".join(one.path)) is None
            else:
                self.take_module(one.module, place.where, mention.note)
        if unclear:
            self.take_module(place.module, place.where, mention.note)

    def _take_unknown(self, this: ProjectClass, name: str, where: str) -> None:
        """Take what answers for a member that no class of the project defines."""
        hooks = False
        for cls in self.resolver.order(this):
            for hook in {"__getattr__", "__getattribute__"} & cls.body.bindings.keys():
                self._take_own(cls, hook, this)
                hooks = True
        if name == "__dict__":
            self.take_class(this, where, _AS_A_WHOLE)
        elif not hooks and not hasattr(object, name) and self.resolver.is_closed(this):
            self.take_class(this, where, f"uses self.{name}, which its class does not set")

    def _take_own(self, owner: ProjectClass, name: str, this: ProjectClass) -> None:
        """Take a member that stands in the body of a class, as an object of `this` sees it."""
        where = f"{owner.name}.{name}"
        if self._is_new("member", where, this.name):
            self._enter(owner.module)
            place = Place(owner.module, where, owner, this)
            self._take(where, owner.body.bindings[name], place)

    def _take_heads(self, this: ProjectClass) -> None:
        """Take decorators, arguments and changes of a class and of its bases."""
        for cls in self.resolver.order(this):
            if self._is_new("head", cls.name, this.name):
                self._enter(cls.module)
                place = Place(cls.module, cls.name, cls, this, builds=True)
                parts = [cls.statement.head, *cls.changes, *cls.body.effects]
                self._take(cls.name, parts, place)

    def _enter(self, module: Module) -> None:
        """Take what importing a module does besides making names, its packages included."""
        if not self._is_new("enter", module.name):
            return
        if parent := self.project.find(module.name.rpartition(".")[0]):
            self._enter(parent)
        where = f"{module.name}:<module>"
        if module.body.effects:
            self._take(where, module.body.effects, Place(module, where))
        if module.unparsed:
            self.units[where] = module.unparsed
            self.note(f"{module.name} cannot be parsed as Python; its bytes were taken instead.")
        for name, targets in module.body.imports.items():
            for target in targets:
                self._take_effect_import(module, name, target)

    def _take_effect_import(self, module: Module, name: str, target: Import) -> None:
        """Take a module that is imported under a name that nothing mentions: for its effects."""
        if name == "*" or (module.is_package and target.attribute is not None):
            return
        for found in self.resolver.follow(module, target.loaded, ()):
            if not found.path and not module.uses(name):
                why = f"imports {found.module.name} without using the name"
                self.take_module(found.module, module.name, why)

    def _take(self, where: str, statements: Sequence[Statement], place: Place) -> None:
        self._write(where, statements)
        self._todo += [(statement.scan.mentions, place) for statement in statements]

    def _write(self, where: str, statements: Sequence[Statement]) -> None:
        self.units[where] = "".join(statement.text for statement in statements)

    def _is_new(self, *key: str) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


def _reads(mention: Mention) -> bool:
    """Whether a member of `self` is read: `self.a.b = 1` reads `a`, and `self.a = 1` does not."""
    return mention.how != "set" or len(mention.path) > 1


def _sentence(where: str, why: str, taken: str) -> str:
    return f"{where} {why}; all of {taken} was taken instead."
