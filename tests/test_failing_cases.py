"""A case that fails is missing with its reason; the others finish; errors are never cached."""

from __future__ import annotations

import json

import pytest

from projects import SampleProject

FAIL_IN_GENERATE = 'log("generate", input["question"])'
FAIL_IN_RETRIEVE = 'log("retrieve", input["question"])'


def fail_for(sample: SampleProject, place: str, question: str, statement: str) -> None:
    sample.replace(
        "app.py", place, f'{place}\n        if input["question"] == "{question}": {statement}'
    )


def test_an_exception_makes_one_case_missing(sample: SampleProject) -> None:
    fail_for(sample, FAIL_IN_GENERATE, "c d e", 'raise ValueError("no model")')
    run = sample.run()
    assert (run.row.state, run.row.completeness) == ("DECIDED", "COMPLETE")
    assert run.summary["failures"] == [
        {"cases": 1, "stage": "generation", "type": "ValueError", "message": "no model"}
    ]
    failure = json.loads(run.stage("two", "generation").failure or "")
    assert failure["reason"] == "execution_error"
    assert 'raise ValueError("no model")' in failure["traceback"]
    assert "rag_assets/systems" not in failure["traceback"]
    answer = run.metric("answer_correct")
    assert (answer.observed, answer.missing, answer.excluded) == (2, 1, 0)
    assert json.loads(answer.payload)["missing_reasons"] == {"execution_error": 1}
    # What was retrieved before the failure is measured all the same.
    assert run.metric("hit_rate_at_2").observed == 3
    assert run.judgment("two", "hit_rate_at_2").value == 1.0
    assert run.judgment("two", "citations_valid").reason == "execution_error"


def test_a_retrieval_failure_blocks_the_later_stages(sample: SampleProject) -> None:
    fail_for(sample, FAIL_IN_RETRIEVE, "c d e", 'raise OSError("index down")')
    run = sample.run()
    assert run.stage("two", "retrieval").source == "error"
    assert run.stage("two", "assembled_context").source == "blocked"
    assert run.stage("two", "generation").source == "blocked"
    for criterion in ("answer_correct", "hit_rate_at_2", "citations_valid"):
        assert run.metric(criterion).missing == 1
        assert run.judgment("two", criterion).reason == "execution_error"


def test_errors_are_tried_again(sample: SampleProject) -> None:
    fail_for(sample, FAIL_IN_GENERATE, "c d e", 'raise ValueError("no model")')
    sample.run()
    sample.calls()
    again = sample.run()
    assert sample.calls() == {"generate": 1}
    assert again.counts["generate"] == {"hit": 2, "miss": 1}
    assert again.counts["execution"] == {"hit": 2, "miss": 1}


def test_a_failure_in_the_evaluator_is_missing(sample: SampleProject) -> None:
    sample.write(
        "checks.py", "def picky(output):\n    return output['answer'].index('of a') >= 0\n"
    )
    sample.replace(
        "rag_assets.yaml",
        "evaluators:",
        "evaluators:\n  - {type: custom, criterion: picky, object: 'checks:picky', kind: verdict}",
    )
    run = sample.run()
    assert (run.metric("picky").observed, run.metric("picky").missing) == (1, 2)
    assert run.summary["failures"] == [
        {"cases": 2, "stage": "picky", "type": "ValueError", "message": "substring not found"}
    ]
    assert sample.run().counts["judgment"] == {"hit": 10, "miss": 2}


@pytest.mark.parametrize("statement", ["raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_leaving_python_is_an_error_of_the_case(sample: SampleProject, statement: str) -> None:
    fail_for(sample, FAIL_IN_GENERATE, "c d e", statement)
    run = sample.run()
    assert run.row.state == "DECIDED"
    assert run.metric("answer_correct").missing == 1


def test_a_hanging_call_times_out_and_the_rest_goes_on(sample: SampleProject) -> None:
    sample.replace("app.py", "import json", "import json, time")
    fail_for(sample, FAIL_IN_RETRIEVE, "a b", "time.sleep(30)")
    sample.replace("rag_assets.yaml", "  name: sample\n", "  name: sample\n  timeout_s: 0.2\n")
    sample.replace(
        "rag_assets.yaml", "project: sample", "project: sample\nconcurrency: {system: 1}"
    )
    run = sample.run()
    assert run.judgment("one", "hit_rate_at_2").reason == "timeout"
    assert run.metric("hit_rate_at_2").observed == 2


def test_every_case_failing_is_exit_3_without_a_policy(sample: SampleProject) -> None:
    sample.replace("app.py", FAIL_IN_GENERATE, 'raise ValueError("no model")')
    run = sample.run()
    assert (run.row.gate, run.row.exit_code) == (None, 3)
    assert run.summary["failures"][0]["cases"] == 3
    answer = run.metric("answer_correct")
    assert (answer.estimate, answer.lower, answer.upper) == (None, 0.0, 1.0)


def test_an_output_that_is_not_json_fails_its_case(sample: SampleProject) -> None:
    sample.replace("app.py", "return answer_of(context)", 'return {"answer": {1, 2}}')
    run = sample.run()
    assert run.summary["failures"] == [
        {
            "cases": 3,
            "stage": "generation",
            "type": "TypeError",
            "message": "generate must return JSON, but answer: the value is a set, "
            "which JSON cannot hold",
        }
    ]


def test_malformed_citations_are_missing_and_kept(sample: SampleProject) -> None:
    sample.replace("app.py", "[p.doc_id for p in context]", '"a"')
    run = sample.run()
    judgment = run.judgment("one", "citations_valid")
    assert (judgment.status, judgment.reason) == ("missing", "malformed_citations")
    assert json.loads(judgment.detail or "") == '"a"'


def test_absent_citations(sample: SampleProject) -> None:
    sample.replace("app.py", ', "citations": [p.doc_id for p in context]', "")
    assert sample.run().judgment("one", "citations_valid").reason == "artifact_absent"
