"""Data sets that are not part of the repository: the folder RAG_ASSETS_DATA holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "RAG_ASSETS_DATA"


def shared_data(name: str) -> Path:
    """The folder of a data set; the test is skipped where there is none."""
    root = os.environ.get(VARIABLE)
    if not root:
        pytest.skip(f"{VARIABLE} names no folder of data sets")
    folder = Path(root) / name
    if not folder.is_dir():
        pytest.skip(f"{VARIABLE} has no folder {name}")
    return folder
