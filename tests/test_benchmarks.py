"""What the benchmarks measure with: parts that add up, sizes, budgets and measured sections."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.__main__ import sections
from benchmarks.breakdown import Clock, dagster_share
from benchmarks.budgets import Budget, Section
from benchmarks.clapnq import write_project
from benchmarks.cranfield import load_collection
from benchmarks.readme import with_measured
from benchmarks.sizes import log_size, store_size
from benchmarks.suites import make_suite
from rag_assets.contracts.config import read_config
from rag_assets.contracts.errors import Problem
from shared_data import shared_data

ROOT = Path(__file__).parent.parent
PAGE = """\
# A
<!-- measured: one -->
old
<!-- end -->
text
<!-- measured: two -->
<!-- end -->
"""


def test_the_parts_of_a_run_add_up(tmp_path: Path) -> None:
    config = make_suite(tmp_path / "suite", 13)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.breakdown", str(config)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    parts = found["parts"]
    assert found["exit_code"] == 3
    assert sum(parts.values()) == pytest.approx(found["total"], rel=0.01)
    assert {name.partition(":")[0] for name in parts} == {
        "dagster",
        "imports",
        "other",
        "project",
        "stages",
        "store",
    }
    assert all(seconds > 0 for seconds in parts.values())
    assert 0 < dagster_share(parts) < 1
    store, log = store_size(config.parent), log_size(config.parent)
    assert store.artifacts == store.unshared
    assert 0 < store.artifacts < store.file
    assert log.events * 100 < log.json < log.files


def test_a_moment_counts_for_the_innermost_part() -> None:
    times = iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0])
    clock = Clock(lambda: next(times))
    with clock.within("dagster: execution"):
        with clock.within("store"):
            assert clock.part == "store"
        assert clock.part == "dagster: execution"
    # 0-1 and 10-15, 1-3 and 6-10, 3-6.
    assert clock.seconds() == {"other": 6.0, "dagster: execution": 6.0, "store": 3.0}
    assert dagster_share({"other": 6.0, "dagster: execution": 6.0, "store": 3.0}) == 0.4


def test_a_budget_says_whether_it_is_met() -> None:
    met = Budget.at_most("a run", 2, 1.994, "s")
    missed = Budget.at_most("a run", 2, 2.001, "s", " (busy)")
    assert Section("one", ["text"], [met, missed]).markdown().splitlines() == [
        "text",
        "",
        "| work | budget | measured |  |",
        "| --- | --- | --- | --- |",
        "| a run | ≤ 2 s | 1.99 s | PASS |",
        "| a run | ≤ 2 s | 2 s (busy) | **MISS** |",
    ]


def test_only_measured_sections_are_rewritten() -> None:
    assert with_measured(PAGE, {"one": "new\n"}) == PAGE.replace("old\n", "\nnew\n\n")
    with pytest.raises(SystemExit, match="no section `<!-- measured: three -->`"):
        with_measured(PAGE, {"three": "new"})


def test_the_page_has_a_place_for_every_section(tmp_path: Path) -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    options = Namespace(sizes=(), cases=0, plot=True, plot_sizes=())
    new = {name: f"new {name}" for name in sections(options, tmp_path)}
    assert all(text in with_measured(page, new) for text in new.values())


def test_questions_of_cranfield_belong_to_their_judgments() -> None:
    """Their words stand in the relevant abstracts; joined by number, hardly any do."""
    found = load_collection(shared_data("cranfield"))

    def shared_words(names: list[str]) -> float:
        shares = []
        for name, question in zip(names, found.questions, strict=True):
            words = {word for word in question.split() if len(word) > 5}
            for doc_id, grade in found.grades.get(name, {}).items():
                if grade > 0 and words:
                    held = words & set(found.documents[doc_id].split())
                    shares.append(len(held) / len(words))
        return sum(shares) / len(shares)

    assert (found.places[2], found.numbers[2]) == ("3", "4")
    assert shared_words(found.places) == pytest.approx(0.267, abs=5e-4)
    assert shared_words(list(found.numbers)) == pytest.approx(0.083, abs=5e-4)


def test_questions_of_clapnq_have_the_passage_that_answers_them(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "clapnq", shared_data("clapnq")).parent
    cases = [json.loads(row) for row in (folder / "cases.jsonl").read_text().splitlines()]
    texts = {}
    for row in (folder / "documents.jsonl").read_text().splitlines():
        document = json.loads(row)
        texts[document["doc_id"]] = document["text"]
    # Six questions share three passages.
    problems: list[Problem] = []
    config = read_config(folder / "rag_assets.yaml", problems)
    assert config is not None, problems
    assert config.evaluators[-1].type == "abstention"
    assert (len(cases), len(texts)) == (600, 597)
    by_id = {case["id"]: case["expected"] for case in cases}
    assert by_id["1594887608634738480"] == {"behavior": "abstain"}
    (label,) = by_id["6401197308716204890"]["relevant"]
    assert "regular and predictable changes" in texts[label["doc_id"]]
    assert sum(expected["behavior"] == "answer" for expected in by_id.values()) == 300
