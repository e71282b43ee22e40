"""HTTP clients, one for each event loop, with connections that the calls of a run share."""

from __future__ import annotations

import asyncio
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


class Connections:
    """Clients that are made when they are first needed, and closed at the end of a run."""

    def __init__(self) -> None:
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def client(self) -> httpx.AsyncClient:
        """The client of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = _new_client()
        return self._clients[loop]

    async def close(self) -> None:
        """Close the client of the running loop; those of loops that were left are forgotten."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        self._clients.clear()
        if client is not None:
            await client.aclose()


def _new_client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        # The window of calls bounds how many there are, and keeps the time.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
        timeout=None,
        # No proxy and no password from the environment: only the config says what is sent.
        trust_env=False,
        # A cookie of one case must not reach the next one.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
    )
