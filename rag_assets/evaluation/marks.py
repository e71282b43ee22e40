"""Which slices stand out: every split of a run tested once, and all tests adjusted together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_assets.statistics import benjamini_yekutieli, fisher_slice, smallest_attainable_p

MARKED_AT = 0.10
Direction = Literal["none", "worse", "better"]


@dataclass(frozen=True, slots=True)
class Part:
    """One slice value under one criterion.

    Attributes:
        slice_name, value, criterion: what it is.
        passes: how many of its cases passed; None for scores, which are not tested.
        cases: how many were observed.
        is_supported: whether it has enough cases to be tested.
    """

    slice_name: str
    value: str
    criterion: str
    passes: int | None
    cases: int
    is_supported: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """How a slice compares with the rest.

    Attributes:
        p_value: of the test against the rest.
        p_adjusted: after Benjamini-Yekutieli over the family.
        mark: "none", or "worse" or "better" than the rest.
    """

    p_value: float
    p_adjusted: float
    mark: Direction


@dataclass(frozen=True, slots=True)
class Marks:
    """All marks of a run.

    Attributes:
        marks: one for each part; None where nothing was tested.
        tests: size of the tested family.
        too_few: no outcome could have been marked with so few cases.
    """

    marks: tuple[Mark | None, ...]
    tests: int
    too_few: bool


def mark_parts(parts: Sequence[Part], whole: Mapping[str, tuple[int, int]]) -> Marks:
    """Test each split of the run once, adjust all tests together, and mark.

    Two values of one slice that hold all observed cases between them are one split.

    Args:
        parts: every slice value under every criterion.
        whole: criterion → passes and observed cases of the whole run.
    """
    sizes: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for part in parts:
        if part.cases:
            sizes[part.slice_name, part.criterion].append(part.cases)
    splits: dict[tuple[str, str], list[int]] = {}
    for index, part in enumerate(parts):
        if part.passes is None or not part.is_supported:
            continue
        cases = whole[part.criterion][1]
        if 0 < part.cases < cases:
            of_slice = sizes[part.slice_name, part.criterion]
            is_half = len(of_slice) == 2 and sum(of_slice) == cases
            name = part.slice_name if is_half else f"{part.slice_name}={part.value}"
            splits.setdefault((name, part.criterion), []).append(index)
    tested = [parts[members[0]] for members in splits.values()]
    p_values = [fisher_slice(one.passes or 0, one.cases, *whole[one.criterion]) for one in tested]
    least = [smallest_attainable_p(one.cases, *whole[one.criterion]) for one in tested]
    adjusted, marked = benjamini_yekutieli(p_values, MARKED_AT)
    _, attainably_marked = benjamini_yekutieli(least, MARKED_AT)
    marks: list[Mark | None] = [None] * len(parts)
    for place, members in enumerate(splits.values()):
        for index in members:
            direction = _direction(parts[index], whole) if marked[place] else "none"
            marks[index] = Mark(p_values[place], adjusted[place], direction)
    return Marks(tuple(marks), len(tested), not any(attainably_marked))


def _direction(part: Part, whole: Mapping[str, tuple[int, int]]) -> Direction:
    passes, cases = whole[part.criterion]
    return "worse" if (part.passes or 0) * cases < passes * part.cases else "better"
