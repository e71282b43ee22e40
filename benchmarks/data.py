"""Data sets that are not part of the repository: the folder RAG_ASSETS_DATA holds them."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "RAG_ASSETS_DATA"


def has_data() -> bool:
    """Whether there is such a folder."""
    return Path(os.environ.get(VARIABLE) or "/nowhere").is_dir()


def data_folder(name: str) -> Path:
    """The folder of a data set.

    Raises:
        SystemExit: there is none.
    """
    folder = Path(os.environ.get(VARIABLE) or "/nowhere") / name
    if not folder.is_dir():
        raise SystemExit(f"{VARIABLE} must name a folder that holds the data set {name}.")
    return folder
