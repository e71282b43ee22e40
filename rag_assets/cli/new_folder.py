"""A folder that is made whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_assets.contracts.errors import InputError


def refuse_used(folder: Path) -> None:
    """Refuse a folder that holds something.

    Raises:
        InputError: it is a file or not empty.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a new or empty folder.")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; name a new or empty folder.")


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Fill a new or empty folder: the block gets another one, which takes its place at the end.

    Nothing is left of it when the block raises.

    Args:
        folder: need not exist.

    Raises:
        InputError: the folder holds something, or cannot be written.
    """
    refuse_used(folder)
    target = folder.resolve()
    is_new = not target.exists()
    beside = target.parent if is_new else target
    draft = beside / f".{target.name}.{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        yield draft
        if is_new:
            draft.rename(target)
        else:
            for made in list(draft.iterdir()):
                made.rename(target / made.name)
    except OSError as error:
        raise InputError(f"{folder} cannot be created: {error.strerror}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
