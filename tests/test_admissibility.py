"""Which documents a user may be shown, at a date."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import corpus_of
from rag_assets.contracts.admissibility import Sources, inadmissibility, names_of, user_id
from rag_assets.contracts.corpus import Corpus, CorpusDocument
from rag_assets.contracts.moments import day, moment

deterministic = settings(derandomize=True, deadline=None, max_examples=200)


def reason(as_of: str = "2024-06-01", *names: str, **fields: Any) -> str | None:
    document = CorpusDocument(doc_id="d", **fields)
    return inadmissibility(document, frozenset(names), moment(as_of))


def test_reasons() -> None:
    assert reason() is None
    assert inadmissibility(None, frozenset(), moment("2024-06-01")) == "unknown_source"
    assert reason(status="retired") == "retired"
    assert reason(access=["staff"]) == "not permitted"
    assert reason("2024-06-01", "ann", "member", access=["staff"]) == "not permitted"
    assert reason("2024-06-01", "ann", "staff", access=["staff"]) is None
    assert reason("2024-06-01", "ann", access=["ann", "staff"]) is None
    assert reason("2024-06-01", "ann", access=[]) == "not permitted"
    assert reason(valid_from="2024-06-02") == "not yet valid"
    assert reason(valid_to="2024-05-31") == "expired"
    assert reason(status="retired", access=["staff"], valid_to="2024-05-31") == "retired"


@pytest.mark.parametrize(
    ("as_of", "valid_from", "valid_to", "expected"),
    [
        # Both bounds are inclusive, and a date is the whole day in UTC.
        ("2024-05-01", "2024-05-01", "2024-05-01", None),
        ("2024-04-30", "2024-05-01", None, "not yet valid"),
        ("2024-05-02", None, "2024-05-01", "expired"),
        ("2024-05-01T23:59:59Z", None, "2024-05-01", None),
        ("2024-05-02T00:00:00Z", None, "2024-05-01", "expired"),
        # Times are compared as instants with their zones.
        ("2024-04-30T21:59:00Z", "2024-05-01T00:00:00+02:00", None, "not yet valid"),
        ("2024-04-30T22:00:00Z", "2024-05-01T00:00:00+02:00", None, None),
        ("2024-05-01T00:30:00+02:00", None, "2024-04-30T22:00:00Z", "expired"),
        # Of a day, it is enough that the document holds at some time.
        ("2024-05-01", "2024-05-01T18:00:00Z", None, None),
        ("2024-05-01", None, "2024-05-01T06:00:00Z", None),
    ],
)
def test_dates(as_of: str, valid_from: str, valid_to: str, expected: str | None) -> None:
    assert reason(as_of, valid_from=valid_from, valid_to=valid_to) == expected


def test_users() -> None:
    assert names_of(None) == frozenset()
    assert names_of("ann") == {"ann"}
    assert names_of({"id": "ann", "roles": ["staff", "hr"]}) == {"ann", "staff", "hr"}
    assert names_of({"id": "ann"}) == {"ann"}
    assert (user_id(None), user_id("ann"), user_id({"id": "ann"})) == (None, "ann", "ann")


def sources(corpus: Corpus, as_of: str = "2024-06-01", *names: str) -> Sources:
    return Sources(corpus, frozenset(names), moment(as_of))


def test_cited_documents(tmp_path: Path) -> None:
    found = sources(corpus_of(tmp_path, {"doc_id": "a"}, {"doc_id": "a#1"}, {"doc_id": "b"}))
    cited = {one: found.cited_document(one) for one in ("a", "a#1", "a#1#2", "b#x#y", "c#1", "c")}
    assert cited == {"a": "a", "a#1": "a#1", "a#1#2": "a#1", "b#x#y": "b", "c#1": "c#1", "c": "c"}
    assert [found.reason(one) for one in ("a", "c")] == [None, "unknown_source"]


def test_stale_documents(tmp_path: Path) -> None:
    found = sources(
        corpus_of(
            tmp_path,
            {"doc_id": "v1", "document": "rule", "valid_from": "2023-01-01"},
            {"doc_id": "v2", "document": "rule", "valid_from": "2024-05-01"},
            {"doc_id": "v3", "document": "rule", "valid_from": "2025-01-01"},
            {"doc_id": "old", "status": "retired"},
            {"doc_id": "past", "valid_to": "2024-01-01"},
            {"doc_id": "hidden", "access": ["staff"]},
            {"doc_id": "memo"},
        )
    )
    ids = ("v1", "v2", "v3", "old", "past", "hidden", "memo", "nowhere")
    assert [one for one in ids if found.is_stale(one)] == ["v1", "old", "past"]


def test_a_day_on_which_nothing_begins_or_ends_changes_nothing(tmp_path: Path) -> None:
    corpus = corpus_of(
        tmp_path,
        {"doc_id": "a", "valid_from": "2024-05-01", "access": ["staff"]},
        {"doc_id": "b", "valid_to": "2024-07-01"},
    )
    standing = sources(corpus, "2024-06-01", "ann", "staff").standing
    assert sources(corpus, "2024-06-20", "bob", "staff").standing == standing
    for other in (
        sources(corpus, "2024-04-30", "ann", "staff"),
        sources(corpus, "2024-07-02", "ann", "staff"),
        sources(corpus, "2024-06-01", "ann"),
    ):
        assert other.standing != standing


NAMES = ("ann", "staff", "hr", "guest")
days = st.dates(day_of := moment("2024-01-01").first.date(), day_of + timedelta(days=9))


@st.composite
def documents(draw: Any) -> dict[str, Any]:
    begins, ends = sorted([draw(days), draw(days)])
    return {
        "status": draw(st.sampled_from(["active", "active", "retired"])),
        "access": draw(st.just("all") | st.lists(st.sampled_from(NAMES[:3]), unique=True)),
        "valid_from": draw(st.none() | st.just(begins.isoformat())),
        "valid_to": draw(st.none() | st.just(ends.isoformat())),
    }


@deterministic
@given(
    st.lists(documents(), min_size=1, max_size=4),
    st.tuples(st.sets(st.sampled_from(NAMES)), days),
    st.tuples(st.sets(st.sampled_from(NAMES)), days),
)
def test_equal_standing_means_equal_reasons(
    rows: list[dict[str, Any]], one: tuple[set[str], Any], other: tuple[set[str], Any]
) -> None:
    known = {str(i): CorpusDocument(doc_id=str(i), **row) for i, row in enumerate(rows)}
    corpus = Corpus("m", "digest", known)
    first, second = (Sources(corpus, frozenset(names), day(at)) for names, at in (one, other))
    reasons = [[found.reason(one) for one in known] for found in (first, second)]
    if first.standing == second.standing:
        assert reasons[0] == reasons[1]
