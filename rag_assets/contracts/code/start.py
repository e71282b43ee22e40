"""From a live object to the places in the files where its code begins."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from rag_assets.contracts.code.reach import Reach
from rag_assets.contracts.code.resolve import Found, ProjectClass


def take_object(thing: Any, reach: Reach) -> list[str]:
    """Take the code that calling an object starts.

    An object is found in the files by the name that holds it: its own definition, a name of a
    module, or a class member. Decorators, and the arguments that it was made with, stand there.

    Returns:
        The names of the places where the code begins.
    """
    if isinstance(thing, MethodType):
        return _take_method(thing, reach)
    places = _definition(thing, reach) or _holders(thing, reach)
    return _take_places(places, reach) or _take_unnamed(thing, reach)


def _take_method(method: MethodType, reach: Reach) -> list[str]:
    holder, function = method.__self__, method.__func__
    kind = holder if isinstance(holder, type) else type(holder)
    cls, name = _project_class(kind, reach), _member_name(kind, function)
    places = _holders(holder, reach) if holder is not kind else []
    if cls is None or name is None:
        return _take_places(places, reach) or take_object(function, reach)
    start = f"{cls.name}.{name}"
    if any(name in one.body.bindings for one in reach.resolver.order(cls)):
        reach.take_member(cls, name, start)
    else:
        reach.take_class(cls, start, "is inherited from an installed class")
    for found in places:
        reach.take_building(found.module, found.path[0], cls)
    return [start]


def _take_places(places: list[Found], reach: Reach) -> list[str]:
    for found in places:
        reach.take(found)
    return [f"{found.module.name}:{'.'.join(found.path)}" for found in places]


def _take_unnamed(thing: Any, reach: Reach) -> list[str]:
    """Take what is known of an object that no name of the project holds."""
    qualname = getattr(thing, "__qualname__", type(thing).__qualname__)
    name = f"{getattr(thing, '__module__', '')}:{qualname}"
    why = "was made while the program ran, and no name of a module holds it"
    starts = [name]
    is_partial = isinstance(thing, functools.partial)
    inner = thing.func if is_partial else getattr(thing, "__wrapped__", None)
    cls = _project_class(type(thing), reach)
    module = None
    if isinstance(thing, FunctionType):
        module = reach.project.find(str(thing.__globals__.get("__name__", "")))
    if module is not None:
        reach.take_module(module, name, why)
    elif cls is not None:
        reach.note(f"{name} {why}; what it was made with was not taken.")
        reach.take_construction(cls)
        reach.take_member(cls, "__call__", name)
    elif inner is not None:
        reach.note(f"{name} {why}; the function in it was taken without what it was made with.")
    else:
        reach.note(f"{name} is not code of the project; only its name was taken.")
    if inner is not None:
        starts += take_object(inner, reach)
    return starts


def _definition(thing: Any, reach: Reach) -> list[Found]:
    """The place that an object names as its own, where that place really holds it."""
    module = reach.project.find(str(getattr(thing, "__module__", "")))
    path = tuple(str(getattr(thing, "__qualname__", "")).split("."))
    if module is None or path[0] not in module.body.bindings:
        return []
    live: Any = sys.modules.get(module.name)
    for name in path:
        live = inspect.getattr_static(live, name, None)
    return [Found(module, path)] if _plain(live) is thing else []


def _holders(thing: Any, reach: Reach) -> list[Found]:
    """Names in the project's modules that hold an object; imports of it are none."""
    holders: list[Found] = []
    for module_name, namespace in reach.project.loaded():
        for path in _paths_to(thing, module_name, namespace):
            module = reach.project.find(module_name)
            if module is not None and module.body.makers(path[0]):
                holders.append(Found(module, path))
    return holders


def _paths_to(thing: Any, module: str, namespace: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in list(namespace.items()):
        if value is thing:
            yield (name,)
        elif isinstance(value, type) and value.__module__ == module:
            for member, raw in vars(value).items():
                if _plain(raw) is thing:
                    yield (name, member)


def _project_class(kind: type, reach: Reach) -> ProjectClass | None:
    module = reach.project.find(kind.__module__)
    return None if module is None else reach.resolver.class_at(module, kind.__qualname__)


def _member_name(kind: type, function: Any) -> str | None:
    """The name under which a class or one of its bases holds a function."""
    for cls in kind.__mro__:
        for name, raw in vars(cls).items():
            if _plain(raw) is function:
                return name
    return None


def _plain(raw: Any) -> Any:
    return raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
