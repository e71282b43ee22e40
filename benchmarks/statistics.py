"""Time of the statistics, in units of one Clopper-Pearson call.

python -m benchmarks.statistics
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from rag_assets.contracts.cases import Case, parse_case
from rag_assets.evaluation.metrics import measure
from rag_assets.evaluation.slices import slice_metrics
from rag_assets.evaluators import Outcome
from rag_assets.statistics import (
    cases_for_floor,
    clopper_pearson,
    exact_paired,
    paired_mixture,
    pairs_for_margin,
)

CASES = 10_000
SLICES = 30
LEVEL = 0.95


class Criterion:
    """As much of an evaluator as the statistics ask for."""

    def __init__(self, criterion: str, kind: str) -> None:
        self.criterion, self.kind, self.value_range = criterion, kind, (0.0, 1.0)
        self.samples = 1


CRITERIA: list[Any] = [
    *(Criterion(f"verdict_{number}", "verdict") for number in range(4)),
    Criterion("score", "score"),
]


def suite() -> tuple[list[Case], dict[str, list[Outcome]]]:
    """Cases with a topic out of thirty, and their outcomes under five criteria."""
    rng = random.Random(0)
    cases = [
        parse_case({"id": f"c{n}", "input": n, "metadata": {"topic": str(n % SLICES)}})
        for n in range(CASES)
    ]
    outcomes = {
        one.criterion: [
            Outcome.score(rng.random())
            if one.kind == "score"
            else Outcome.verdict(rng.random() < 0.8)
            for _ in cases
        ]
        for one in CRITERIA
    }
    return cases, outcomes


def whole_run(cases: list[Case], outcomes: dict[str, list[Outcome]]) -> None:
    """Metrics, slices and marks of one run."""
    for one in CRITERIA:
        measure(one.criterion, one.kind, (0.0, 1.0), outcomes[one.criterion], level=LEVEL)
    slice_metrics(
        ["metadata.topic"], cases, {}, CRITERIA, outcomes, top_k=5, min_support=30, level=LEVEL
    )


def best(call: Callable[[], Any], times: int = 3) -> float:
    """The shortest of several runs, in seconds."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Measure, and print a Markdown table."""
    unit = best(lambda: [clopper_pearson(9, 13) for _ in range(1000)]) / 1000
    cases, outcomes = suite()
    rows: list[tuple[str, Callable[[], Any], float]] = [
        (f"{CASES:,} cases, 5 metrics, {SLICES} slices", lambda: whole_run(cases, outcomes), 0.5),
        ("exact_paired, 10,000 pairs, 7 % changed", lambda: exact_paired(350, 350, CASES), 0.2),
        ("exact_paired, 10,000 pairs, 40 % changed", lambda: exact_paired(2000, 2000, CASES), 0.5),
        (
            "paired_mixture, 10,000 verdicts",
            lambda: paired_mixture([1.0] * 350 + [-1.0] * 350 + [0.0] * 9300),
            0.2,
        ),
        ("plan of a floor", lambda: cases_for_floor(12 / 13, 0.8), 1.0),
        ("plan, default method", lambda: pairs_for_margin(0.035, 0.035, 0.02), 1.0),
        (
            "plan, exact_paired",
            lambda: pairs_for_margin(0.035, 0.035, 0.02, "exact_paired"),
            3.0,
        ),
        (
            "plan, exact_paired, 40 % changed",
            lambda: pairs_for_margin(0.2, 0.2, 0.03, "exact_paired"),
            3.0,
        ),
    ]
    print(f"One Clopper-Pearson call: {unit * 1e6:.1f} µs\n")
    print("| work | seconds | in Clopper-Pearson calls | budget | |\n|---|---|---|---|---|")
    for name, call, budget in rows:
        seconds = best(call)
        verdict = "PASS" if seconds <= budget else "**MISS**"
        calls = f"{seconds / unit:,.0f}"
        print(f"| {name} | {seconds:.3f} | {calls} | {budget:g} s | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
