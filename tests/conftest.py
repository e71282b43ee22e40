from __future__ import annotations

from pathlib import Path

import pytest

from projects import SampleProject


@pytest.fixture
def sample(tmp_path: Path) -> SampleProject:
    """A staged project of three cases in a folder of its own."""
    return SampleProject(tmp_path)
