"""Systems that are called as a whole, in a run: one execution for each case, and its parts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from command_line import call, document
from http_service import Asked, Reply, serving_http
from projects import relevant
from rag_assets.assets.running import run_suite
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.session import Silent
from rag_assets.evaluation.words import Stage
from wholes import WholeProject, cases_of

PARTS = ("retrieval", "assembled_context", "citations", "generation")


@pytest.fixture
def whole(tmp_path: Path) -> WholeProject:
    return WholeProject(tmp_path)


def test_one_call_makes_all_stages(whole: WholeProject) -> None:
    run = whole.run()
    assert whole.calls() == {"call": 3}
    assert run.counts == {"execution": {"miss": 3}, "judgment": {"miss": 9}}
    assert whole.payload(run, "far", "retrieval")["candidates"][2]["doc_id"] == "h"
    assert [one["doc_id"] for one in whole.payload(run, "far", "assembled_context")["items"]] == [
        "f",
        "g",
    ]
    assert whole.payload(run, "far", "citations") == {"ids": ["f", "g"]}
    assert whole.payload(run, "far", "generation") == {"answer": "text of f text of g"}
    values = {one.criterion: one.value for one in run.judgments if one.case_id == "far"}
    assert values == {"answer_correct": 0.0, "hit_rate_at_2": 0.0, "citations_valid": 1.0}


def test_a_repeated_run_calls_nothing(whole: WholeProject) -> None:
    first = whole.first_run()
    again = whole.run()
    assert whole.calls() == {}
    assert again.counts == {"execution": {"hit": 3}, "judgment": {"hit": 9}}
    for stage in PARTS:
        assert again.stage("one", stage).digest == first.stage("one", stage).digest
        assert again.stage("one", stage).source == "hit"


def test_an_edited_helper_calls_everything_anew_and_a_comment_nothing(whole: WholeProject) -> None:
    whole.first_run()
    whole.replace("app.py", "def log(question):\n", "def log(question):\n    # said\n")
    assert whole.run().counts["execution"] == {"hit": 3}
    whole.replace("app.py", 'f"call {question}', 'f"call  {question}')
    assert whole.run().counts["execution"] == {"miss": 3}


def test_equal_inputs_share_one_execution(whole: WholeProject) -> None:
    whole.cases(*cases_of("a b", "a b", "c"))
    run = whole.run()
    assert whole.calls() == {"call": 2}
    assert run.counts["execution"] == {"miss": 2, "shared": 1}
    assert run.stage("c2", "retrieval").digest == run.stage("c1", "retrieval").digest
    assert "execution 0 hit/2 miss · 1 shared" in call(whole.root, "run", "--no-cache").stdout


def test_free_artifacts_are_shown_and_exported(whole: WholeProject) -> None:
    run = whole.first_run()
    shown = call(whole.root, "inspect", run.row.id, "--case", "far").stdout.splitlines()
    assert shown[shown.index("trace") + 1] == "    words: 3"
    call(whole.root, "export", run.row.id, "--out", "bundle")
    lines = (whole.root / "bundle" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    bundled = next(found for line in lines if (found := json.loads(line))["id"] == "far")
    execution = next(one for one in bundled["executions"] if one["stage"] == "execution")
    assert bundled["artifacts"][execution["digest"]]["artifacts"]["trace"] == {"words": 3}
    assert bundled["citations"] == [
        {"digest": run.stage("far", "citations").digest, "value": ["f", "g"]}
    ]
    assert [one["fate"] for one in bundled["retrieval"][0]["candidates"]] == [
        "context",
        "context",
        None,
    ]


def test_what_a_case_did_not_record_is_absent_and_no_error(whole: WholeProject) -> None:
    whole.replace("app.py", "    case.retrieval(", "    if 'c' not in question: case.retrieval(")
    whole.replace("rag_assets.yaml", "  name: sample", "  name: sample\n  on_malformed: missing")
    run = whole.run()
    assert (run.row.state, run.row.completeness, run.row.exit_code) == ("DECIDED", "COMPLETE", 0)
    assert run.summary["failures"] == []
    stage = run.stage("two", "retrieval")
    assert (stage.source, stage.digest) == ("absent", None)
    assert json.loads(stage.failure or "")["reason"] == "artifact_absent"
    hit_rate = run.metric("hit_rate_at_2")
    assert (hit_rate.observed, hit_rate.missing) == (2, 1)
    assert run.judgment("two", "hit_rate_at_2").reason == "artifact_absent"
    assert run.judgment("two", "answer_correct").value == 1.0
    # It was recorded as absent, so there is nothing to try again.
    assert whole.run().counts["execution"] == {"hit": 3}
    states = {
        one["stage"]: one["state"]
        for one in document(call(whole.root, "inspect", "latest", "--case", "two", "--json"))[
            "stages"
        ]
    }
    assert (states["execution"], states["retrieval"]) == ("OK", "NOT_RECORDED")
    assert (states["generation"], states["judgments"]) == ("OK", "OK")


def test_a_kind_that_is_owed_stops_the_run(whole: WholeProject) -> None:
    whole.replace("app.py", "    case.retrieval(", "    if 'c' not in question: case.retrieval(")
    run = whole.run()
    assert (run.row.state, run.row.exit_code) == ("STOPPED", 2)
    assert (run.row.error or "").splitlines()[0] == (
        "case two: execution: the system returned a malformed artifact: retrieval/v1: was not "
        "recorded, although the system declares it. Correct it, or set system.on_malformed to "
        "missing to lose only such cases."
    )
    # What was in flight has finished and is kept.
    assert run.stage("one", "generation").source == "miss"


def test_nothing_retrieved_and_access_denied_are_results(whole: WholeProject) -> None:
    whole.replace("app.py", "    case = current_case()\n", DENIES)
    whole.cases(*cases_of("a b", "denied x"), {"id": "none", "input": {"question": ""}})
    run = whole.run()
    assert whole.payload(run, "c2", "retrieval")["candidates"] == []
    assert run.judgment("c2", "hit_rate_at_2").value == 0.0
    assert whole.payload(run, "c2", "assembled_context")["items"] == []
    states = {
        case: document(call(whole.root, "inspect", run.row.id, "--case", case, "--json"))[
            "retrieval_state"
        ]
        for case in ("c1", "c2", "none")
    }
    assert states == {"c1": "valid", "c2": "denied", "none": "empty"}
    shown = call(whole.root, "inspect", run.row.id, "--case", "c2").stdout
    assert "Retrieval\n    access to the sources was denied\n" in shown


DENIES = """    case = current_case()
    if question.startswith("denied"):
        case.denied()
        return {"answer": "no"}
