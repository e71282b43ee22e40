import json
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_assets.contracts.artifacts import (
    Artifact,
    Citations,
    Context,
    ContextItem,
    DroppedItem,
    Passage,
    Retrieval,
    noting_malformed,
    parse_retrieval,
)
from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.errors import ArtifactError

deterministic = settings(max_examples=40, derandomize=True, deadline=None)


def refused(kind: type[Artifact], value: Any) -> tuple[str, str]:
    with pytest.raises(ArtifactError) as caught:
        kind.parse(value)
    return caught.value.field, caught.value.message


def retrieval(*candidates: Any, **fields: Any) -> dict[str, Any]:
    return {"query": "Q?", "candidates": list(candidates), **fields}


# Round trip

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
ids = texts.filter(lambda text: text == text.strip())
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts, lambda part: st.lists(part) | st.dictionaries(texts, part), max_leaves=6
)
passages = st.builds(
    Passage,
    doc_id=ids,
    chunk_id=st.none() | ids,
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    text=st.none() | texts,
    metadata=st.dictionaries(texts, values, max_size=3),
)
positions = st.none() | st.integers(1, 99)
counts = st.none() | st.integers(0, 999)
item_fields = {
    "doc_id": ids,
    "chunk_id": st.none() | ids,
    "position": positions,
    "tokens": counts,
    "text": st.none() | texts,
}
items = st.builds(ContextItem, **item_fields)
dropped = st.builds(DroppedItem, **item_fields, reason=st.sampled_from(["top_k", "token_budget"]))
retrievals = st.builds(
    Retrieval,
    query=values,
    depth=st.none() | st.integers(1, 50),
    candidates=st.lists(passages, max_size=4),
)
contexts = st.builds(
    Context,
    items=st.lists(items, max_size=3),
    dropped=st.lists(dropped, max_size=3),
    token_budget=counts,
    source=texts,
)
citations = st.builds(Citations, ids=st.lists(texts, max_size=4))


@deterministic
@given(st.one_of(passages, retrievals, items, dropped, contexts, citations))
def test_a_record_gives_back_the_artifact(artifact: Any) -> None:
    stored = canonical_json(artifact.record())
    again = type(artifact).parse(json.loads(stored))
    assert again == artifact
    assert canonical_json(again.record()) == stored


def test_a_record_leaves_out_what_says_nothing() -> None:
    assert Passage(doc_id="a").record() == {"doc_id": "a"}
    assert ContextItem(doc_id="a", tokens=0).record() == {"doc_id": "a", "tokens": 0}
    assert Passage(doc_id="a", score=0.0).record() == {"doc_id": "a", "score": 0.0}
    assert Retrieval(query=None, candidates=()).record() == {
        "query": None,
        "depth": None,
        "candidates": [],
    }
    assert Context(items=()).record() == {
        "items": [],
        "dropped": [],
        "token_budget": None,
        "source": "retrieval",
    }
    assert Citations(ids=("a", "a#1")).record() == {"ids": ["a", "a#1"]}


# What is accepted


def test_order_and_duplicates_are_kept_in_lists_and_tuples() -> None:
    wanted = ["b", "a", "b", "c"]
    given_scores = [0.1, 0.9, 0.1, 0.9]
    candidates = [
        {"doc_id": doc, "score": score} for doc, score in zip(wanted, given_scores, strict=True)
    ]
    for given_as in (list, tuple):
        parsed = Retrieval.parse({"query": 1, "candidates": given_as(candidates)})
        assert [candidate.doc_id for candidate in parsed.candidates] == wanted
        assert [candidate.score for candidate in parsed.candidates] == given_scores
        assert Citations.parse({"ids": given_as(wanted)}).ids == ("b", "a", "b", "c")


@pytest.mark.parametrize("score", [0.0, -3.5, -0.0, 7, None, 1e-300])
def test_any_finite_score_or_none_is_recorded(score: Any) -> None:
    assert Passage(doc_id="a", score=score).score == score


