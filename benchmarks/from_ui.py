"""Materialising all assets of a project through the UI's own server and daemon, as a click does."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measuring import RAG_ASSETS
from rag_assets.evaluation.words import STAGES

PATIENCE_S = 600
_LAUNCH = """
mutation ($keys: [AssetKeyInput!]!) {
  launchPartitionBackfill(backfillParams: {assetSelection: $keys, allPartitions: true}) {
    ... on LaunchBackfillSuccess { backfillId }
  }
}
"""
_LOOK = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { status } } } }"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def materialize_all(folder: Path, suite: str) -> None:
    """Launch a backfill of all cases, and wait until it has ended.

    Args:
        folder: the project's.
        suite: the name of its assets' group.
    """
    with _serving(folder) as url:
        keys = [{"path": [suite, stage]} for stage in STAGES]
        launched = _ask(url, _LAUNCH, keys=keys)["launchPartitionBackfill"]
        if "backfillId" not in launched:
            raise SystemExit(f"Dagster has launched nothing: {launched}.")
        deadline = time.monotonic() + PATIENCE_S
        while (status := _status(url)) != "COMPLETED_SUCCESS":
            if "FAILED" in status or time.monotonic() > deadline:
                raise SystemExit(f"The backfill has not ended well: {status}.")
            time.sleep(0.5)


def _status(url: str) -> str:
    (backfill,) = _ask(url, _LOOK)["partitionBackfillsOrError"]["results"]
    return str(backfill["status"])


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """`rag-assets ui`, which has ended after the block; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*RAG_ASSETS, "ui", "--port", str(port)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(server, url)
        yield url
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)


def _wait_for(server: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            _ask(url, "{ version }")
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"rag-assets ui does not answer on {url}.") from None
            time.sleep(0.2)


def _ask(url: str, query: str, **variables: Any) -> Any:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with _OPENER.open(request, timeout=PATIENCE_S) as answer:
        document = json.load(answer)
    if "errors" in document:
        raise SystemExit(f"Dagster's GraphQL says: {document['errors']}")
    return document["data"]
