"""The enumeration behind the coverage table, at a size that takes no time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.coverage import coverage, probabilities, tables, width_ratios


def test_both_methods_cover_five_pairs() -> None:
    exact, default = tables(5, "exact_paired"), tables(5, "paired_mixture")
    assert len(exact.gained) == 21
    assert probabilities(5, exact, 0.3, 0.2).sum() == pytest.approx(1.0, abs=1e-12)
    found = coverage(5, exact)
    assert (found.two_sided, found.one_sided) == pytest.approx((0.9753, 0.9753), abs=5e-4)
    assert coverage(5, default).two_sided == pytest.approx(0.9947, abs=5e-4)
    assert width_ratios(5, exact, default) == pytest.approx((0.82,) * 6, abs=6e-3)
