"""Dagster instances of test projects.

Dagster takes as long to make a new instance as to run three cases. So one is made, and the others
are copies of it.
"""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import dagster as dg

from rag_assets.assets.instance import open_instance, release_sqlite
from rag_assets.evaluation.places import CONFIG_FILE, load_config, state_folder

ANY_PROJECT = {
    "cases.jsonl": '{"id": "one", "input": "?"}\n',
    CONFIG_FILE: """
project: any
dataset: cases.jsonl
system: {name: any, version: "1", http: {url: "http://127.0.0.1:9/"}}
evaluators: [{type: json_valid, criterion: any}]
""",
}


def give_instance(root: Path) -> None:
    """Let a project have its instance, if there is none, as a command would have left it."""
    home = state_folder(root) / "dagster"
    if home.exists():
        return
    shutil.copytree(_unused_instance(), home)
    with closing(sqlite3.connect(home / "history" / "runs.db")) as connection, connection:
        connection.execute("UPDATE instance_info SET run_storage_id = ?", [str(uuid.uuid4())])


@contextmanager
def instance_of(root: Path) -> Iterator[dg.DagsterInstance]:
    """The instance of a project, open during the block."""
    give_instance(root)
    try:
        with open_instance(load_config(root / CONFIG_FILE)) as instance:
            yield instance
    finally:
        release_sqlite()


@cache
def _unused_instance() -> Path:
    """A folder with the databases of a new instance; what is set in it follows the project."""
    root = Path(tempfile.mkdtemp(prefix="rag_assets_instance_"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for name, text in ANY_PROJECT.items():
        (root / name).write_text(text, encoding="utf-8")
    with open_instance(load_config(root / CONFIG_FILE)):
        pass
    release_sqlite()
    home = state_folder(root) / "dagster"
    (home / "dagster.yaml").unlink()
    return home