@pytest.mark.parametrize("score", [np.float64(0.5), np.float32(0.5), np.float16(0.5)])
def test_numbers_of_numpy_are_kept_as_floats(score: Any) -> None:
    kept = Passage(doc_id="a", score=score).record()["score"]
    assert (type(kept), kept) == (float, 0.5)


def test_a_whole_number_of_numpy_is_a_score_and_no_depth() -> None:
    assert type(Passage.parse({"doc_id": "a", "score": np.int64(2)}).score) is float
    assert refused(Retrieval, retrieval(depth=np.int64(3))) == (
        "depth",
        "must be a whole number, got np.int64(3) (int64)",
    )


def test_ids_are_compared_exactly() -> None:
    assert Passage(doc_id="007").doc_id == "007"
    assert Passage(doc_id="7") != Passage(doc_id="007")
    assert Passage(doc_id="Ä b").doc_id == "Ä b"


def test_any_mapping_and_any_instance_will_do() -> None:
    made = Retrieval(query="Q?", candidates=(Passage(doc_id="a"),))
    assert Retrieval.parse(made) == made
    assert Retrieval.parse(MappingProxyType(retrieval({"doc_id": "a"}))) == made
    assert Retrieval.parse(retrieval(Passage(doc_id="a"))) == made


def test_artifacts_cannot_be_changed() -> None:
    passage = Passage(doc_id="a")
    with pytest.raises(ValidationError, match="frozen"):
        passage.doc_id = "b"  # type: ignore[misc]


# What is refused

