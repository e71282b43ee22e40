"""Is a slice worse or better than the rest of its run?

Each slice is tested against the rest of the run, and the p-values are adjusted together. Marks
are exploratory: they say where to look, and no decision rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_assets.statistics.arguments import check_count, check_share

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

METHOD = "slice_fisher_by@1"


def fisher_slice(slice_passes: int, slice_cases: int, passes: int, cases: int) -> float:
    """Two-sided p-value of a slice against the rest of its run.

    This is R. A. Fisher's exact test in its central form: twice the smaller tail of the
    hypergeometric distribution, at most 1. A slice and its complement have the same p-value.

    Valid given the number of passes of the run, at every size. Time and memory grow with the size
    of the slice.

    Args:
        slice_passes: observed passes inside the slice.
        slice_cases: observed cases inside the slice.
        passes: observed passes of the whole run.
        cases: observed cases of the whole run.

    Returns:
        The p-value between 0 and 1; 0 for counts that no run can have.

    Raises:
        ValueError: a count is negative or above the count that contains it.
    """
    _check_run(slice_cases, passes, cases)
    check_count("slice_passes", slice_passes, at_most=("slice_cases", slice_cases))
    fewest, weights = _distribution(slice_cases, passes, cases)
    place = slice_passes - fewest
    if not 0 <= place < len(weights):
        return 0.0
    return min(1.0, 2 * float(min(weights[: place + 1].sum(), weights[place:].sum())))


def smallest_attainable_p(slice_cases: int, passes: int, cases: int) -> float:
    """The smallest p-value that `fisher_slice` could give a slice of this size.

    When these values of all tested slices, adjusted together, mark nothing, then no outcome
    could have been marked: the run has too few cases for it.

    Args:
        slice_cases: observed cases inside the slice.
        passes: observed passes of the whole run.
        cases: observed cases of the whole run.

    Returns:
        The p-value, above 0 and at most 1.

    Raises:
        ValueError: a count is negative or above the count that contains it.
    """
    _check_run(slice_cases, passes, cases)
    _, weights = _distribution(slice_cases, passes, cases)
    return min(1.0, 2 * float(min(weights[0], weights[-1])))


def benjamini_yekutieli(
    pvalues: Sequence[float], q: float = 0.10
) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Adjust p-values so that at most a share `q` of the marked ones is expected to be false.

    The adjustment holds under any dependence of the tests, so slices may overlap (Y. Benjamini
    and D. Yekutieli, Annals of Statistics 29, 2001). The family must be fixed before looking at
    any outcome. Time is that of sorting the p-values.

    Args:
        pvalues: the p-values of every test of the run, each between 0 and 1.
        q: accepted false discovery rate, strictly between 0 and 1.

    Returns:
        The adjusted p-values and whether each is marked (adjusted at most `q`), in the order of
        `pvalues`.

    Raises:
        ValueError: a p-value or `q` is outside its range.
    """
    check_share("q", q)
    for p in pvalues:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"pvalues must lie between 0 and 1, and {p} does not.")
    tests = len(pvalues)
    penalty = tests * sum(1 / rank for rank in range(1, tests + 1))
    adjusted = [1.0] * tests
    smallest = 1.0
    by_size = sorted(range(tests), key=lambda test: pvalues[test])
    for rank, test in reversed(list(enumerate(by_size, start=1))):
        smallest = min(smallest, penalty * pvalues[test] / rank)
        adjusted[test] = smallest
    return tuple(adjusted), tuple(p <= q for p in adjusted)


def _check_run(slice_cases: int, passes: int, cases: int) -> None:
    check_count("cases", cases)
    check_count("passes", passes, at_most=("cases", cases))
    check_count("slice_cases", slice_cases, at_most=("cases", cases))


def _distribution(slice_cases: int, passes: int, cases: int) -> tuple[int, NDArray[float64]]:
    """The fewest passes a slice of this size can hold, and the probability of each number on."""
    import numpy as np

    failures = cases - passes
    fewest = max(0, slice_cases - failures)
    # Neighbouring probabilities have a simple ratio, so no factorial of the run is needed.
    below = np.arange(fewest, min(slice_cases, passes))
    ratios = ((passes - below) * (slice_cases - below)) / (
        (below + 1) * (failures - slice_cases + below + 1)
    )
    logs = np.append(0.0, np.cumsum(np.log(ratios)))
    weights = np.exp(logs - logs.max())
    return fewest, weights / weights.sum()
