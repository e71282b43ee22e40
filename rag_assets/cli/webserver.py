"""Where the Dagster webserver listens, and what `ui` asks of it."""

from __future__ import annotations

import errno
import json
import socket
import urllib.request
from typing import Any

from rag_assets.cli.servers import DEFAULT_PORT
from rag_assets.contracts.errors import InputError

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_OUR_ERRORS = "rag_assets.contracts.errors.InputError: "
_OUTCOME = """
    locationOrLoadError { ... on PythonError { message causes { message } } }
"""
_LOCATIONS = f"""
{{ workspaceOrError {{ ... on Workspace {{ locationEntries {{ {_OUTCOME} }} }} }} }}
"""
_RELOAD = f"""
mutation Reload($name: String!) {{
  reloadRepositoryLocation(repositoryLocationName: $name) {{
    ... on WorkspaceLocationEntry {{ {_OUTCOME} }}
  }}
}}
"""


def choose_port(host: str, wanted: int | None) -> int:
    """A port that nobody listens on.

    Args:
        host: the address to listen on.
        wanted: the port that was asked for; None for 3000, or any free one when it is taken.

    Raises:
        InputError: the wanted port is taken, or nobody may listen on it or on this host.
    """
    if wanted is not None:
        if not _is_free(host, wanted):
            raise InputError(
                f"Port {wanted} is taken. Name another one, or none for a port that is free."
            )
        return wanted
    return DEFAULT_PORT if _is_free(host, DEFAULT_PORT) else _any_port(host)


class Webserver:
    """A webserver of Dagster with one code location.

    Args:
        host: the address that it listens on.
        port: 1 … 65535.
        location: the name of the code location.

    Attributes:
        host, port: as given.
        url: where a browser on this machine finds it.
    """

    def __init__(self, host: str, port: int, location: str) -> None:
        self.host = host
        self.port = port
        self.url = _url(host, port)
        self._location = location
        # The server is on this machine, and no proxy stands in between.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            with self._opener.open(f"{self.url}/server_info", timeout=5):
                return True
        except OSError:
            return False

    def load_error(self) -> str | None:
        """Why the project could not be loaded; None when it was."""
        (entry,) = self._ask(_LOCATIONS, {})["workspaceOrError"]["locationEntries"]
        return _message(entry)

    def reload(self) -> str | None:
        """Load the project again, and say why it could not be loaded, or None."""
        return _message(self._ask(_RELOAD, {"name": self._location})["reloadRepositoryLocation"])

    def _ask(self, query: str, variables: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.url}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with self._opener.open(request) as answer:
            return json.load(answer)["data"]


def _url(host: str, port: int) -> str:
    name = _EVERYWHERE.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _message(entry: dict[str, Any]) -> str | None:
    error = entry["locationOrLoadError"]
    if "message" not in error:
        return None
    # Dagster wraps what was raised; the innermost error is ours or the user's.
    messages = [error["message"], *(cause["message"] for cause in error["causes"])]
    return str(messages[-1]).strip().removeprefix(_OUR_ERRORS)


def _is_free(host: str, port: int) -> bool:
    try:
        _bind(host, port).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise InputError(f"Nothing can listen on {host}, port {port}: {error.strerror}.") from None
    return True


def _any_port(host: str) -> int:
    with _bind(host, 0) as bound:
        port: int = bound.getsockname()[1]
        return port


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        # As the webserver does; otherwise a port that was closed a moment ago would be taken.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
