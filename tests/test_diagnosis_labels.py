import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.artifacts import ContextItem, Passage
from rag_assets.contracts.cases import parse_case
from rag_assets.evaluation.diagnosis.implicated import implicated_factors
from rag_assets.evaluation.diagnosis.labels import Verdict, evidence_of, label_case

GOLDEN = Path(__file__).parent / "golden"
LABELS = json.loads((GOLDEN / "diagnosis_labels.json").read_text(encoding="utf-8"))
FACTORS = json.loads((GOLDEN / "diagnosis_recommendations.json").read_text(encoding="utf-8"))

deterministic = settings(max_examples=100, derandomize=True, deadline=None)


def units(names: list[str] | None, kind: type[Any]) -> list[Any] | None:
    if names is None:
        return None
    parts = [name.partition("#") for name in names]
    return [kind(doc_id=doc, chunk_id=chunk or None) for doc, _, chunk in parts]


@pytest.mark.parametrize("vector", LABELS, ids=[f"{at}" for at in range(len(LABELS))])
def test_labels_are_those_of_the_golden_vectors(vector: Mapping[str, Any]) -> None:
    expected = {"relevant": vector["relevant"], "requires": vector["requires"]}
    case = parse_case({"id": "c", "input": "Q?", "expected": expected})
    evidence = evidence_of(
        case,
        units(vector["retrieved"], Passage),
        units(vector["context"], ContextItem),
        vector["relevance_unit"],
        vector["top_k"],
    )
    found = label_case(
        is_staged=vector["staged"],
        control=vector["control"],
        intervention=vector["intervention"],
        is_labelled=any(label.grade > 0 for label in case.relevant),
        evidence=evidence,
    )
    assert (found.label, found.reason, found.strength, list(found.notes)) == (
        vector["label"],
        vector["reason"],
        vector["strength"],
        vector["notes"],
    )
    assert evidence.best_position == vector["best_relevant_position"]


@pytest.mark.parametrize("vector", FACTORS, ids=[one["tag"] for one in FACTORS])
def test_implicated_factors_are_those_of_the_golden_vectors(vector: Mapping[str, Any]) -> None:
    found = implicated_factors(
        vector["counts"],
        vector["ranked_out_positions"],
        selected=vector["selected"],
        recovered=vector["recovered"],
        depth=vector["depth"],
    )
    shown = [asdict(one) for one in found]
    assert json.loads(json.dumps(shown)) == vector["implicated"]


VERDICTS = st.sampled_from(get_args(Verdict))
IDS = st.lists(st.sampled_from(["r", "s", "a", "b"]), max_size=5)


@deterministic
@given(
    control=st.none() | VERDICTS,
    intervention=VERDICTS,
    relevant=st.sets(st.sampled_from(["r", "s"])),
    requires=st.sampled_from(["any", "all"]),
    retrieved=IDS,
    top_k=st.integers(1, 4),
    kept=st.integers(0, 4),
)
def test_a_label_never_says_more_than_its_evidence(
    control: Verdict | None,
    intervention: Verdict,
    relevant: set[str],
    requires: str,
    retrieved: list[str],
    top_k: int,
    kept: int,
) -> None:
    labels = [{"doc_id": one} for one in sorted(relevant)]
    case = parse_case(
        {"id": "c", "input": "Q?", "expected": {"relevant": labels, "requires": requires}}
    )
    context = retrieved[: min(top_k, kept)]
    evidence = evidence_of(
        case, units(retrieved, Passage), units(context, ContextItem), "doc", top_k
    )
    found = label_case(
        is_staged=True,
        control=control,
        intervention=intervention,
        is_labelled=bool(relevant),
        evidence=evidence,
    )
    needed = all if requires == "all" else any
    is_in_context = bool(relevant) and needed(one in context for one in relevant)
    is_retrieved = bool(relevant) and needed(one in retrieved for one in relevant)
    if found.label != "UNRESOLVED":
        assert control in ("failed", None)
    if found.label in ("RETRIEVAL_MISS", "RANKED_OUT", "CONTEXT_ASSEMBLY_LOSS"):
        assert intervention == "passed"
        assert not is_in_context
        assert found.strength == "intervention_recovery"
        assert is_retrieved == (found.label != "RETRIEVAL_MISS")
    if found.label == "GENERATION_FAILURE":
        assert intervention == "failed"
        assert found.strength == "intervention_non_recovery"
    if found.label == "UNRESOLVED":
        assert found.strength == "none"


@deterministic
@given(positions=st.lists(st.integers(1, 50), min_size=1, max_size=40), depth=st.integers(1, 50))
def test_the_suggested_top_k_reaches_nine_in_ten_positions(
    positions: list[int], depth: int
) -> None:
    (found,) = implicated_factors(
        {"RANKED_OUT": len(positions)},
        positions,
        selected=len(positions),
        recovered=len(positions),
        depth=depth,
    )
    suggested = found.experiments[-1].value
    assert suggested is not None
    assert suggested <= depth
    reached = sum(position <= suggested for position in positions)
    assert suggested == depth or 10 * reached >= 9 * len(positions)
    fewer = sum(position < suggested for position in positions)
    assert 10 * fewer < 9 * len(positions)
