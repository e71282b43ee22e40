"""A service that is called over HTTP as the system."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import ArtifactError, Problem
from rag_assets.contracts.http_config import HttpSettings, described, header_problem
from rag_assets.contracts.kinds import RETRIEVAL, json_copy, recorded_artifact
from rag_assets.contracts.paths import NOTHING, value_at
from rag_assets.contracts.secrets import Secrets, references, substituted
from rag_assets.contracts.system_config import SystemKind
from rag_assets.contracts.template import TemplateError, placeholders, render
from rag_assets.contracts.text import shown
from rag_assets.systems.attempts import CallError
from rag_assets.systems.blackbox import BlackBox, Execution
from rag_assets.systems.connections import Connections
from rag_assets.systems.reporting import Report, reporter
from rag_assets.systems.retry_after import retry_after_s

if TYPE_CHECKING:
    import httpx

EXCERPT = 500
"""Characters of a body that an error shows."""

_NOT_JSON = object()


class HttpError(CallError):
    """A request has no usable answer.

    Args:
        message: what came back.
        status: the status of the answer, None where there was no answer.
        may_pass: whether another attempt can succeed.
        wait_s: the least seconds to wait before it.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        may_pass: bool = False,
        wait_s: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.may_pass = may_pass
        self.wait_s = wait_s


@dataclass(frozen=True, kw_only=True)
class HttpSystem(BlackBox):
    """One request for each case. What is secret is neither printed nor part of the identity.

    Attributes:
        http: the settings as the config has them.
        headers: as they are sent.
        secrets: what is masked in everything that comes back.
        connections: the clients, shared by the calls of a run.
    """

    kind: ClassVar[SystemKind] = "http"
    retries_timeouts: ClassVar[bool] = True

    http: HttpSettings
    headers: Mapping[str, str] = field(repr=False)
    secrets: Secrets = field(repr=False, compare=False)
    connections: Connections = field(default_factory=Connections, repr=False, compare=False)

    @property
    def is_async(self) -> bool:
        """Requests are made on the loop."""
        return True

    @property
    def takes_seed(self) -> bool:
        """Whether the body holds the seed."""
        return "seed" in placeholders(self.http.body)

    @property
    def own_settings(self) -> Mapping[str, Any]:
        """What is asked, and what is read from the answer."""
        return {"http": described(self.http)}

    def execution_of(self, case: Case, sample: int = 0) -> str:
        """Identity of the execution of a case; its id is part of it only when it is sent."""
        key = super().execution_of(case, sample)
        return digest([key, case.id]) if "case.id" in placeholders(self.http.body) else key

    async def invoke(self, case: Case) -> Any:
        """Send the request and return the body of the answer.

        Raises:
            HttpError: the answer is an error, is not JSON, or did not come.
        """
        import httpx

        http = self.http
        try:
            body = case.input if http.body is None else render(http.body, case, self.seed)
        except TemplateError as error:
            raise HttpError(str(error)) from None
        try:
            response = await self.connections.client().request(
                http.method, http.url, json=body, headers=self.headers
            )
        except httpx.RequestError as error:
            # Decided on the type: a request that cannot be made is not made again.
            may_pass = isinstance(error, (httpx.NetworkError, httpx.RemoteProtocolError))
            raise HttpError(self._unanswered(error), may_pass=may_pass) from None
        return self.secrets.masked_json(self._content(response))

    def accept(self, value: Any) -> Execution:
        """The output and the artifacts in the body of an answer.

        A retrieval may say what came of it: where its `state` is `denied`, access was refused, and
        nothing else is owed.

        Raises:
            ArtifactError: there is nothing at a path, or what is there is malformed.
        """
        output = self._part(value, "output", self.http.output_path)
        paths = self.http.artifacts
        is_denied = RETRIEVAL in paths and _is_denied(value_at(value, paths[RETRIEVAL]))
        artifacts = {
            kind: recorded_artifact(kind, _stateless(kind, self._part(value, kind, path)))
            for kind, path in paths.items()
            if not is_denied or value_at(value, path) is not NOTHING
        }
        return Execution.of(output, artifacts, declared=self.records, is_denied=is_denied)

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self.connections.close()

    def _part(self, body: Any, name: str, path: str | None) -> Any:
        found = value_at(body, path)
        if found is NOTHING:
            raise ArtifactError(name, f'is absent: the response has nothing at "{path}"')
        try:
            return json_copy(found)
        except ArtifactError as error:
            raise ArtifactError(f"{name} {error.field}".rstrip(), error.message) from None

    def _unanswered(self, error: httpx.RequestError) -> str:
        text = self.secrets.masked(str(error))
        what = ": ".join(part for part in (type(error).__name__, text) if part)
        return f"no answer from {self.http.url} ({what})"

    def _content(self, response: httpx.Response) -> Any:
        status = response.status_code
        if 200 <= status < 300 and status != 204:
            content = _parsed(response.content)
            if content is not _NOT_JSON:
                return content
        may_pass = status in (408, 429) or status >= 500
        raise HttpError(
            f"{_told(status)}: {self._excerpt(response)}".rstrip(": "),
            status=status,
            may_pass=may_pass,
            wait_s=retry_after_s(response.headers) if may_pass else 0.0,
        )

    def _excerpt(self, response: httpx.Response) -> str:
        # Masked before it is cut: half a secret would not be found any more.
        text = self.secrets.masked(response.text)[:EXCERPT]
        return "".join(
            char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text
        )


