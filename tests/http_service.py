"""A real HTTP server on loopback that answers as it is told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def closed_port() -> int:
    """A port on loopback that nobody answers at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """An answer: a body that is no text or bytes is sent as JSON."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Callable[[], Iterator[bytes]] | None = None
    """Sends the body piece by piece, and ends the connection."""


@dataclass
class Service:
    """A running service.

    Attributes:
        url: where it answers.
        asked: the requests so far.
        connections: how many were opened.
    """

    url: str
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0


@contextmanager
def serving_http(answer: Callable[[Asked], Reply]) -> Iterator[Service]:
    """Serve until the block ends; `answer` is called in a thread for each connection."""
    service = Service("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            service.connections += 1
            super().setup()

        def do_GET(self) -> None:
            self.handle_request()

        def do_POST(self) -> None:
            self.handle_request()

        def do_PUT(self) -> None:
            self.handle_request()

        def handle_request(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw) if raw else None
            asked = Asked(self.command, self.path, dict(self.headers), body)
            service.asked.append(asked)
            self.send(answer(asked))

        def send(self, reply: Reply) -> None:
            is_raw = isinstance(reply.body, (bytes, str))
            text = reply.body if is_raw else json.dumps(reply.body)
            data = text if isinstance(text, bytes) else text.encode("utf-8")
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.pieces is not None:
                self.close_connection = True
                self.end_headers()
                self.send_pieces(reply.pieces())
                return
            if reply.status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def send_pieces(self, pieces: Iterator[bytes]) -> None:
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                pass  # The client has gone.

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        service.url = f"http://127.0.0.1:{server.server_port}/answer"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
