"""Faults that users of evaluation tools have met, as far as they are about statistics."""

from __future__ import annotations

import random

from command_line import document, program_in
from projects import SampleProject
from rag_assets.statistics import (
    Interval,
    bounded_mean,
    exact_paired,
    order_statistic_quantile,
    paired_mixture,
)

DIFFERENCES = [0.1, -0.2, 0.3, 0.0, 0.05, 0.4, -0.1, 0.2, 0.25, -0.3]


def intervals(differences: list[float]) -> list[Interval]:
    gained, lost = (sum(sign * one > 0 for one in differences) for sign in (1, -1))
    return [
        paired_mixture(differences),
        bounded_mean(differences, value_range=(-1.0, 1.0), method="convex"),
        order_statistic_quantile(differences, 0.5),
        exact_paired(gained, lost, len(differences)),
    ]


def test_nothing_is_drawn_at_random() -> None:
    """The same differences have the same bounds, to the last bit, in any order of the lines."""
    first = intervals(DIFFERENCES)
    for seed in range(3):
        shuffled = random.Random(seed).sample(DIFFERENCES, len(DIFFERENCES))
        assert intervals(shuffled) == first


def test_many_slices_of_few_cases_are_no_finding(sample: SampleProject) -> None:
    """Small slices show counts only, none is dropped, and none decides anything."""
    topics = [*(f"t{index}" for index in range(6)), None]
    sample.cases(
        *(
            {
                "id": f"m{index:02}",
                "input": {"question": "a b"},
                "expected": {"answer": "of a" if index else "of z", "relevant": []},
                **({"metadata": {"topic": topic}} if topic else {}),
            }
            for index, topic in enumerate(topics)
        )
    )
    config = (sample.root / "rag_assets.yaml").read_text()
    sample.write("rag_assets.yaml", config + "slices: [metadata.topic]\n")
    sample.write("release.yaml", "rules:\n  - {id: r, metric: answer_correct, min: 0.1}\n")
    program = program_in(sample.root)
    called = program("run", "--slices")
    assert called.exit_code == 0
    assert "too few cases to mark anything" in called.stdout.splitlines()
    run = document(program("inspect", "latest", "--json"))
    rows = [one for one in run["slices"] if one["metric"] == "answer_correct"]
    assert [one["slice"]["value"] for one in rows] == ["(none)", *(f"t{i}" for i in range(6))]
    assert {(one["lower"], one["upper"], one["slice"]["mark"]) for one in rows} == {
        (None, None, None)
    }
    whole = next(one for one in run["metrics"] if one["metric"] == "answer_correct")
    assert sum(one["observed"] for one in rows) == whole["observed"] == 7
