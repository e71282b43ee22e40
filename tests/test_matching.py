import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.artifacts import ContextItem, Passage
from rag_assets.contracts.cases import Case, Label, parse_case
from rag_assets.evaluation.matching import Match, Unit, match_relevant

GOLDEN = Path(__file__).parent / "golden" / "diagnosis_labels.json"
VECTORS = [
    vector
    for vector in json.loads(GOLDEN.read_text(encoding="utf-8"))
    if vector["retrieved"] is not None
]

deterministic = settings(max_examples=100, derandomize=True, deadline=None)


def named(names: str) -> list[tuple[str, str | None]]:
    """From "doc" and "doc#chunk", separated by spaces."""
    parts = [name.partition("#") for name in names.split()]
    return [(doc, chunk or None) for doc, _, chunk in parts]


def case(relevant: str, requires: str = "any") -> Case:
    labels = tuple(Label(doc, chunk, 1.0) for doc, chunk in named(relevant))
    made = parse_case({"id": "c", "input": "Q?", "expected": {"requires": requires}})
    return replace(made, relevant=labels)


def passages(names: str) -> list[Passage]:
    return [Passage(doc_id=doc, chunk_id=chunk) for doc, chunk in named(names)]


def match(relevant: str, retrieved: str, unit: Unit = "doc", requires: str = "any") -> Match:
    return match_relevant(case(relevant, requires), passages(retrieved), unit)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["tag"] for vector in VECTORS])
def test_known_positions(vector: dict[str, Any]) -> None:
    expected = {"relevant": vector["relevant"], "requires": vector["requires"]}
    made = parse_case({"id": "c", "input": "Q?", "expected": expected})
    found, in_context = (
        match_relevant(made, passages(" ".join(vector[part] or [])), vector["relevance_unit"])
        for part in ("retrieved", "context")
    )
    # A diagnosis prints no position when the match in the context is the ambiguous one.
    best = None if in_context.ambiguous else found.position
    assert best == vector["best_relevant_position"]
    if vector["reason"] == "no_relevance_labels":
        assert found == Match(labelled=False)
    if vector["reason"] in ("relevant_not_retrieved", "relevant_ranked_below_top_k"):
        assert (found.labelled, found.ambiguous) == (True, False)


@pytest.mark.parametrize(
    ("relevant", "retrieved", "unit", "requires", "position", "ambiguous"),
    [
        ("r", "a b", "doc", "any", None, False),
        ("r", "", "doc", "any", None, False),
        ("r s", "a b s r", "doc", "any", 3, False),
        ("r", "r a", "doc", "any", 1, False),
        ("r#c1", "r a", "chunk", "any", None, True),
        ("r#c1", "r#c1 r", "chunk", "any", 1, False),
        ("r#c1", "r a", "doc", "any", 1, False),
        ("r s", "r a s", "doc", "all", 3, False),
        ("r s", "r a s", "doc", "any", 1, False),
        ("r s", "r a b", "doc", "all", None, False),
        ("r s", "r s", "doc", "all", 2, False),
    ],
)
def test_positions_by_unit_and_requirement(
    relevant: str,
    retrieved: str,
    unit: Unit,
    requires: str,
    position: int | None,
    ambiguous: bool,
) -> None:
    assert match(relevant, retrieved, unit, requires) == Match(True, position, ambiguous)


def test_chunks_of_labels_and_candidates_do_not_matter_for_documents() -> None:
    assert match("r#c1", "a r#c9") == Match(True, 2)
    assert match("r", "a r#c9") == Match(True, 2)
    assert match("r#c1 r#c2", "r#c9", requires="all") == Match(True, 1)


def test_another_chunk_of_the_document_is_no_match_and_no_doubt() -> None:
    assert match("r#c1", "r#c2 a", "chunk") == Match(True, None)
    assert match("r#c1", "r#c2 r#c1", "chunk") == Match(True, 2)


