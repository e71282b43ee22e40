"""Results that another system gave as the system: no code runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case, Dataset
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.system_config import SystemKind
from rag_assets.contracts.timing import Retries
from rag_assets.systems.attempts import CallError
from rag_assets.systems.blackbox import BlackBox, Execution
from rag_assets.systems.reporting import reporter
from rag_assets.systems.results import Result, read_results


class NotRecordedError(CallError):
    """The results hold no row for a case."""

    reason = "not_recorded"


class RecordedError(CallError):
    """The row of a case says that it failed."""


class RecordedTimeoutError(CallError):
    """The row of a case says that it took too long."""

    reason = "timeout"


@dataclass(frozen=True, kw_only=True)
class RecordedSystem(BlackBox):
    """Rows of a file, one for each case.

    Attributes:
        results: case id → row.
        columns: what is read from where.
        content: digest of the file.
    """

    kind: ClassVar[SystemKind] = "recorded"

    results: Mapping[str, Result] = field(repr=False)
    columns: Mapping[str, str]
    content: str

    @property
    def is_async(self) -> bool:
        """Looking up a row takes no time."""
        return False

    @property
    def own_settings(self) -> Mapping[str, Any]:
        """How the file is read, and what is in it."""
        return {"recorded": {"map": dict(self.columns), "content": self.content}}

    def execution_of(self, case: Case, sample: int = 0) -> str:
        """Digest of the row, which names its case: no two cases share an execution.

        Other rows of the file are not part of it.
        """
        declared = [self.name, self.version, self.config, sorted(self.columns.items())]
        result = self.results.get(case.id)
        row = None if result is None else result.digest
        return digest(["recorded/v1", *declared, case.id, row, sample])

    def invoke(self, case: Case) -> Result:
        """The row of a case.

        Raises:
            NotRecordedError: there is none.
            RecordedError, RecordedTimeoutError: it says that the case failed.
        """
        result = self.results.get(case.id)
        if result is None:
            raise NotRecordedError("the results hold no row for this case")
        if result.state == "timeout":
            raise RecordedTimeoutError(result.error or "recorded as timed out")
        if result.state == "error":
            raise RecordedError(result.error or "recorded as an error")
        return result

    def accept(self, value: Result) -> Execution:
        """What a row says. It owes nothing; a row of somebody denied has nothing of every kind."""
        is_denied = value.state == "denied"
        declared = self.records if is_denied else frozenset[str]()
        return Execution.of(value.output, value.artifacts, declared=declared, is_denied=is_denied)


def load_recorded(
    config: Config, name: str, dataset: Dataset | None, problems: list[Problem]
) -> RecordedSystem | None:
    """Read the results of `system.recorded`.

    Args:
        config: the parsed config.
        name: how messages name the config file.
        dataset: the cases that the rows must belong to; None where they are not known.
        problems: what is wrong is appended here, with the line of the row or of the key.

    Returns:
        The system, or None when anything was wrong.
    """
    settings, before = config.system, len(problems)
    recorded = settings.recorded
    assert recorded is not None
    report = reporter(config, name, problems)
    ids = None if dataset is None else [case.id for case in dataset.cases]
    found = read_results(config.root, recorded, ids, report, problems)
    if found is None or len(problems) > before:
        return None
    return RecordedSystem(
        name=settings.name,
        version=settings.version,
        config=settings.config or {},
        records=found.kinds,
        timeout_s=settings.timeout_s,
        retries=Retries(),
        seed=config.seed,
        results=found.rows,
        columns=found.columns,
        content=found.content,
    )
