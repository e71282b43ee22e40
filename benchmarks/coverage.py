"""Coverage of the paired methods by exact enumeration, on a grid of true shares.

python -m benchmarks.coverage [--sizes 5,10,13,20,30,50,72,100,200]

For every number of pairs all tables (gained, lost) get their interval, and for every pair of true
shares the probabilities of the tables that miss the true difference are added up: nothing is
simulated. It prints the smallest coverage over the grid and the mean ratio of the widths at a true
difference of 0, beside the reference values.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from rag_assets.statistics import exact_paired, paired_mixture

LEVEL = 0.95
SPLITS = 41
DISCORDANCES = 86
# Up to this size every table counts; beyond, discordances up to 0.4 only.
ALL_TABLES = 72
PART = 0.4
# Probability of the tables that are left out there; they count as not covered.
LEFT_OUT = 1e-9
WIDTHS_AT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
# pairs → smallest coverage of exact_paired on both sides and on one, of paired_mixture, and the
# mean width ratios at WIDTHS_AT, from an independent enumeration.
REFERENCE = {
    5: (0.9753, 0.9753, 0.9947, (0.82, 0.82, 0.82, 0.82, 0.82, 0.82)),
    10: (0.9553, 0.9751, 0.9930, (0.80, 0.79, 0.78, 0.76, 0.75, 0.76)),
    13: (0.9520, 0.9752, 0.9938, (0.75, 0.75, 0.75, 0.74, 0.73, 0.73)),
    20: (0.9519, 0.9751, 0.9948, (0.72, 0.71, 0.71, 0.70, 0.70, 0.71)),
    30: (0.9512, 0.9751, 0.9958, (0.71, 0.70, 0.69, 0.68, 0.67, 0.68)),
    50: (0.9503, 0.9751, 0.9956, (0.69, 0.68, 0.67, 0.66, 0.66, 0.65)),
    72: (0.9504, 0.9751, 0.9958, (0.69, 0.67, 0.66, 0.65, 0.65, 0.64)),
    100: (0.9507, 0.9751, 0.9955, (0.69, 0.66, 0.65, 0.65, 0.64, 0.63)),
    200: (0.9503, 0.9751, 0.9957, (0.68, 0.65, 0.64, 0.64, 0.63, 0.61)),
}
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tables:
    """All tables of one size that count, with the interval of one method."""

    gained: Array
    lost: Array
    lower: Array
    upper: Array


@dataclass(frozen=True)
class Coverage:
    """The smallest coverage of a method on the grid: of both bounds, and of the lower one."""

    two_sided: float
    one_sided: float


def tables(pairs: int, method: str) -> Tables:
    """The interval of every table."""
    most = pairs if pairs <= ALL_TABLES else _most_discordant(pairs)
    rows: list[tuple[int, int, float, float]] = []
    for gained in range(most + 1):
        for lost in range(min(gained, most - gained) + 1):
            if method == "exact_paired":
                found = exact_paired(gained, lost, pairs, level=LEVEL)
            else:
                values = [1.0] * gained + [-1.0] * lost + [0.0] * (pairs - gained - lost)
                found = paired_mixture(values, level=LEVEL)
            lower, upper = found.lower or 0.0, found.upper or 0.0
            rows.append((gained, lost, lower, upper))
            if gained != lost:
                # Exchanging the systems mirrors the interval.
                rows.append((lost, gained, -upper, -lower))
    columns = np.array(rows, dtype=np.float64).T
    return Tables(*columns)


def coverage(pairs: int, found: Tables) -> Coverage:
    """Enumerate the grid of true shares."""
    two, one = 1.0, 1.0
    for discordance in np.linspace(0, 1 if pairs <= ALL_TABLES else PART, DISCORDANCES):
        for split in np.linspace(0, 1, SPLITS):
            gain, loss = discordance * split, discordance * (1 - split)
            chances = probabilities(pairs, found, gain, loss)
            above = found.lower <= gain - loss + 1e-12
            below = found.upper >= gain - loss - 1e-12
            two = min(two, float(chances[above & below].sum()))
            one = min(one, float(chances[above].sum()))
    return Coverage(two, one)


def probabilities(pairs: int, found: Tables, gain: float, loss: float) -> Array:
    """Trinomial probability of every table."""
    same = pairs - found.gained - found.lost
    ways = gammaln(pairs + 1) - sum(gammaln(n + 1) for n in (found.gained, found.lost, same))
    logs = xlogy(found.gained, gain) + xlogy(found.lost, loss) + xlogy(same, 1 - gain - loss)
    chances: Array = np.exp(ways + logs)
    return chances


def width_ratios(pairs: int, exact: Tables, default: Tables) -> tuple[float, ...]:
    """Mean of the ratio of widths, at a true difference of 0."""
    ratio = (exact.upper - exact.lower) / (default.upper - default.lower)
    return tuple(
        float((probabilities(pairs, exact, at / 2, at / 2) * ratio).sum()) for at in WIDTHS_AT
    )


def _most_discordant(pairs: int) -> int:
    from scipy.stats import binom

    return int(binom.isf(LEFT_OUT, pairs, PART)) + 1


def main() -> None:
    """Enumerate, and print a Markdown table with the reference values in brackets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, REFERENCE)))
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    at = "/".join(f"{discordance:g}" for discordance in WIDTHS_AT)
    print(
        "| pairs | exact_paired, both sides | one side (nominal 0.975) | paired_mixture | "
        f"mean width ratio at discordance {at} | seconds |\n|---|---|---|---|---|---|"
    )
    for pairs in sizes:
        began = time.perf_counter()
        exact, default = (tables(pairs, name) for name in ("exact_paired", "paired_mixture"))
        found, other = coverage(pairs, exact), coverage(pairs, default)
        ratios = width_ratios(pairs, exact, default)
        known = REFERENCE.get(pairs, (float("nan"),) * 3 + ((),))
        cells = [
            f"{value:.4f} ({reference:.4f})"
            for value, reference in zip(
                (found.two_sided, found.one_sided, other.two_sided), known[:3], strict=True
            )
        ]
        widths = " ".join(f"{ratio:.2f}" for ratio in ratios)
        widths += f" ({' '.join(f'{ratio:.2f}' for ratio in known[3])})"
        seconds = time.perf_counter() - began
        print(f"| {pairs} | {' | '.join(cells)} | {widths} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
