from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dagster as dg
import pytest
from alembic.script import ScriptDirectory

from projects import SampleProject


@pytest.fixture(scope="session", autouse=True)
def _migrations_are_read_once() -> Iterator[None]:
    """Dagster reads its sixty migration scripts anew whenever it opens one of its databases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", cache(ScriptDirectory.from_config))
        yield


@pytest.fixture
def sample(tmp_path: Path) -> SampleProject:
    """A staged project of three cases in a folder of its own."""
    return SampleProject(tmp_path)


@pytest.fixture
def ran(sample: SampleProject) -> SampleProject:
    """The same project after one run."""
    sample.first_run()
    return sample


@pytest.fixture
def instance(sample: SampleProject) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of the project. Where both are asked for, `ran` stands first."""
    with sample.instance() as instance:
        yield instance
