"""Where a project keeps its files. Light: commands that only read records import nothing else."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rag_assets.contracts.errors import InputError, Problem, StoreLockedError
from rag_assets.store import Store

if TYPE_CHECKING:
    from rag_assets.contracts.config import Config
    from rag_assets.store.reader import Reader
    from rag_assets.store.writer import Writer

T = TypeVar("T")
CONFIG_FILE = "rag_assets.yaml"
POLICY_FILE = "release.yaml"
COMPARE_POLICY_FILE = "compare.yaml"
STATE_FOLDER = ".rag_assets"
PROBLEMS_SHOWN = 20


def state_folder(root: Path) -> Path:
    """Where a project keeps its store and its Dagster instance."""
    return root / STATE_FOLDER


def open_store(config: Config) -> Store:
    """The store of a config's project."""
    return Store(_store_path(config.root), lock_timeout_s=config.store.lock_timeout_s)


@contextmanager
def reading_records(config_path: Path) -> Iterator[Reader]:
    """Open the store beside a config file for reading.

    The config itself is only read while another process holds the store, to learn how long to
    wait: reading it takes longer than the rest of a command that shows records.

    Args:
        config_path: the config file; its content need not be valid.

    Raises:
        StoreLockedError, StoreVersionError, StoreError: as for `Store.reading`.
        InputError: the config had to be read, and is invalid.
    """
    with _patiently(config_path, Store.reading) as reader:
        yield reader


@contextmanager
def writing_records(config_path: Path) -> Iterator[Writer]:
    """Open the store beside a config file for one transaction; patience as for `reading_records`.

    Raises:
        StoreLockedError, StoreVersionError, StoreError: as for `Store.writing`.
        InputError: the config had to be read, and is invalid.
    """
    with _patiently(config_path, Store.writing) as writer:
        yield writer


@contextmanager
def _patiently(
    config_path: Path, opening: Callable[[Store], AbstractContextManager[T]]
) -> Iterator[T]:
    with ExitStack() as stack:
        try:
            store = Store(_store_path(config_path.parent), lock_timeout_s=0)
            opened = stack.enter_context(opening(store))
        except StoreLockedError:
            opened = stack.enter_context(opening(open_store(load_config(config_path))))
        yield opened


def find_config(named: Path | None, start: Path) -> Path:
    """The config file: the one named, or `rag_assets.yaml` in `start` or above it.

    Raises:
        InputError: there is none.
    """
    if named is not None:
        if not named.is_file():
            raise InputError(f"{named}: there is no such file.")
        return named.resolve()
    for path in _candidates(start):
        if path.is_file():
            return path.resolve()
    raise InputError(
        f"There is no {CONFIG_FILE} in {start} or above it. Go to your project, name the file "
        "with --config, or start one with: rag-assets init --example support_rag my-rag"
    )


def project_name(config_path: Path) -> str | None:
    """The label of a config file's project; None where none can be read.

    The rest of the file need not be valid.
    """
    from rag_assets.contracts.yaml_source import read_yaml

    source = read_yaml(config_path, [])
    found = source.content.get("project") if source else None
    return found if isinstance(found, str) and found else None


def config_argument(config_path: Path, folder: Path | None = None) -> str:
    """What a command needs to find a config file: "", or ` --config FILE`.

    Args:
        config_path: the file, absolute.
        folder: where the command will be typed; None for the working directory.
    """
    here = folder or Path.cwd()
    found = next((one for one in _candidates(here) if one.is_file()), None)
    if found is not None and found.resolve() == config_path:
        return ""
    return f" --config {shlex.quote(os.path.relpath(config_path, here))}"


def load_config(config_path: Path) -> Config:
    """Only the config, without the rest of the project.

    Raises:
        InputError: with every problem of the file.
    """
    from rag_assets.contracts.config import read_config

    problems: list[Problem] = []
    config = read_config(config_path, problems, name=config_path.name)
    if config is None:
        raise InputError(problems, shown=PROBLEMS_SHOWN)
    return config


def _candidates(start: Path) -> list[Path]:
    """Where a config file is looked for, in this order."""
    return [folder / CONFIG_FILE for folder in (start, *start.parents)]


def root_of(store: Path) -> Path:
    """The folder of the config files that share a store."""
    return store.parent.parent


def _store_path(root: Path) -> Path:
    return state_folder(root) / "store.duckdb"
