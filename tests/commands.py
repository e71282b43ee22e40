"""Calling the program inside a test, as from a project folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rag_assets.cli import main


@dataclass(frozen=True)
class Called:
    """What one call of the program printed, and how it ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The last JSON document on stdout."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


class Program:
    """The program in a folder."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self._capsys = capsys
        monkeypatch.chdir(folder)

    def __call__(self, *arguments: str) -> Called:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = self._capsys.readouterr()
        return Called(int(ended.value.code or 0), printed.out, printed.err)
