"""What `diagnose` does not diagnose, and what it says instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from command_line import call, document
from diagnosable import CASES, Switches
from projects import Run

COMMON = ("--criterion", "answer_correct")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Switches, Run]:
    project = Switches(tmp_path_factory.mktemp("refusals"))
    return project, project.run()


def dry(project: Switches, *arguments: str) -> Result:
    return call(project.root, "diagnose", "latest", *arguments, "--dry-run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--criterion", "answer_korrect"), 'has no criterion "answer_korrect". It has answer_c'),
        (("--criterion", "answer_f1"), "answer_f1 is a score: say from where on a case counts"),
        ((*COMMON, "--below", "0.5"), "answer_correct is a verdict, which passes or fails"),
        (("--criterion", "answer_f1", "--below", "inf"), "--below inf is outside of the range"),
        (("--criterion", "answer_f1", "--below", "nan"), "--below nan is outside of the range"),
        (("--criterion", "answer_f1", "--below", "7"), "it is above 0 and at most 1."),
        (
            ("--criterion", "hit_rate_at_2"),
            "generating again cannot change it. Diagnose answer_correct or answer_f1.",
        ),
        ((*COMMON, "--intervention", "top-k"), "top-k needs the new value: add --top-k N."),
        (
            (*COMMON, "--intervention", "top-k", "--top-k", "5"),
            "--top-k 5 is not possible: retrieval was recorded to depth 4. Use 1 to 4.",
        ),
        (
            (*COMMON, "--intervention", "top-k", "--top-k", "2"),
            "--top-k 2 changes nothing: it is the top_k of the system.",
        ),
        ((*COMMON, "--top-k", "3"), "--top-k is the value of the intervention top-k"),
        (
            (*COMMON, "--intervention", "token-budget"),
            "token-budget needs the new value: add --token-budget N, or unlimited.",
        ),
        (
            (*COMMON, "--intervention", "token-budget", "--token-budget", "10"),
            "--token-budget 10 changes nothing: it is that of the system.",
        ),
        (
            (*COMMON, "--intervention", "token-budget", "--token-budget", "many"),
            'the token budget "many" is no budget: write a whole number ≥ 1, or unlimited.',
        ),
        (
            (*COMMON, "--intervention", "reranker"),
            "reranker needs a function: add --reranker module:function.",
        ),
        (
            (*COMMON, "--intervention", "reranker", "--reranker", "nowhere:function"),
            "--reranker nowhere:function: ",
        ),
        (
            (*COMMON, "--intervention", "reranker", "--reranker", "app:HERE"),
            "--reranker app:HERE is not a function.",
        ),
        (
            (*COMMON, "--intervention", "reranker", "--reranker", "app:times"),
            "--reranker app:times must accept (input, candidates) and return candidates.",
        ),
        ((*COMMON, "--all", "--intervention", "top-k"), "--all and --intervention exclude each"),
        ((), "Missing option '--criterion'"),
    ],
)
def test_what_cannot_be_diagnosed_ends_with_2(
    ran: tuple[Switches, Run], arguments: tuple[str, ...], message: str
) -> None:
    called = dry(ran[0], *arguments)
    assert called.exit_code == 2
    assert message in called.stderr
    assert called.stdout == ""


def test_an_unknown_run_ends_with_2(ran: tuple[Switches, Run]) -> None:
    called = call(ran[0].root, "diagnose", "run_nope", *COMMON)
    assert called.exit_code == 2
    assert 'There is no run "run_nope"' in called.stderr


def test_a_score_is_diagnosed_below_a_bar(ran: tuple[Switches, Run]) -> None:
    called = call(
        *(ran[0].root, "diagnose", "latest", "--criterion", "answer_f1", "--below", "1"),
        *("--dry-run", "--json"),
    )
    plan = document(called)
    assert called.exit_code == 0
    assert len(plan["selection"]["selected"]) == len(CASES) - 1


def test_nothing_failed(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.run(["passes"])
    project.calls()
    called = call(tmp_path, "diagnose", "latest", *COMMON)
    assert called.exit_code == 0
    assert called.stdout == "No failed case for answer_correct: nothing was executed.\n"
    assert project.calls() == {}
    with project.store.reading() as reader:
        assert len(reader.runs()) == 1
        assert reader.diagnoses("sha256:") == []


def test_where_nothing_was_judged_nothing_is_said_to_have_passed(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace("app.py", "mode, before =", "raise OSError('down')\n        mode, before =")
    project.run(["passes", "flaky"])
    called = call(tmp_path, "diagnose", "latest", *COMMON)
    assert called.exit_code == 0
    assert called.stdout == (
        "No failed case for answer_correct: nothing was executed.\n"
        "Not selected: 2 cases (2 execution_error)\n"
    )


def test_a_sampled_suite_of_groups_makes_no_claim(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace("rag_assets.yaml", "project: switches", "project: switches\nsuite: sample")
    project.cases(*({**one, "group": "g"} for one in CASES[:3]))
    project.run()
    called = call(tmp_path, "diagnose", "latest", *COMMON, "--dry-run")
    assert called.stdout.splitlines()[0] == (
        "Selected: 2 failed cases with gold context (observed; no population claim)"
    )


def test_a_diagnosis_decides_nothing(ran: tuple[Switches, Run]) -> None:
    root = ran[0].root
    found = document(call(root, "diagnose", "latest", *COMMON, "--json"))["diagnosis"]
    planned = call(root, "plan", found)
    assert planned.exit_code == 2
    assert f"{found} is a diagnosis, which decides nothing." in planned.stderr
    failures = call(root, "inspect", found, "--failures")
    assert failures.exit_code == 2
    assert "--failures is for a run; a digest names none." in failures.stderr


def test_cases_that_are_others_now_are_not_selected(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    failing = [dict(case) for case in CASES[1:7]]
    broken = {**CASES[1], "id": "broken", "input": {"question": "broken"}}
    project.cases(*failing, broken)
    project.run()
    removed, another_input, another_answer, without_gold, new_labels, kept = failing
    project.cases(
        {**another_input, "input": {**another_input["input"], "needs": ["a"]}},
        {**another_answer, "expected": {**another_answer["expected"], "answer": "left"}},
        {**without_gold, "expected": {"answer": "right"}},
        {**new_labels, "expected": {**new_labels["expected"], "relevant": [{"doc_id": "x"}]}},
        kept,
        broken,
    )
    called = call(tmp_path, "diagnose", "latest", *COMMON, "--dry-run")
    assert called.stdout == (
        "Selected: 2 failed cases with gold context (observed; no population claim)\n"
        "Excluded: 1 failed case, no_gold_context - declare expected.gold_context (doc_id and "
        f"text) in cases.jsonl for: {without_gold['id']}\n"
        "Not selected: 4 cases (1 execution_error, 1 expected_changed, 1 input_changed, "
        "1 not_in_dataset)\n"
        "4 generations will be executed\n"
    )
    assert removed["id"] not in called.stdout


def test_only_excluded_cases_leave_nothing_to_execute(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.cases({**CASES[1], "expected": {"answer": "right"}})
    project.run()
    project.calls()
    called = call(tmp_path, "diagnose", "latest", *COMMON)
    assert called.exit_code == 0
    assert "Selected: 0 failed cases with gold context" in called.stdout
    assert "0 generations will be executed" in called.stdout
    assert project.calls() == {}


@pytest.mark.parametrize(
    ("name", "old", "new", "changed"),
    [
        ("app.py", "top_k=2", "top_k=3", "system"),
        ("app.py", '"wrong"', '"false"', "system"),
        (
            "rag_assets.yaml",
            "correct, field: answer",
            "correct, strip: true, field: answer",
            "evaluator",
        ),
        ("rag_assets.yaml", "project: switches", "project: switches\nseed: 7", "seed"),
    ],
)
def test_a_changed_project_is_not_diagnosed_with_an_old_run(
    tmp_path: Path, name: str, old: str, new: str, changed: str
) -> None:
    project = Switches(tmp_path)
    project.run(["ranked_out"])
    project.replace(name, old, new)
    called = call(tmp_path, "diagnose", "latest", *COMMON)
    assert called.exit_code == 2
    assert "The project has changed since run_" in called.stderr
    assert changed in called.stderr
    assert "Run again and diagnose the new run" in called.stderr


def test_a_sampled_suite_says_how_large_the_failing_share_is(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace("rag_assets.yaml", "project: switches", "project: switches\nsuite: sample")
    project.run(["passes", "ranked_out", "never_retrieved"])
    called = call(tmp_path, "diagnose", "latest", *COMMON, "--dry-run")
    assert called.stdout.splitlines()[0] == (
        "Selected: 2 failed cases with gold context (2 of 3 observed cases failed: 66.7% "
        "[9.4%, 99.2%])"
    )


def test_samples_of_a_case_are_diagnosed_with_one_of_each(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace(
        "rag_assets.yaml",
        "project: switches",
        "project: switches\nreplicates: 3\nmetrics:\n"
        "  - {id: every_answer, every_replicate: answer_correct}",
    )
    project.run(["ranked_out", "flaky"])
    project.calls()
    called = call(tmp_path, "diagnose", "latest", "--criterion", "every_answer", "--json")
    assert called.exit_code == 0
    assert project.calls() == {"generate": 4}
    labels = {one["id"]: one["label"] for one in document(called)["cases"]}
    assert labels == {"ranked_out": "RANKED_OUT", "flaky": "UNRESOLVED"}


def test_a_diagnosis_is_exported_as_it_was_stored(ran: tuple[Switches, Run]) -> None:
    root = ran[0].root
    found = document(call(root, "diagnose", "latest", *COMMON, "--json"))
    folders = [root / "first", root / "second"]
    for folder in folders:
        called = call(root, "export", found["diagnosis"], "--out", str(folder))
        assert called.exit_code == 0
        assert "holds 18 cases of sha256:" in called.stdout
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == ["cases.jsonl", "diagnosis.json", "manifest.json"]
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    record = json.loads((folders[0] / "diagnosis.json").read_text(encoding="ascii"))
    assert {"event": "diagnosis", "diagnosis": found["diagnosis"], **record} == found
    rows = (folders[0] / "cases.jsonl").read_text(encoding="ascii").splitlines()
    first = json.loads(rows[0])
    assert first["id"] == "below_and_too_long"
    assert [one["name"] for one in first["executions"]] == ["run", "control", "gold context"]
    manifest = json.loads((folders[0] / "manifest.json").read_text(encoding="ascii"))
    assert manifest["counts"]["labels"] == {
        "RETRIEVAL_MISS": 3,
        "RANKED_OUT": 4,
        "CONTEXT_ASSEMBLY_LOSS": 3,
        "GENERATION_FAILURE": 3,
        "UNRESOLVED": 5,
    }


def test_a_signal_ends_a_diagnosis_after_the_calls_in_flight(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace(
        "app.py",
        'if mode == "raises later"',
        'if before and input["question"] == "ranked_last":\n'
        "            import os, signal, time\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            time.sleep(0.3)\n"
        '        if mode == "raises later"',
    )
    selected = ["dropped_by_budget", "ranked_last", "ranked_out"]
    run = project.run(selected)
    project.calls()
    called = call(tmp_path, "diagnose", "latest", *COMMON)
    assert called.exit_code == 130, called.output
    # The control had come to its second case, whose answer is on record.
    assert project.calls() == {"generate": 2}
    with project.store.reading() as reader:
        (child,) = (row for row in reader.runs() if row.parent is not None)
        assert reader.diagnoses("sha256:") == []
        stages = reader.case_stages(child.id)
    assert (child.state, child.parent) == ("INTERRUPTED", run.row.id)
    generated = [row.case_id for row in stages if row.stage == "generation" and row.digest]
    assert generated == ["dropped_by_budget", "ranked_last"]
    # Asked for again, it begins anew.
    again = call(tmp_path, "runs", "--all").stdout
    assert f"(child of {run.row.id})" in again


def test_what_is_said_to_type_next_names_the_config(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    (tmp_path / "rag_assets.yaml").rename(tmp_path / "other.yaml")
    project.run(["ranked_out"], config="other.yaml")
    called = call(tmp_path, "diagnose", "latest", "--config", "other.yaml", *COMMON)
    assert called.exit_code == 0, called.output
    last = called.stdout.splitlines()[-1]
    assert last.endswith(" --config other.yaml")
    # It works as it stands.
    _, *arguments = last.removeprefix("Cases: ").split()
    again = call(tmp_path, *arguments)
    assert again.exit_code == 0
    assert "ranked_out: RANKED_OUT" in again.stdout
