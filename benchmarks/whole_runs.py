"""Whole `rag-assets run` processes on suites of any size, cold and warm, with their yardsticks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.breakdown import DAGSTER, STAGES, dagster_share
from benchmarks.budgets import Budget, Section, table
from benchmarks.measuring import DECIDED, RAG_ASSETS, Measured, best, measure, printed
from benchmarks.sizes import LogSize, StoreSize, log_size, store_size
from benchmarks.suites import make_suite

SMALL, MIDDLE, LARGE, LARGEST = 13, 1_000, 10_000, 50_000
# Below this many cases, a run is so short that it is repeated for its shortest time.
_REPEATED_BELOW = 100
_TIMES = 3
KB = 1000


@dataclass(frozen=True)
class Cost:
    """A cold run of one suite against the plain loop over it.

    Attributes:
        cases: how many.
        cold: the process.
        loop: seconds of the plain loop.
        store, log: what they take on disk.
    """

    cases: int
    cold: Measured
    loop: float
    store: StoreSize
    log: LogSize

    @property
    def per_case_ms(self) -> float:
        """Milliseconds of a case over the plain loop."""
        return (self.cold.seconds - self.loop) / self.cases * 1000


@dataclass
class WholeRuns:
    """Measures each suite when it is first asked for.

    Attributes:
        folder: where the suites are made.
        make: writes a project with so many cases into a folder.
    """

    folder: Path
    make: Callable[[Path, int], Path] = make_suite
    _cold: dict[int, Cost] = field(default_factory=dict)
    _warm: dict[int, Measured] = field(default_factory=dict)

    @cached_property
    def unit(self) -> float:
        """Seconds of `python -c "import dagster"`."""
        return best([sys.executable, "-c", "import dagster"], self.folder, 5)

    def project(self, cases: int) -> Path:
        """The folder of a suite."""
        return self.folder / f"suite-{cases}"

    def cold(self, cases: int) -> Cost:
        """A run without a store."""
        if cases not in self._cold:
            done = [self._run_anew(cases) for _ in range(_times(cases))]
            project = self.project(cases)
            self._cold[cases] = Cost(
                cases=cases,
                cold=min(done, key=lambda one: one.seconds),
                loop=float(printed("plain_loop", project / "rag_assets.yaml")),
                store=store_size(project),
                log=log_size(project),
            )
        return self._cold[cases]

    def warm(self, cases: int) -> Measured:
        """The same run again."""
        if cases not in self._warm:
            self.cold(cases)
            done = [self._run(cases) for _ in range(_times(cases))]
            self._warm[cases] = min(done, key=lambda one: one.seconds)
        return self._warm[cases]

    def _run_anew(self, cases: int) -> Measured:
        self.make(self.project(cases), cases)
        return self._run(cases)

    def _run(self, cases: int) -> Measured:
        return measure([*RAG_ASSETS, "run"], self.project(cases), DECIDED)


def _times(cases: int) -> int:
    return _TIMES if cases < _REPEATED_BELOW else 1


def whole_runs(runs: WholeRuns, sizes: Sequence[int]) -> Section:
    """Wall time and memory, cold and warm."""
    rows = []
    for size in sizes:
        cost = runs.cold(size)
        for name, done in (("cold", cost.cold), ("warm", runs.warm(size))):
            over = (done.seconds - cost.loop) / size * 1000
            rows.append(
                (
                    f"{size:,}",
                    name,
                    f"{done.seconds:.2f} s",
                    f"{done.seconds / runs.unit:.1f} ×",
                    f"{cost.loop:.2f} s",
                    f"{over:.2f} ms",
                    f"{done.peak_mb:.0f} MB",
                )
            )
    header = ("cases", "cache", "`rag-assets run`", "in imports of dagster", "plain loop")
    lines = table((*header, "over the loop, per case", "peak memory"), rows)
    unit = f"`import dagster`: {runs.unit:.2f} s (whole process, best of 5)"
    return Section("whole runs", [unit, "", *lines], _whole_budgets(runs, sizes))


def _whole_budgets(runs: WholeRuns, sizes: Sequence[int]) -> list[Budget]:
    budgets = []
    if SMALL in sizes:
        imports = "imports of dagster"
        cold, warm = runs.cold(SMALL).cold.seconds, runs.warm(SMALL).seconds
        budgets += [
            Budget.at_most(f"{SMALL} cases, cold", 4, cold / runs.unit, imports),
            Budget.at_most(f"{SMALL} cases, warm", 3.5, warm / runs.unit, imports),
        ]
    if LARGE in sizes:
        cost, again = runs.cold(LARGE), runs.warm(LARGE)
        work = f"{LARGE:,} cases"
        peak = max(cost.cold.peak_mb, again.peak_mb)
        budgets += [
            Budget.at_most(f"{work}, cold", 2, cost.per_case_ms, "ms a case over the plain loop"),
            Budget.at_most(f"{work}, cold, on the reference machine", 25, cost.cold.seconds, "s"),
            Budget.at_most(f"{work}, warm", 0.25, again.seconds / cost.cold.seconds, "× cold"),
            Budget.at_most(f"{work}, peak memory", 400, peak, "MB"),
        ]
    return budgets


def breakdowns(runs: WholeRuns, sizes: Sequence[int]) -> Section:
    """Where the time of a run goes, cold and warm."""
    rows, budgets = [], []
    for size in sizes:
        config = make_suite(runs.folder / "breakdown", size)
        for name in ("cold", "warm"):
            found = json.loads(printed("breakdown", config))
            parts, total = found["parts"], found["total"]
            rows.append((f"{size:,}", name, *_seconds(parts, total)))
            share = dagster_share(parts)
            if (size, name) == (LARGE, "cold"):
                work = f"Dagster's share of a cold run of {LARGE:,} cases"
                budgets.append(Budget.at_most(work, 60, share * 100, "%"))
    header = ("cases", "cache", "total", *_COLUMNS, "Dagster's share")
    return Section("breakdown", table(header, rows), budgets)


# Column → the parts that it adds up.
_COLUMNS = {
    "imports": ("imports",),
    "import dagster": (DAGSTER + "imports",),
    "definitions": (DAGSTER + "definitions",),
    "instance": (DAGSTER + "instance",),
    "Dagster's execution": (DAGSTER + "execution",),
    "events": (DAGSTER + "events",),
    "stages": (STAGES,),
    "store": ("store",),
    "project": ("project",),
    "other": ("other",),
}


def _seconds(parts: dict[str, float], total: float) -> list[str]:
    columns = [
        sum(seconds for part, seconds in parts.items() if part.startswith(prefixes))
        for prefixes in _COLUMNS.values()
    ]
    share = f"{dagster_share(parts):.0%}"
    return [f"{total:.2f} s", *(f"{seconds:.2f}" for seconds in columns), share]


def disk(runs: WholeRuns, sizes: Sequence[int]) -> Section:
    """Bytes of the store and of Dagster's logs after one cold run."""
    rows, budgets = [], []
    for size in sizes:
        store, log = runs.cold(size).store, runs.cold(size).log
        ratio, unshared = store.file / store.artifacts, store.file / store.unshared
        event, on_disk = log.json / log.events / KB, log.files / log.events / KB
        rows.append(
            (
                f"{size:,}",
                f"{store.artifacts / 1e6:.1f} MB",
                f"{store.file / 1e6:.1f} MB",
                f"{ratio:.1f} × ({unshared:.1f} ×)",
                f"{log.events:,}",
                f"{event:.2f} KB",
                f"{on_disk:.2f} KB",
            )
        )
        if size == LARGE:
            shared = f"; {unshared:.1f} × with each content counted for every case that has it"
            files = f"; {on_disk:.2f} KB in files, with indexes and empty pages"
            budgets += [
                Budget.at_most(
                    f"store of {size:,} cases", 3, ratio, "× the artifacts as JSON", shared
                ),
                Budget.at_most(f"an event of {size:,} cases", 1, event, "KB of JSON", files),
            ]
    header = ("cases", "artifacts as JSON", "store", "ratio (unshared)", "events", "JSON, each")
    return Section("disk", table((*header, "files, each"), rows), budgets)
