"""The figures in docs/decisions.md that no command prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scipy.stats import beta

from rag_assets.statistics import clopper_pearson
from rag_assets.statistics.display import RATE

PAGE = (Path(__file__).parent.parent / "docs" / "decisions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "row", re.findall(r"^\| ([\d,]+) of ([\d,]+) \| (.*?) % \| (\[.*?\]) \| (\w+) \|$", PAGE, re.M)
)
def test_the_table_of_rates(row: tuple[str, str, str, str, str]) -> None:
    passes, cases = (int(text.replace(",", "")) for text in row[:2])
    found = clopper_pearson(passes, cases)
    assert found.lower is not None
    assert found.upper is not None
    assert RATE.estimate(passes / cases) == f"{row[2]}%"
    assert RATE.interval(found.lower, found.upper) == row[3].replace(" %", "%")
    state = "PASS" if found.lower >= 0.7 else "FAIL" if found.upper < 0.7 else None
    assert row[4] == (state or "INSUFFICIENT_EVIDENCE")


def test_the_recomputed_bounds() -> None:
    bounds = [round(float(bound), 9) for bound in (beta.ppf(0.025, 9, 5), beta.ppf(0.975, 10, 4))]
    assert f"\n{bounds}\n" in PAGE
