"""The same service over HTTP: `python server.py 8766`, and then, in another terminal,

rag-assets run --config rag_assets.http.yaml
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app import evidence, result, support_api


class Handler(BaseHTTPRequestHandler):
    """Answers `POST /answer` with a body like {"question": "How long does a link work?"}."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/answer":
            self.reply(404, {"error": "post to /answer"})
            return
        try:
            question = json.loads(body)["question"]
        except (ValueError, TypeError, KeyError):
            self.reply(400, {"error": 'send {"question": "..."}'})
            return
        reply = support_api(question)
        self.reply(200, {"result": result(reply), "evidence": evidence(question, reply)})

    def reply(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of single requests."""


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("Name the port: python server.py 8766")
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/answer (end with Ctrl-C)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