def _is_denied(retrieval: Any) -> bool:
    return isinstance(retrieval, dict) and retrieval.get("state") == "denied"


def _stateless(kind: str, artifact: Any) -> Any:
    """An artifact without the state that a retrieval may have.

    Raises:
        ArtifactError: the state is none, or says something else than the candidates.
    """
    if kind != RETRIEVAL or not isinstance(artifact, dict) or "state" not in artifact:
        return artifact
    rest = {name: part for name, part in artifact.items() if name != "state"}
    state, has_candidates = artifact["state"], bool(rest.get("candidates"))
    if state == "denied":
        # The depth need not be said, and is not kept.
        return {"query": None, "depth": 1, "candidates": [], **rest}
    if state not in ("valid", "empty"):
        message = f"must be valid, empty or denied, got {shown(state)}"
        raise ArtifactError(f"{RETRIEVAL} state", message)
    if has_candidates != (state == "valid"):
        there = "there are candidates" if has_candidates else "there is no candidate"
        raise ArtifactError(f"{RETRIEVAL} state", f"is {state}, and {there}")
    return rest


def _told(status: int) -> str:
    """What is wrong with an answer of this status that has no content for us."""
    if status == 204:
        return "status 204 has no body"
    if 300 <= status < 400:
        return f"status {status} is a redirect, and none is followed"
    return f"status {status}" if status >= 400 else f"status {status}, and the body is not JSON"


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def load_http(config: Config, name: str, problems: list[Problem]) -> HttpSystem | None:
    """Make the system of `system.http`; nothing is sent.

    Args:
        config: the parsed config.
        name: how messages name the config file.
        problems: what is wrong is appended here, with the line of the key concerned.

    Returns:
        The system, or None when an environment variable is not set or cannot be sent.
    """
    settings, before = config.system, len(problems)
    http = settings.http
    assert http is not None
    headers = _headers(http, reporter(config, name, problems))
    if len(problems) > before:
        return None
    named = {name for value in http.headers.values() for name in references(value)}
    return HttpSystem(
        name=settings.name,
        version=settings.version,
        config=settings.config or {},
        records=frozenset(http.artifacts),
        timeout_s=http.timeout_s or settings.timeout_s,
        retries=(http.retries or settings.retries).for_http(),
        seed=config.seed,
        http=http,
        headers=headers,
        secrets=Secrets(os.environ[name] for name in named),
    )


def _headers(http: HttpSettings, report: Report) -> dict[str, str]:
    """The headers as they are sent. No message repeats a value."""
    made: dict[str, str] = {}
    for name, written in http.headers.items():
        absent = [one for one in references(written) if not os.environ.get(one)]
        for one in absent:
            report(
                f"http.headers.{name}",
                f"needs the environment variable {one}, which is not set or empty.",
            )
        if absent:
            continue
        value = substituted(written, os.environ)
        problem = header_problem(value)
        if problem is not None:
            report(f"http.headers.{name}", f"{problem} (in the environment variables it names).")
        made[name] = value
    return made
