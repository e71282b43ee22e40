"""`rag-assets check` and `rag-assets init`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import EXAMPLE, call, copy_example, events
from rag_assets.contracts.rules import Rule
from rag_assets.evaluation.attainable import attainable
from rag_assets.statistics import clopper_pearson

SETTINGS = "depth 6  top_k 2  token_budget 40"
CANNOT = "cannot PASS: even 13 of 13 shows [75.2%, 100.0%]; 17 cases or more are needed"
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


def rule(kind, threshold):
    return Rule(id="r", metric="m", kind=kind, threshold=threshold)


@pytest.mark.parametrize(
    ("kind", "threshold", "cases", "passes", "needed"),
    [
        ("min", 0.8842966917779722, 30, 30, 30),
        ("min", 0.8842966917779723, 30, None, 31),
        ("min", 0.7, 13, 13, 11),
        ("min", 0.8, 13, None, 17),
        ("min", 0.8, 30, 29, 17),
        ("min", 0.95, 100, 100, 72),
        ("min", 1.0, 1000, None, None),
        ("min", 0.0, 5, 0, 1),
        ("max", 0.2680329173617204, 40, 5, 12),
        ("max", 0.2646484693970512, 12, 0, 12),
        ("max", 0.2, 12, None, 17),
        ("max", 0.0, 12, None, None),
        ("max", 1.0, 12, 12, 1),
        ("min", 0.8, 0, None, 17),
    ],
)
def test_from_how_many_passes_on_a_rule_passes(kind, threshold, cases, passes, needed):
    found = attainable(rule(kind, threshold), cases, 0.95)
    assert (found.passes, found.needed) == (passes, needed)


@deterministic
@given(
    st.sampled_from(["min", "max"]),
    st.floats(0.01, 0.99),
    st.integers(1, 60),
    st.floats(0.5, 0.99),
)
def test_the_numbers_are_the_first_that_pass(kind, threshold, cases, level):
    found = attainable(rule(kind, threshold), cases, level)

    def is_pass(passes, observed):
        interval = clopper_pearson(passes, observed, level=level)
        if kind == "min":
            return interval.lower >= threshold
        return interval.upper <= threshold

    passing = [passes for passes in range(cases + 1) if is_pass(passes, cases)]
    best = min if kind == "min" else max
    assert found.passes == (best(passing) if passing else None)
    assert is_pass(found.needed if kind == "min" else 0, found.needed)
    smaller = found.needed - 1
    assert smaller == 0 or not is_pass(smaller if kind == "min" else 0, smaller)


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    folder = copy_example(tmp_path_factory.mktemp("cli") / "support_rag")
    return folder, call(folder, "check")


def test_check_of_the_example(checked):
    folder, result = checked
    assert result.exit_code == 0
    assert result.stderr == ""
    parts = [part.splitlines() for part in result.stdout.split("\n\n")]
    assert parts[0] == [
        "rag_assets.yaml is valid",
        "project  support_rag",
        "dataset  13 cases in support.jsonl  suite: regression",
        f"system   support-bot  version 1  {SETTINGS}  index_version kb-2026-09-16",
        "slices   metadata.topic  relevant_position  context_truncated  (support from 4 cases)",
    ]
    assert parts[1][1].split("  ")[0] == "answer_correct"
    assert parts[1][7].split() == [
        "ndcg_at_6",
        "score",
        "in",
        "[0,",
        "1]",
        "ndcg(k=6,",
        "relevance_unit=doc)",
    ]
    assert parts[2] == [
        "Policy release.yaml, intervals at 95 %",
        "answer-floor     answer_correct   min 70.0%",
        "retrieval-floor  hit_rate_at_2    min 80.0%",
        "citations-valid  citations_valid  at most 0 failures",
    ]
    assert parts[3] == [
        "What this suite can decide",
        "answer-floor     answer_correct  PASS from 13 of 13",
        f"retrieval-floor  hit_rate_at_2   {CANNOT}",
    ]
    assert parts[4] == ["Next: rag-assets run"]
    assert not (folder / ".rag_assets").exists()


def test_check_counts_only_eligible_cases_and_names_comparison_rules(sample):
    row = {"input": {"question": "a"}, "expected": {"answer": "a"}}
    sample.cases(
        {"id": "none", **row, "expected": {"answer": None}},
        *({"id": f"c{number}", **row} for number in range(30)),
    )
    sample.write(
        "release.yaml",
        "rules:\n"
        "  - {id: floor, metric: answer_correct, min: 0.80}\n"
        "  - {id: ceiling, metric: answer_correct, max: 0.20}\n"
        "  - {id: hits, metric: hit_rate_at_2, min: 0.5}\n"
        "  - {id: all, metric: answer_correct, min: 1}\n"
        "  - {id: up, metric: answer_correct, kind: superiority}\n",
    )
    text = call(sample.root, "check").stdout
    assert "floor    answer_correct  PASS from 29 of 30\n" in text
    assert "ceiling  answer_correct  PASS up to 1 of 30\n" in text
    excluded = "cannot PASS: every case is excluded; 6 cases or more are needed"
    assert f"hits     hit_rate_at_2   {excluded}\n" in text
    assert "even 30 of 30 shows [88.4%, 100.0%]; no number of cases is enough\n" in text
    assert "up       answer_correct  superiority  decides on comparisons\n" in text


def test_check_warns(sample):
    sample.replace("rag_assets.yaml", "    index_version: v1\n", "")
    sample.replace("rag_assets.yaml", "  name: sample\n", "  name: other\n")
    text = (sample.root / "rag_assets.yaml").read_text()
    sample.write("rag_assets.yaml", text + "slices: [metadata.topc, metadata.topic]\n")
    row = {"id": "one", "input": {"question": "a"}, "metadata": {"topic": "t"}}
    sample.cases({**row, "expected": {"answer": "a", "relevant": [{"doc_id": "a"}]}})
    sample.replace("app.py", 'log("generate"', 'getattr(self, "lo" + "g", print)("generate"')
    result = call(sample.root, "check")
    assert (result.exit_code, "Warnings" in result.stdout) == (0, False)
    slices, index, name, code = result.stderr.splitlines()
    assert slices == (
        "No case has metadata.topc: the slice holds every case under one value. The metadata keys "
        'are topic. Did you mean "topic"?'
    )
    assert index.startswith("No index_version is declared: ")
    assert name == 'The decorator names the system "sample", and system.name "other" holds.'
    assert code.startswith("Code of generate: ")
    ran = call(sample.root, "run", "--limit", "1")
    assert ran.stderr.splitlines()[:2] == [slices, index]


def test_check_says_which_name_of_a_callable_holds(sample):
    decorated = '@system(name="inside")\ndef run(input):\n    return {"answer": "x"}\n'
    sample.write("app.py", "from rag_assets import system\n\n\n" + decorated)
    text = "project: p\ndataset: cases.jsonl\nsystem: {name: NAME, callable: 'app:run'}\n"
    text += "evaluators: [{type: contains, criterion: c, field: answer}]\n"
    for name, told in (
        ("outside", ['The decorator names the system "inside", and system.name "outside" holds.']),
        ("inside", []),
    ):
        sample.write("rag_assets.yaml", text.replace("NAME", name))
        result = call(sample.root, "check")
        assert result.stderr.splitlines() == told
        assert f"system   {name}  callable" in result.stdout


def test_check_tells_every_problem(sample):
    sample.write("cases.jsonl", '{"id": "a", "input": 1}\n{"id": "a"}\n')
    sample.replace("rag_assets.yaml", "hit_rate, k: 2", "hit_rate, k: 9")
    result = call(sample.root, "check")
    assert result.exit_code == 2
    assert result.stdout == ""
    places = [text.split(": ")[0] for text in result.stderr.splitlines()]
    assert places == ["rag_assets.yaml:11", "cases.jsonl:2", "cases.jsonl:2"]


def test_check_tells_the_problems_of_all_files_beside_those_of_keys(sample):
    sample.write(
        "rag_assets.yaml",
        "project: 7\n"
        "dataset: cases.jsonl\n"
        "replicats: 2\n"
        "system:\n"
        "  name: sample\n"
        "  timeout_s: -1\n"
        "  recorded: {path: r.csv}\n"
        "slices: [relevant_position, metadata.topic, 3]\n"
        "evaluators:\n"
        "  - {type: contains, field: 5}\n"
        "  - {type: regex, criterion: 1, pattern: '('}\n"
        "  - {type: mrr}\n"
        "  - {type: mrr, k: 10}\n"
        "  - 12\n"
        "  - {type: exact, criterion: answer_correct, casefld: true}\n"
        "metrics:\n"
        "  - {id: p50, source: generation_ms, quantile: 0.5}\n"
        "  - {id: p90, source: latency_ms, quantile: 2}\n",
    )
    sample.cases(
        {
            "id": "a",
            "input": 1,
            "metadata": {"topic": []},
            "expected": {"relevant": [{"doc_id": "a"}]},
        }
    )
    sample.write(
        "release.yaml",
        "required_cases: [b]\n"
        "rules:\n"
        "  - {id: one, metric: mrr_at_10, min: 0.5, max: 0.6}\n"
        "  - {id: two, metric: unknown, min: 0.5}\n",
    )
    result = call(sample.root, "check")
    assert result.exit_code == 2
    assert [": ".join(row.split(": ")[:2]) for row in result.stderr.splitlines()] == [
        "rag_assets.yaml:1: project",
        "rag_assets.yaml:3: replicats",
        "rag_assets.yaml:6: system.timeout_s",
        "rag_assets.yaml:8: slices.0",
        "rag_assets.yaml:8: slices.2",
        "rag_assets.yaml:8: slices.1",
        "rag_assets.yaml:10: evaluators.0.field",
        "rag_assets.yaml:10: evaluators.0.criterion",
        "rag_assets.yaml:11: evaluators.1.criterion",
        "rag_assets.yaml:11: evaluators.1.pattern",
        "rag_assets.yaml:14: evaluators.4",
        "rag_assets.yaml:15: evaluators.5.casefld",
        "rag_assets.yaml:17: metrics.0.source",
        "rag_assets.yaml:18: metrics.1.quantile",
        "release.yaml:3: rules.0",
    ]


@pytest.mark.parametrize("url", ["http://h/", "'http://h/${X}'"])
def test_check_tells_what_a_request_asks_for_and_no_case_has(sample, url):
    sample.write(
        "rag_assets.yaml",
        "project: p\ndataset: cases.jsonl\nsystem:\n  name: s\n  version: '1'\n"
        f"  http:\n    url: {url}\n"
        "    body: {q: '{{ input.question }}', l: ['{{ input.questoin }}', '{{ case.user.id }}']}\n"
        "evaluators: [{type: contains, criterion: c, field: answer}]\n",
    )
    asked = "rag_assets.yaml:8: system.http.body.l"
    told = [row for row in _problems(sample) if "system.http.url" not in row]
    assert told == [
        (
            f"{asked}.0: No case has input.questoin. The keys of input are question. Did you mean "
            '"question"?'
        ),
        f"{asked}.1: No case has case.user.id. case.user has no keys in any of them.",
    ]


def _problems(sample):
    result = call(sample.root, "check")
    assert result.exit_code == 2
    return result.stderr.splitlines()


def test_a_policy_is_checked_against_all_that_is_certain(sample):
    sample.replace("rag_assets.yaml", "name: sample", "name: sample\n  timeout_s: 0")
    sample.write(
        "release.yaml",
        "required_cases: [b]\n"
        "rules:\n"
        "  - {id: one, metric: answer_correct, min: 70}\n"
        "  - {id: two, metric: hit_rate_at_3, min: 0.5}\n"
        "  - {id: three, metric: hit_rate_at_2, min: 0.5, method: bounded_mean_mixture}\n",
    )
    certain = [
        "rag_assets.yaml:6: system.timeout_s: timeout_s must be greater than 0, got 0.",
        'release.yaml:1: required_cases.0: "b" matches no case of the dataset.',
        (
            "release.yaml:3: rules.0.min: min of a rate is between 0 and 1, got 70; "
            "did you mean 0.7?"
        ),
        (
            'release.yaml:4: rules.1.metric: No evaluator yields the metric "hit_rate_at_3". '
            'Did you mean "hit_rate_at_2"?'
        ),
    ]
    method = "release.yaml:5: rules.2.method: "
    found = _problems(sample)
    assert found[:4] == certain
    assert [row[: len(method)] for row in found[4:]] == [method]
    # With samples, the method may fit; the threshold of a rate is then a problem for later.
    sample.replace("rag_assets.yaml", "project: sample", "project: sample\nreplicates: 3")
    assert _problems(sample) == [certain[0].replace(":6:", ":7:"), certain[1], certain[3]]


def test_no_problem_follows_from_another_one(sample):
    sample.write(
        "release.yaml",
        "rules:\n"
        "  - {id: a, metric: mrr_at_4, min: 0.5}\n"
        "  - {id: b, metric: every, min: 0.5}\n"
        "  - {id: c, metric: p50, max: 5}\n",
    )
    text = (sample.root / "rag_assets.yaml").read_text()
    every = "metrics: [{id: every, every_replicate: named}, {id: p50, source: cost_usd, quantile: "
    text += f"  - {{type: mrr}}\n  - {{type: exact, criterion: named}}\n{every}0.5}}]\n"
    for old, new, key in (
        # The depth, and with it the name of the first metric, is not known.
        ("app:Sample", "app:Absent", "system.rag.object"),
        ("index_version: v1", "depth: '4'", "system.rag.depth"),
        ("metrics:", "metrcs:", "metrcs"),
        ("metrics: [{id: every", "metrics: [{ids: every", "metrics.0.ids"),
        ("criterion: named", "criterion: 5", "evaluators.4.criterion"),
        ("evaluators:", "evaluator:", "evaluator"),
    ):
        sample.write("rag_assets.yaml", text.replace(old, new))
        told = _problems(sample)
        assert [row.split(": ")[1] for row in told] == [key], told


def test_check_runs_nothing_and_keeps_what_the_system_prints_apart(sample):
    sample.replace("app.py", "HERE = ", 'print("loading")\nHERE = ')
    result = call(sample.root, "check")
    assert result.stdout.startswith("rag_assets.yaml is valid\n")
    assert result.stderr == "loading\n"
    assert sample.calls() == {}


def test_init_of_an_example(tmp_path):
    result = call(tmp_path, "init", "--example", "support_rag", "my rag")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "my rag holds the example support_rag.",
        "",
        "What this suite can decide",
        "answer-floor     answer_correct  PASS from 13 of 13",
        f"retrieval-floor  hit_rate_at_2   {CANNOT}",
        "",
        "Next: cd 'my rag' && rag-assets run",
    ]
    copied = {str(one.relative_to(tmp_path / "my rag")) for one in (tmp_path / "my rag").rglob("*")}
    assert copied == {
        str(one.relative_to(EXAMPLE))
        for one in EXAMPLE.rglob("*")
        if not {"__pycache__", ".rag_assets"} & set(one.parts)
    }


def test_a_minimal_project_runs_at_once(tmp_path):
    made = subprocess.run(
        [sys.executable, "-m", "rag_assets.cli", "init", "new/one"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name[:6] != "PYTHON"},
    )
    assert made.stdout == "new/one holds a minimal project.\n\nNext: cd new/one && rag-assets run\n"
    folder = tmp_path / "new" / "one"
    assert sorted(str(one.relative_to(folder)) for one in folder.rglob("*")) == [
        "app.py",
        "data",
        "data/cases.jsonl",
        "rag_assets.yaml",
        "release.yaml",
    ]
    rows = (folder / "data" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(row)["id"] for row in rows] == [
        "opening_hours",
        "delivery_time",
        "return_period",
    ]
    result = call(folder, "run")
    assert result.exit_code == 0
    assert "answer_correct  100.0%  [29.2%, 100.0%]  3 / 3 observed" in result.stdout
    assert result.stdout.endswith("\nNext: rag-assets inspect latest\n")


def test_init_refuses_a_folder_in_use(tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / ".git").touch()
    (tmp_path / "file").touch()
    result = call(tmp_path, "init", "used")
    assert (result.exit_code, result.stderr) == (
        2,
        "used is not empty; name a new or empty folder.\n",
    )
    result = call(tmp_path, "init", "file")
    assert (result.exit_code, result.stderr) == (2, "file is a file; name a new or empty folder.\n")
    (tmp_path / "empty").mkdir()
    assert call(tmp_path, "init", "empty").exit_code == 0


def test_init_names_its_examples(tmp_path):
    result = call(tmp_path, "init", "--example", "list")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "access_rag    who may see which source, and when to abstain",
        "blackbox_rag  evaluate an application that is called as a whole",
        "bm25_rag      may this version be released?",
        "policy_rag    two systems, one contract, and what reviewers said",
        "support_rag   which stage of a support bot fails?",
    ]
    result = call(tmp_path, "init", "--example", "suport_rag", "x")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        'There is no example "suport_rag". Did you mean "support_rag"? The examples are: '
    )
    assert call(tmp_path, "init").exit_code == 2
    assert not list(tmp_path.iterdir())


def test_init_copies_a_project_that_is_called_as_a_whole(tmp_path):
    result = call(tmp_path, "init", "--example", "blackbox_rag", "my-rag")
    assert result.exit_code == 0
    for config in ("rag_assets.yaml", "rag_assets.http.yaml"):
        checked = call(tmp_path / "my-rag", "check", "--config", config)
        assert checked.exit_code == 0, checked.stderr
        assert checked.stdout.startswith(f"{config} is valid\n")


def test_errors_of_check_are_the_json_of_run_as_well(sample):
    sample.replace("rag_assets.yaml", "type: contains", "type: contain")
    told = call(sample.root, "check").stderr
    problem = events(call(sample.root, "run", "--json"))[0]["problems"][0]
    assert told == f"rag_assets.yaml:{problem['line']}: {problem['key']}: {problem['message']}\n"
