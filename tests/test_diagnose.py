"""`diagnose` on a system with a switch for each failure mode, from the command line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import call, document
from diagnosable import CASES, EXPECTED, Switches, case
from projects import Run

COMMON = ("--criterion", "answer_correct")
SELECTED = sorted(EXPECTED)
UNRESOLVED = (
    "control_error 1",
    "intervention_error 1",
    "no_relevance_labels 1",
    "recovered_with_relevant_in_context 1",
    "unstable_under_control 1",
)


class Diagnosed:
    """A project whose run was diagnosed under gold context."""

    def __init__(self, root: Path) -> None:
        self.project = Switches(root)
        self.run: Run = self.project.run()
        self.run_calls = self.project.calls()
        self.called = call(root, "diagnose", "latest", *COMMON)
        assert self.called.exit_code == 0, self.called.output
        self.calls = self.project.calls()
        with self.project.store.reading() as reader:
            row = reader.diagnoses_of(self.run.row.id, "answer_correct", "gold-context")[0]
        self.id = row.id
        self.record: Mapping[str, Any] = json.loads(row.payload)

    def json(self, *arguments: str) -> dict[str, Any]:
        called = call(self.project.root, "diagnose", "latest", *COMMON, "--json", *arguments)
        assert called.exit_code == 0, called.output
        return document(called)


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory: pytest.TempPathFactory) -> Diagnosed:
    return Diagnosed(tmp_path_factory.mktemp("diagnosed"))


def labels(record: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {
        one["id"]: (
            one["label"],
            one["reason"],
            one["strength"].removeprefix("intervention_"),
            one["best_position"],
        )
        for one in record["cases"]
    }


def verdicts(record: Mapping[str, Any], of: str) -> dict[str, str]:
    return {one["id"]: one[of]["verdict"] for one in record["cases"]}


def test_each_failure_mode_gets_its_label(diagnosed: Diagnosed) -> None:
    assert labels(diagnosed.record) == dict(EXPECTED)
    notes = {one["id"]: one["notes"] for one in diagnosed.record["cases"] if one["notes"]}
    also_missed = ["retrieval_also_missed"]
    assert notes == {"gold_insufficient": also_missed, "missed_and_ignored": also_missed}


def test_every_case_is_generated_twice_and_nothing_is_retrieved(diagnosed: Diagnosed) -> None:
    assert diagnosed.run_calls == {"retrieve": len(CASES), "generate": len(CASES)}
    assert diagnosed.calls == {"generate": 2 * len(EXPECTED)}
    assert f"{2 * len(EXPECTED)} generations will be executed" in diagnosed.called.stderr


def test_what_is_printed(diagnosed: Diagnosed) -> None:
    children = diagnosed.record["children"]
    assert (
        diagnosed.called.stdout
        == f"""\
