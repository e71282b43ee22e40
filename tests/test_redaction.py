"""What is shown of a case leaves out what its user may not see: everywhere but in the store."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from command_line import call, document
from corpora import TODAY, corpus_of, labels
from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.corpus import Corpus
from rag_assets.contracts.reference_set import ReferenceSets
from rag_assets.evaluation.redaction import Redactor, hidden, leaks_of, masked, passages_of
from rag_assets.evaluators.leak_check import leaks_in
from rag_assets.store import Store
from sourced import DOCUMENTS, MEMBER, SECRET, STAFF, SourcedProject, case

# A part of the secret that no test may find; digits alone could stand in any digest.
MARK = "disarmed with"
DESK = DOCUMENTS[0]["text"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_of(tmp_path_factory.mktemp("corpus"), *DOCUMENTS)


def of(corpus: Corpus, user: Any = MEMBER, **expected: Any) -> Case:
    row = {"id": "c", "input": "Q?", "user": user, "expected": expected}
    return ReferenceSets(corpus, TODAY).of(parse_case(row))


RETRIEVAL = {
    "query": f"what about {SECRET}",
    "depth": 4,
    "candidates": [
        {"doc_id": "desk", "text": DESK, "metadata": {"says": DESK}},
        {"doc_id": "alarm", "text": SECRET, "score": 0.5, "metadata": {"says": [SECRET]}},
        {"doc_id": "ghost", "text": "Nobody knows this document.", "metadata": {}},
    ],
}


def test_hidden_and_masked() -> None:
    assert hidden("abc") == "[restricted: 3 characters, sha256 ba7816bf8f01cfea]"
    assert masked("one two three", [(4, 3)]) == "one [restricted: 3 characters] three"
    assert masked("one two three", [(4, 3), (0, 5)]) == "[restricted: 7 characters] three"
    assert masked("one", []) == "one"


def test_passages(corpus: Corpus) -> None:
    redactor = Redactor(of(corpus), passages_of(RETRIEVAL))
    shown = redactor.artifact("retrieval/v1", RETRIEVAL)
    assert shown["candidates"][0] == RETRIEVAL["candidates"][0]  # type: ignore[index]
    assert shown["candidates"][1] == {
        "doc_id": "alarm",
        "text": hidden(SECRET),
        "score": 0.5,
        "metadata": {"says": [hidden(SECRET)]},
    }
    assert shown["candidates"][2]["text"] == hidden("Nobody knows this document.")
    assert MARK not in json.dumps(shown)
    assert (
        Redactor(of(corpus, STAFF)).artifact("retrieval/v1", RETRIEVAL)["candidates"][1]
        == (
            RETRIEVAL["candidates"][1]  # type: ignore[index]
        )
    )
    context = {"items": RETRIEVAL["candidates"], "dropped": RETRIEVAL["candidates"]}
    assert MARK not in json.dumps(redactor.artifact("context/v1", context))


def test_answers_and_messages(corpus: Corpus) -> None:
    redactor = Redactor(of(corpus), passages_of(RETRIEVAL))
    said = {"answer": f"{DESK} But {SECRET}"}
    assert redactor.answer(said) == {"answer": f"{DESK} But [restricted: {len(SECRET)} characters]"}
    assert redactor.text(f"error: {SECRET}") == f"error: [restricted: {len(SECRET)} characters]"
    assert redactor.value([SECRET, 1, None]) == [masked(SECRET, [(0, len(SECRET))]), 1, None]
    # What no_leak found is masked, whether or not the passage is on record.
    alone = Redactor(of(corpus))
    leak = {"at": "answer", "offset": 3, "length": 4, "what": "text", "doc_id": "alarm"}
    assert alone.answer({"answer": "at 7714!", "other": "7714"}, [leak]) == {
        "answer": "at [restricted: 4 characters]!",
        "other": "7714",
    }


def test_keys_that_are_masked_alike_stay_apart(corpus: Corpus) -> None:
    redactor = Redactor(of(corpus, forbidden=["7714"]))
    shown = redactor.answer({"7714": "a", "７７１４": "b", "c": 7714})
    code = "[restricted: 4 characters]"
    assert shown == {code: "a", f"{code} (2)": "b", "c": code}


def test_an_execution_as_a_whole(corpus: Corpus) -> None:
    execution = {
        "output": SECRET,
        "artifacts": {
            "retrieval/v1": RETRIEVAL,
            "citations/v1": {"ids": ["alarm"]},
            "trace": SECRET,
        },
        "state": "valid",
        "unusable": {},
    }
    shown = Redactor(of(corpus), passages_of(RETRIEVAL)).artifact("execution/v1", execution)
    assert MARK not in json.dumps(shown)
    assert shown["artifacts"]["citations/v1"] == {"ids": ["alarm"]}


def test_expectations(corpus: Corpus) -> None:
    gold = [{"doc_id": "alarm", "text": SECRET}, {"doc_id": "desk", "text": DESK}]
    expected = {"gold_context": gold, "forbidden": ["7714"], "behavior": "abstain"}
    case = of(corpus, **expected)
    shown = Redactor(case).case_record({"id": "c", "expected": expected})
    assert shown["expected"]["gold_context"] == [
        {"doc_id": "alarm", "text": hidden(SECRET)},
        {"doc_id": "desk", "text": DESK},
    ]
    assert shown["expected"]["forbidden"] == [hidden("7714")]
    assert Redactor(case).answer("It is 7714.") == "It is [restricted: 4 characters]."


def test_without_a_corpus_nothing_is_touched() -> None:
    plain = Redactor(parse_case({"id": "c", "input": "Q?"}))
    assert plain.artifact("retrieval/v1", RETRIEVAL) is RETRIEVAL
    assert plain.answer(RETRIEVAL) is RETRIEVAL
    assert plain.text(SECRET) == SECRET


def test_leaks_of_details() -> None:
    one, two = {"leaks": [{"at": "a"}]}, {"leaks": [{"at": "b"}]}
    several = {"samples": [{"detail": one}, {"detail": None}, {"detail": two}]}
    assert leaks_of(one) == one["leaks"]
    assert [leaks_of(several, sample) for sample in (0, 1, 2, 3)] == [
        one["leaks"],
        [],
        two["leaks"],
        [],
    ]
    assert leaks_of(several, None) == [*one["leaks"], *two["leaks"]]
    assert leaks_of(None) == leaks_of({"doc_id": "a"}) == leaks_of("text") == []


def test_what_is_forbidden_is_masked_in_messages_as_well(corpus: Corpus) -> None:
    redactor = Redactor(of(corpus, forbidden=["7714", "Code Nine"]))
    said = "it read 7714, and code   NINE"
    masked_text = "it read [restricted: 4 characters], and [restricted: 11 characters]"
    assert redactor.text(said) == masked_text
    assert redactor.text("7714") == "[restricted: 4 characters]"
    assert redactor.said({"7714": [said, 7714]}) == {"7714": [masked_text, 7714]}
    assert redactor.value({"id": "rule-7714"}) == {"id": "rule-7714"}
    # What names things is no text of anybody.
    relevant = [{"doc_id": "rule-7714"}]
    record = {"id": "c", "expected": {"relevant": relevant, "answer": "7714"}}
    assert redactor.case_record(record)["expected"] == {
        "relevant": relevant,
        "answer": "[restricted: 4 characters]",
    }


def test_a_quoted_text_is_masked_with_its_line_breaks_written_out(tmp_path: Path) -> None:
    text = "\n".join(["First line of the rule.", "\tSecond line of it.", "The third, and last."])
    rule = corpus_of(tmp_path, {"doc_id": "rule", "access": ["staff"], "text": text})
    passages = [("rule", text)]
    redactor = Redactor(of(rule), passages)
    for quoted in (repr(text)[1:-1], json.dumps(text)[1:-1]):
        masked_text = f'bad: "[restricted: {len(quoted)} characters]" (\\n)'
        assert redactor.text(f'bad: "{quoted}" (\\n)') == masked_text
    assert Redactor(of(rule, STAFF), passages).text(repr(text)) == repr(text)


def test_titles_are_masked_in_messages_where_the_manifest_is_at_hand(corpus: Corpus) -> None:
    case = of(corpus)
    redactor = Redactor(case, corpus=partial(leaks_in, case=case))
    assert redactor.text("no Night  ALARM procedure") == "no [restricted: 22 characters]"
    staff = of(corpus, STAFF)
    redactor = Redactor(staff, corpus=partial(leaks_in, case=staff))
    assert redactor.text("no Night alarm procedure") == "no Night alarm procedure"


# The whole way


CASES = (
    case("leaks", "desk alarm", expected=labels("desk", answer="noon")),
    {
        "id": "fails",
        "input": {"question": "alarm", "fails": True},
        "user": MEMBER,
        "expected": {
            "behavior": "abstain",
            "relevant": [{"doc_id": "alarm"}],
            "gold_context": [{"doc_id": "alarm", "text": SECRET}],
        },
    },
    case("told", "desk", expected=labels("desk", answer="x", forbidden=["from nine"])),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sourced = SourcedProject(tmp_path_factory.mktemp("told"))
    sourced.cases(*CASES)
    return sourced.root


@pytest.fixture(scope="module")
def outputs(told: Path) -> dict[str, str]:
    """Command → everything that it wrote to either stream."""
    found: dict[str, str] = {}
    for command in (
        "run --slices",
        "run --no-cache --json",
        "runs",
        "check",
        "inspect latest",
        "inspect latest --json",
        "inspect latest --failures",
        "inspect latest --failures --json",
        "inspect latest --violations",
        "inspect latest --violations --json",
        "inspect latest --case leaks",
        "inspect latest --case leaks --json",
        "inspect latest --case fails",
        "inspect latest --case fails --json",
        "inspect latest --case told --json",
        "compare latest latest~1",
        "compare latest latest~1 --json",
        "diagnose latest --criterion answer_correct --intervention gold-context",
        "export latest",
        "export latest --include-restricted --out kept",
    ):
        result = call(told, *command.split())
        assert result.exit_code in (0, 1, 3), result.output
        found[command] = result.output
    return found


def test_no_command_shows_what_a_user_may_not_see(outputs: dict[str, str]) -> None:
    assert [command for command, text in outputs.items() if MARK in text] == []
    told = json.loads(outputs["inspect latest --case told --json"])
    assert told["output"]["answer"] == masked(f"It is so. {DESK}", [(27, 9)])
    assert told["case"]["expected"]["forbidden"] == [hidden("from nine")]


def test_what_is_shown_instead(outputs: dict[str, str]) -> None:
    shown = json.loads(outputs["inspect latest --case leaks --json"])
    texts = [one["text"] for one in shown["retrieval"]]
    assert texts == [DESK, hidden(SECRET)]
    assert [one["inadmissible"] for one in shown["retrieval"]] == [None, "not permitted"]
    answer = f"It is so. {DESK} [restricted: {len(SECRET)} characters]"
    assert shown["output"]["answer"] == answer
    quoting = next(one for one in shown["judgments"] if one["criterion"] == "quoting")
    assert quoting["reason"] == f"it read: {DESK} [restricted: {len(SECRET)} characters]"
    failed = json.loads(outputs["inspect latest --case fails --json"])
    failure = next(one["failure"] for one in failed["stages"] if one["failure"])
    assert failure["message"] == f"cannot answer from: [restricted: {len(SECRET)} characters]"
    assert failed["case"]["expected"]["gold_context"][0]["text"] == hidden(SECRET)
    assert "admissible" in outputs["inspect latest --case leaks"]


def test_violations(outputs: dict[str, str], told: Path) -> None:
    found = json.loads(outputs["inspect latest --violations --json"])
    rows = [
        (one["case"], one["user"], one["stage"], one["position"], one["doc_id"], one["reason"])
        for one in found["violations"]
    ]
    assert rows == [
        ("leaks", "ann", "retrieval", 2, "alarm", "not permitted"),
        ("leaks", "ann", "assembled_context", 2, "alarm", "not permitted"),
        ("leaks", "ann", "citations", 2, "alarm", "not permitted"),
        ("leaks", "ann", "generation", len(DESK) + 11, "alarm", "text in the answer"),
        ("fails", "ann", "retrieval", 1, "alarm", "not permitted"),
        ("fails", "ann", "assembled_context", 1, "alarm", "not permitted"),
        ("told", "ann", "generation", 27, None, "forbidden in the answer"),
    ]
    assert found["reasons"] == {
        "not permitted": 5,
        "text in the answer": 1,
        "forbidden in the answer": 1,
    }
    lines = outputs["inspect latest --violations"].splitlines()
    assert lines[0].startswith("7 violations in 3 of 3 cases: 5 not permitted, 1 text in")
    assert len([row for row in lines if row.startswith(("leaks", "fails", "told"))]) == 7
    limited = call(told, "inspect", "latest", "--violations", "--limit", "2").stdout
    assert limited.splitlines()[-1] == "… and 5 more (--limit 7)"
    report = outputs["run --slices"]
    assert "Violations: 7 judgments" in report
    assert "    leaks  admissible_retrieval  alarm  not permitted" in report


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(Path(place, name).relative_to(folder)): Path(place, name).read_bytes()
        for place, _, names in os.walk(folder)
        for name in names
    }


def test_dagster_and_the_export_hold_nothing_of_it(told: Path, outputs: dict[str, str]) -> None:
    state = files(told / ".rag_assets" / "dagster")
    assert any(name.endswith(".db") for name in state)
    assert [name for name, data in state.items() if MARK.encode() in data] == []
    (bundle,) = (told / "bundles").iterdir()
    exported = files(bundle)
    assert [name for name, data in exported.items() if MARK.encode() in data] == []
    assert json.loads(exported["manifest.json"])["restricted_text"] == "redacted"
    first = json.loads(exported["cases.jsonl"].splitlines()[0])
    stages = {one["stage"]: one["digest"] for one in first["executions"]}
    shown = {stages[stage] for stage in ("retrieval", "assembled_context", "generation")}
    assert set(first["redacted"]) == shown
    kept = files(told / "kept")
    assert MARK.encode() in kept["cases.jsonl"]
    assert json.loads(kept["manifest.json"])["restricted_text"] == "included"
    said = outputs["export latest --include-restricted --out kept"]
    assert "The bundle holds what users of the cases may not see." in said


def test_the_store_keeps_artifacts_as_they_were_recorded(told: Path, outputs: Any) -> None:
    with Store(told / ".rag_assets" / "store.duckdb").reading() as reader:
        (newest,) = reader.listed_runs(1)
        digest = reader.stage_digests(newest.id, "generation")["leaks"]
        output = json.loads(reader.payloads([digest])[digest])
        assert output["answer"] == f"It is so. {DESK} {SECRET}"


def test_who_may_see_it_sees_it(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    sourced.cases(case("bob", "desk alarm old new", STAFF))
    assert call(tmp_path, "run").exit_code == 0
    shown = document(call(tmp_path, "inspect", "latest", "--case", "bob", "--json"))
    assert [one["text"] for one in shown["retrieval"]][1:3] == [
        SECRET,
        hidden(DOCUMENTS[2]["text"]),
    ]
    assert shown["conflicts"] == []
    sourced.replace("app.py", "top_k=3", "top_k=4")
    assert call(tmp_path, "run").exit_code == 0
    text = call(tmp_path, "inspect", "latest", "--case", "bob").stdout
    assert (
        "Conflicting sources\n"
        "    rules: new, version 2, authority 5\n"
        "    rules: old, version 1, authority 0, retired\n"
    ) in text


def test_a_diagnosis_shows_nothing_of_it_either(tmp_path: Path) -> None:
    sourced = SourcedProject(tmp_path)
    gold = [{"doc_id": "alarm", "text": SECRET}]
    expected = labels("desk", answer="nowhere", gold_context=gold)
    sourced.cases(case("c", "desk alarm", expected=expected))
    sourced.without("quoting")
    contract = "  - {type: task_acceptance, all_of: [answer_correct, no_leak]}\n"
    config = (tmp_path / "rag_assets.yaml").read_text()
    sourced.write("rag_assets.yaml", config + contract)
    call(tmp_path, "run")
    gold_context = ("diagnose", "latest", "--intervention", "gold-context", "--criterion")
    made = call(tmp_path, *gold_context, "task_acceptance")
    assert "GENERATION_FAILURE: 1 of 1" in made.stdout, made.output
    diagnosis = next(word for word in made.stdout.split() if word.startswith("sha256:"))
    shown = call(tmp_path, "inspect", diagnosis, "--case", "c", "--json")
    outputs = [one["output"]["answer"] for one in document(shown)["executions"]]
    secret = f"[restricted: {len(SECRET)} characters]"
    answer = f"It is so. {DESK} {secret}"
    assert outputs == [answer, answer, f"It is so. {secret}"]
    call(tmp_path, "export", diagnosis)
    (bundle,) = (tmp_path / "bundles").iterdir()
    assert [name for name, data in files(bundle).items() if MARK.encode() in data] == []
    refused = call(tmp_path, *gold_context, "retrieval_valid")
    assert "reads nothing that generation makes" in refused.stderr
