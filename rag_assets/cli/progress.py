"""What a run shows on stderr while its cases are executed."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rag_assets.cli.output import note, show_json
from rag_assets.evaluation.wording import counted, cut
from rag_assets.evaluation.words import Stage
from rag_assets.reports.layout import printable
from rag_assets.systems.calls import Failure

# Taking the cases from the dataset is no work that anybody waits for.
_UNSHOWN: Stage = "cases"
_EVERY_S = 10.0


def _label(stage: Stage, sample: int | None) -> str:
    return stage if sample is None else f"{stage} of sample {sample}"


class PlainProgress:
    """One line when a stage starts, for a log or a pipe."""

    def __init__(self) -> None:
        self._has_failed = False
        self._total = self._done = 0
        self._said = time.monotonic()
        self._told_until = self._said
        self._label = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is left to do."""

    def waiting(self, run_id: str, holder: str) -> None:
        """Say for whom: one run of a project goes on at a time."""
        self._tell(f"waiting for {run_id} ({holder}) to end …")

    def stopping(self) -> None:
        """Say that the signal has arrived, and what another one would do."""
        self._tell("stopping: calls in flight are waited for; press Ctrl-C again to leave at once")

    def stage_started(self, stage: Stage, cases: int, sample: int | None = None) -> None:
        """Say so."""
        self._total, self._done, self._said = cases, 0, time.monotonic()
        self._label = _label(stage, sample)
        if stage != _UNSHOWN:
            note(f"{self._label}: {counted(cases, 'case')} …")

    def advanced(self, stage: Stage, cases: int) -> None:
        """A line now and then, so that a long run is seen to go on."""
        self._done += cases
        if time.monotonic() - self._said >= _EVERY_S:
            self._said = time.monotonic()
            self._tell(f"{self._label}: {self._done} of {counted(self._total, 'case')}")

    def waiting_for(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Name what a run waits for, when nothing has been said for a while."""
        if seconds >= _EVERY_S and time.monotonic() - self._said >= _EVERY_S:
            self._said = time.monotonic()
            done = f"{self._done} of {counted(self._total, 'case')}"
            self._tell(f"{self._label}: {done}; waiting for {case_id}, {seconds:.0f} s so far")

    def asked_to_wait(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Say so, unless a wait is told of already: many calls are turned away at once."""
        began = time.monotonic()
        if began >= self._told_until:
            self._told_until = began + seconds
            shown = f"{seconds:.1f}".removesuffix(".0")
            self._tell(f"{stage} of {case_id}: waiting {shown} s as the server asked")

    def failed(self, stage: Stage, case_id: str, failure: Failure) -> None:
        """Show the first failure at once; the report has them all."""
        if not self._has_failed:
            self._has_failed = True
            what = f"{failure.type}: {cut(failure.message)}"
            self._tell(f"first failure: {stage} of {case_id}: {what}")

    def stage_finished(self, stage: Stage, sample: int | None = None) -> None:
        """Nothing."""

    def _tell(self, message: str) -> None:
        note(message)


class BarProgress(PlainProgress):
    """A bar for every stage, on a terminal; gone when the run ends."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TaskID,
            TextColumn,
            TimeElapsedColumn,
        )

        super().__init__()
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self._progress = Progress(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
        self._tasks: dict[Stage, TaskID] = {}
        self._starting: TaskID | None = None

    def __enter__(self) -> Self:
        self._starting = self._progress.add_task("starting", total=None)
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away."""
        self._progress.stop()

    def stage_started(self, stage: Stage, cases: int, sample: int | None = None) -> None:
        """Add a bar."""
        self._label = _label(stage, sample)
        if self._starting is not None:
            self._progress.remove_task(self._starting)
            self._starting = None
        if stage != _UNSHOWN:
            self._tasks[stage] = self._progress.add_task(self._label, total=cases)

    def advanced(self, stage: Stage, cases: int) -> None:
        """Let the bar grow."""
        if stage in self._tasks:
            self._progress.update(self._tasks[stage], advance=cases, description=self._label)

    def waiting_for(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Name the case beside the bar, until something comes."""
        if stage in self._tasks and seconds >= _EVERY_S:
            from rich.markup import escape

            shown = escape(printable(f"{self._label} · waiting for {case_id}, {seconds:.0f} s"))
            self._progress.update(self._tasks[stage], description=shown)

    def _tell(self, message: str) -> None:
        """Print above the bars."""
        from rich.text import Text

        self._progress.console.print(Text(printable(message, keep="\n")))


class JsonProgress(PlainProgress):
    """One event on stdout when a stage ends, and nothing on stderr."""

    def __init__(self) -> None:
        super().__init__()
        # What the user's code prints goes elsewhere during a run, but the events go here.
        self._stdout = sys.stdout
        self._failed = 0

    def stage_started(self, stage: Stage, cases: int, sample: int | None = None) -> None:
        """Remember how many cases it has."""
        self._total, self._failed = cases, 0

    def advanced(self, stage: Stage, cases: int) -> None:
        """Nothing."""

    def waiting_for(self, stage: Stage, case_id: str, seconds: float) -> None:
        """Nothing."""

    def failed(self, stage: Stage, case_id: str, failure: Failure) -> None:
        """Count it."""
        self._failed += 1

    def _tell(self, message: str) -> None:
        """Nothing: stderr is left alone."""

    def stage_finished(self, stage: Stage, sample: int | None = None) -> None:
        """Print the event; `sample` is there where each sample goes through the stage."""
        numbered = {} if sample is None else {"sample": sample}
        counts = {"cases": self._total, "failed": self._failed}
        show_json({"event": "stage", "stage": stage, **numbered, **counts}, self._stdout)


def progress(as_json: bool) -> PlainProgress:
    """The observer that fits where stderr goes."""
    if as_json:
        return JsonProgress()
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
