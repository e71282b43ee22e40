"""A Python function as the system."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_assets.contracts.canonical import NotJsonError, canonical_json
from rag_assets.contracts.cases import Case
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import InputError, Problem
from rag_assets.contracts.fingerprint import code_digest
from rag_assets.contracts.kinds import kind_problem
from rag_assets.contracts.loading import load_object
from rag_assets.contracts.system_config import SystemKind
from rag_assets.systems.blackbox import BlackBox, Execution
from rag_assets.systems.code_files import code_files
from rag_assets.systems.current import current_case
from rag_assets.systems.declaration import CALLABLE_ATTRIBUTE, CallableDeclaration
from rag_assets.systems.reporting import (
    Report,
    check_declared_config,
    check_declared_text,
    reporter,
)
from rag_assets.systems.signatures import accepts, takes_seed


@dataclass(frozen=True, kw_only=True)
class CallableSystem(BlackBox):
    """A function that gets the input of a case and returns its output.

    Attributes:
        function: the user's function, called with a copy of the input.
    """

    kind: ClassVar[SystemKind] = "callable"

    function: Callable[..., Any]

    @property
    def declared_name(self) -> str | None:
        """The name in the decorator, which the config's replaces; None without one."""
        return _declared(self.function).name

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def takes_seed(self) -> bool:
        """Whether the function has a parameter named `seed`."""
        return takes_seed(self.function)

    @property
    def own_settings(self) -> Mapping[str, Any]:
        """Nothing: its code stands in the settings of every system."""
        return {}

    def invoke(self, case: Case) -> Any:
        """Call the function with a copy, so that no case can change what the next one sees."""
        seed = {"seed": self.seed} if self.takes_seed else {}
        return self.function(deepcopy(case.input), **seed)

    def accept(self, value: Any) -> Execution:
        """The returned value, with what was recorded meanwhile.

        Raises:
            TypeError: the value is not JSON.
            ArtifactError: access was denied, and yet there are candidates.
        """
        try:
            canonical_json(value)
        except NotJsonError as error:
            place = f"{error.path}: " if error.path else ""
            message = f"{self.name} must return JSON, but {place}the value {error.message}"
            raise TypeError(message) from None
        recorder = current_case().recorder
        return Execution.of(
            value,
            recorder.artifacts,
            declared=self.records,
            repeated=recorder.repeated,
            is_denied=recorder.is_denied,
        )


def load_callable(config: Config, name: str, problems: list[Problem]) -> CallableSystem | None:
    """Import and check the function that a config names.

    Args:
        config: the parsed config.
        name: how messages name the config file.
        problems: what is wrong is appended here, with the line of the key concerned.

    Returns:
        The system, or None when anything was wrong.
    """
    settings, before = config.system, len(problems)
    reference = str(settings.callable)
    report = reporter(config, name, problems)
    try:
        function = load_object(reference, config.root)
    except InputError as error:
        report("callable", str(error))
        return None
    declared = _declared(function)
    _check_function(reference, function, report)
    _check_declaration(declared, report)
    version = settings.version or declared.version
    if version is None and _hides_its_code(function):
        report(
            "version",
            f"is required, because {reference} is no plain function whose code could be looked "
            "at: declare a version, and change it with the code.",
        )
    files = code_files(config, report)
    if len(problems) > before:
        return None
    given = settings.model_fields_set
    use_declared = "timeout_s" not in given and declared.timeout_s is not None
    return CallableSystem(
        name=settings.name,
        version=version,
        config=declared.config if settings.config is None else settings.config,
        records=frozenset(declared.records if settings.records is None else settings.records),
        timeout_s=float(declared.timeout_s or 0) if use_declared else settings.timeout_s,
        retries=settings.retries,
        seed=config.seed,
        code={"run": code_digest(function, config.root, extra_files=files)},
        function=function,
    )


def _declared(function: Any) -> CallableDeclaration:
    return getattr(function, CALLABLE_ATTRIBUTE, None) or CallableDeclaration()


def _hides_its_code(function: Any) -> bool:
    """Whether something that can be called is no function that could be looked at."""
    return callable(function) and not (inspect.isfunction(function) or inspect.isclass(function))


def _check_function(reference: str, function: Any, report: Report) -> None:
    if not callable(function) or inspect.isclass(function):
        what = "is a class; name a function, or an instance" if callable(function) else "is not one"
        report("callable", f"must be a function that takes the input; {reference} {what}.")
    elif not accepts(function, 1):
        found = inspect.signature(function)
        report(
            "callable",
            f"{reference}{found} cannot be called with the input of a case alone.",
        )


def _check_declaration(declared: CallableDeclaration, report: Report) -> None:
    """What the decorator declares, and the config may take over as it is."""
    timeout = declared.timeout_s
    check_declared_text("callable", "version", declared.version, report)
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and 0 < timeout < float("inf")):
        report("callable", f"timeout_s in the decorator must be above 0, got {timeout!r}.")
    for kind in declared.records:
        problem = kind_problem(kind)
        if problem is not None:
            report("callable", f"An entry of records in the decorator {problem}.")
    check_declared_config("callable", declared.config, report)
