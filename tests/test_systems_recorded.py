"""Recorded systems: reading results, and what each row comes to."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blackboxes import Place, a_case, called, failure
from rag_assets.systems.blackbox import BlackBox, Execution

CASES = ("one", "two", "far")
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.cases(*({"id": case_id, "input": "Q?"} for case_id in CASES))
    return made


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def recorded(place: Place, name: str, content: str | bytes, **map: str) -> BlackBox:
    place.write(name, content)
    return place.system(recorded={"path": name, "map": map})


def problems_of(
    place: Place, name: str, content: str | bytes, **map: str
) -> list[tuple[str, int, str, str]]:
    place.write(name, content)
    return place.problems(recorded={"path": name, "map": map})


def results(place: Place, system: BlackBox) -> dict[str, Any]:
    """Case id → execution, or reason, type and message of the failure."""
    found = called(system, place.dataset.cases)
    return {
        case_id: failure(result) if result.failure else result.value
        for case_id, result in found.items()
    }


def retrieval(*doc_ids: str) -> dict[str, Any]:
    return {"query": None, "depth": None, "candidates": [{"doc_id": one} for one in doc_ids]}


# What rows say

ROWS = lines(
    {
        "case_id": "one",
        "doc_ids": ["a", "b"],
        "context_ids": ["a"],
        "citations": "a | b",
        "answer": {"text": "14 days"},
        "abstained": False,
    },
    {"case_id": "two", "state": "denied", "answer": None, "abstained": True},
    {"case_id": "far", "state": "timeout", "error": "no answer in 30 s"},
)


def test_json_lines(place: Place) -> None:
    system = recorded(place, "results.jsonl", ROWS)
    assert system.records == {"retrieval/v1", "context/v1", "citations/v1"}
    assert results(place, system) == {
        "one": Execution(
            {"answer": {"text": "14 days"}, "abstained": False},
            {
                "retrieval/v1": retrieval("a", "b"),
                "context/v1": {
                    "items": [{"doc_id": "a"}],
                    "dropped": [],
                    "token_budget": None,
                    "source": "retrieval",
                },
                "citations/v1": {"ids": ["a", "b"]},
            },
            "valid",
            {},
        ),
        "two": Execution(
            {"answer": None, "abstained": True},
            {
                "retrieval/v1": {**retrieval(), "state": "denied"},
                "context/v1": {
                    "items": [],
                    "dropped": [],
                    "token_budget": None,
                    "source": "retrieval",
                },
                "citations/v1": {"ids": []},
            },
            "denied",
            {},
        ),
        "far": ("timeout", "TimeoutError", "no answer in 30 s"),
    }


def test_a_list_may_hold_passages(place: Place) -> None:
    passage = {"doc_id": "a", "chunk_id": "1", "score": 2, "text": "A.", "metadata": {"n": 1}}
    item = {"doc_id": "a", "text": "A.", "tokens": 1}
    row = {"case_id": "one", "doc_ids": [passage, "b"], "context_ids": [item]}
    system = recorded(place, "results.jsonl", lines(row))
    found = results(place, system)["one"].artifacts
    assert found["retrieval/v1"]["candidates"] == [{**passage, "score": 2.0}, {"doc_id": "b"}]
    assert found["context/v1"]["items"] == [item]


CSV = 'case_id,doc_ids,answer,error\none,a|b,"14,\ndays",\ntwo,,no,\nfar,,,Boom: it broke\n'


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.CSV"])
def test_tables(place: Place, start: bytes, end: str, name: str) -> None:
    text = CSV if name != "r.tsv" else CSV.replace('"14,', '"14;').replace(",", "\t")
    text = text.replace("14;", "14,").replace("\n", end)
    system = recorded(place, name, start + text.encode("utf-8"))
    assert results(place, system) == {
        "one": Execution(
            {"answer": f"14,{end}days"}, {"retrieval/v1": retrieval("a", "b")}, "valid", {}
        ),
        "two": Execution({"answer": "no"}, {"retrieval/v1": retrieval()}, "empty", {}),
        "far": ("execution_error", "RecordedError", "Boom: it broke"),
    }


def test_the_map_says_where_things_stand(place: Place) -> None:
    rows = lines({"meta": {"ids": ["x", "one"]}, "hits": {"top": "a"}, "out": ["yes"]})
    system = recorded(
        place, "r.jsonl", rows, case_id="meta.ids.1", doc_ids="hits.top", answer="out.0"
    )
    found = results(place, system)
    assert found["one"] == Execution(
        {"answer": "yes"}, {"retrieval/v1": retrieval("a")}, "valid", {}
    )


def test_a_case_without_a_row_is_not_recorded(place: Place) -> None:
    system = recorded(place, "r.jsonl", lines({"case_id": "one", "answer": "a"}))
    found = results(place, system)
    assert found["one"] == Execution({"answer": "a"}, {}, None, {})
    assert found["two"] == found["far"]
    assert found["two"] == (
        "not_recorded",
        "NotRecordedError",
        "the results hold no row for this case",
    )
    assert system.records == frozenset()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"state": "error"}, ("execution_error", "RecordedError", "recorded as an error")),
        ({"state": "timeout"}, ("timeout", "TimeoutError", "recorded as timed out")),
        ({"error": "x", "doc_ids": ["a"]}, ("execution_error", "RecordedError", "x")),
        ({"state": "error", "error": "x"}, ("execution_error", "RecordedError", "x")),
        ({"state": "empty"}, Execution({}, {"retrieval/v1": retrieval()}, "empty", {})),
        ({"doc_ids": []}, Execution({}, {"retrieval/v1": retrieval()}, "empty", {})),
        (
            {"state": "denied"},
            Execution({}, {"retrieval/v1": {**retrieval(), "state": "denied"}}, "denied", {}),
        ),
        ({"doc_ids": None}, Execution({}, {}, None, {})),
        ({"state": None, "error": ""}, Execution({}, {}, None, {})),
    ],
)
def test_states(place: Place, row: dict[str, Any], expected: Any) -> None:
    rows = lines({"case_id": "one", **row}, {"case_id": "two", "doc_ids": ["d"]})
    assert results(place, recorded(place, "r.jsonl", rows))["one"] == expected


# What is wrong with a file


@pytest.mark.parametrize(
    ("name", "content", "line", "key", "message"),
    [
        (
            "r.jsonl",
            lines({"case_id": "one"}, {"case_id": "onne"}),
            2,
            "case_id",
            'The dataset has no case "onne". Did you mean "one"?',
        ),
        (
            "r.csv",
            'case_id,answer\none,"a\nb"\n\nnobody,x\n',
            5,
            "case_id",
            'The dataset has no case "nobody".',
        ),
        (
            "r.csv",
            "case_id,answer\none,a\ntwo,b\none,c\n",
            4,
            "case_id",
            'The case "one" of line 4 is that of line 2 as well; keep one row for each case.',
        ),
        (
            "r.jsonl",
            lines({"case_id": "one"}, {"case_id": 2}),
            2,
            "case_id",
            "The id of a case must be a non-empty text, got 2.",
        ),
        (
            "r.jsonl",
            lines({"case_id": "one"}, {"answer": "a"}),
            2,
            "case_id",
            "The id of a case must be a non-empty text, got nothing.",
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "state": "vald"}),
            1,
            "state",
            'state must be one of valid, empty, denied, error, timeout, got "vald".',
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "state": "denied", "doc_ids": ["a"]}),
            1,
            "doc_ids",
            'A row whose state is denied has no id here, got ["a"].',
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "state": "valid", "doc_ids": []}),
            1,
            "doc_ids",
            "A row whose state is valid has at least one id here, got [].",
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "doc_ids": {"a": 1}}),
            1,
            "doc_ids",
            (
                'doc_ids must be a list of ids or of objects with a doc_id, or text like "a|b", '
                'got {"a": 1}.'
            ),
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "citations": [{"doc_id": "a"}]}),
            1,
            "citations",
            'citations must be a list of ids, or text like "a|b", got [{"doc_id": "a"}].',
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "doc_ids": ["a", {"doc_id": "b", "score": "1"}]}),
            1,
            "doc_ids",
            "In passage 2, score must be a number, got '1' (str).",
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "context_ids": [{"text": "A"}]}),
            1,
            "context_ids",
            "An id is required.",
        ),
        (
            "r.csv",
            "case_id,doc_ids\none,a||b\n",
            2,
            "doc_ids",
            "An id must not be empty.",
        ),
        (
            "r.jsonl",
            lines({"case_id": "one", "doc_ids": [" a"]}),
            1,
            "doc_ids",
            "An id must not begin or end with white space, got ' a'.",
        ),
        (
            "r.csv",
            "case_id,abstained\none,maybe\n",
            2,
            "abstained",
            'abstained must be true or false, got "maybe".',
        ),
        (
            "r.csv",
            "case_id;answer\none;yes, sir\n",
            1,
            "",
            (
                "The columns are separated by semicolons, not by commas. Save the file with commas "
                "as .csv, or with tabs as .tsv."
            ),
        ),
        (
            "r.tsv",
            "case_id,answer\none,yes\n",
            1,
            "",
            (
                "The columns are separated by commas, not by tabs. Save the file with commas as "
                ".csv, or with tabs as .tsv."
            ),
        ),
        (
            "r.csv",
            "case_id,answer\none\n",
            2,
            "",
            "The number of cells is 1, and that of columns 2.",
        ),
        (
            "r.csv",
            "case_id,answer,answer\none,a,b\n",
            1,
            "",
            'The column "answer" stands here twice; keep one.',
        ),
        ("r.csv", 'case_id\none\n"two\n', 3, "", "The row cannot be read: unexpected end of data."),
        ("r.csv", "case_id,answer\n", 0, "", "The file holds no row."),
        ("r.jsonl", "\n\r\n", 0, "", "The file holds no row."),
        (
            "r.csv",
            BOM + b"case_id\none\n\xff\n",
            3,
            "",
            "Byte offset 15 (0xff) is not UTF-8; save the file as UTF-8.",
        ),
        (
            "r.jsonl",
            '{"case_id": "one"}\nnot json\n',
            2,
            "",
            (
                "The line is not JSON: Expecting value (column 1); each line holds one whole JSON "
                "object."
            ),
        ),
        (
            "r.jsonl",
            '{"case_id": "one", "answer": "\\ud800"}\n',
            1,
            "answer",
            "The value holds half of a surrogate pair, which UTF-8 cannot write.",
        ),
    ],
)
def test_problems_name_file_and_line(
    place: Place, name: str, content: str | bytes, line: int, key: str, message: str
) -> None:
    assert problems_of(place, name, content) == [(name, line, key, message)]


def test_all_problems_of_a_file_come_together(place: Place) -> None:
    rows = lines({"case_id": "x1"}, {"case_id": "one", "state": "no"}, {"case_id": "one"})
    assert [line for _, line, _, _ in problems_of(place, "r.jsonl", rows)] == [1, 2]


@pytest.mark.parametrize(
    ("name", "map", "key", "message"),
    [
        (
            "r.txt",
            {},
            "system.recorded.path",
            'must end in .jsonl, .csv, .tsv, got "r.txt".',
        ),
        (
            "r.csv",
            {},
            "system.recorded.path",
            (
                'No row of r.csv has the column "case_id". Name the place of each part in '
                "system.recorded.map."
            ),
        ),
        (
            "r.csv",
            {"case_id": "id", "answer": "reply"},
            "system.recorded.map.answer",
            (
                'No row of r.csv has the column "reply". Name the place of each part in '
                "system.recorded.map."
            ),
        ),
    ],
)
def test_problems_of_the_config(
    place: Place, name: str, map: dict[str, str], key: str, message: str
) -> None:
    content = "id,text\none,a\n"
    assert problems_of(place, name, content, **map) == [("rag_assets.yaml", 5, key, message)]


def test_a_file_that_is_not_there(place: Place) -> None:
    assert place.problems(recorded={"path": "r.csv"}) == [
        ("r.csv", 0, "", "The file cannot be read: No such file or directory.")
    ]


# Identities


def test_the_identity_of_an_execution_is_its_row(place: Place) -> None:
    rows = [{"case_id": case_id, "answer": "same"} for case_id in CASES]
    first = recorded(place, "r.jsonl", lines(*rows))
    keys = {case_id: first.execution_of(a_case(case_id)) for case_id in (*CASES, "none")}
    assert len(set(keys.values())) == 4
    rows[1]["answer"] = "another"
    second = recorded(place, "r.jsonl", lines(*rows[::-1]))
    changed = [one for one in CASES if second.execution_of(a_case(one)) != keys[one]]
    assert changed == ["two"]
    assert second.identity != first.identity
    renamed = recorded(place, "r.jsonl", lines(*rows).replace("answer", "say"), answer="say")
    assert renamed.execution_of(a_case("one")) != keys["one"]


# Any table

deterministic = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@deterministic
@given(st.lists(st.tuples(st.sampled_from(CASES), words), unique_by=lambda row: row[0], min_size=1))
def test_what_a_table_holds_is_read(place: Place, rows: list[tuple[str, str]]) -> None:
    for delimiter, name in ((",", "r.csv"), ("\t", "r.tsv")):
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter).writerows([("case_id", "answer"), *rows])
        system = recorded(place, name, text.getvalue())
        found = {case_id: result.output["answer"] for case_id, result in system.results.items()}
        assert found == dict(rows)


@deterministic
@given(
    st.sampled_from(["r.jsonl", "r.csv", "r.tsv"]),
    st.lists(
        st.sampled_from(
            [
                "case_id",
                "one",
                "two",
                "state",
                "doc_ids",
                *(",", "\t", "\n", "\r", '"', "|", "\0", "é", "\ufeff", "\u2028"),
                '{"case_id": "one"}\n',
                '{"case_id": "two", "doc_ids": ["a"]}\n',
                "error",
            ]
        ),
        max_size=14,
    ),
)
def test_any_file_is_results_or_has_problems(place: Place, name: str, parts: list[str]) -> None:
    content = "".join(parts)
    place.write(name, content)
    system, problems = place.load(recorded={"path": name})
    assert (system is None) == bool(problems)
    last = len(content.splitlines()) + 1
    assert all(0 <= one.line <= last for one in problems if one.file == name)
    assert {problem.file for problem in problems} <= {name, "rag_assets.yaml"}
