import hashlib
import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.canonical import (
    MAX_DEPTH,
    NotJsonError,
    canonical_json,
    digest,
    digest_text,
)

deterministic = settings(max_examples=50, derandomize=True, deadline=None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars, lambda part: st.lists(part) | st.dictionaries(texts, part), max_leaves=15
)


def refused(value: Any) -> tuple[str, str]:
    with pytest.raises(NotJsonError) as caught:
        canonical_json(value)
    return caught.value.path, caught.value.message


def nested(levels: int, make: Any = lambda inner: [inner]) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = make(value)
    return value


def test_the_text_is_sorted_tight_and_not_escaped() -> None:
    assert canonical_json({"b": [1, 1.5, None], "a": {"é": True}, "Z": "\u2028"}) == (
        '{"Z":"\u2028","a":{"é":true},"b":[1,1.5,null]}'
    )
    assert canonical_json(("a", ["b"])) == '["a",["b"]]'


def test_a_digest_is_the_sha256_of_the_text() -> None:
    assert digest({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()
    assert digest_text("é") == "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


@deterministic
@given(json_values, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, order: random.Random) -> None:
    assert canonical_json(shuffled(value, order)) == canonical_json(value)


@deterministic
@given(json_values)
def test_the_text_gives_back_the_value(value: Any) -> None:
    text = canonical_json(value)
    again = json.loads(text)
    assert again == value
    assert canonical_json(again) == text


def test_numbers_texts_and_booleans_stay_different() -> None:
    values: list[Any] = [1, 1.0, "1", True, [1], None, "null", 0, -0.0, 0.0, False, ""]
    assert len({digest(value) for value in values}) == len(values)
    assert len({digest({"k": value}) for value in values}) == len(values)
    assert [canonical_json(value) for value in values[:4]] == ["1", "1.0", '"1"', "true"]


@deterministic
@given(json_values, json_values)
def test_equal_digests_mean_equal_json(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (
        json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    )


@pytest.mark.parametrize("key", [1, 1.5, True, None])
def test_keys_that_json_would_turn_into_text_are_refused(key: Any) -> None:
    said = f"has the key {key!r}, and JSON keys are strings"
    assert refused({key: 1}) == ("", said)
    assert refused({"a": [0, {"b": {key: 1}}]}) == ("a.1.b", said)
    assert refused(({key: 1},)) == ("0", said)
    assert refused({"a": 1, key: 2}) == ("", said)


def test_a_key_that_is_no_json_at_all_is_refused() -> None:
    assert refused({"a": {(1, 2): 3}}) == ("a", "has the key (1, 2), and JSON keys are strings")


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({1}, "", "is a set, which JSON cannot hold"),
        ({"a": [b"x"]}, "a.0", "is a bytes, which JSON cannot hold"),
        ({"a": object}, "a", "is a type, which JSON cannot hold"),
        ({"a": np.int64(1)}, "a", "is a numpy.int64, which JSON cannot hold"),
        ([np.float32(1)], "0", "is a numpy.float32, which JSON cannot hold"),
        (float("nan"), "", "is nan, and JSON has no such number"),
        ({"a": {"b": [1, float("-inf")]}}, "a.b.1", "is -inf, and JSON has no such number"),
        ([np.float64("inf")], "0", "is inf, and JSON has no such number"),
        ("\ud800", "", "holds half of a surrogate pair, which UTF-8 cannot write"),
        ({"a": ["x\udfff"]}, "a.0", "holds half of a surrogate pair, which UTF-8 cannot write"),
        ({"\ud800": 1}, "", "holds half of a surrogate pair, which UTF-8 cannot write"),
        ([10**5000], "0", "is a whole number of too many digits"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(
    value: Any, path: str, message: str
) -> None:
    assert refused(value) == (path, message)


def test_the_text_of_an_error_begins_with_the_place() -> None:
    assert str(NotJsonError("a.0", "is a set")) == "a.0: is a set"
    assert str(NotJsonError("", "is a set")) == "is a set"


TOO_DEEP = ("", "is nested deeper than 250 levels, or contains itself")


def test_nesting_has_one_limit_on_every_stack() -> None:
    assert MAX_DEPTH == 250
    for make in (lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: (0, inner)):
        assert canonical_json(nested(250, make)).count("1") == 1
        assert refused(nested(251, make)) == TOO_DEEP
        assert refused(nested(20_000, make)) == TOO_DEEP

    def far_down(calls: int) -> tuple[str, tuple[str, str]]:
        if calls:
            return far_down(calls - 1)
        return canonical_json(nested(250)), refused(nested(251))

    assert far_down(300) == (canonical_json(nested(250)), TOO_DEEP)


def test_a_value_that_contains_itself_is_refused() -> None:
    listed: list[Any] = []
    listed.append(listed)
    mapped: dict[str, Any] = {}
    mapped["a"] = [mapped, mapped]
    assert refused(listed) == TOO_DEEP
    assert refused(mapped) == TOO_DEEP


def test_a_value_that_stands_twice_in_another_is_fine() -> None:
    shared = {"a": 1}
    assert canonical_json([shared, shared]) == '[{"a":1},{"a":1}]'


def test_two_spellings_of_a_nested_input_are_one() -> None:
    one = {"question": "Q?", "filters": {"year": 2024, "tags": ["a", None]}}
    other = {"filters": {"tags": ["a", None], "year": 2024}, "question": "Q?"}
    assert digest(one) == digest(other)
    assert digest({**one, "text": "x" * 200_000}) != digest(one)
    wide = {f"k{number}": number for number in range(2000)}
    assert digest(wide) == digest(dict(reversed(wide.items())))