NOT_A_FIELD = "is not a field of this artifact; extra values belong into metadata"


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({}, "doc_id", "is required"),
        ({"doc_id": None}, "doc_id", "must be a string, got None (NoneType)"),
        ({"doc_id": 7}, "doc_id", "must be a string, got 7 (int)"),
        ({"doc_id": ""}, "doc_id", "must not be empty"),
        ({"doc_id": " 007"}, "doc_id", "must not begin or end with white space, got ' 007'"),
        ({"doc_id": "a\n"}, "doc_id", "must not begin or end with white space, got 'a\\n'"),
        (
            {"doc_id": "\ud800"},
            "doc_id",
            "must be text that UTF-8 can hold, got '\\ud800' (str)",
        ),
        ({"doc_id": b"a"}, "doc_id", "must be a string, got b'a' (bytes)"),
        ({"doc_id": "a", "chunk_id": ""}, "chunk_id", "must not be empty"),
        ({"doc_id": "a", "chunk_id": 1}, "chunk_id", "must be a string, got 1 (int)"),
        (
            {"doc_id": "a", "chunk_id": "c "},
            "chunk_id",
            "must not begin or end with white space, got 'c '",
        ),
        ({"doc_id": "a", "score": "0.5"}, "score", "must be a number, got '0.5' (str)"),
        ({"doc_id": "a", "score": True}, "score", "must be a number, got True (bool)"),
        (
            {"doc_id": "a", "score": float("nan")},
            "score",
            "must be a finite number, got nan (float)",
        ),
        (
            {"doc_id": "a", "score": float("-inf")},
            "score",
            "must be a finite number, got -inf (float)",
        ),
        ({"doc_id": "a", "text": ""}, "text", "must not be empty"),
        ({"doc_id": "a", "text": 1}, "text", "must be a string, got 1 (int)"),
        ({"doc_id": "a", "metadata": None}, "metadata", "must be an object, got None (NoneType)"),
        ({"doc_id": "a", "metadata": [1]}, "metadata", "must be an object, got [1] (list)"),
        (
            {"doc_id": "a", "metadata": {1: 2}},
            "metadata",
            "has the key 1 (int), and keys are strings",
        ),
        (
            {"doc_id": "a", "metadata": {"a": [{2: 3}]}},
            "metadata.a.0",
            "has the key 2, and JSON keys are strings",
        ),
        (
            {"doc_id": "a", "metadata": {"a": {"b": {1}}}},
            "metadata.a.b",
            "is a set, which JSON cannot hold",
        ),
        (
            {"doc_id": "a", "metadata": {"n": float("nan")}},
            "metadata.n",
            "is nan, and JSON has no such number",
        ),
        ({"doc_id": "a", "position": 1}, "position", NOT_A_FIELD),
        ({"doc_id": "a", "self": 1}, "self", NOT_A_FIELD),
        ({"doc_id": "a", 1: 2}, "", "has the key 1 (int), and keys are strings"),
    ],
)
def test_a_malformed_passage(fields: dict[Any, Any], field: str, message: str) -> None:
    assert refused(Passage, fields) == (field, message)


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        (None, "", "must be a Retrieval or a mapping, got None (NoneType)"),
        (["a"], "", "must be a Retrieval or a mapping, got ['a'] (list)"),
        ({"candidates": []}, "query", "is required"),
        ({"query": 1}, "candidates", "is required"),
        (retrieval(query={1}), "query", "is a set, which JSON cannot hold"),
        (retrieval(depth=0), "depth", "must be at least 1, got 0 (int)"),
        (retrieval(depth=2.0), "depth", "must be a whole number, got 2.0 (float)"),
        (retrieval(depth=True), "depth", "must be a whole number, got True (bool)"),
        (retrieval(candidates=None), "candidates", "must be a list, got None (NoneType)"),
        (retrieval(candidates="ab"), "candidates", "must be a list, got 'ab' (str)"),
        (retrieval(candidates={}), "candidates", "must be a list, got {} (dict)"),
        (retrieval("a"), "candidates.0", "must be an object, got 'a' (str)"),
        (retrieval({"doc_id": "a"}, {}), "candidates.1.doc_id", "is required"),
        (
            retrieval({"doc_id": "a"}, {"doc_id": "b", "score": float("nan")}),
            "candidates.1.score",
            "must be a finite number, got nan (float)",
        ),
        (retrieval({"doc_id": "a", "rank": 1}), "candidates.0.rank", NOT_A_FIELD),
        (
            retrieval({"doc_id": "a", "metadata": {"n": [float("inf")]}}),
            "candidates.0.metadata.n.0",
            "is inf, and JSON has no such number",
        ),
        (retrieval(top_k=1), "top_k", NOT_A_FIELD),
    ],
)
def test_a_malformed_retrieval(value: Any, field: str, message: str) -> None:
    assert refused(Retrieval, value) == (field, message)


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ({}, "items", "is required"),
        ({"items": [{"doc_id": "a", "text": ""}]}, "items.0.text", "must not be empty"),
        (
            {"items": [{"doc_id": "a", "position": 0}]},
            "items.0.position",
            "must be at least 1, got 0 (int)",
        ),
        (
            {"items": [{"doc_id": "a", "tokens": -1}]},
            "items.0.tokens",
            "must be at least 0, got -1 (int)",
        ),
        ({"items": [{"doc_id": "a", "score": 1.0}]}, "items.0.score", NOT_A_FIELD),
        ({"items": [], "dropped": [{"doc_id": "a"}]}, "dropped.0.reason", "is required"),
        (
            {"items": [], "dropped": [{"doc_id": "a", "reason": "age"}]},
            "dropped.0.reason",
            "must be 'top_k' or 'token_budget', got 'age' (str)",
        ),
        ({"items": [], "token_budget": -1}, "token_budget", "must be at least 0, got -1 (int)"),
        ({"items": [], "source": ""}, "source", "must not be empty"),
    ],
)
def test_a_malformed_context(value: Any, field: str, message: str) -> None:
    assert refused(Context, value) == (field, message)


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ({"ids": "a"}, "ids", "must be a list, got 'a' (str)"),
        ({"ids": ["a", ""]}, "ids.1", "must not be empty"),
        ({"ids": [7]}, "ids.0", "must be a string, got 7 (int)"),
    ],
)
def test_malformed_citations(value: Any, field: str, message: str) -> None:
    assert refused(Citations, value) == (field, message)


def test_a_long_value_is_cut_and_one_that_cannot_be_shown_is_named() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    _, message = refused(Passage, {"doc_id": list(range(1000))})
    assert message.endswith("20, 21, … (list)")
    assert len(message) == len("must be a string, got ") + 80 + len(" (list)")
    assert refused(Passage, {"doc_id": Shy()}) == ("doc_id", "must be a string, got a Shy")


