"""Folding texts, and tracing what is found in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.folding import folded, folded_places

deterministic = settings(derandomize=True, deadline=None, max_examples=300)

# Letters that compose, decompose, grow or shrink when they are folded, and white space.
texts = st.text(
    st.sampled_from("aB ﬁß\u0301e\u0345İǰ\u1fb7ẛ\u2003\t\n각\u1100\u1161\u11a8½ﷺ"), max_size=12
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  A\t\nb ", "a b"),
        ("ﬁx", "fix"),
        ("Straße", "strasse"),
        ("E\u0301", "é"),
        ("１４", "14"),
        ("a\u2003b", "a b"),
        ("", ""),
        (" \t ", ""),
    ],
)
def test_folded(text: str, expected: str) -> None:
    assert folded(text) == expected


@deterministic
@given(texts | st.text(max_size=12))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@deterministic
@given(texts | st.text(max_size=12))
def test_every_character_comes_from_somewhere(text: str) -> None:
    found, places = folded_places(text)
    assert found == folded(text)
    assert len(places) == len(found)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)


def test_places() -> None:
    text = "x  ﬁne E\u0301t"
    found, places = folded_places(text)
    assert found == "x fine ét"
    assert [text[start:end] for start, end in places] == [
        *("x", " ", "ﬁ", "ﬁ", "n", "e", " ", "E\u0301", "t")
    ]
