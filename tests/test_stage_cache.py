"""What is executed again after a change, and what is a hit."""

from __future__ import annotations

import json

from projects import SampleProject

ALL_MISS = {
    "execution": {"miss": 3},
    "retrieve": {"miss": 3},
    "generate": {"miss": 3},
    "judgment": {"miss": 9},
}
ALL_HIT = {
    "execution": {"hit": 3},
    "retrieve": {"hit": 3},
    "generate": {"hit": 3},
    "judgment": {"hit": 9},
}


def test_an_unchanged_run_calls_nothing(sample: SampleProject) -> None:
    assert sample.run().counts == ALL_MISS
    assert sample.calls() == {"retrieve": 3, "generate": 3}
    assert sample.run().counts == ALL_HIT
    assert sample.calls() == {}


def test_top_k_runs_no_retrieval_and_only_changed_contexts(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("rag_assets.yaml", "object: app:Sample", "object: app:Sample\n    top_k: 3")
    run = sample.run()
    # "a b" has two candidates only: its context is the same under top_k 3.
    assert run.counts["retrieve"] == {"hit": 3}
    assert run.counts["generate"] == {"hit": 1, "miss": 2}
    assert run.counts["execution"] == {"miss": 3}
    assert sample.calls() == {"generate": 2}


def test_token_budget_generates_only_changed_contexts(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace(
        "rag_assets.yaml", "object: app:Sample", "object: app:Sample\n    token_budget: 6"
    )
    assert sample.run().counts["generate"] == {"hit": 3}
    sample.replace("rag_assets.yaml", "token_budget: 6", "token_budget: 5")
    assert sample.run().counts["generate"] == {"miss": 3}
    assert sample.calls() == {"generate": 3}


def test_index_version_runs_retrieval_and_same_passages_hit(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("rag_assets.yaml", "index_version: v1", "index_version: v2")
    run = sample.run()
    assert run.counts["retrieve"] == {"miss": 3}
    assert run.counts["generate"] == {"hit": 3}
    assert sample.calls() == {"retrieve": 3}
    sample.replace("rag_assets.yaml", "index_version: v2", "index_version: v1")
    assert sample.run().counts == ALL_HIT
    assert sample.calls() == {}


def test_code_of_generate_runs_no_retrieval(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("app.py", '" ".join', '"; ".join')
    run = sample.run()
    assert run.counts["retrieve"] == {"hit": 3}
    assert run.counts["generate"] == {"miss": 3}
    assert sample.calls() == {"generate": 3}
    sample.replace("app.py", '"; ".join', '" ".join')
    assert sample.run().counts == ALL_HIT


def test_code_of_both_runs_both_and_a_comment_runs_nothing(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("app.py", "def log(", "# A comment.\ndef log(")
    assert sample.run().counts == ALL_HIT
    sample.replace("app.py", '"calls.log"', '"calls.log".strip()')
    counts = sample.run().counts
    assert counts["retrieve"] == {"miss": 3}
    assert counts["generate"] == {"miss": 3}


def test_an_edited_case_runs_alone(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("cases.jsonl", "a b", "a c")
    counts = sample.run().counts
    assert counts["retrieve"] == {"hit": 2, "miss": 1}
    assert sample.calls() == {"retrieve": 1, "generate": 1}


def test_an_edited_expectation_only_judges(sample: SampleProject) -> None:
    sample.first_run()
    sample.replace("cases.jsonl", '"answer": "of a"', '"answer": "of b"')
    counts = sample.run().counts
    assert counts["judgment"] == {"hit": 8, "miss": 1}
    assert sample.calls() == {}


def test_no_cache_reads_nothing_and_writes_all_the_same(sample: SampleProject) -> None:
    sample.first_run()
    assert sample.run(use_cache=False).counts == ALL_MISS
    assert sample.calls() == {"retrieve": 3, "generate": 3}
    assert sample.run().counts == ALL_HIT


def test_equal_inputs_are_executed_once(sample: SampleProject) -> None:
    sample.cases(
        {"id": "one", "input": {"question": "a b", "n": [1, None]}, "expected": "of a"},
        {"id": "two", "input": {"n": [1, None], "question": "a b"}, "expected": "of b"},
    )
    run = sample.run()
    assert run.counts["execution"] == {"miss": 1, "shared": 1}
    assert run.counts["retrieve"] == {"miss": 1, "shared": 1}
    assert run.counts["generate"] == {"miss": 1, "shared": 1}
    assert sample.calls() == {"retrieve": 1, "generate": 1}
    assert (run.metric("answer_correct").observed, run.metric("answer_correct").estimate) == (2, 1)
    assert sample.run().counts["execution"] == {"hit": 2}


def test_users_have_executions_of_their_own(sample: SampleProject) -> None:
    question = {"question": "a b"}
    sample.cases(
        {"id": "one", "input": question, "user": "ann", "expected": "of a"},
        {"id": "two", "input": question, "user": "bob", "expected": "of a"},
    )
    assert sample.run().counts["execution"] == {"miss": 2}


def test_a_stage_cannot_change_the_input_of_the_next(sample: SampleProject) -> None:
    sample.replace("app.py", 'log("retrieve", input["question"])', 'input["seen"] = True')
    sample.replace(
        "app.py", 'log("generate", input["question"])', 'assert "seen" not in input, input'
    )
    assert sample.run().counts["generate"] == {"miss": 3}
    assert sample.run().counts["generate"] == {"hit": 3}


def test_a_stage_with_a_seed_is_given_the_seed(sample: SampleProject) -> None:
    sample.replace(
        "app.py", "def generate(self, input, context):", "def generate(self, input, context, seed):"
    )
    sample.replace("app.py", "return answer_of(context)", 'return {"answer": f"seed {seed}"}')
    sample.replace("cases.jsonl", "of a", "seed 7")
    sample.write("rag_assets.yaml", (sample.root / "rag_assets.yaml").read_text() + "seed: 7\n")
    run = sample.run()
    assert run.judgment("one", "answer_correct").value == 1.0
    sample.replace("rag_assets.yaml", "seed: 7", "seed: 8")
    counts = sample.run().counts
    assert counts["retrieve"] == {"hit": 3}
    assert counts["generate"] == {"miss": 3}


def test_no_cache_replaces_what_is_memoized(sample: SampleProject) -> None:
    sample.replace("app.py", "import json", "import json, time")
    sample.replace("app.py", "return answer_of(context)", 'return {"answer": time.time_ns()}')
    runs = [sample.run(use_cache=cached) for cached in (True, False, True)]
    first, second, third = (run.stage("one", "generation").digest for run in runs)
    assert first != second == third


def test_an_attempt_is_given_passages_of_its_own(sample: SampleProject) -> None:
    sample.replace("app.py", "import json", "import json\n\nTRIED = set()")
    sample.replace(
        "app.py",
        "return answer_of(context)",
        "answer = answer_of(context)\n"
        "        context.pop()\n"
        '        if input["question"] not in TRIED:\n'
        '            TRIED.add(input["question"])\n'
        '            raise OSError("try again")\n'
        "        return answer",
    )
    retries = "{attempts: 2, wait_s: 0, retry_on: ['builtins:OSError']}"
    sample.replace("rag_assets.yaml", "  name: sample\n", f"  name: sample\n  retries: {retries}\n")
    run = sample.run()
    with sample.store.reading() as reader:
        digest = str(run.stage("one", "generation").digest)
        payload = json.loads(reader.payloads([digest])[digest])
    assert payload["answer"] == "text of a text of b"
    attempts = json.loads(run.stage("one", "generation").attempts or "")
    assert [one["state"] for one in attempts] == ["error", "ok"]


def test_a_failure_is_shared_like_a_result(sample: SampleProject) -> None:
    sample.cases(*({"id": name, "input": {"question": "a"}, "expected": "x"} for name in "abc"))
    sample.replace("app.py", "return answer_of(context)", 'raise OSError("no model")')
    run = sample.run()
    assert run.counts["generate"] == {"miss": 1, "shared": 2}
    assert run.metric("answer_correct").missing == 3
    assert sample.calls() == {"retrieve": 1, "generate": 1}


def test_reported_usage_is_recorded(sample: SampleProject) -> None:
    sample.replace("app.py", "from rag_assets import", "from rag_assets import current_case,")
    sample.replace(
        "app.py",
        "return answer_of(context)",
        "current_case().usage(input_tokens=7, cost_usd=0.5)\n"
        "        current_case().usage(input_tokens=1)\n"
        "        return answer_of(context)",
    )
    used = json.loads(sample.run().stage("one", "generation").usage or "")
    assert used == {"input_tokens": 8, "cost_usd": 0.5}
