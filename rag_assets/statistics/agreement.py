"""How far two raters agree beyond what chance would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa of two raters over the same units.

    Source: J. Cohen, A coefficient of agreement for nominal scales (1960):
    (observed agreement - agreement by chance) / (1 - agreement by chance), where chance is the
    product of the shares with which each rater uses a label, summed over the labels.

    Args:
        first, second: the label of each unit, in the same order.

    Returns:
        At most 1, and 0 where they agree as often as by chance; None without a unit, and where
        both raters gave one and the same label to all units: chance then explains everything.

    Raises:
        ValueError: the sequences differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"first has {len(first)} labels, and second has {len(second)}")
    units = len(first)
    if not units:
        return None
    counts, others = Counter(first), Counter(second)
    agreed = sum(one == other for one, other in zip(first, second, strict=True))
    # In whole numbers, so that equal counts are equal: both sides are multiplied by units².
    by_chance = sum(counts[label] * others[label] for label in counts)
    if by_chance == units * units:
        return None
    return (agreed * units - by_chance) / (units * units - by_chance)
