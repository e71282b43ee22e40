"""All violations of a run are named, each with the sample that it is of."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import call, document
from sourced import SECRET, SourcedProject, case


def test_a_leak_of_one_sample(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.cases(case("c", "desk"))
    sourced.without("quoting")
    sourced.replace(
        "app.py",
        '"answer": "It is so. " +',
        '"answer": ("", "", TEXTS["alarm"])[current_case().sample] + "It is so. " +',
    )
    config = (tmp_path / "rag_assets.yaml").read_text()
    sourced.write("rag_assets.yaml", config + "replicates: 3\n")
    ran = call(tmp_path, "run")
    assert ran.exit_code == 0, ran.output
    assert "    c  no_leak  alarm  " in ran.stdout
    found = document(call(tmp_path, "inspect", "latest", "--violations", "--json"))
    (leak,) = found["violations"]
    assert leak == {
        "case": "c",
        "sample": 2,
        "user": "ann",
        "stage": "generation",
        "position": 0,
        "doc_id": "alarm",
        "reason": "text in the answer",
    }
    text = call(tmp_path, "inspect", "latest", "--violations").stdout
    assert "c (sample 2)  ann   generation  character 0  alarm     text in the answer" in text
    shown = call(tmp_path, "inspect", "latest", "--case", "c", "--json").stdout
    third = json.loads(shown)["samples"][1]["output"]["answer"]
    assert third.startswith(f"[restricted: {len(SECRET)} characters]It is so.")
    assert SECRET not in shown


def test_a_run_is_inspected_with_all_of_them(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.cases(*(case(f"c{number}", "alarm") for number in range(12)))
    sourced.without("quoting", "admissible_retrieval", "admissible_citations", "no_leak")
    ran = call(tmp_path, "run").stdout
    assert "… and 2 more: rag-assets inspect latest --violations" in ran
    text = call(tmp_path, "inspect", "latest").stdout.splitlines()
    assert "Violations: 12 judgments" in text
    listed = [row.split()[0] for row in text if row.endswith("alarm  not permitted")]
    assert listed == [f"c{number}" for number in range(12)]


def test_all_are_listed_unless_a_limit_is_asked_for(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.cases(*(case(f"c{number}", "alarm") for number in range(30)))
    sourced.without("quoting", "admissible", "no_leak", "contains", "hit_rate")
    sourced.replace(
        "rag_assets.yaml", "evaluators:\n", "evaluators:\n  - {type: admissible_context}\n"
    )
    call(tmp_path, "run")
    rows = call(tmp_path, "inspect", "latest", "--violations").stdout.splitlines()
    assert rows[0] == "90 violations in 30 of 30 cases: 90 not permitted"
    assert len([row for row in rows if row.endswith("alarm     not permitted")]) == 90
    limited = call(tmp_path, "inspect", "latest", "--violations", "--limit", "89").stdout
    assert limited.splitlines()[-1] == "… and 1 more (--limit 90)"