def test_the_first_field_is_named_when_several_are_malformed() -> None:
    assert refused(Passage, {"doc_id": 7, "score": "x", "more": 1})[0] == "doc_id"


def test_the_message_names_the_dotted_field() -> None:
    with pytest.raises(ArtifactError) as caught:
        Retrieval(query="Q?", candidates=[{"doc_id": 7}])  # type: ignore[arg-type]
    assert str(caught.value) == "candidates.0.doc_id: must be a string, got 7 (int)"
    assert isinstance(caught.value, ValueError)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"score": float("nan")}, "candidates.0.score", "must be a finite number, got nan (float)"),
        ({"metadata": {"a": {1}}}, "candidates.0.metadata.a", "is a set, which JSON cannot hold"),
        ({"more": 1}, "candidates.0.more", NOT_A_FIELD),
    ],
)
def test_copies_with_other_values_are_checked_where_they_are_handed_over(
    values: dict[str, Any], field: str, message: str
) -> None:
    copied = Passage(doc_id="a").model_copy(update=values)
    assert refused(Retrieval, retrieval(copied)) == (field, message)
    unchecked = Retrieval.model_construct(query=1, depth=None, candidates=(copied,))
    assert refused(Retrieval, unchecked) == (field, message)


@deterministic
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda part: (
            st.lists(part, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["query", "depth", "candidates", "doc_id", "score", "metadata", "self", ""]
                )
                | st.integers(),
                part,
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_comes_back_is_a_retrieval_or_an_artifact_error(value: Any) -> None:
    try:
        parsed = Retrieval.parse(value)
    except ArtifactError:
        return
    assert isinstance(value, Mapping)
    assert Retrieval.parse(parsed.record()) == parsed


# The depth that was asked for


def test_the_depth_is_filled_in_and_must_be_the_one_asked_for() -> None:
    assert parse_retrieval(retrieval({"doc_id": "a"}), 3).depth == 3
    assert parse_retrieval(retrieval(depth=3), 3).depth == 3
    with pytest.raises(ArtifactError) as caught:
        parse_retrieval(retrieval(depth=5), 3)
    assert str(caught.value) == "depth: is 5, but depth 3 was asked for"


def test_more_candidates_than_the_depth_are_malformed() -> None:
    full = retrieval(*({"doc_id": "same"} for _ in range(3)))
    assert len(parse_retrieval(full, 3).candidates) == 3
    with pytest.raises(ArtifactError) as caught:
        parse_retrieval(full, 2)
    assert str(caught.value) == (
        "candidates: holds 3 candidates, but depth 2 was asked for; return at most 2"
    )


# Noting


def test_an_error_that_user_code_swallows_is_noted() -> None:
    with noting_malformed() as noted:
        Passage(doc_id="fine")
        for malformed in ({"doc_id": 7}, {"doc_id": "a", "score": float("nan")}):
            with suppress(ArtifactError):
                Passage.parse(malformed)
        with suppress(ValueError):
            Retrieval.parse("nothing")
    assert [str(error) for error in noted] == [
        "doc_id: must be a string, got 7 (int)",
        "score: must be a finite number, got nan (float)",
        "must be a Retrieval or a mapping, got 'nothing' (str)",
    ]


def test_nothing_is_noted_outside_of_a_block_and_blocks_do_not_mix() -> None:
    with noting_malformed() as outer:
        with noting_malformed() as inner, pytest.raises(ArtifactError):
            Passage(doc_id="")
        with pytest.raises(ArtifactError):
            Citations(ids=("",))
    with pytest.raises(ArtifactError):
        Passage(doc_id=1)  # type: ignore[arg-type]
    assert [error.field for error in inner] == ["doc_id"]
    assert [error.field for error in outer] == ["ids.0"]


# Recorded faults


def test_an_empty_text_is_malformed_and_an_empty_retrieval_is_not() -> None:
    assert parse_retrieval(retrieval(), 5).candidates == ()
    assert Context.parse({"items": []}).items == ()
    assert refused(Context, {"items": [{"doc_id": "pump", "text": ""}]}) == (
        "items.0.text",
        "must not be empty",
    )
