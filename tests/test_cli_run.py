"""`rag-assets run`: report, events, exit codes, and how commands end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from command_line import call, copy_example, events
from projects import SampleProject, relevant
from rag_assets.cli import main
from rag_assets.cli.progress import PlainProgress

GOLDEN = Path(__file__).parent / "golden" / "end_to_end.json"
STAGED = json.loads(GOLDEN.read_text(encoding="utf-8"))["staged_baseline"]
COMMANDS = sorted(main.commands)
UNDECIDED = "INSUFFICIENT_EVIDENCE  interval_overlaps_threshold"
DECISIONS = [
    f"answer-floor  answer_correct  min 70.0%  {UNDECIDED}",
    "    no size would make this PASS, because the estimate 69.2% is not above 70.0%",
    f"retrieval-floor  hit_rate_at_2  min 80.0%  {UNDECIDED}",
    (
        "    PASS at 41 / 75 / 94 cases in 50 / 80 / 90 % of such samples, if future cases follow "
        "the observed distribution (12 of 13)"
    ),
    "citations-valid  citations_valid  at most 0 failures  PASS  observed_failures_within_limit",
]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """support_rag with two runs: (folder, first result, second result with --slices)."""
    folder = copy_example(tmp_path_factory.mktemp("cli") / "support_rag")
    first = call(folder, "run")
    return folder, first, call(folder, "run", "--slices")


def test_report_of_the_first_run(example):
    _, first, _ = example
    assert first.exit_code == 3
    lines = first.stdout.splitlines()
    assert re.fullmatch(r"Run run_[0-9A-Z]{26} \[DECIDED/COMPLETE\]", lines[0])
    assert lines[1:10] == [
        "13 cases",
        "",
        "Gate: BLOCK (exit 3)",
        *DECISIONS,
        "",
    ]
    metrics = [one for one in STAGED["metrics"] if one["scope"] == "global"]
    assert lines[10:15] == ["  ".join([one["metric"], *one["display"]]) for one in metrics]
    coverage = "retrieval_valid  100.0%  [75.2%, 100.0%]  13 / 13 observed"
    assert lines[15] == f"{coverage} · 0 missing · 0 excluded"
    assert lines[16:19] == ["", "Speaks for: inputs like these 13 cases", ""]
    assert lines[-4:] == [
        "Cache: execution 0 hit/13 miss; judgment 0 hit/65 miss",
        "Stages: retrieve 0 hit/13 miss; generate 0 hit/13 miss",
        "",
        "Next: rag-assets inspect latest --failures",
    ]


def test_slices_are_one_table(example):
    _, first, _ = example
    text = first.stdout[first.stdout.index("Slices") :]
    table = [re.split(r"  +", row) for row in text.partition("\n\n")[0].splitlines()]
    criteria = ["answer_correct", "hit_rate_at_2", "recall_at_2", "ndcg_at_6", "citations_valid"]
    assert table[0] == ["Slices", *criteria]
    expected = {
        name: [
            " ".join(one["display"]) for one in STAGED["metrics"] if one["scope"] == f"slice/{name}"
        ]
        for name in (
            "metadata.topic=billing",
            "relevant_position=top_k",
            "context_truncated=false",
            "context_truncated=true",
        )
    }
    assert {row[0]: row[1:] for row in table[1:]} == expected
    assert "5 slice rows below support 4 not shown (--slices)\n" in first.stdout
    assert "too few cases to mark anything\n" in first.stdout


def test_a_wait_that_a_service_asks_for_is_told_once(capsys):
    told = PlainProgress()
    told.asked_to_wait("execution", "one", 0.0)
    told.asked_to_wait("execution", "two", 90.0)
    told.asked_to_wait("execution", "three", 90.0)
    assert capsys.readouterr().err.splitlines() == [
        "execution of one: waiting 0 s as the server asked",
        "execution of two: waiting 90 s as the server asked",
    ]


def test_progress_goes_to_stderr(example):
    _, first, _ = example
    assert first.stderr.splitlines() == [
        f"{stage}: 13 cases …"
        for stage in ("retrieval", "assembled_context", "generation", "judgments")
    ]


def test_second_run_comes_from_the_cache_and_shows_all_slices(example):
    _, _, second = example
    assert "Cache: execution 13 hit/0 miss; judgment 65 hit/0 miss\n" in second.stdout
    assert "Stages: retrieve 13 hit/0 miss; generate 13 hit/0 miss\n" in second.stdout
    assert "not shown" not in second.stdout
    rows = [re.split(r"  +", row) for row in second.stdout.splitlines()]
    assert ["metadata.topic=data", "2", "100.0%", "100.0%", "100.0%", "1.000", "100.0%"] in rows
    assert sum(row[0].startswith(("metadata.", "relevant_", "context_")) for row in rows) == 9


def test_json_events(example):
    folder, _, _ = example
    result = call(folder, "run", "--json", "--limit", "2")
    assert result.stderr == ""
    found = events(result)
    kinds = [one["event"] for one in found]
    assert kinds == (
        ["start", *["stage"] * 5, *["judgment"] * 10, *["metric"] * 26, *["decision"] * 3, "end"]
    )
    start, end = found[0], found[-1]
    assert start["cases"] == 2
    assert re.fullmatch(r"[0-9a-f]{64}", start["digests"]["dataset"])
    assert found[4] == {"event": "stage", "stage": "generation", "cases": 2, "failed": 0}
    assert found[6] == {
        "event": "judgment",
        "case": "refund_annual",
        "criterion": "answer_correct",
        "kind": "verdict",
        "status": "observed",
        "value": True,
        "reason": None,
        "detail": None,
        "source": "hit",
    }
    assert end == {
        "event": "end",
        "run": end["run"],
        "state": "DECIDED",
        "completeness": "PARTIAL",
        "gate": "BLOCK",
        "exit_code": 3,
        "cache": {
            "execution": {"hit": 2},
            "judgment": {"hit": 10},
            "retrieve": {"hit": 2},
            "generate": {"hit": 2},
        },
    }
    assert result.exit_code == 3


def test_a_selection_is_partial(example):
    folder, _, _ = example
    result = call(folder, "run", "--cases", "refund_*")
    assert "[DECIDED/PARTIAL]\n2 of 13 cases; 11 outside the selection\n" in result.stdout
    gate = "Gate: BLOCK (exit 3)\n    partial_run: not every case of the dataset was run.\n"
    assert gate in result.stdout
    assert "Speaks for: inputs like these 2 cases\n" in result.stdout


def test_cases_that_match_nothing(example):
    folder, _, _ = example
    result = call(folder, "run", "--cases", "refund_anual", "--json")
    assert result.exit_code == 2
    assert result.stderr == (
        '--cases "refund_anual" matches none of the 13 cases. '
        "Nearest ids: refund_annual, refund_review, reset_link.\n"
    )
    error = events(result)[-1]
    assert error["event"] == "error"
    assert error["exit_code"] == 2
    assert error["problems"][0]["message"] + "\n" == result.stderr


def test_a_long_error_is_cut_and_failures_are_counted(sample):
    sample.replace(
        "app.py",
        'log("generate", input["question"])',
        "assert input['question'] != 'a b', 'why ' * 60",
    )
    rule = "{id: none, kind: observed_count, metric: answer_correct, max_failures: 0}"
    sample.write("release.yaml", f"rules: [{rule}]\n")
    error = f"AssertionError: {('why ' * 60)[:160]}… (240 characters)"
    result = call(sample.root, "run")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert f"1 case: generation {error}" in lines
    assert f"first failure: generation of one: {error}" in result.stderr.splitlines()
    place = lines.index(
        "none  answer_correct  at most 0 failures  FAIL  observed_failures_exceed_limit"
    )
    assert lines[place + 1] == "    1 failure and 1 missing, at most 0"
    failures = call(sample.root, "inspect", "latest", "--failures").stdout
    assert f"    error   generation: {error}\n" in failures
    assert "why " * 59 in call(sample.root, "inspect", "latest", "--case", "one").stdout


def test_without_a_policy_nothing_is_decided(sample):
    result = call(sample.root, "run")
    assert result.exit_code == 0
    told = "DECIDED says that the run came to its end. The rules of a policy would decide on it."
    assert f"\n\nNo policy: nothing was decided.\n    {told}\n\n" in result.stdout


def test_a_policy_without_a_rule_for_one_run(sample):
    sample.write(
        "release.yaml", "rules:\n  - {id: up, metric: answer_correct, kind: superiority}\n"
    )
    result = call(sample.root, "run")
    assert result.exit_code == 0
    assert "Gate" not in result.stdout
    assert result.stderr.splitlines()[-2:] == [
        "The policy has no rule for a single run: nothing was decided.",
        "1 rule skipped: it decides on comparisons, not on one run.",
    ]


FAILING = """
    def generate(self, input, context):
        if input["question"].startswith("f"):
            raise RuntimeError("no \\x1b[31mtokens")
