"""Replicates: generation sampled several times a case, and one outcome for each case."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import program_in
from projects import SampleProject
from rag_assets.contracts.config import read_config
from rag_assets.evaluation.concluding import completeness_of
from rag_assets.evaluation.pipeline import go_through
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.replicates import combine, every_sample, is_flaky, sample_values
from rag_assets.evaluation.session import Session
from rag_assets.evaluators import Outcome
from rag_assets.statistics import bounded_mean

# The first sample of "two" and the last one of "far" answer with nothing.
FLAKY = """
        from rag_assets import current_case
        sample = current_case().sample
        if (input["question"][0], sample) in (("c", 0), ("f", 2)):
            return {"answer": "", "citations": []}
        return answer_of(context)
"""


@pytest.fixture
def sample(tmp_path: Path) -> SampleProject:
    project = SampleProject(tmp_path)
    config = (tmp_path / "rag_assets.yaml").read_text()
    project.write("rag_assets.yaml", config + "replicates: 3\n")
    # "far" is answered from what it retrieves: its document is beyond the context.
    project.replace("cases.jsonl", "of h", "of f")
    return project


def test_generation_is_sampled_and_retrieval_is_not(sample: SampleProject) -> None:
    run = sample.run()
    assert sample.calls() == {"retrieve": 3, "generate": 9}
    assert run.counts["generate"] == {"miss": 9}
    assert run.counts["execution"] == {"miss": 9}
    assert run.counts["retrieve"] == {"miss": 3}
    again = sample.run()
    assert sample.calls() == {}
    assert again.counts["generate"] == {"hit": 9}
    assert again.counts["execution"] == {"hit": 9}


def test_a_contract_is_judged_for_every_sample(sample: SampleProject) -> None:
    sample.replace("app.py", "        return answer_of(context)", FLAKY)
    more = "  - {type: task_acceptance, all_of: [answer_correct, hit_rate_at_2]}\nreplicates: 3\n"
    sample.replace("rag_assets.yaml", "replicates: 3\n", more)
    run = sample.run()
    values = {one: run.judgment(one, "task_acceptance").value for one in ("one", "two", "far")}
    # The first sample of "two" answers with nothing; "far" retrieves its document too late.
    assert values == {"one": 1.0, "two": pytest.approx(2 / 3), "far": 0.0}
    metric = run.metric("task_acceptance")
    assert (json.loads(metric.payload)["samples"], json.loads(metric.payload)["flaky"]) == (3, 1)


def test_more_samples_execute_only_those_that_are_new(sample: SampleProject) -> None:
    sample.replace("rag_assets.yaml", "replicates: 3", "replicates: 1")
    sample.first_run()
    sample.replace("rag_assets.yaml", "replicates: 1", "replicates: 2")
    assert sample.run().counts["generate"] == {"hit": 3, "miss": 3}
    sample.replace("rag_assets.yaml", "replicates: 2", "replicates: 3")
    assert sample.run().counts["generate"] == {"hit": 6, "miss": 3}


def test_retrieval_is_sampled_where_the_config_says_so(sample: SampleProject) -> None:
    sample.first_run()
    sample.write(
        "rag_assets.yaml",
        (sample.root / "rag_assets.yaml").read_text() + "replicate_retrieval: true\n",
    )
    run = sample.run()
    # The first sample is the same as before.
    assert run.counts["retrieve"] == {"hit": 3, "miss": 6}
    assert sample.calls() == {"retrieve": 6}
    assert sample.run().counts["retrieve"] == {"hit": 9}


def test_a_case_is_the_mean_of_its_samples(sample: SampleProject) -> None:
    sample.replace("app.py", "        return answer_of(context)\n", FLAKY)
    run = sample.first_run()
    values = {one: run.judgment(one, "answer_correct").value for one in ("one", "two", "far")}
    assert values == {"one": 1.0, "two": 2 / 3, "far": 2 / 3}
    metric = run.metric("answer_correct")
    interval = bounded_mean([1.0, 2 / 3, 2 / 3], 0, 0.95, (0.0, 1.0))
    assert (metric.estimate, metric.lower, metric.upper) == (
        interval.estimate,
        interval.lower,
        interval.upper,
    )
    payload = json.loads(metric.payload)
    assert (payload["method"], payload["samples"], payload["flaky"]) == (interval.method, 3, 2)
    called = program_in(sample.root)("inspect", "latest")
    assert "mean of 3 observed · 0 missing · 0 excluded · 3 samples per case · 2 flaky" in (
        called.stdout
    )
    detail = json.loads(run.judgment("two", "answer_correct").detail or "")
    assert [one["value"] for one in detail["samples"]] == [0.0, 1.0, 1.0]


def test_every_replicate_is_a_verdict_of_its_own(sample: SampleProject) -> None:
    sample.replace("app.py", "        return answer_of(context)\n", FLAKY)
    sample.write(
        "rag_assets.yaml",
        (sample.root / "rag_assets.yaml").read_text()
        + "metrics:\n  - {id: always_correct, every_replicate: answer_correct}\n"
        + "slices: [relevant_position]\n",
    )
    sample.write("release.yaml", "rules: [{id: always, metric: always_correct, min: 0.9}]\n")
    run = sample.run()
    metric = run.metric("always_correct")
    assert (metric.kind, metric.observed, metric.estimate) == ("verdict", 3, 1 / 3)
    assert json.loads(metric.payload)["method"] == "clopper_pearson@1"
    assert run.judgment("two", "always_correct").value == 0.0
    assert run.metric("always_correct", "slice/relevant_position=top_k").observed == 2
    assert [one.state for one in run.decisions] == ["INSUFFICIENT_EVIDENCE"]
    again = program_in(sample.root)("gate", "latest")
    assert "always  always_correct" in again.stdout
    assert again.exit_code == run.row.exit_code == 3


def test_a_failed_sample_leaves_the_others_and_is_tried_again(sample: SampleProject) -> None:
    failing = FLAKY.replace('return {"answer": "", "citations": []}', 'raise OSError("gone")')
    sample.replace("app.py", "        return answer_of(context)\n", failing)
    run = sample.first_run()
    metric = run.metric("answer_correct")
    assert (metric.observed, metric.missing, metric.estimate) == (3, 0, 1.0)
    assert run.summary["failures"] == [
        {"cases": 2, "stage": "generation", "type": "OSError", "message": "gone"}
    ]
    detail = json.loads(run.judgment("two", "answer_correct").detail or "")
    assert [one["reason"] for one in detail["samples"]] == ["execution_error", None, None]
    sample.calls()
    assert sample.run().counts["generate"] == {"hit": 7, "miss": 2}
    assert sample.calls() == {"generate": 2}


def test_a_case_without_any_sample_is_missing(sample: SampleProject) -> None:
    sample.replace("app.py", 'log("generate", input["question"])', 'assert "c" not in str(input)')
    run = sample.run()
    metric = run.metric("answer_correct")
    assert (metric.observed, metric.missing) == (2, 1)
    assert run.judgment("two", "answer_correct").reason == "execution_error"
    assert run.judgment("two", "hit_rate_at_2").value == 1.0


def test_a_case_shows_all_of_its_samples(sample: SampleProject) -> None:
    failing = FLAKY.replace('return {"answer": "", "citations": []}', 'raise OSError("gone")')
    sample.replace("app.py", "        return answer_of(context)\n", failing)
    run = sample.first_run()
    program = program_in(sample.root)
    case = program("inspect", "latest", "--case", "far").stdout
    assert "\nOutput of sample 0\n    answer: text of f text of g\n" in case
    assert "\nSample 1\n    answer: text of f text of g\n" in case
    assert "OSError: gone" in case[case.index("\nSample 2\n") :]
    assert "sample 0: pass, sample 1: pass, sample 2: missing (execution_error)" in case
    # What was retrieved once is of all samples.
    headings = [row for row in case.splitlines() if row.startswith(("Stages", "Ret", "Con", "Cit"))]
    assert headings == ["Stages of sample 0", "Retrieval", "Context", "Citations of sample 0"]
    record = json.loads(program("inspect", "latest", "--case", "far", "--json").stdout)
    assert [one["sample"] for one in record["samples"]] == [1, 2]
    assert record["samples"][0]["output"]["answer"] == "text of f text of g"
    assert "output" not in record["samples"][1]
    failures = program("inspect", "latest", "--failures").stdout
    assert "generation of sample 2: OSError: gone" in failures
    assert run.stage("far", "judgments").source == "miss"


def test_stages_are_told_by_sample(sample: SampleProject) -> None:
    sample.run()
    failing = FLAKY.replace('return {"answer": "", "citations": []}', 'raise OSError("gone")')
    sample.replace("app.py", "        return answer_of(context)\n", failing)
    sample.run()
    program = program_in(sample.root)
    told = [json.loads(row) for row in program("run", "--json").stdout.splitlines()]
    stages = [
        (one["stage"], one.get("sample"), one["failed"])
        for one in told
        if one["event"] == "stage" and one["stage"] in ("retrieval", "generation")
    ]
    assert stages == [
        ("retrieval", None, 0),
        ("generation", 1, 0),
        ("generation", 2, 1),
        ("generation", 0, 1),
    ]
    sample.replace("app.py", failing, "        return answer_of(context)\n")
    sample.replace("rag_assets.yaml", "replicates: 3", "replicates: 4")
    again = program("run")
    assert "generation of sample 3: 3 cases …" in again.stderr.splitlines()
    assert "retrieval: 3 cases …" in again.stderr.splitlines()
    case = program("inspect", "latest", "--case", "one").stdout
    rows = {row.split()[0]: row for row in case.splitlines() if " OK " in row}
    assert rows["generation"].endswith("  3 hit/1 miss")
    assert rows["retrieval"].endswith("  hit")


def test_an_exported_case_has_all_of_its_samples(sample: SampleProject) -> None:
    run = sample.first_run()
    assert program_in(sample.root)("export", "latest").exit_code == 0
    bundle = sample.root / "bundles" / run.row.id
    lines = (bundle / "cases.jsonl").read_text().splitlines()
    executions = json.loads(lines[0])["executions"]
    generations = [one for one in executions if one["stage"] == "generation"]
    assert [one.get("sample", 0) for one in generations] == [0, 1, 2]
    assert len({one["identity"] for one in generations}) == 3
    assert (bundle / "tables" / "samples.parquet").exists()


def test_a_verdict_that_fails_in_one_sample_is_listed_as_failed(sample: SampleProject) -> None:
    sample.replace("app.py", "        return answer_of(context)\n", FLAKY)
    sample.first_run()
    program = program_in(sample.root)
    two, far = program("inspect", "latest", "--failures").stdout.split("\n\n")[1:3]
    empty = '{"answer": "", "citations": []}'
    assert two.splitlines() == [
        "two",
        f"    output  sample 0: {empty}",
        "    failed  answer_correct",
    ]
    assert far.splitlines()[:2] == ["far", f"    output  sample 2: {empty}"]
    listed = json.loads(program("inspect", "latest", "--failures", "--json").stdout)["failures"]
    output = {"answer": "", "citations": []}
    assert [one["samples"] for one in listed] == [
        [{"sample": 0, "output": output}],
        [{"sample": 2, "output": output}],
    ]


def test_retrieval_that_runs_once_has_one_value(sample: SampleProject) -> None:
    run = sample.first_run()
    metric = json.loads(run.metric("hit_rate_at_2").payload)
    assert (metric["samples"], metric["method"]) == (1, "clopper_pearson@1")
    assert json.loads(run.metric("answer_correct").payload)["samples"] == 3
    # Three judgments of the retrieval, and two of each of nine answers.
    assert sum(run.counts["judgment"].values()) == 3 + 18
    sample.write(
        "rag_assets.yaml",
        (sample.root / "rag_assets.yaml").read_text() + "replicate_retrieval: true\n",
    )
    assert json.loads(sample.run().metric("hit_rate_at_2").payload)["samples"] == 3


def test_an_evaluator_that_raises_is_counted_by_case(sample: SampleProject) -> None:
    sample.write("own.py", "def check(output):\n    raise ValueError('no')\n")
    sample.replace(
        "rag_assets.yaml",
        "  - {type: citation_validity}\n",
        "  - {type: custom, criterion: own, object: own:check, kind: verdict, reads: [output]}\n",
    )
    run = sample.run()
    assert run.summary["failures"] == [
        {"cases": 3, "stage": "own", "type": "ValueError", "message": "no"}
    ]


def test_a_case_that_fails_in_all_samples_is_one_case(sample: SampleProject) -> None:
    sample.replace(
        "app.py", "        return answer_of(context)\n", '        raise OSError("gone")\n'
    )
    assert [one["cases"] for one in sample.run().summary["failures"]] == [3]


def test_samples_that_nobody_executed_leave_a_run_partial(sample: SampleProject) -> None:
    sample.replace("rag_assets.yaml", "replicates: 3", "replicates: 1")
    sample.first_run()
    sample.replace("rag_assets.yaml", "replicates: 1", "replicates: 3")
    project = load_project(sample.root / "rag_assets.yaml")
    session = Session(project, "run_x", project.dataset.cases)
    session.take_samples(3)
    go_through(session, "judgments", execute=False)
    assert session.outcomes["answer_correct"][0].value == 1.0
    assert completeness_of(session) == "PARTIAL"


def test_check_says_what_single_verdicts_can_decide(sample: SampleProject) -> None:
    config = (sample.root / "rag_assets.yaml").read_text()
    made = (
        "metrics:\n  - {id: always, every_replicate: answer_correct}\n"
        "  - {id: p50, source: latency_ms, quantile: 0.5}\n"
    )
    sample.write("rag_assets.yaml", config + made)
    rules = "".join(
        f"  - {{id: {name}, metric: {name}, {rule}}}\n"
        for name, rule in [
            ("always", "min: 0.2"),
            ("answer_correct", "min: 0.2"),
            ("p50", "max: 1000"),
        ]
    )
    sample.write("release.yaml", f"rules:\n{rules}")
    called = program_in(sample.root)("check")
    assert called.exit_code == 0
    assert "always" in called.stdout[called.stdout.index("can decide") :]
    assert "answer_correct" not in called.stdout[called.stdout.index("can decide") :]


def test_numbers_of_samples_that_differ_are_said(sample: SampleProject) -> None:
    made = "metrics: [{id: always, every_replicate: answer_correct}]\n"
    sample.write("rag_assets.yaml", (sample.root / "rag_assets.yaml").read_text() + made)
    sample.run()
    sample.replace("rag_assets.yaml", "replicates: 3", "replicates: 2")
    sample.run()
    compared = program_in(sample.root)("compare", "latest", "latest~1").stdout
    assert "replicates differs: 2 against 3" in compared
    assert "always: not compared, evaluator_changed" in compared


def test_samples_have_seeds_of_their_own(sample: SampleProject) -> None:
    sample.replace(
        "app.py", "def generate(self, input, context)", "def generate(self, input, context, seed)"
    )
    sample.replace("app.py", "return answer_of(context)", 'return {"answer": f"seed {seed}"}')
    sample.write("rag_assets.yaml", (sample.root / "rag_assets.yaml").read_text() + "seed: 7\n")
    run = sample.run()
    with sample.store.reading() as reader:
        further = reader.sample_stages(run.row.id, ["one"])
        digests = [run.stage("one", "generation").digest, *(one.digest for one in further)]
        payloads = reader.payloads([str(one) for one in digests])
    assert [json.loads(payloads[str(one)])["answer"] for one in digests] == [
        "seed 7",
        "seed 8",
        "seed 9",
    ]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("{id: m, every_replicate: recall}", 'metrics.0.every_replicate: "recall" is no criterion'),
        ("{id: m, every_replicate: ndcg_at_2}", "those are answer_correct, hit_rate_at_2"),
        ("{id: answer_correct, every_replicate: answer_correct}", "is the criterion of an eval"),
        (
            "{id: m, every_replicate: answer_correct, quantile: 0.5}",
            "metrics.0: every_replicate stands alone; remove quantile",
        ),
        ("{id: m}", "source is required: one of latency_ms"),
        ("{id: m, every_replicate: 1}", "every_replicate must be"),
    ],
)
def test_what_every_replicate_does_not_take(
    sample: SampleProject, metrics: str, message: str
) -> None:
    sample.replace(
        "rag_assets.yaml", "replicates: 3\n", f"  - {{type: ndcg, k: 2}}\nmetrics: [{metrics}]\n"
    )
    called = program_in(sample.root)("check")
    assert called.exit_code == 2
    assert message in called.stderr


def test_a_method_for_single_verdicts_is_refused(sample: SampleProject) -> None:
    rule = "{id: r, metric: answer_correct, min: 0.5, method: clopper_pearson}"
    sample.write("release.yaml", f"rules: [{rule}]\n")
    called = program_in(sample.root)("check")
    assert called.exit_code == 2
    assert (
        "clopper_pearson needs one verdict a case, and a case has 3 samples; use "
        "bounded_mean_mixture or bounded_mean_convex."
    ) in called.stderr


def test_a_flaky_run_is_compared_by_its_means(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("app.py", "        return answer_of(context)\n", FLAKY)
    sample.run()
    called = program_in(sample.root)("compare", "latest", "latest~1", "--json")
    record = json.loads(called.stdout)
    metric = next(one for one in record["metrics"] if one["criterion"] == "answer_correct")
    assert metric["estimate"] == pytest.approx(-2 / 9)
    assert metric["method"] == "paired_mixture@1"
    assert sorted(metric["lost"]) == ["far", "two"]


def test_time_and_usage_are_means_over_samples(sample: SampleProject) -> None:
    reporting = """
        from rag_assets import current_case
        current_case().usage(output_tokens=10 * (1 + current_case().sample))
        return answer_of(context)
