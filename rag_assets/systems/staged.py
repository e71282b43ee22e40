"""A staged system: the user's `retrieve` and `generate`, with the settings that apply."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.fingerprint import CodeDigest, code_digest
from rag_assets.contracts.loading import load_object, user_frames
from rag_assets.systems.code_files import code_files
from rag_assets.systems.declaration import ATTRIBUTE, Declaration
from rag_assets.systems.index_version import resolve_index_version
from rag_assets.systems.reporting import (
    Report,
    check_declared_config,
    check_declared_text,
    reporter,
)
from rag_assets.systems.signatures import accepts, takes_seed

STAGE_FUNCTIONS = ("retrieve", "generate", "count_tokens")


@dataclass(frozen=True)
class StagedSystem:
    """The loaded system of a project.

    Attributes:
        name, version, config: parts of every identity.
        depth, top_k: ints ≥ 1, top_k ≤ depth.
        token_budget: int ≥ 1, or None for no limit.
        index_version: the resolved string, or None when nothing declares one.
        citations_path: dotted path in the output, or None.
        instance: the user's object.
        code: digest of what each stage function reaches.
    """

    name: str
    version: str | None
    config: Mapping[str, Any]
    depth: int
    top_k: int
    token_budget: int | None
    index_version: str | None
    citations_path: str | None
    instance: Any
    code: Mapping[str, CodeDigest]

    @property
    def declared_name(self) -> str | None:
        """The name in the decorator, which the config's replaces; None without one."""
        return _declared(self.instance).name

    def function(self, stage: str) -> Callable[..., Any]:
        """The user's bound function of a stage."""
        function: Callable[..., Any] = getattr(self.instance, stage)
        return function

    def is_async(self, stage: str) -> bool:
        """Whether the stage is a coroutine function.

        What a decorator wraps does not matter: its own function is the one that is called.
        """
        return inspect.iscoroutinefunction(self.function(stage))

    def takes_seed(self, stage: str) -> bool:
        """Whether the stage has a parameter named `seed`."""
        return takes_seed(self.function(stage))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every part of the system identity, as JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "config": self.config,
            "depth": self.depth,
            "top_k": self.top_k,
            "token_budget": self.token_budget,
            "index_version": self.index_version,
            "citations_path": self.citations_path,
            "code": {stage: code.digest for stage, code in sorted(self.code.items())},
        }

    @cached_property
    def identity(self) -> str:
        """Digest of `settings`: two systems with one identity are the same system."""
        return digest(self.settings)


def _declared(instance: Any) -> Declaration:
    return getattr(type(instance), ATTRIBUTE, None) or Declaration()


def load_staged(config: Config, name: str, problems: list[Problem]) -> StagedSystem | None:
    """Import and check the system that a config names.

    Args:
        config: the parsed config.
        name: how messages name the config file.
        problems: what is wrong is appended here, with the line of the key concerned.

    Returns:
        The system, or None when anything was wrong.
    """
    settings = config.system.staged
    report = reporter(config, name, problems)
    before = len(problems)
    instance = _instance(settings.object, config.root, report)
    if len(problems) > before:
        return None
    declared = _declared(instance)
    _check_declaration(declared, report)
    depth = settings.depth if settings.depth is not None else declared.depth
    top_k = settings.top_k if settings.top_k is not None else declared.top_k
    budget = settings.token_budget if settings.token_budget is not None else declared.token_budget
    for key, value in (("depth", depth), ("top_k", top_k), ("token_budget", budget)):
        if value is None and key != "token_budget":
            report(f"rag.{key}", f"is not set: write {key} here or in the decorator.")
        elif value is not None and (type(value) is not int or value < 1):
            report(f"rag.{key}", f"must be a whole number ≥ 1, got {value!r} in the decorator.")
    if len(problems) == before and depth is not None and top_k is not None and top_k > depth:
        report("rag.top_k", f"is {top_k}, more than the depth {depth}; use at most {depth}.")
    _check_functions(settings.object, instance, budget, report)
    if len(problems) > before:
        return None
    assert depth is not None
    assert top_k is not None
    files = code_files(config, report)
    version: str | None = None
    try:
        version = resolve_index_version(
            settings.index_version or declared.index_version, config.root
        )
    except InputError as error:
        report("rag.index_version", str(error))
    if len(problems) > before:
        return None
    return StagedSystem(
        name=config.system.name,
        version=config.system.version or declared.version,
        config=declared.config if config.system.config is None else config.system.config,
        depth=depth,
        top_k=top_k,
        token_budget=budget,
        index_version=version,
        citations_path=declared.citations_path,
        instance=instance,
        code={
            stage: code_digest(getattr(instance, stage), config.root, extra_files=files)
            for stage in STAGE_FUNCTIONS
            if callable(getattr(instance, stage, None))
        },
    )


def _instance(reference: str, root: Path, report: Report) -> Any:
    try:
        loaded = load_object(reference, root)
        return loaded() if inspect.isclass(loaded) else loaded
    except InputError as error:
        report("rag.object", str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        report("rag.object", f"{reference} cannot be constructed.\n{_why(loaded, error, root)}")
    return None


def _why(loaded: Any, error: BaseException, root: Path) -> str:
    """Why a class could not be constructed, without frames of ours."""
    try:
        inspect.signature(loaded).bind()
    except (TypeError, ValueError) as unfit:
        needed = str(unfit).removeprefix("missing a ").replace(": ", " ")
        return f"It must be constructible without arguments, but has a {needed}."
    return user_frames(error, root)


def _check_declaration(declared: Declaration, report: Report) -> None:
    """What only the decorator declares, or what the config may take over as it is."""
    for key in ("version", "index_version", "citations_path"):
        check_declared_text("rag.object", key, getattr(declared, key), report)
    check_declared_config("rag.object", declared.config, report)


def _check_functions(reference: str, instance: Any, budget: int | None, report: Report) -> None:
    for stage, shape in (("retrieve", "input, depth"), ("generate", "input, context")):
        function = getattr(instance, stage, None)
        if not callable(function):
            report("rag.object", f"{reference} has no method {stage}({shape}).")
        elif not accepts(function, 2):
            found = inspect.signature(function)
            report(
                "rag.object",
                f"{reference} has {stage}{found}, which cannot be called as {stage}({shape}).",
            )
    counter = getattr(instance, "count_tokens", None)
    if budget is None:
        return
    if not callable(counter):
        report(
            "rag.token_budget",
            f"needs {reference}.count_tokens(passage), which returns an int; "
            "add the method or remove the budget.",
        )
    elif inspect.iscoroutinefunction(counter):
        report(
            "rag.token_budget", f"needs {reference}.count_tokens to be a plain function, not async."
        )
