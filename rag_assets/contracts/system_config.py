"""The key `system` of the config file: what is evaluated, and how it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field

from rag_assets.contracts.errors import Problem, nearest
from rag_assets.contracts.http_config import HttpSettings, check_http
from rag_assets.contracts.kinds import must_be_kind
from rag_assets.contracts.paths import value_at
from rag_assets.contracts.recorded_config import RecordedSettings
from rag_assets.contracts.text import shown
from rag_assets.contracts.timing import Retries, Seconds
from rag_assets.contracts.validation import (
    FileModel,
    NonEmpty,
    PositiveInt,
    Reference,
    Texts,
    is_reference,
)
from rag_assets.contracts.yaml_source import YamlSource

SystemKind = Literal["rag", "callable", "http", "recorded"]
SYSTEM_KINDS: tuple[SystemKind, ...] = ("rag", "callable", "http", "recorded")


class FileVersion(FileModel):
    """The index version is the trimmed content of a file, relative to the config file."""

    file: Path


class CallableVersion(FileModel):
    """The index version is the string that a function returns."""

    callable: Reference


def _index_version(value: Any) -> Any:
    match value:
        case None | FileVersion() | CallableVersion():
            return value
        case str() if value:
            return value
        case {"file": str(file)} if file and len(value) == 1:
            return FileVersion(file=Path(file))
        case {"callable": str(reference)} if is_reference(reference) and len(value) == 1:
            return CallableVersion(callable=reference)
    raise ValueError(
        "must be a string (numbers in quotes), {file: path} or {callable: module:function}, "
        f"got {shown(value)}"
    )


IndexVersion = Annotated[
    str | FileVersion | CallableVersion | None, BeforeValidator(_index_version)
]


class RagSettings(FileModel):
    """`system.rag`: a staged system. What is None is left to the class decorator."""

    object: Reference = Field(description="the staged system, as module:attribute")
    depth: PositiveInt | None = None
    top_k: PositiveInt | None = None
    token_budget: PositiveInt | None = None
    index_version: IndexVersion = None


class SystemConfig(FileModel):
    """`system`: what is evaluated. Exactly one of `rag`, `callable`, `http`, `recorded` is set."""

    name: NonEmpty = Field(description="a name for the system, part of every identity")
    version: NonEmpty | None = None
    rag: RagSettings | None = None
    callable: Reference | None = None
    http: HttpSettings | None = None
    recorded: RecordedSettings | None = None
    config: Mapping[str, Any] | None = None
    code_paths: Texts = ()
    timeout_s: Seconds = 120.0
    retries: Retries = Retries()
    records: Annotated[
        tuple[Annotated[str, AfterValidator(must_be_kind)], ...] | None, Field(strict=False)
    ] = None
    on_malformed: Literal["stop", "missing"] = "stop"

    @property
    def kind(self) -> SystemKind:
        """Which of the four kinds of system is declared."""
        return next(kind for kind in SYSTEM_KINDS if getattr(self, kind) is not None)

    @property
    def staged(self) -> RagSettings:
        """The settings of a staged system; only asked for where `kind` is `rag`."""
        return cast(RagSettings, self.rag)


def check_system(source: YamlSource, problems: list[Problem]) -> None:
    """Append what is wrong with `system` as a whole: types are the model's affair.

    Args:
        source: the config file.
        problems: the list to append to.
    """
    system = source.content.get("system")
    if not isinstance(system, dict):
        return
    kinds = _kinds(system)
    if len(kinds) > 1:
        message = f"system holds {' and '.join(kinds)}; exactly one of them may stand here."
        problems.append(source.problem("system", message))
    elif not kinds and not _is_misspelt(system):
        message = f"system needs exactly one of {', '.join(SYSTEM_KINDS)}."
        problems.append(source.problem("system", message))
    elif len(kinds) == 1:
        for key, message in _misplaced(kinds[0], system):
            problems.append(source.problem(f"system.{key}", message))
    if isinstance(system.get("http"), dict):
        check_http(source, problems)


def declared_kind(source: YamlSource) -> SystemKind | None:
    """The kind of system that a config file declares; None where that is not plain."""
    system = source.content.get("system")
    kinds = _kinds(system) if isinstance(system, dict) else []
    return kinds[0] if len(kinds) == 1 else None


def _kinds(system: Mapping[str, Any]) -> list[SystemKind]:
    return [kind for kind in SYSTEM_KINDS if system.get(kind) is not None]


def _is_misspelt(system: Mapping[str, Any]) -> bool:
    unknown = [name for name in system if name not in SystemConfig.model_fields]
    return any(nearest(name, SYSTEM_KINDS) for name in unknown)


def _misplaced(kind: SystemKind, system: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """What may not stand beside a kind of system, or must."""
    if kind != "callable" and system.get("records") is not None:
        places = {
            "rag": "a staged system records what its stages return",
            "http": "name the artifacts of a response in system.http.artifacts",
            "recorded": "what a file of results records is read from its columns",
        }
        yield "records", f"records belongs to a callable; {places[kind]}. Remove it."
    if kind in ("http", "recorded") and system.get("code_paths"):
        yield (
            "code_paths",
            f"code_paths adds to the code of a system, and {kind} has none here. Remove it.",
        )
    if kind == "http":
        for key in ("retries", "http.retries"):
            retries = value_at(system, key)
            if isinstance(retries, dict) and retries.get("retry_on"):
                message = (
                    "retry_on names exceptions of your own code. What is retried over HTTP is "
                    "408, 429, 500 and above, time-outs and failed connections. Remove it."
                )
                yield f"{key}.retry_on", message
    if kind == "http" and system.get("version") is None:
        message = (
            "version is required for http: there is no code to look at. Say which version of the "
            "service answers, and change it with every deployment."
        )
        yield "version", message
