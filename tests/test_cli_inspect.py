"""`rag-assets runs` and `rag-assets inspect`: what is shown of stored records."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys

import pytest

from command_line import call, copy_example, events
from projects import SampleProject, relevant
from rag_assets.store import RunRow, Store
from rag_assets.store.records import CaseStage

ID = r"run_[0-9A-Z]{26}"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """support_rag with one run."""
    folder = copy_example(tmp_path_factory.mktemp("cli") / "support_rag")
    assert call(folder, "run").exit_code == 3
    return folder


@pytest.fixture(scope="module")
def rough(tmp_path_factory):
    """A project whose cases go wrong in every way: an error, a time-out, a fail, a low score."""
    sample = SampleProject(tmp_path_factory.mktemp("rough"))
    sample.replace(
        "app.py",
        'log("generate", input["question"])',
        "import time; time.sleep(2 * input['question'].startswith('c'))\n"
        "        assert not input['question'].startswith('f'), 'no \\x1b[2Jway'",
    )
    sample.replace("rag_assets.yaml", "  name: sample\n", "  name: sample\n  timeout_s: 0.3\n")
    sample.replace("rag_assets.yaml", "- {type: hit_rate, k: 2}", "- {type: ndcg, k: 4}")
    sample.write("release.yaml", "rules:\n  - {id: rank, metric: ndcg_at_4, min: 0.7}\n")
    sample.cases(
        {"id": "good", "input": {"question": "a b"}, "expected": relevant("a", answer="of a")},
        {"id": "slow", "input": {"question": "c d e"}, "expected": relevant("c", answer="of d")},
        {"id": "far", "input": {"question": "f g h"}, "expected": relevant("h", answer="of h")},
        {
            "id": "bad",
            "input": {"question": "i \x1b[31mj k"},
            "expected": {"answer": "x" * 200},
            "metadata": {"topic": "right\u202eleft"},
        },
    )
    assert call(sample.root, "run").exit_code == 3
    return sample.root


def test_a_run_in_full(example):
    result = call(example, "inspect", "latest")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert re.fullmatch(rf"Run {ID} \[DECIDED/COMPLETE\]", lines[0])
    assert re.fullmatch(r"started \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, took \d+\.\d s", lines[2])
    undecided = "INSUFFICIENT_EVIDENCE  interval_overlaps_threshold"
    within = "observed_failures_within_limit"
    assert lines[5:14] == [
        "Gate: BLOCK (exit 3)",
        f"answer-floor  answer_correct  min 70.0%  {undecided}",
        "    69.2%, [38.5%, 91.0%], clopper_pearson@1; 13 of 13 cases",
        "    no size would make this PASS, because the estimate 69.2% is not above 70.0%",
        f"retrieval-floor  hit_rate_at_2  min 80.0%  {undecided}",
        "    92.3%, [63.9%, 99.9%], clopper_pearson@1; 13 of 13 cases",
        (
            "    PASS at 41 / 75 / 94 cases in 50 / 80 / 90 % of such samples, if future cases "
            "follow the observed distribution (12 of 13)"
        ),
        f"citations-valid  citations_valid  at most 0 failures  PASS  {within}",
        "    100.0%, [75.2%, 100.0%], clopper_pearson@1; 13 of 13 cases",
    ]
    assert "ndcg_at_6  0.866  [0.506, 0.990]  mean of 13 observed · 0 missing" in result.stdout
    assert lines[-1] == "Next: rag-assets inspect latest --failures"


def test_reasons_of_missing_and_excluded(rough):
    lines = call(rough, "inspect", "latest").stdout.splitlines()
    start = next(at for at, text in enumerate(lines) if text.startswith("answer_correct  "))
    assert (
        lines[start]
        == "answer_correct  50.0%  [0.6%, 99.4%]  1 / 2 observed · 2 missing · 0 excluded"
    )
    assert lines[start + 1] == "    missing: execution_error 1, timeout 1"
    start = next(at for at, text in enumerate(lines) if text.startswith("ndcg_at_4  "))
    assert lines[start].endswith("mean of 3 observed · 0 missing · 1 excluded")
    assert lines[start + 1] == "    excluded: no_relevance_labels 1"


def test_failures_of_the_example(example):
    result = call(example, "inspect", "latest", "--failures")
    assert result.exit_code == 0
    parts = result.stdout.split("\n\n")
    assert parts[0] == "4 of 13 cases failed, errored or stayed unfinished"
    names = [part.partition("\n")[0] for part in parts[1:5]]
    assert names == ["refund_review", "money_back", "security_review", "seat_count"]
    assert parts[2].splitlines()[2:] == [
        "    failed  answer_correct",
        "    failed  hit_rate_at_2",
        "    failed  recall_at_2",
    ]
    assert parts[5] == (
        "Next: rag-assets inspect latest --case refund_review\n"
        "Next: rag-assets diagnose latest --criterion answer_correct\n"
    )


def test_failures_of_every_sort(rough):
    text = call(rough, "inspect", "latest", "--failures").stdout
    slow, far, bad = text.split("\n\n")[1:4]
    assert slow.splitlines() == [
        "slow",
        "    error   generation: TimeoutError: no result after 0.3 s",
        "    missing answer_correct: timeout",
        "    missing citations_valid: timeout",
    ]
    assert far.splitlines() == [
        "far",
        r"    error   generation: AssertionError: no \x1b[2Jway",
        "    below   ndcg_at_4 0.50000 < 0.7 (rank)",
        "    missing answer_correct: execution_error",
        "    missing citations_valid: execution_error",
    ]
    assert bad.splitlines()[0] == "bad"
    assert bad.splitlines()[-1] == "    failed  answer_correct"


def test_the_output_is_cut_and_the_list_limited(tmp_path):
    sample = SampleProject(tmp_path)
    sample.replace("app.py", "return answer_of(context)", 'return "y" * 161')
    sample.replace("rag_assets.yaml", "field: answer", "expected_field: answer")
    call(sample.root, "run")
    text = call(sample.root, "inspect", "latest", "--failures", "--limit", "1").stdout
    assert f"    output  {'y' * 160}… (161 characters)\n" in text
    assert "\n… and 2 more (--limit 3)\n" in text
    document = events(call(sample.root, "inspect", "latest", "--failures", "--json"))[0]
    assert [one["output"] for one in document["failures"]] == ["y" * 161] * 3


def test_json_of_failures(rough):
    document = events(call(rough, "inspect", "latest", "--failures", "--json"))[0]
    assert document["cases"] == 4
    assert [one["case"] for one in document["failures"]] == ["slow", "far", "bad"]
    slow, far, bad = document["failures"]
    assert "output" not in slow
    assert slow["errors"][0]["reason"] == "timeout"
    assert far["below"] == [{"criterion": "ndcg_at_4", "value": 0.5, "floor": 0.7, "rule": "rank"}]
    assert [one["criterion"] for one in bad["failed"]] == ["answer_correct"]


def test_one_case_of_the_example(example):
    result = call(example, "inspect", "latest", "--case", "refund_review")
    parts = dict(part.split("\n", 1) for part in result.stdout.rstrip().split("\n\n")[1:])
    assert list(parts) == [
        "Input",
        "Expected",
        "Metadata",
        "Stages",
        "Retrieval",
        "Context",
        "Output",
        "Citations",
        "Judgments",
    ]
    assert parts["Metadata"] == "    topic: billing"
    retrieval = [re.split(r"  +", row.strip()) for row in parts["Retrieval"].splitlines()]
    assert retrieval[:3] == [
        ["position", "document", "chunk", "score", "relevant", "context"],
        ["1", "kb-09", "-", "4", "no", "in context (32 tokens)"],
        ["2", "kb-01", "-", "2", "yes", "dropped: token_budget (22 tokens)"],
    ]
    assert retrieval[-1][-1] == "dropped: top_k"
    stages = [re.split(r"  +", row.strip()) for row in parts["Stages"].splitlines()]
    assert [[row[0], row[1], row[2], row[4]] for row in stages] == [
        ["stage", "state", "attempts", "cache"],
        ["retrieval", "OK", "1", "miss"],
        ["assembled_context", "OK", "1", "miss"],
        ["generation", "OK", "1", "miss"],
        ["judgments", "OK", "0", "miss"],
    ]
    assert parts["Citations"] == "    kb-09"
    assert parts["Judgments"].splitlines() == [
        "    answer_correct   fail",
        "    hit_rate_at_2    pass",
        "    recall_at_2      pass",
        "    ndcg_at_6        0.63093",
        "    citations_valid  pass",
    ]


def test_one_case_that_errored(rough):
    text = call(rough, "inspect", "latest", "--case", "far").stdout
    parts = dict(part.split("\n", 1) for part in text.rstrip().split("\n\n")[1:])
    stages = [re.split(r"  +", row.strip()) for row in parts["Stages"].splitlines()]
    assert [row[:2] for row in stages[1:]] == [
        ["retrieval", "OK"],
        ["assembled_context", "OK"],
        ["generation", "ERROR"],
        ["judgments", "BLOCKED"],
    ]
    assert parts["generation failed"].splitlines()[0] == "    Traceback (most recent call last):"
    assert parts["generation failed"].splitlines()[-1] == r"    AssertionError: no \x1b[2Jway"
    assert parts["Output"] == "    -"
    assert "answer_correct   missing  execution_error" in parts["Judgments"]


def test_nothing_that_is_recorded_can_control_the_terminal(rough):
    shown = call(rough, "inspect", "latest", "--case", "bad").stdout
    assert r"question: i \x1b[31mj k" in shown
    assert r"topic: right\u202eleft" in shown
    assert "\x1b" not in shown
    document = call(rough, "inspect", "latest", "--case", "bad", "--json").stdout
    assert document.isascii()
    assert json.loads(document)["case"]["metadata"] == {"topic": "right\u202eleft"}


def test_json_of_one_case(example):
    document = events(call(example, "inspect", "latest", "--case", "money_back", "--json"))[0]
    assert document["retrieval"] == []
    assert document["context"]["items"] == []
    assert document["output"]["citations"] == []
    assert document["citations"] == []
    assert [one["stage"] for one in document["stages"]] == [
        "cases",
        "retrieval",
        "assembled_context",
        "generation",
        "judgments",
    ]
    assert {one["criterion"]: one["value"] for one in document["judgments"]} == {
        "answer_correct": False,
        "hit_rate_at_2": False,
        "recall_at_2": False,
        "ndcg_at_6": 0.0,
        "citations_valid": True,
    }


def test_json_of_a_run(example):
    document = events(call(example, "inspect", "latest", "--json"))[0]
    assert (document["state"], document["gate"], document["exit_code"]) == ("DECIDED", "BLOCK", 3)
    assert [one["state"] for one in document["decisions"]] == [
        "INSUFFICIENT_EVIDENCE",
        "INSUFFICIENT_EVIDENCE",
        "PASS",
    ]
    assert [one["metric"] for one in document["metrics"]] == [
        "answer_correct",
        "hit_rate_at_2",
        "recall_at_2",
        "ndcg_at_6",
        "citations_valid",
        "retrieval_valid",
    ]
    billing = next(one for one in document["slices"] if one["slice"]["value"] == "billing")
    assert billing["slice"]["support"] == 7
    assert billing["slice"]["p_value"] == pytest.approx(0.6853146853146853)


def test_an_unknown_case_lists_the_nearest(example):
    result = call(example, "inspect", "latest", "--case", "refund_anual")
    assert result.exit_code == 2
    assert 'has no case "refund_anual". The nearest ids are refund_annual,' in result.stderr


@pytest.mark.parametrize("one", ["--failures", "--violations"])
def test_parts_of_a_run_exclude_each_other(example, one):
    result = call(example, "inspect", "latest", "--case", "refund_annual", one)
    assert result.exit_code == 2
    assert f"{one} and --case exclude each other" in result.stderr


def row(number: int, **changes) -> RunRow:
    made = RunRow(
        id=f"run_{number:026}",
        created_at=f"2026-09-16T10:20:{number:02}.000+00:00",
        finished_at=f"2026-09-16T10:21:{number:02}.000+00:00",
        project="sample",
        origin="run",
        parent=None,
        dagster_run_id=None,
        state="DECIDED",
        completeness="COMPLETE",
        gate="ALLOW",
        exit_code=0,
        owner="{}",
        heartbeat="2026-09-16T10:00:00.000+00:00",
        error=None,
        record=json.dumps(RECORD),
        summary="{}",
    )
    return dataclasses.replace(made, **changes)


RECORD = {
    "policy": None,
    "dataset": {"cases": 2},
    "selection": None,
    "suite": "regression",
    "evaluators": [],
    "system": {"name": "s", "version": None, "index_version": None, "citations_path": None},
}
NOBODY = json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1, "started": "1"})


@pytest.fixture
def store(sample):
    """A project with written records: listed runs are 2, 4 and 5."""
    rows = [
        row(1, origin="materialize", state="DECIDED", completeness=None, gate=None),
        row(2, origin="materialize"),
        row(3, parent="diag_1"),
        row(4, gate="BLOCK", exit_code=1),
        row(
            5,
            state="RUNNING",
            completeness=None,
            gate=None,
            exit_code=None,
            finished_at=None,
            owner=NOBODY,
            heartbeat="2026-09-16T10:00:00.000+00:00",
        ),
    ]
    with sample.store.writing() as writer:
        for one in rows:
            writer.add_run(one)
        writer.add([CaseStage(rows[4].id, "one", "cases", "i", None, "hit", 0.0, None, None, None)])
    return sample.root


def test_runs_are_listed_newest_first(store):
    listed = call(store, "runs").stdout.splitlines()
    assert [one.split()[0][-1] for one in listed] == ["5", "4", "2"]
    assert listed[0].split("  ", 2)[1:] == [
        "2026-09-16 10:20:05Z",
        "INTERRUPTED/PARTIAL  no gate",
    ]
    everything = call(store, "runs", "--all").stdout.splitlines()
    assert [one.split()[0][-1] for one in everything] == ["5", "4", "3", "2", "1"]
    assert everything[2].endswith("(child of diag_1)")
    assert everything[4].endswith("no gate  (materialize)")
    assert len(call(store, "runs", "--limit", "1").stdout.splitlines()) == 1


def test_runs_of_the_example_name_the_state_of_each_rule(example):
    (listed,) = call(example, "runs").stdout.splitlines()
    assert re.fullmatch(
        rf"{ID}  \S+ \S+Z  DECIDED/COMPLETE  BLOCK  answer-floor INSUFFICIENT_EVIDENCE  "
        r"retrieval-floor INSUFFICIENT_EVIDENCE  citations-valid PASS",
        listed,
    )
    document = events(call(example, "runs", "--json"))[0]["runs"][0]
    assert document["rules"][2] == {"rule": "citations-valid", "state": "PASS"}


@pytest.mark.parametrize(
    ("reference", "number"),
    [
        ("latest", 5),
        ("latest~1", 4),
        ("latest~2", 2),
        (f"run_{3:026}", 3),
    ],
)
def test_references(store, reference, number):
    result = call(store, "inspect", reference, "--json")
    assert events(result)[0]["run"] == f"run_{number:026}"


def test_a_unique_prefix_is_enough(example):
    (listed,) = events(call(example, "runs", "--json"))[0]["runs"]
    result = call(example, "inspect", listed["run"][:9], "--json")
    assert events(result)[0]["run"] == listed["run"]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "latest~3",
            f"There is no latest~3: this project has 3 runs, of which the oldest is run_{2:026}.",
        ),
        ("run_0", f'"run_0" is the beginning of 5 ids: run_{5:026}, run_{4:026}'),
        (f"run_{9:026}", f'There is no run "run_{9:026}". The nearest ids are run_'),
        ("foo", f'There is no run "foo". The newest is run_{5:026}; rag-assets runs lists them.'),
        ("latest~x", 'There is no run "latest~x".'),
    ],
)
def test_references_that_name_no_single_run(store, reference, message):
    result = call(store, "inspect", reference)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_without_any_run(sample):
    assert call(sample.root, "runs").stdout == (
        "This project has no run yet. Start one with: rag-assets run\n"
    )
    result = call(sample.root, "inspect", "latest", "--json")
    assert result.exit_code == 2
    message = "This project has no run yet. Start one with: rag-assets run"
    assert events(result)[0]["problems"][0]["message"] == message


@pytest.fixture
def shared(store):
    """The same folder with a second config, whose project has the runs 6 and 7."""
    text = (store / "rag_assets.yaml").read_text(encoding="utf-8")
    other = text.replace("project: sample", "project: other")
    (store / "o ther.yaml").write_text(other, encoding="utf-8")
    with Store(store / ".rag_assets" / "store.duckdb").writing() as writer:
        for number in (6, 7):
            writer.add_run(row(number, project="other"))
    return store


def test_latest_is_of_the_project_of_the_config(shared):
    other = ("--config", "o ther.yaml")
    for options, reference, number in (
        ((), "latest", 5),
        ((), "latest~2", 2),
        ((), f"run_{7:026}", 7),
        ((), "other:latest~1", 6),
        (other, "sample:latest", 5),
        (other, "latest", 7),
        (other, "latest~1", 6),
        (other, f"run_{5:026}", 5),
    ):
        result = call(shared, "inspect", reference, "--json", *options)
        assert events(result)[0]["run"] == f"run_{number:026}"
    result = call(shared, "inspect", "latest~2", *other)
    assert result.stderr.startswith("There is no latest~2: this project has 2 runs, of which ")
    result = call(shared, "inspect", "othr:latest")
    told = 'There is no run of a project "othr". Did you mean "other"?\n'
    assert (result.exit_code, result.stderr) == (2, told)
    (shared / "third.yaml").write_text("project: third", encoding="utf-8")
    result = call(shared, "gate", "latest", "--config", "third.yaml")
    assert result.stderr.splitlines() == [
        "This project has no run yet. Start one with: rag-assets run --config third.yaml",
        (
            "The store also holds 5 runs of other projects (other, sample); to see them: "
            "rag-assets runs --all --config third.yaml"
        ),
    ]


def test_runs_are_those_of_the_project(shared):
    def listed(*options):
        result = call(shared, "runs", *options)
        return [one.split()[0][-1] for one in result.stdout.splitlines()], result.stderr

    told = "The store also holds {} of another project ({}); to see them: rag-assets runs --all{}\n"
    assert listed() == (["5", "4", "2"], told.format("2 runs", "other", ""))
    other = ("--config", "o ther.yaml")
    found = told.format("3 runs", "sample", " --config 'o ther.yaml'")
    assert listed(*other) == (["7", "6"], found)
    assert listed("--all") == (list("7654321"), "")
    first = call(shared, "runs", "--all", "--limit", "1").stdout
    assert first.endswith("  ALLOW  (project other)\n")
    document = events(call(shared, "runs", "--json", *other))[0]
    assert (document["project"], document["other_projects"]) == ("other", {"sample": 3})
    assert [one["project"] for one in document["runs"]] == ["other", "other"]
    # A config that cannot be read has no name, and every run may be its own.
    (shared / "rag_assets.yaml").write_text("[", encoding="utf-8")
    assert listed() == (["7", "6", "5", "4", "2"], "")


def test_what_to_type_next_names_the_config(shared):
    other = ("--config", "o ther.yaml")
    shown = call(shared, "inspect", f"run_{5:026}", *other).stdout.splitlines()[-1]
    named = "Next: rag-assets inspect run_{:026}{} --config 'o ther.yaml'{}"
    assert shown == named.format(5, "", " --failures")
    failures = call(shared, "inspect", f"run_{5:026}", "--failures", *other).stdout.splitlines()
    assert failures[-1] == named.format(5, "", " --case one")
    # Without failures there is nothing to recommend.
    whole = call(shared, "inspect", f"run_{7:026}", *other).stdout
    assert "Next:" not in whole
    (shared / "below").mkdir()
    below = call(shared / "below", "inspect", f"run_{5:026}", "--config", "../o ther.yaml")
    assert "--config '../o ther.yaml' --failures" in below.stdout
    below = call(shared / "below", "inspect", f"run_{5:026}")
    assert "--config" not in below.stdout
    checked = call(shared, "check", *other).stdout.splitlines()[-1]
    assert checked == "Next: rag-assets run --config 'o ther.yaml'"


def test_a_dead_run_stayed_unfinished(store):
    shown = call(store, "inspect", "latest").stdout.splitlines()
    assert shown[0] == f"Run run_{5:026} [INTERRUPTED/PARTIAL]"
    failures = call(store, "inspect", "latest", "--failures").stdout.splitlines()
    assert failures[0] == "1 of 2 cases failed, errored or stayed unfinished"
    assert failures[2:4] == ["one", "    stopped retrieval was not executed"]


def test_a_dead_run_of_a_whole_stayed_unfinished_in_its_execution(store):
    record = {**RECORD, "system": {**RECORD["system"], "kind": "callable"}}
    with Store(store / ".rag_assets" / "store.duckdb").writing() as writer:
        writer.update_run(f"run_{5:026}", record=json.dumps(record))
    failures = call(store, "inspect", "latest", "--failures").stdout.splitlines()
    assert failures[2:4] == ["one", "    stopped execution was not executed"]


def test_records_are_shown_although_the_config_is_broken(store):
    (store / "rag_assets.yaml").write_text("nonsense: [", encoding="utf-8")
    assert call(store, "inspect", "latest").exit_code == 0


def test_reading_waits_for_a_process_that_writes(example):
    store = example / ".rag_assets" / "store.duckdb"
    program = (
        "import duckdb, time\n"
        f"held = duckdb.connect({str(store)!r})\n"
        "print('held', flush=True)\n"
        "time.sleep(0.5)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert call(example, "runs").exit_code == 0
        assert holder.wait() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["inspect", "latest"],
        ["inspect", "latest", "--failures"],
        ["inspect", "latest", "--case", "refund_review"],
        ["export", "latest"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_reading_commands_import_nothing_heavy(example, arguments):
    program = (
        "import sys\n"
        "from rag_assets.cli import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit as end:\n"
        "    heavy = {'dagster', 'scipy', 'numpy', 'rich', 'jsonschema'} & set(sys.modules)\n"
        "    print(end.code, sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=example, capture_output=True, text=True, check=True
    )
    assert done.stderr == "0 []\n"


def test_long_text_is_cut_on_the_terminal_and_whole_in_json(sample):
    text = "x" * 200_000
    sample.cases({"id": "long", "input": {"question": "a", "text": text}, "expected": "of a"})
    sample.run()
    shown = call(sample.root, "inspect", "latest", "--case", "long").stdout
    assert f"text: {'x' * 3994}… (200006 characters)" in shown
    assert len(shown) < 10_000
    whole = call(sample.root, "inspect", "latest", "--case", "long", "--json").stdout
    assert json.loads(whole)["case"]["input"]["text"] == text
