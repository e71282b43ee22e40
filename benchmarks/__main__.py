"""Every budget of whole runs, as ratios within one run of this program.

python -m benchmarks [--only NAMES] [--sizes 13,1000,10000] [--cases 1000] [--plot] [--write]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.budgets import Section
from benchmarks.clapnq import PICTURE as CLAPNQ_PICTURE
from benchmarks.clapnq import clapnq
from benchmarks.commands import from_ui, start_up, waiting
from benchmarks.cranfield import cranfield
from benchmarks.data import has_data
from benchmarks.measuring import printed
from benchmarks.plot import SIZES, growth
from benchmarks.readme import with_measured
from benchmarks.real_text import real_text
from benchmarks.whole_runs import WholeRuns, breakdowns, disk, whole_runs

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
PICTURE = HERE / "cost_per_case.png"
# Measured only where the data sets are.
REAL_DATA = ("cranfield", "clapnq", "real text")


def sections(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Section]]:
    """Name → what measures it, in the order in which they are measured."""
    runs = WholeRuns(folder)
    sizes, cases = options.sizes, options.cases
    found: dict[str, Callable[[], Section]] = {
        "whole runs": lambda: whole_runs(runs, sizes),
        "disk": lambda: disk(runs, sizes),
        "breakdown": lambda: breakdowns(runs, sizes),
        "start-up": lambda: start_up(folder, runs.unit),
        "waiting": lambda: waiting(folder, cases),
        "ui": lambda: from_ui(folder, cases),
        "statistics": lambda: Section("statistics", printed("statistics").splitlines()),
    }
    found |= {
        "cranfield": lambda: cranfield(folder),
        "clapnq": lambda: clapnq(folder, CLAPNQ_PICTURE),
        "real text": lambda: real_text(folder / "real-text"),
    }
    if options.plot:
        found["growth"] = lambda: growth(runs, options.plot_sizes, PICTURE)
    return found


def main() -> None:
    """Measure, and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=_names, help="sections, separated by commas")
    parser.add_argument("--sizes", type=_numbers, default=(13, 1_000, 10_000))
    parser.add_argument(
        "--cases", type=int, default=1_000, help="of the waiting and the UI's suite"
    )
    parser.add_argument("--plot", action="store_true", help=f"draw {PICTURE.name} (takes minutes)")
    parser.add_argument("--plot-sizes", type=_numbers, default=SIZES)
    parser.add_argument("--write", action="store_true", help=f"rewrite the sections of {PAGE.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rag-assets-bench-") as folder:
        every = sections(options, Path(folder))
        chosen = options.only or [name for name in every if has_data() or name not in REAL_DATA]
        if unknown := set(chosen) - every.keys():
            parser.error(f"no such section: {min(unknown)}; there are {', '.join(every)}")
        for name in chosen:
            section = every[name]()
            print(f"## {name}\n\n{section.markdown()}\n", flush=True)
            if options.write:
                text = PAGE.read_text(encoding="utf-8")
                PAGE.write_text(with_measured(text, {name: section.markdown()}), encoding="utf-8")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    main()
