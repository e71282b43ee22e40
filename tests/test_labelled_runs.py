"""Labels in the runs of a staged system: what is judged anew, and what samples come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from corpora import lines
from projects import SampleProject
from rag_assets.contracts.canonical import digest
from rag_assets.evaluation.replicates import Pooled, combine, pooled
from rag_assets.evaluators import Outcome

ANSWERS = {
    "one": {"answer": "text of a text of b", "citations": ["a", "b"]},
    "two": {"answer": "text of c text of d", "citations": ["c", "d"]},
}


def claim(case_id: str, unit: str, supported: str, reviewer: str = "r1") -> dict[str, Any]:
    return {
        "case_id": case_id,
        "criterion": "claim_support",
        "answer_digest": digest(ANSWERS[case_id]),
        "claim_id": unit,
        "supported": supported,
        "reviewer": reviewer,
    }


def test_a_new_label_is_seen_although_nothing_else_has_changed(tmp_path: Path) -> None:
    project = SampleProject(tmp_path)
    project.replace("rag_assets.yaml", "evaluators:", "evaluators:\n  - {type: claim_support}")
    project.replace("rag_assets.yaml", "dataset:", "labels: labels.jsonl\ndataset:")
    first = [claim("one", "1", "supported"), claim("two", "1", "supported")]
    project.write("labels.jsonl", lines(*first))
    run = project.run()
    assert run.stage("one", "generation").digest == digest(ANSWERS["one"])
    assert [run.judgment(one, "claim_support").value for one in ANSWERS] == [1.0, 1.0]
    assert run.judgment("far", "claim_support").reason == "not_labelled"

    project.write("labels.jsonl", lines(*first, claim("one", "2", "contradicted")))
    again = project.run()
    changed, same = (again.judgment(one, "claim_support") for one in ANSWERS)
    assert (changed.value, changed.source) == (0.5, "miss")
    assert (same.value, same.source) == (1.0, "hit")
    assert again.judgment("one", "answer_correct").source == "hit"
    assert project.calls()["generate"] == 3
    payload = json.loads(again.metric("claim_support").payload)
    assert payload["pooled"] == {"part": 2, "whole": 3, "unit": "claims"}


def test_all_samples_of_all_cases_are_pooled() -> None:
    half = Outcome.score(0.5, {"counts": [1, 2]})
    whole = Outcome.score(1.0, {"counts": [4, 4]})
    absent = Outcome.missing("not_labelled")
    outcomes = [combine([half, whole]), combine([whole, absent]), absent, Outcome.excluded("x")]
    assert pooled(outcomes, "claims") == Pooled(9, 10, "claims")
    assert pooled([absent], "facts") == Pooled(0, 0, "facts")