"""


def test_an_error_is_missing_under_every_criterion(whole: WholeProject) -> None:
    raising = "    if question == 'c d e': raise ValueError('no model')\n    log(question)"
    whole.replace("app.py", "    log(question)", raising)
    run = whole.run()
    assert run.summary["failures"] == [
        {"cases": 1, "stage": "execution", "type": "ValueError", "message": "no model"}
    ]
    assert {run.stage("two", stage).source for stage in PARTS} == {"blocked"}
    for criterion in ("answer_correct", "hit_rate_at_2", "citations_valid"):
        assert run.judgment("two", criterion).reason == "execution_error"
        assert (run.metric(criterion).observed, run.metric(criterion).missing) == (2, 1)
    shown = call(whole.root, "inspect", run.row.id, "--case", "two").stdout
    assert "execution failed" in shown
    assert "raise ValueError('no model')" in shown
    # Errors are never cached.
    assert whole.run().counts["execution"] == {"hit": 2, "miss": 1}


def test_the_time_of_a_call_is_its_latency(whole: WholeProject) -> None:
    whole.write("rag_assets.yaml", whole_config_with("latency_ms", "input_tokens"))
    first, again = whole.run(), whole.run()
    with whole.store.reading() as reader:
        costs = {one.case_id: one for one in reader.stage_costs(first.row.id)}
    took = [first.stage(case, "execution").latency_ms for case in costs]
    assert [run.metric("latency_ms").estimate for run in (first, again)] == [sorted(took)[1]] * 2
    assert again.metric("input_tokens").estimate == 10.0


@pytest.mark.parametrize("source", ["retrieval_ms", "generation_ms"])
def test_the_time_of_a_stage_is_refused(whole: WholeProject, source: str) -> None:
    whole.write("rag_assets.yaml", whole_config_with(source))
    line = next(
        number
        for number, text in enumerate((whole.root / "rag_assets.yaml").read_text().splitlines(), 1)
        if source in text
    )
    with pytest.raises(InputError) as caught:
        whole.run()
    (problem,) = caught.value.problems
    assert str(problem) == (
        f"rag_assets.yaml:{line}: metrics.0.source: {source} is the time of one stage, and only a "
        "staged system (system.rag) is called stage by stage. Take latency_ms, the time of the "
        "whole call."
    )


def whole_config_with(*sources: str) -> str:
    from wholes import CONFIG

    metrics = "".join(f"  - {{id: {one}, source: {one}, quantile: 0.5}}\n" for one in sources)
    return f"{CONFIG}metrics:\n{metrics}"


# A service


def found(*doc_ids: str) -> dict[str, object]:
    """The answer of a service."""
    passages = [{"doc_id": one} for one in doc_ids]
    retrieval = {"query": "q", "depth": 4, "candidates": passages}
    return {"out": {"answer": doc_ids[0]}, "found": retrieval}


def test_errors_leave_no_denominator(whole: WholeProject) -> None:
    """20 cases: 10 answer rightly, 2 wrongly, 5 get no service, and 3 no answer in time."""
    asked: dict[str, int] = {}
    release = threading.Event()

    def answer(request: Asked) -> Reply:
        question = request.body["question"]
        asked[question] = asked.get(question, 0) + 1
        if question.startswith("down"):
            return Reply(500, "out of service")
        if question.startswith("slow"):
            release.wait(20)
        return Reply(body=found("x" if question.startswith("wrong") else question))

    names = [*(f"ok{n}" for n in range(10)), "wrong0", "wrong1"]
    names += [*(f"down{n}" for n in range(5)), *(f"slow{n}" for n in range(3))]
    whole.cases(*cases_of(*names))
    with serving_http(answer) as service:
        whole.of_service(service.url, "  timeout_s: 1", "  retries: {attempts: 2, wait_s: 0.01}")
        run = whole.run()
        release.set()
    metric = run.metric("answer_correct")
    assert (metric.observed, metric.missing, metric.excluded) == (12, 8, 0)
    payload = json.loads(metric.payload)
    assert (payload["passes"], metric.estimate) == (10, pytest.approx(10 / 12))
    assert payload["missing_reasons"] == {"execution_error": 5, "timeout": 3}
    assert run.row.completeness == "COMPLETE"
    assert {asked[name] for name in names if name.startswith(("down", "slow"))} == {2}
    attempts = json.loads(run.stage("c13", "execution").attempts or "")
    assert [one["status"] for one in attempts] == [500, 500]
    shown = call(whole.root, "inspect", run.row.id, "--case", "c13").stdout
    assert "attempt 1: HttpError: status 500: out of service" in shown
    assert "    HttpError: status 500: out of service" in shown


def test_one_rejected_request_is_made_again_in_its_time(whole: WholeProject) -> None:
    class Told(Silent):
        asked: ClassVar[list[tuple[str, float]]] = []

        def asked_to_wait(self, stage: Stage, case_id: str, seconds: float) -> None:
            self.asked.append((stage, seconds))

    replies = iter([Reply(429, "slow down", {"Retry-After": "1"})])
    whole.cases(*cases_of("a", "b"))
    with serving_http(lambda asked: next(replies, Reply(body=found("a")))) as service:
        whole.of_service(service.url, "  retries: {attempts: 3, wait_s: 0.01}")
        project = load_project(whole.root / "rag_assets.yaml")
        run = whole.read(run_suite(project, cases=None, use_cache=True, observer=Told()))
        assert len(service.asked) == 3
    assert Told.asked == [("execution", 1.0)]
    assert run.metric("answer_correct").observed == 2
    attempts = [one.attempts for one in run.stages if one.stage == "execution" and one.attempts]
    assert [[one["status"] for one in json.loads(text)] for text in attempts] == [[429, None]]


def test_what_cannot_pass_is_not_tried_again(whole: WholeProject) -> None:
    whole.cases(*cases_of("a"))
    with serving_http(lambda asked: Reply(400, "no such question")) as service:
        whole.of_service(service.url, "  retries: {attempts: 3, wait_s: 0.01}")
        run = whole.run()
        assert len(service.asked) == 1
    failure = json.loads(run.stage("c1", "execution").failure or "")
    assert failure["message"] == "status 400: no such question"
    # There is no policy, and nothing was measured.
    assert run.row.exit_code == 3


def test_a_closed_port_ends_with_3_after_all_attempts(whole: WholeProject) -> None:
    whole.cases(*cases_of(*(f"q{number}" for number in range(50))))
    with serving_http(lambda asked: Reply()) as service:
        url = service.url
    whole.of_service(url, "  retries: {attempts: 2, wait_s: 0.01}")
    whole.write("release.yaml", "rules:\n  - {id: r, metric: answer_correct, min: 0.5}\n")
    done = call(whole.root, "run")
    assert done.exit_code == 3
    said = [line for line in done.stderr.splitlines() if line.startswith("first failure")]
    assert len(said) == 1
    assert f"no answer from {url} (ConnectError" in said[0]
    run = whole.read(done.stdout.split()[1])
    attempts = [json.loads(one.attempts or "") for one in run.stages if one.stage == "execution"]
    assert [len(one) for one in attempts] == [2] * 50
    assert [(one.rule, one.state) for one in run.decisions] == [("r", "INSUFFICIENT_EVIDENCE")]


# Dagster prepares a loop of its own for each run, and cannot end that one properly here.
@pytest.mark.filterwarnings("ignore:coroutine 'BaseEventLoop.shutdown_asyncgens':RuntimeWarning")
@pytest.mark.parametrize("stage", ["async def answer", "def answer"])
def test_a_run_inside_a_running_loop(whole: WholeProject, stage: str) -> None:
    import asyncio

    whole.replace("app.py", "def answer", stage)

    async def main() -> dict[str, dict[str, int]]:
        return whole.run().counts

    assert asyncio.run(main())["execution"] == {"miss": 3}


def test_a_call_that_hangs_ends_in_time(whole: WholeProject) -> None:
    waiting = "    if question == 'c d e': __import__('threading').Event().wait(60)\n"
    whole.replace("app.py", "    log(question)\n", f"{waiting}    log(question)\n")
    whole.replace("app.py", 'version="1"', 'version="1", timeout_s=0.3')
    run = whole.run()
    assert json.loads(run.stage("two", "execution").failure or "")["reason"] == "timeout"
    assert run.metric("answer_correct").observed == 2


# Recorded results


def test_recorded_results_are_never_shared(whole: WholeProject) -> None:
    whole.cases(*cases_of("a b", "a b", "c"))
    rows = ["case_id,doc_ids,answer", 'c1,"[""a""]",a', 'c2,"[""b""]",b']
    whole.write("results.csv", "\n".join(rows) + "\n")
    whole.of_system("  recorded: {path: results.csv}")
    whole.replace("rag_assets.yaml", "  - {type: citation_validity}\n", "")
    run = whole.run()
    assert run.counts["execution"] == {"miss": 3}
    assert whole.payload(run, "c1", "generation") == {"answer": "a"}
    assert whole.payload(run, "c2", "generation") == {"answer": "b"}
    answer = run.metric("answer_correct")
    assert (answer.observed, answer.missing) == (2, 1)
    assert json.loads(answer.payload)["missing_reasons"] == {"not_recorded": 1}
    assert run.stage("c1", "assembled_context").source == "absent"


def test_expected_labels_alone_do_not_call_again(whole: WholeProject) -> None:
    whole.first_run()
    whole.cases(
        {"id": "one", "input": {"question": "a b"}, "expected": relevant("b", answer="of b")}
    )
    run = whole.run()
    assert whole.calls() == {}
    assert run.counts["execution"] == {"hit": 1}


def test_each_sample_is_an_execution_of_its_own(whole: WholeProject) -> None:
    whole.replace("rag_assets.yaml", "project: sample", "project: sample\nreplicates: 3")
    whole.replace("app.py", "def answer(case_input):", "def answer(case_input, seed):")
    whole.replace(
        "app.py", '    return {"answer"', '    if seed == 1: return {}\n    return {"answer"'
    )
    run = whole.run()
    assert whole.calls() == {"call": 9}
    assert run.counts["execution"] == {"miss": 9}
    # Two samples of three answer; what the third one cites is there all the same.
    assert run.judgment("one", "hit_rate_at_2").value == 1.0
    assert run.judgment("one", "citations_valid").value == 1.0
    with whole.store.reading() as reader:
        samples = reader.sample_stages(run.row.id, ["one"])
    assert {(one.stage, one.sample) for one in samples} == {
        (stage, sample) for stage in ("execution", *PARTS) for sample in (1, 2)
    }
    assert whole.run().counts["execution"] == {"hit": 9}


def test_recorded_results_cannot_be_sampled(whole: WholeProject) -> None:
    whole.of_system("  recorded: {path: results.csv}")
    whole.write("results.csv", "case_id,answer\none,of a\ntwo,of d\nfar,of h\n")
    config = (whole.root / "rag_assets.yaml").read_text() + "replicates: 2\n"
    whole.write("rag_assets.yaml", config)
    called = call(whole.root, "check")
    assert called.exit_code == 2
    assert f"rag_assets.yaml:{config.count(chr(10))}: replicates: replicates is 2" in called.stderr
    assert "which cannot be sampled again" in called.stderr