"""


def test_failures_are_grouped_and_reasons_of_missing_told(sample):
    sample.replace("app.py", "    def generate(self, input, context):", FAILING.strip("\n"))
    sample.write("release.yaml", "rules:\n  - {id: f, metric: answer_correct, max: 0.5}\n")
    result = call(sample.root, "run")
    assert result.exit_code == 3
    failure = r"1 case: generation RuntimeError: no \x1b[31mtokens"
    assert result.stdout.split("\n\n")[1:2] == [failure]
    assert r"first failure: generation of far: RuntimeError: no \x1b[31mtokens" in result.stderr
    assert "answer_correct: 1 missing (execution_error 1)\n" in result.stderr
    assert "answer_correct  100.0%  [9.4%, 100.0%]  2 / 2 observed · 1 missing" in result.stdout


def test_when_every_case_fails_the_exit_code_is_3(sample):
    sample.replace("app.py", 'log("generate", input["question"])', "raise SystemExit(5)")
    result = call(sample.root, "run")
    assert result.exit_code == 3
    assert "Every case failed: there is no output, and the exit code is 3.\n" in result.stdout
    assert "answer_correct  none  [0.0%, 100.0%]  0 / 0 observed · 3 missing" in result.stdout


def test_equal_inputs_are_shared(sample):
    row = {"input": {"question": "a b"}, "expected": relevant("a", answer="of a")}
    sample.cases({"id": "one", **row}, {"id": "two", **row})
    result = call(sample.root, "run")
    assert "Stages: retrieve 0 hit/1 miss · 1 shared; generate 0 hit/1 miss · 1 shared\n" in (
        result.stdout
    )


def test_what_the_system_prints_does_not_disturb_the_events(sample):
    sample.replace("app.py", 'log("generate", input["question"])', 'print("hello")')
    result = call(sample.root, "run", "--json")
    assert events(result)[-1]["event"] == "end"
    assert result.stderr.splitlines() == ["hello"] * 3


def test_a_malformed_artifact_stops_the_run(sample):
    sample.replace("app.py", "candidates=passages[:depth]", "candidates=[{'doc_id': 3}]")
    result = call(sample.root, "run")
    assert result.exit_code == 2
    assert "[STOPPED/PARTIAL]\n3 cases\n" in result.stdout
    assert "candidates.0.doc_id" in result.stderr
    assert result.stderr.endswith("to continue: rag-assets run\n")
    again = call(sample.root, "run", "--config", "rag_assets.yaml", "--no-cache", "--cases", "o*")
    assert again.stderr.endswith(
        "What has finished is kept in the cache, which --no-cache does not read; to start anew: "
        "rag-assets run --config rag_assets.yaml --no-cache --cases 'o*'\n"
    )
    stopped = events(call(sample.root, "run", "--json"))
    assert [one["event"] for one in stopped[-2:]] == ["error", "end"]
    assert (stopped[-1]["state"], stopped[-1]["exit_code"]) == ("STOPPED", 2)


def test_all_problems_of_the_input_are_told(sample):
    sample.replace("rag_assets.yaml", "index_version: v1", "dept: 9\n    top_k: 0")
    result = call(sample.root, "run", "--json")
    assert result.exit_code == 2
    problems = events(result)[0]["problems"]
    assert [(one["file"], one["line"], one["key"]) for one in problems] == [
        ("rag_assets.yaml", 8, "system.rag.dept"),
        ("rag_assets.yaml", 9, "system.rag.top_k"),
    ]
    assert result.stderr.splitlines() == [
        f"{one['file']}:{one['line']}: {one['key']}: {one['message']}" for one in problems
    ]


def test_a_config_in_a_parent_folder_is_said(sample):
    inner = sample.root / "deep" / "er"
    inner.mkdir(parents=True)
    result = call(inner, "runs")
    assert result.exit_code == 0
    assert result.stderr == f"Using {(sample.root / 'rag_assets.yaml').resolve()}.\n"


def test_an_internal_error_is_reported(sample, monkeypatch):
    def broken(*_arguments, **_options):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("rag_assets.evaluation.project.load_project", broken)
    result = call(sample.root, "run", "--json")
    assert result.exit_code == 4
    assert result.stderr.startswith("Internal error: ZeroDivisionError: oops\n")
    (written,) = (sample.root / ".rag_assets" / "errors").glob("*.txt")
    assert f"traceback: {written}" in result.stderr
    assert "ZeroDivisionError: oops" in written.read_text(encoding="utf-8")
    assert events(result)[0]["exit_code"] == 4


def test_an_unknown_command_names_the_nearest(tmp_path):
    result = call(tmp_path, "inspec")
    assert result.exit_code == 2
    assert "No such command 'inspec'" in result.stderr
    assert "'inspect'" in result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, tmp_path):
    result = call(tmp_path, name, "--help")
    assert result.exit_code == 0
    _, _, examples = result.stdout.partition("\nExamples:\n")
    assert examples.splitlines()
    assert all(row.startswith(f"  rag-assets {name}") for row in examples.splitlines())
    command = main.commands[name]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts} has no help"


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rag_assets.cli", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_a_closed_pipe_changes_nothing(sample: SampleProject):
    sample.write("release.yaml", "rules:\n  - {id: f, metric: answer_correct, min: 0.99}\n")
    with start(sample.root, "run", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 3
    assert sample.store.exists()
    listed = events(call(sample.root, "runs", "--json"))[0]["runs"]
    assert [one["state"] for one in listed] == ["DECIDED"]


def test_an_interrupt_keeps_what_has_finished(sample: SampleProject):
    sample.replace(
        "app.py", 'log("generate", input["question"])', "import time; log('go', ''); time.sleep(1)"
    )
    sample.replace("rag_assets.yaml", "evaluators:", "concurrency: {system: 1}\nevaluators:")
    with start(sample.root, "run", "--limit", "9") as process:
        started = 0
        while not started and process.poll() is None:
            time.sleep(0.05)
            started = sample.calls()["go"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "[INTERRUPTED/PARTIAL]" in out
    assert err.endswith("to continue: rag-assets run --limit 9\n")
    assert "Stages: retrieve 0 hit/3 miss; generate 0 hit/" in out
    started += sample.calls()["go"]
    again = call(sample.root, "run")
    assert 0 < started < 3
    stages = f"Stages: retrieve 3 hit/0 miss; generate {started} hit/{3 - started} miss\n"
    assert stages in again.stdout


def test_a_closed_stderr_changes_no_verdict(example):
    folder, _, _ = example
    command = f"{sys.executable} -m rag_assets.cli run 2>&-"
    done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 3
