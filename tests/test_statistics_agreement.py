"""Agreement of two raters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.statistics.agreement import cohen_kappa


def test_a_table_worked_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: 0.7 agree, and 0.5 would by chance.
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_a_rater_who_always_says_the_same_agrees_by_chance() -> None:
    # 95 % agreement.
    assert cohen_kappa(["pass"] * 19 + ["fail"], ["pass"] * 20) == 0.0


def test_what_is_not_defined() -> None:
    assert cohen_kappa([], []) is None
    assert cohen_kappa(["pass"] * 3, ["pass"] * 3) is None
    with pytest.raises(ValueError, match="first has 1 labels, and second has 0"):
        cohen_kappa(["pass"], [])


PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1)


@given(PAIRS)
def test_it_is_symmetric_and_bounded(pairs: list[tuple[str, str]]) -> None:
    first, second = [one for one, _ in pairs], [one for _, one in pairs]
    kappa = cohen_kappa(first, second)
    assert cohen_kappa(second, first) == kappa
    if kappa is None:
        assert len(set(first)) == 1
        assert first == second
    else:
        assert -1.0 <= kappa <= 1.0
        assert (kappa == 1.0) == (first == second)