"""
    sample.replace("app.py", "        return answer_of(context)\n", reporting)
    sample.write(
        "rag_assets.yaml",
        (sample.root / "rag_assets.yaml").read_text()
        + "metrics: [{id: tokens, source: output_tokens, quantile: 0.5}]\n",
    )
    assert sample.run().metric("tokens").estimate == 20.0
    assert sample.run().metric("tokens").estimate == 20.0


def test_config_defaults(sample: SampleProject) -> None:
    sample.replace("rag_assets.yaml", "replicates: 3\n", "")
    config = read_config(sample.root / "rag_assets.yaml", [])
    assert config is not None
    assert (config.replicates, config.replicate_retrieval) == (1, False)


OUTCOMES = st.one_of(
    st.sampled_from([0.0, 1.0]).map(lambda value: Outcome("observed", value)),
    st.just(Outcome.missing("timeout")),
)


@given(st.lists(OUTCOMES, min_size=1, max_size=6))
def test_combining_verdicts(samples: list[Outcome]) -> None:
    combined = combine(samples)
    values = [one.value for one in samples if one.value is not None]
    assert sample_values(combined) == tuple(one.value for one in samples)
    assert is_flaky(combined) == (len(set(values)) > 1)
    if values:
        assert combined.value == pytest.approx(sum(values) / len(values))
    else:
        assert (combined.status, combined.reason) == ("missing", "timeout")
    every = every_sample(combined)
    if 0.0 in values:
        assert every.value == 0.0
    elif len(values) < len(samples):
        assert (every.status, every.reason) == ("missing", "timeout")
    else:
        assert every.value == 1.0


def test_an_excluded_case_stays_excluded() -> None:
    excluded = Outcome.excluded("no_relevance_labels")
    combined = combine([excluded, excluded])
    assert (combined.status, combined.reason) == ("excluded", "no_relevance_labels")
    assert every_sample(combined) == excluded


def test_an_excluded_verdict_is_no_failure(sample: SampleProject) -> None:
    sample.cases({"id": "one", "input": {"question": "a b"}, "expected": {"answer": "of a"}})
    sample.run()
    failures = program_in(sample.root)("inspect", "latest", "--failures").stdout
    assert failures.startswith("0 of 1 case failed")
