"""Cost and memory of a case against the size of the suite, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.budgets import Budget, Section, table
from benchmarks.whole_runs import LARGE, LARGEST, Cost, WholeRuns

SIZES = (13, 100, 1_000, 3_000, LARGE, 25_000, LARGEST)


def growth(runs: WholeRuns, sizes: Sequence[int], picture: Path) -> Section:
    """Measure cold runs of many sizes, and draw them into a PNG."""
    costs = [runs.cold(size) for size in sizes]
    _draw(costs, picture)
    rows = [
        (
            f"{one.cases:,}",
            f"{one.cold.seconds:.2f} s",
            f"{one.per_case_ms:.2f} ms",
            f"{one.cold.peak_mb:.0f} MB",
        )
        for one in costs
    ]
    lines = table(("cases", "cold", "over the loop, per case", "peak memory"), rows)
    lines += ["", f"![Cost of a case against the number of cases]({picture.name})"]
    return Section("growth", lines, _budgets(costs))


def _budgets(costs: Sequence[Cost]) -> list[Budget]:
    peaks = {one.cases: one.cold.peak_mb for one in costs}
    if not {LARGE, LARGEST} <= peaks.keys():
        return []
    ratio, shown = peaks[LARGEST] / peaks[LARGE], f"that of {LARGE:,}"
    work = f"peak memory of {LARGEST:,} cases"
    return [Budget(work, f"< 2 × {shown}", f"{ratio:.2f} × {shown}", ratio < 2)]


def _draw(costs: Sequence[Cost], picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    sizes = [one.cases for one in costs]
    figure, (time, memory) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    time.plot(sizes, [one.per_case_ms for one in costs], marker="o")
    time.set(title="Time over the plain loop", ylabel="ms per case", yscale="log")
    memory.plot(sizes, [one.cold.peak_mb for one in costs], marker="o", color="tab:orange")
    memory.set(title="Peak memory", ylabel="MB", ylim=(0, None))
    for axes in (time, memory):
        axes.set(xlabel="cases", xscale="log")
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=110)
    plt.close(figure)