def test_a_candidate_without_chunk_is_in_doubt_before_the_first_match_only() -> None:
    assert match("r#c1", "r r#c1", "chunk") == Match(True, ambiguous=True)
    assert match("r#c1", "r#c1 r", "chunk") == Match(True, 1)
    assert match("r#c1", "a b", "chunk") == Match(True, None)
    # A document that nobody labelled is in no doubt.
    assert match("r#c1", "a r#c1", "chunk") == Match(True, 2)
    # Any labelled document counts, also another than the one that matches.
    assert match("r#c1 s#c1", "s r#c1", "chunk") == Match(True, ambiguous=True)
    assert match("r#c1 s#c1", "r#c1 s", "chunk") == Match(True, 1)


def test_all_units_are_looked_at_one_by_one() -> None:
    assert match("r#1 r#2", "r#2 a r#1", "chunk", "all") == Match(True, 3)
    assert match("r#1 r#2", "r#1 a", "chunk", "all") == Match(True, None)
    # The doubt about one unit makes the whole match doubtful.
    assert match("r#1 s#1", "r#1 s s#1", "chunk", "all") == Match(True, ambiguous=True)
    assert match("r#1 s#1", "r#1 s", "chunk", "all") == Match(True, ambiguous=True)
    assert match("r#1 s#1", "r#1 s#1 s r", "chunk", "all") == Match(True, 2)
    assert match("r s", "r r s s", requires="all") == Match(True, 3)


def test_labels_of_grade_zero_are_not_relevant() -> None:
    graded = replace(
        case(""), relevant=(Label("r", None, 0.0), Label("s", None, 0.5)), requires="all"
    )
    assert match_relevant(graded, passages("r s"), "doc") == Match(True, 2)
    nothing = replace(graded, relevant=(Label("r", None, 0.0),))
    assert match_relevant(nothing, passages("r s"), "doc") == Match(labelled=False)


def test_ids_match_exactly() -> None:
    assert match("007", "7 0007 R r 007") == Match(True, 5)


def test_scores_do_not_matter() -> None:
    scored = [Passage(doc_id="r", score=-7.0), Passage(doc_id="a", score=0.9)]
    assert match_relevant(case("r"), scored, "doc") == Match(True, 1)


def test_the_order_of_context_items_counts_and_not_their_position() -> None:
    items = [ContextItem(doc_id="a", position=4), ContextItem(doc_id="r", position=1)]
    assert match_relevant(case("r"), items, "doc") == Match(True, 2)


names = st.sampled_from(["r", "s", "t", "r#1", "r#2", "s#1", "t#1"])
chunks = st.sampled_from(["r#1", "r#2", "s#1"])
units: st.SearchStrategy[Unit] = st.sampled_from(["doc", "chunk"])


@deterministic
@given(st.lists(chunks, min_size=1, unique=True), st.lists(names, max_size=7), units)
def test_all_stands_never_before_any(relevant: list[str], retrieved: list[str], unit: Unit) -> None:
    labels, candidates = " ".join(relevant), " ".join(retrieved)
    some = match(labels, candidates, unit, "any")
    every = match(labels, candidates, unit, "all")
    if every.position is not None and not some.ambiguous:
        assert some.position is not None
        assert some.position <= every.position
        if len(relevant) == 1:
            assert some == every
    for found in (some, every):
        assert found.labelled
        assert not (found.ambiguous and found.position is not None)
        assert not (unit == "doc" and found.ambiguous)


@deterministic
@given(st.lists(chunks, min_size=1, unique=True), st.lists(names, max_size=7), units)
def test_the_best_position_is_that_of_the_first_candidate_that_matches(
    relevant: list[str], retrieved: list[str], unit: Unit
) -> None:
    wanted = named(" ".join(relevant))
    first = next(
        (
            position
            for position, (doc, chunk) in enumerate(named(" ".join(retrieved)), start=1)
            if any(
                doc == label and (unit == "doc" or chunk == label_chunk)
                for label, label_chunk in wanted
            )
        ),
        None,
    )
    found = match(" ".join(relevant), " ".join(retrieved), unit)
    assert found.position == (None if found.ambiguous else first)