Selected: 18 failed cases with gold context (observed; no population claim)
Control: 1 of 18 passed when re-executed without the intervention
Recovered under gold context: 12 of 18
RETRIEVAL_MISS: 3 of 18, recovered; the relevant evidence was not among the 4 retrieved
RANKED_OUT: 4 of 18, recovered; it was retrieved below top_k 2 (position 3, 3, 3, 4)
CONTEXT_ASSEMBLY_LOSS: 3 of 18, recovered; it ranked within top_k and was dropped from the context
GENERATION_FAILURE: 3 of 18, still failed over the gold passages
UNRESOLVED: 5 of 18, {", ".join(UNRESOLVED)}
Implicated: ranking depth, in 4 of the 12 recovered failures.
Candidate experiment: a reranker. This is a hypothesis to test, not a cause.
Candidate experiment: top_k 4. This is a hypothesis to test, not a cause.
Diagnosis {diagnosed.id}
Child runs: gold context {children["intervention"]}, control {children["control"]}
Cases: rag-assets inspect {diagnosed.id}
"""
    )


def test_inspect_prints_the_same_lines_and_one_for_each_case(diagnosed: Diagnosed) -> None:
    shown = call(diagnosed.project.root, "inspect", diagnosed.id[:20])
    assert shown.exit_code == 0
    head, cases = shown.stdout.split("\n\n")
    assert f"{head}\n" == diagnosed.called.stdout
    assert [row.partition(":")[0] for row in cases.splitlines()] == SELECTED
    assert (
        "dropped_behind_long: CONTEXT_ASSEMBLY_LOSS, relevant_dropped_from_context, strength "
        "intervention_recovery, best relevant position 2"
    ) in cases
    assert (
        "missed_and_ignored: GENERATION_FAILURE, fails_with_gold_context, strength "
        "intervention_non_recovery, best relevant position none, retrieval_also_missed"
    ) in cases
    as_json = document(call(diagnosed.project.root, "inspect", diagnosed.id, "--json"))
    assert as_json == {"diagnosis": diagnosed.id, **diagnosed.record}


def test_one_case_shows_what_each_execution_made_of_it(diagnosed: Diagnosed) -> None:
    arguments = ("inspect", diagnosed.id, "--case", "dropped_by_budget")
    found = document(call(diagnosed.project.root, *arguments, "--json"))
    shown = {
        one["name"]: (one["passages"], one["output"]["answer"], one["verdict"])
        for one in found["executions"]
    }
    assert shown == {
        "run": (["a"], "wrong", "failed"),
        "control": (["a"], "wrong", "failed"),
        "gold context": (["r"], "right", "passed"),
    }
    text = call(diagnosed.project.root, *arguments).stdout
    assert '    context  r\n    output   {"answer": "right", "citations": []}' in text
    failing = call(diagnosed.project.root, "inspect", diagnosed.id, "--case", "raises_later")
    assert "    verdict  error: generation RuntimeError: the model is gone" in failing.stdout
    unknown = call(diagnosed.project.root, "inspect", diagnosed.id, "--case", "flakey")
    assert unknown.exit_code == 2
    assert 'The diagnosis has no case "flakey". Nearest: flaky' in unknown.stderr


def test_child_runs_are_runs_of_the_selected_cases(diagnosed: Diagnosed) -> None:
    children = diagnosed.record["children"]
    gold, control = (diagnosed.project.read(children[one]) for one in ("intervention", "control"))
    for child in (gold, control):
        assert (child.row.state, child.row.origin) == ("DECIDED", "diagnose")
        assert child.row.parent == diagnosed.id
        assert {row.case_id for row in child.stages} == set(SELECTED)
        # The retrieval on record serves them; generation never comes from the cache.
        sources = Counter((row.stage, row.source) for row in child.stages)
        assert sources["retrieval", "hit"] == len(SELECTED)
        assert sources["generation", "hit"] == 0
    assert control.stage("ranked_out", "assembled_context").digest == (
        diagnosed.run.stage("ranked_out", "assembled_context").digest
    )
    with diagnosed.project.store.reading() as reader:
        digest = str(gold.stage("one_of_two_below", "assembled_context").digest)
        context = json.loads(reader.payloads([digest])[digest])
    assert context == {
        "items": [{"doc_id": "r", "text": "fact-r"}, {"doc_id": "s", "text": "fact-s"}],
        "dropped": [],
        "token_budget": None,
        "source": "gold_context",
    }
    assert gold.metric("answer_correct").observed == 16
    shown = call(diagnosed.project.root, "inspect", gold.row.id, "--case", "ranked_out")
    assert shown.exit_code == 0
    assert "fact-r" in shown.stdout


def test_children_are_listed_only_with_all(diagnosed: Diagnosed) -> None:
    plain, everything = (
        call(diagnosed.project.root, "runs", *more).stdout for more in ((), ("--all",))
    )
    child = diagnosed.record["children"]["control"]
    assert child not in plain
    line = next(row for row in everything.splitlines() if row.startswith(child))
    assert f"(child of {diagnosed.id})" in line
    latest = document(call(diagnosed.project.root, "inspect", "latest", "--json"))
    assert latest["run"] == diagnosed.run.row.id
    refused = call(diagnosed.project.root, "compare", child, "latest")
    assert refused.exit_code == 2
    again = call(diagnosed.project.root, "diagnose", child, *COMMON)
    assert again.exit_code == 2
    assert f"{child} is a part of a diagnosis itself" in again.stderr


def test_a_replay_under_another_top_k_confirms_what_was_ranked_out(diagnosed: Diagnosed) -> None:
    diagnosed.project.calls()
    found = diagnosed.json("--intervention", "top-k", "--top-k", "3")
    # An earlier gold-context diagnosis has the labels: only the replay and its control run.
    assert diagnosed.project.calls() == {"generate": 2 * len(SELECTED)}
    assert found["gold"] == {
        "diagnosis": diagnosed.id,
        "children": diagnosed.record["children"],
        "recovered": 12,
        "confirms": "RANKED_OUT",
        "confirmed": 2,
        "confirmable": 4,
    }
    by_id = {one["id"]: one for one in found["cases"]}
    recovered = {name for name, one in by_id.items() if one["recovered"]}
    assert recovered == {"ranked_out", "one_of_two_below"}
    assert by_id["ranked_out"]["strength"] == "replay_confirmed"
    assert by_id["ranked_last"]["strength"] == "intervention_recovery"
    # The passage now ranks high enough, and is too long all the same.
    assert by_id["below_and_too_long"]["intervention"]["verdict"] == "failed"
    assert found["implicated"] == []
    shown = call(diagnosed.project.root, "inspect", found["diagnosis"]).stdout
    assert "Recovered under top-k 3: 2 of 18" in shown
    assert "Confirmed under top-k 3: 2 of 4 RANKED_OUT cases also recovered" in shown
    assert f"Labels from gold context (diagnosis {diagnosed.id}): 12 of 18 recovered" in shown
    own = found["children"]
    assert f"top-k 3 {own['intervention']}, replay control {own['control']}" in shown
    context = diagnosed.project.read(own["intervention"]).stage("ranked_out", "assembled_context")
    with diagnosed.project.store.reading() as reader:
        record = json.loads(reader.payloads([str(context.digest)])[str(context.digest)])
    assert record["source"] == "top_k_replay"
    assert [one["position"] for one in record["items"]] == [1, 2, 3]


def test_a_replay_under_another_token_budget_confirms_what_was_dropped(
    diagnosed: Diagnosed,
) -> None:
    found = diagnosed.json("--intervention", "token-budget", "--token-budget", "11")
    recovered = {one["id"] for one in found["cases"] if one["recovered"]}
    # 11 tokens hold a:5 and r:6; behind the long passage there is no room yet.
    assert recovered == {"dropped_by_budget"}
    assert found["gold"]["confirms"] == "CONTEXT_ASSEMBLY_LOSS"
    assert (found["gold"]["confirmed"], found["gold"]["confirmable"]) == (1, 3)
    unlimited = diagnosed.json("--intervention", "token-budget", "--token-budget", "unlimited")
    recovered = {one["id"] for one in unlimited["cases"] if one["recovered"]}
    assert recovered == {"dropped_by_budget", "dropped_behind_long", "one_of_two_lost"}
    assert unlimited["gold"]["confirmed"] == 3
    assert unlimited["intervention"]["name"] == "token-budget unlimited"


@pytest.mark.parametrize("name", ["last_first", "last_first_later"])
def test_a_reranker_reorders_what_was_retrieved(diagnosed: Diagnosed, name: str) -> None:
    found = diagnosed.json("--intervention", "reranker", "--reranker", f"rerank:{name}")
    recovered = {one["id"] for one in found["cases"] if one["recovered"]}
    assert {"ranked_out", "ranked_last"} <= recovered
    child = diagnosed.project.read(found["children"]["intervention"])
    digest = str(child.stage("ranked_last", "assembled_context").digest)
    with diagnosed.project.store.reading() as reader:
        record = json.loads(reader.payloads([digest])[digest])
    assert [(one["doc_id"], one["position"]) for one in record["items"]] == [("r", 4), ("c", 3)]
    dropped = [(one["doc_id"], one["position"], one["reason"]) for one in record["dropped"]]
    assert dropped == [("b", 2, "top_k"), ("a", 1, "top_k")]
    assert record["source"] == "reranker"


def test_a_reranker_may_leave_candidates_out(diagnosed: Diagnosed) -> None:
    found = diagnosed.json("--intervention", "reranker", "--reranker", "rerank:only_relevant")
    child = diagnosed.project.read(found["children"]["intervention"])
    digest = str(child.stage("dropped_behind_long", "assembled_context").digest)
    with diagnosed.project.store.reading() as reader:
        record = json.loads(reader.payloads([digest])[digest])
    assert [one["position"] for one in record["items"]] == [2]
    assert [(one["position"], one["reason"]) for one in record["dropped"]] == [(1, "reranker")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("adding", "returned a candidate (the one at place 3) that is none of those that were"),
        ("doubling", "returned a candidate (the one at place 2) that is none of those that were"),
        ("counting", "must return a list or a tuple of the candidates, got int"),
    ],
)
def test_a_reranker_that_breaks_its_contract_ends_with_2(
    diagnosed: Diagnosed, name: str, message: str
) -> None:
    arguments = ("--intervention", "reranker", "--reranker", f"rerank:{name}")
    called = call(diagnosed.project.root, "diagnose", "latest", *COMMON, *arguments)
    assert called.exit_code == 2
    assert message in called.stderr
    assert f"the reranker rerank:{name} " in called.stderr


def test_a_case_that_raises_in_a_replay_has_not_recovered(diagnosed: Diagnosed) -> None:
    found = diagnosed.json("--intervention", "reranker", "--reranker", "rerank:failing")
    one = next(one for one in found["cases"] if one["id"] == "ranked_out")
    assert one["intervention"]["verdict"] == "error"
    assert one["intervention"]["why"] == "assembled_context OSError: no reranker today"
    assert one["notes"] == ["intervention_error"]
    assert (one["recovered"], one["strength"]) == (False, "intervention_recovery")
    shown = call(diagnosed.project.root, "inspect", found["diagnosis"]).stdout
    assert (
        "intervention_error: 2 cases failed to execute under reranker rerank:failing, counted as "
        "not recovered: raises_later, ranked_out"
    ) in shown


def test_all_interventions_share_one_control(diagnosed: Diagnosed) -> None:
    diagnosed.project.calls()
    plan = document(
        call(diagnosed.project.root, "diagnose", "latest", *COMMON, "--all", "--dry-run", "--json")
    )
    assert diagnosed.project.calls() == {}
    assert plan["generations"] == 4 * len(SELECTED)
    assert plan["interventions"] == ["gold context", "top-k 4", "token-budget unlimited"]
    called = call(diagnosed.project.root, "diagnose", "latest", *COMMON, "--all")
    assert diagnosed.project.calls() == {"generate": plan["generations"]}
    table = called.stdout.split("\n\n")[-1].splitlines()
    rows = {row.split()[0]: row.split()[1:] for row in table}
    assert " ".join(table[0].split()) == (
        "case label control gold context top-k 4 token-budget unlimited"
    )
    assert rows["ranked_out"] == ["RANKED_OUT", "fail", "pass", "pass", "fail"]
    # At rank 4 it needs a larger budget as well.
    assert rows["ranked_last"] == ["RANKED_OUT", "fail", "pass", "fail", "fail"]
    assert rows["dropped_by_budget"] == ["CONTEXT_ASSEMBLY_LOSS", "fail", "pass", "fail", "pass"]
    assert rows["never_retrieved"] == ["RETRIEVAL_MISS", "fail", "pass", "fail", "fail"]
    assert rows["raises_later"] == ["UNRESOLVED", "error", "error", "error", "error"]
    assert "replay control" not in called.stdout


def test_without_a_control_nothing_is_called_unstable(diagnosed: Diagnosed) -> None:
    diagnosed.project.calls()
    found = diagnosed.json("--no-control")
    assert diagnosed.project.calls() == {"generate": len(SELECTED)}
    assert labels(found)["flaky"] == (
        *("UNRESOLVED", "recovered_with_relevant_in_context", "none"),
        1,
    )
    assert found["children"]["control"] is None
    shown = call(diagnosed.project.root, "inspect", found["diagnosis"]).stdout
    assert "Control: not executed (--no-control)" in shown
    assert "strength intervention_recovery (without control)" in shown


def test_a_replay_without_labels_diagnoses_under_gold_context_first(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.run(["ranked_out", "never_retrieved"])
    project.calls()
    arguments = (*COMMON, "--intervention", "top-k", "--top-k", "4")
    called = call(tmp_path, "diagnose", "latest", *arguments)
    assert called.exit_code == 0
    assert "only that one gives labels: it is executed first" in called.stderr
    assert "6 generations will be executed" in called.stderr
    assert project.calls() == {"generate": 6}
    assert "Confirmed under top-k 4: 1 of 1 RANKED_OUT cases also recovered" in called.stdout
    # With another control setting the labels are others.
    plan = call(tmp_path, "diagnose", "latest", *arguments, "--no-control", "--dry-run", "--json")
    assert document(plan)["interventions"] == ["gold context", "top-k 4"]


def test_what_generation_returned_serves_no_later_run(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.run(["ranked_out", "passes"])
    arguments = ("--intervention", "top-k", "--top-k", "3")
    assert call(tmp_path, "diagnose", "latest", *COMMON, *arguments).exit_code == 0
    project.calls()
    # The replay has generated over exactly this context; only the run may fill the cache.
    project.replace("app.py", "top_k=2", "top_k=3")
    again = project.run(["ranked_out"])
    assert project.calls() == {"generate": 1}
    assert again.judgment("ranked_out", "answer_correct").value == 1.0


def test_a_reranker_may_score_anew_and_copy(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.cases(case("ranked_out", "a a r"))
    project.write(
        "rerank.py",
        "def scored(input, candidates):\n"
        "    first, second, third = candidates\n"
        "    third = third.model_copy(update={'score': 9.0})\n"
        "    return [third, first.model_copy(), second]\n",
    )
    run = project.run()
    arguments = ("--intervention", "reranker", "--reranker", "rerank:scored")
    called = call(tmp_path, "diagnose", run.row.id, *COMMON, *arguments, "--json")
    assert called.exit_code == 0, called.output
    found = document(called)
    child = project.read(found["children"]["intervention"])
    digest = str(child.stage("ranked_out", "assembled_context").digest)
    with project.store.reading() as reader:
        record = json.loads(reader.payloads([digest])[digest])
    assert [one["position"] for one in record["items"]] == [3, 1]
    assert found["cases"][0]["strength"] == "replay_confirmed"


def test_a_counter_that_breaks_its_contract_is_not_the_rerankers_fault(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace(
        "rag_assets.yaml", "  name: switches", "  name: switches\n  on_malformed: missing"
    )
    project.replace(
        "app.py",
        "return len(passage.text.split())",
        "return -1 if passage.doc_id == 'c' else len(passage.text.split())",
    )
    project.run(["ranked_last", "ranked_out"])
    arguments = ("--intervention", "reranker", "--reranker", "rerank:last_first")
    called = call(tmp_path, "diagnose", "latest", *COMMON, *arguments, "--json")
    assert called.exit_code == 0, called.output
    why = {one["id"]: one["intervention"]["why"] for one in document(called)["cases"]}
    assert why["ranked_out"] is None
    assert "count_tokens of candidate 3" in str(why["ranked_last"])


def test_a_sample_whose_retrieval_failed_has_no_evidence(tmp_path: Path) -> None:
    project = Switches(tmp_path)
    project.replace(
        "rag_assets.yaml",
        "project: switches",
        "project: switches\nreplicates: 3\nreplicate_retrieval: true",
    )
    project.replace(
        "app.py",
        "        found = []\n",
        "        from rag_assets import current_case\n"
        "        if current_case().sample == 0 and input['question'] == 'ranked_out':\n"
        "            raise OSError('index down')\n"
        "        found = []\n",
    )
    project.run(["ranked_out", "never_retrieved"])
    called = call(tmp_path, "diagnose", "latest", *COMMON, "--json")
    assert called.exit_code == 0, called.output
    found = {one["id"]: (one["label"], one["reason"]) for one in document(called)["cases"]}
    assert found == {
        "ranked_out": ("UNRESOLVED", "intervention_evidence_missing"),
        "never_retrieved": ("RETRIEVAL_MISS", "relevant_not_retrieved"),
    }
