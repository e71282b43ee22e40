"""A folder that is made whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.cli.new_folder import filling
from rag_assets.contracts.errors import InputError


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_is_filled_whole_or_not_at_all(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "made"
    if exists:
        folder.mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RuntimeError):
        stop_half_way(folder)
    assert sorted(tmp_path.rglob("*")) == before

    with filling(folder) as draft:
        (draft / "data").mkdir()
        (draft / "data" / "whole.txt").touch()
        (draft / "rag_assets.yaml").touch()
    made = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")}
    assert made == {"made", "made/data", "made/data/whole.txt", "made/rag_assets.yaml"}


def stop_half_way(folder: Path) -> None:
    with filling(folder) as draft:
        (draft / "data").mkdir()
        (draft / "data" / "half.txt").touch()
        raise RuntimeError


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "made"
    with pytest.raises(InputError, match=r"made cannot be created: Not a directory\."):
        stop_half_way(folder)


def test_folders_above_a_new_one_are_made(tmp_path: Path) -> None:
    with filling(tmp_path / "a" / "b") as draft:
        (draft / "x").touch()
    assert (tmp_path / "a" / "b" / "x").is_file()
