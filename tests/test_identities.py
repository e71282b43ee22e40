from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.identities import StageKeys, judgment_key

deterministic = settings(max_examples=40, derandomize=True, deadline=None)

SYSTEM: dict[str, Any] = {
    "name": "bot",
    "version": "1",
    "config": {"model": "small", "nested": {"temperature": 0.5}},
    "code": {"retrieve": "r1", "generate": "g1", "count_tokens": "t1"},
    "index_version": "kb-1",
    "depth": 6,
    "seeds": {},
    "system_identity": "s1",
}


def case(**fields: Any) -> Case:
    return parse_case({"id": "c1", "input": {"question": "Q?", "year": 2024}, **fields})


CASE = case()
PASSAGES = [{"doc_id": "a", "chunk_id": "1", "score": 0.5, "text": "x", "metadata": {"k": 1}}]


def identities(of: Case = CASE, passages: Any = PASSAGES, **changes: Any) -> tuple[str, str, str]:
    keys = StageKeys.of(**{**SYSTEM, **changes})
    return keys.retrieval_of(of), keys.generation_of(of, passages), keys.execution_of(of)


BASE = identities()


def changed(**changes: Any) -> list[str]:
    """The names of the identities that differ from those of the unchanged system and case."""
    names = ("retrieval", "generation", "execution")
    found = identities(**changes)
    return [name for name, one, base in zip(names, found, BASE, strict=True) if one != base]


def test_an_identity_is_a_digest_and_each_stage_has_its_own() -> None:
    assert [len(one) for one in BASE] == [64, 64, 64]
    assert len(set(BASE)) == 3
    assert identities() == BASE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "other"}, ["retrieval", "generation"]),
        ({"version": "2"}, ["retrieval", "generation"]),
        ({"version": None}, ["retrieval", "generation"]),
        ({"config": {"model": "large"}}, ["retrieval", "generation"]),
        ({"code": {**SYSTEM["code"], "retrieve": "r2"}}, ["retrieval"]),
        ({"code": {**SYSTEM["code"], "generate": "g2"}}, ["generation"]),
        ({"code": {**SYSTEM["code"], "count_tokens": "t2"}}, []),
        ({"index_version": "kb-2"}, ["retrieval"]),
        ({"index_version": None}, ["retrieval"]),
        ({"depth": 7}, ["retrieval"]),
        ({"seeds": {"retrieve": 0}}, ["retrieval", "execution"]),
        ({"seeds": {"generate": 0}}, ["generation", "execution"]),
        ({"system_identity": "s2"}, ["execution"]),
    ],
)
def test_what_of_the_system_is_in_which_identity(
    changes: dict[str, Any], expected: list[str]
) -> None:
    # Everything else of the system reaches the execution through the system identity.
    assert changed(**changes) == expected


def test_another_seed_counts_only_where_a_stage_takes_it() -> None:
    one = identities(seeds={"generate": 1})
    other = identities(seeds={"generate": 2})
    assert [a == b for a, b in zip(one, other, strict=True)] == [True, False, False]


EVERY = ["retrieval", "generation", "execution"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": "c2"}, []),
        ({"expected": {"answer": "14 days", "relevant": [{"doc_id": "a"}]}}, []),
        ({"expected": "14 days"}, []),
        ({"metadata": {"language": "en"}}, []),
        ({"group": "g"}, []),
        ({"input": {"year": 2024, "question": "Q?"}}, []),
        ({"input": {"question": "q?", "year": 2024}}, EVERY),
        ({"input": {"question": "Q?", "year": 2024.0}}, EVERY),
        ({"input": {"question": "Q?", "year": "2024"}}, EVERY),
        ({"user": "ann"}, EVERY),
        ({"user": {"id": "ann", "roles": ["staff"]}}, EVERY),
        ({"as_of": "2026-09-16"}, EVERY),
    ],
)
def test_what_of_the_case_is_in_the_identities(fields: dict[str, Any], expected: list[str]) -> None:
    assert changed(of=case(**fields)) == expected


def test_the_line_of_a_case_is_in_no_identity() -> None:
    raw = {"id": "c1", "input": {"question": "Q?", "year": 2024}}
    assert changed(of=parse_case(raw, line=7)) == []


@pytest.mark.parametrize(
    "passages",
    [
        [],
        [*PASSAGES, *PASSAGES],
        [{**PASSAGES[0], "doc_id": "b"}],
        [{**PASSAGES[0], "chunk_id": "2"}],
        [{**PASSAGES[0], "score": 0.25}],
        [{**PASSAGES[0], "text": "y"}],
        [{**PASSAGES[0], "metadata": {"k": 2}}],
    ],
)
def test_a_generation_depends_on_everything_of_its_passages(passages: list[Any]) -> None:
    assert changed(passages=passages) == ["generation"]


def test_a_generation_depends_on_the_order_of_its_passages() -> None:
    one, other = {"doc_id": "a"}, {"doc_id": "b"}
    assert identities(passages=[one, other]) != identities(passages=[other, one])


def test_a_sample_is_another_generation_and_execution() -> None:
    keys = StageKeys.of(**SYSTEM)
    assert keys.generation_of(CASE, PASSAGES, sample=1) != keys.generation_of(CASE, PASSAGES)
    assert keys.execution_of(CASE, sample=1) != keys.execution_of(CASE)
    assert keys.generation_of(CASE, PASSAGES, sample=0) == keys.generation_of(CASE, PASSAGES)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
inputs = st.recursive(
    st.integers() | texts | st.booleans(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(texts, part, max_size=3),
    max_leaves=6,
)


@deterministic
@given(inputs, inputs, st.none() | texts.filter(bool))
def test_equal_inputs_have_one_identity_and_others_have_not(
    one: Any, other: Any, user: str | None
) -> None:
    first = parse_case({"id": "one", "input": one, **({"user": user} if user else {})})
    second = parse_case({"id": "two", "input": other, **({"user": user} if user else {})})
    equal = first.input_digest == second.input_digest
    for a, b in zip(identities(first), identities(second), strict=True):
        assert (a == b) is equal


def test_a_judgment_depends_on_all_of_its_parts() -> None:
    keys = {
        judgment_key("correct", "e1", None, ["d1", "d2"]),
        judgment_key("other", "e1", None, ["d1", "d2"]),
        judgment_key("correct", "e2", None, ["d1", "d2"]),
        judgment_key("correct", "e1", {"answer": "x"}, ["d1", "d2"]),
        judgment_key("correct", "e1", None, ["d2", "d1"]),
        judgment_key("correct", "e1", None, ["d1"]),
    }
    assert len(keys) == 6
    assert judgment_key("correct", "e1", None, ("d1", "d2")) in keys
