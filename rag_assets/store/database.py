"""Opening the store: one transaction, then closed again, because a DuckDB writer locks out all."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import StoreError, StoreLockedError
from rag_assets.store.reader import Reader
from rag_assets.store.schema import migrate, schema_version
from rag_assets.store.writer import Writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FIRST_WAIT_S = 0.005
_LONGEST_WAIT_S = 0.5
_CLOSING_MEMORY = "128MB"


class Store:
    """The artifact store of one project.

    Args:
        path: the DuckDB file; its folder is made when something is first written.
        lock_timeout_s: how long to wait for another process that holds the file.
    """

    def __init__(self, path: Path, *, lock_timeout_s: float = 60.0) -> None:
        self.path = path
        self._lock_timeout_s = lock_timeout_s
        self._is_current = False

    def exists(self) -> bool:
        """Whether anything was ever written."""
        return self.path.exists()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open for reading; a store that does not exist yet reads as empty.

        Raises:
            StoreLockedError: another process held it for too long.
            StoreVersionError: a newer version wrote it.
            StoreError: the file is not a DuckDB database.
        """
        if not self.exists():
            yield Reader(None)
            return
        connection = self._open(read_only=True)
        with self._closing(connection):
            if not self._is_current and schema_version(connection) == 0:
                yield Reader(None)
            else:
                yield Reader(connection, self.path)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open for one transaction: committed at the end of the block, or rolled back.

        Raises:
            StoreLockedError, StoreVersionError, StoreError: as for `reading`.
        """
        import duckdb

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be created: {error.strerror}.") from error
        connection = self._open(read_only=False)
        # What is not committed at the end is rolled back.
        with self._closing(connection):
            connection.begin()
            if not self._is_current:
                migrate(connection)
            yield Writer(connection)
            connection.commit()
            self._is_current = True
            # Closing folds new rows into the old ones, and would read all of them at once.
            with suppress(duckdb.Error):
                connection.execute(f"SET memory_limit = '{_CLOSING_MEMORY}'")

    @contextmanager
    def _closing(self, connection: DuckDBPyConnection) -> Iterator[None]:
        import duckdb

        try:
            yield
        except (duckdb.IOException, duckdb.InternalException, duckdb.FatalException) as error:
            raise StoreError(_damaged(self.path, error)) from error
        finally:
            with suppress(duckdb.Error):
                connection.close()

    def _open(self, *, read_only: bool) -> DuckDBPyConnection:
        import duckdb

        deadline = time.monotonic() + self._lock_timeout_s
        wait = _FIRST_WAIT_S
        while True:
            try:
                return duckdb.connect(str(self.path), read_only=read_only, config={"threads": "2"})
            except duckdb.Error as error:
                text = str(error)
                if not _is_lock(text):
                    raise StoreError(_damaged(self.path, error)) from error
                if time.monotonic() >= deadline:
                    raise StoreLockedError(
                        f"{self.path} has been in use by {_holder(text)} for more than "
                        f"{self._lock_timeout_s:g} s. Wait for that process or end it; "
                        "store.lock_timeout_s in the config sets the patience."
                    ) from error
            time.sleep(wait * random.uniform(0.5, 1.5))
            wait = min(wait * 2, _LONGEST_WAIT_S)


def _damaged(path: Path, error: Exception) -> str:
    first = str(error).splitlines()[0].rstrip(". ")
    return (
        f"{path} cannot be used: {first}. If the file is damaged, move it away to start anew: "
        "the recorded runs and the cache are lost with it."
    )


def _is_lock(text: str) -> bool:
    return "lock on file" in text or "different configuration" in text


def _holder(text: str) -> str:
    found = re.search(r"held in (.*?) ?\(PID (\d+)\)", text)
    if found is None:
        return "another process"
    return f"process {found[2]} ({found[1]})" if found[1] else f"process {found[2]}"
