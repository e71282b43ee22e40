import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.cases import Case, Dataset, GoldPassage, Label, check_case, parse_case
from rag_assets.contracts.dataset import read_dataset
from rag_assets.contracts.errors import InputError, Problem

deterministic = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(tmp_path: Path, data: str | bytes) -> tuple[Dataset | None, list[Problem]]:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    problems: list[Problem] = []
    return read_dataset(path, problems, name="cases.jsonl"), problems


def valid(tmp_path: Path, data: str | bytes) -> Dataset:
    dataset, problems = read(tmp_path, data)
    assert problems == []
    assert dataset is not None
    return dataset


def found(tmp_path: Path, data: str | bytes) -> list[tuple[int, str, str]]:
    dataset, problems = read(tmp_path, data)
    assert dataset is None
    assert {problem.file for problem in problems} == {"cases.jsonl"}
    return [(problem.line, problem.key, problem.message) for problem in problems]


def refused(**fields: Any) -> list[tuple[str, str]]:
    """The problems of a case that is fine but for the fields given."""
    with pytest.raises(InputError) as caught:
        parse_case({"id": "c", "input": "Q?", **fields})
    return [(problem.key, problem.message) for problem in caught.value.problems]


def accepted(**fields: Any) -> Case:
    return parse_case({"id": "c", "input": "Q?", **fields})


# Whole files


def test_a_case_is_read_as_it_stands(tmp_path: Path) -> None:
    (case,) = valid(
        tmp_path,
        '{"id": "refund", "input": {"question": "How long?"}, "expected": {"answer": "14 days", '
        '"relevant": [{"doc_id": "kb-01", "chunk_id": "2", "grade": 2, "note": "free"}], '
        '"gold_context": [{"doc_id": "kb-01", "text": "14 days."}], "requires": "all"}, '
        '"metadata": {"topic": "billing"}, "user": {"id": "ann", "roles": ["hr"]}, '
        '"as_of": "2026-09-16", "group": "kb-01"}\n',
    ).cases
    assert case.id == "refund"
    assert case.input == {"question": "How long?"}
    assert case.expected["answer"] == "14 days"
    assert case.relevant == (Label("kb-01", "2", 2.0),)
    assert case.gold_context == (GoldPassage("kb-01", None, "14 days."),)
    assert case.requires == "all"
    assert case.metadata == {"topic": "billing"}
    assert case.user == {"id": "ann", "roles": ["hr"]}
    assert case.as_of == "2026-09-16"
    assert case.group == "kb-01"
    assert case.line == 1


ROWS = '{"id": "a", "input": 1}\n{"id": "b", "input": 2}\n'


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_unicode_has_one_problem(tmp_path: Path, codec: str) -> None:
    message = "The file is UTF-16 or UTF-32; save it as UTF-8."
    assert found(tmp_path, (ROWS * 30).encode(codec)) == [(0, "", message)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        (json.dumps([{"id": "a", "input": n} for n in range(40)], indent=2), 1, 162),
        ("\n\n  {\n}\n" + '{\n"id": "b"\n}\n' * 30, 3, 4),
        (ROWS + '[\n{"id": "c", "input": 3},\n{"id": "d", "input": 3}\n]', 3, 6),
        ('\ufeff{"id": "é",\r\n"input": 1}\r\n', 1, 2),
    ],
)
def test_a_value_over_several_lines_has_one_problem(
    tmp_path: Path, text: str, first: int, last: int
) -> None:
    message = (
        f"The JSON value that begins here goes on to line {last}; each line holds one whole JSON "
        "object. Write each object on one line (jq -c does that)."
    )
    assert found(tmp_path, text) == [(first, "", message)]


def test_a_line_that_is_cut_short_is_no_value_over_several_lines(tmp_path: Path) -> None:
    lines = [line for line, _, _ in found(tmp_path, '{"id": "a"\n' + ROWS + '{"id": "c"\n')]
    assert lines == [1, 4]


def test_what_is_absent_is_none(tmp_path: Path) -> None:
    (case,) = valid(tmp_path, '{"id":"c","input":0}').cases
    assert (case.expected, case.user, case.as_of, case.group) == (None, None, None, None)
    assert case.metadata == {}
    assert case.relevant == ()
    assert case.gold_context == ()
    assert case.requires == "any"


def test_a_file_saved_on_windows(tmp_path: Path) -> None:
    dataset = valid(
        tmp_path,
        b'\xef\xbb\xbf{"id":"w1","input":{"question":"Opening hours?"},"expected":'
        b'{"answer":"nine","relevant":[{"doc_id":"h"}]}}\r\n'
        b"\r\n"
        b'{"id":"w2","input":{"question":"Closing hours?"},"expected":'
        b'{"answer":"five","relevant":[{"doc_id":"h"}]}}',
    )
    assert [(case.id, case.line) for case in dataset.cases] == [("w1", 1), ("w2", 3)]
    assert [case.input for case in dataset.cases] == [
        {"question": "Opening hours?"},
        {"question": "Closing hours?"},
    ]
    assert dataset.cases[1].expected == {"answer": "five", "relevant": [{"doc_id": "h"}]}


def test_a_latin_1_file_is_one_problem_with_line_and_byte_offset(tmp_path: Path) -> None:
    text = '{"id":"w3","input":{"question":"Prix du café?"},"expected":{"answer":"2"}}\n'
    assert found(tmp_path, text.encode("latin-1")) == [
        (1, "", "Byte offset 43 (0xe9) is not UTF-8; save the file as UTF-8.")
    ]


def test_byte_offsets_count_from_the_start_of_the_file(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"id":"a","input":1}\r\n\xff\n\n{"id":"b","input":"\xed\xa0\x80"}'
    assert found(tmp_path, data) == [
        (2, "", "Byte offset 25 (0xff) is not UTF-8; save the file as UTF-8."),
        (4, "", "Byte offset 47 (0xed) is not UTF-8; save the file as UTF-8."),
    ]


def test_every_broken_line_is_reported_in_one_pass(tmp_path: Path) -> None:
    assert found(
        tmp_path,
        '{"id":"b1","input":{"question":"Q?"},"expected":{"answer":"x","relevant":[]}}\n'
        '{"id":"b2","input":{"question":"Q?"},"expected":{"answer":"x","relevant":[]}}\n'
        '{"id":"b3","input":{"question":"Q?"},\n'
        '{"input":{"question":"Q?"},"expected":{"answer":"x"}}\n'
        '{"id":"b1","input":{"question":"Other?"},"expected":{"answer":"y","relevant":[]}}\n'
        '{"id":"b6","input":{"question":"Q?"},"expected":["x"]}\n'
        '{"id":"b7","input":{"question":"Q?"},"expectd":{"answer":"x"}}\n'
        "[1,2]\n",
    ) == [
        (
            3,
            "",
            (
                "The line is not JSON: Expecting property name enclosed in double quotes (column "
                "38); each line holds one whole JSON object."
            ),
        ),
        (4, "id", "id is required, as a non-empty string."),
        (5, "id", 'The id "b1" of line 5 is the id of line 1 as well; ids are unique.'),
        (6, "expected", 'expected is a list; name its field, like {"answers": […]}.'),
        (7, "", 'The key "expectd" is not known. Did you mean "expected"?'),
        (8, "", "The line must be a JSON object, got [1, 2]."),
    ]


def test_duplicate_labels(tmp_path: Path) -> None:
    same = (
        '{"id":"l1","input":{"question":"Q?"},"expected":{"answer":"x","relevant":'
        '[{"doc_id":"a"},{"doc_id":"a"}]}}\n'
    )
    other = (
        '{"id":"l2","input":{"question":"Q?"},"expected":{"answer":"x","relevant":'
        '[{"doc_id":"b","grade":1},{"doc_id":"b","grade":2}]}}\n'
    )
    assert valid(tmp_path, same).cases[0].relevant == (Label("a", None, 1.0),)
    assert found(tmp_path, same + other) == [
        (
            2,
            "expected.relevant.1",
            'Case "l2" labels the document "b" with the grades 1 and 2; keep one.',
        )
    ]


def test_a_case_without_labels_is_a_case(tmp_path: Path) -> None:
    dataset = valid(
        tmp_path,
        '{"id":"n1","input":{"question":"Q?"},"expected":{"answer":"x","relevant":[{"doc_id":"a"}]}}\n'
        '{"id":"n2","input":{"question":"Q?"},"expected":{"answer":"x","relevant":[]}}\n'
        '{"id":"n3","input":{"question":"Q?"},"expected":{"answer":"x","relevant":null}}\n',
    )
    assert [case.relevant for case in dataset.cases] == [(Label("a", None, 1.0),), (), ()]


def test_ids_are_strings_and_compared_exactly(tmp_path: Path) -> None:
    seven = '{"id":"m1","input":{"question":"Q?"},"expected":{"relevant":[{"doc_id":7}]}}\n'
    padded = '{"id":"m2","input":{"question":"Q?"},"expected":{"relevant":[{"doc_id":"007"}]}}\n'
    assert valid(tmp_path, padded).cases[0].relevant == (Label("007", None, 1.0),)
    assert found(tmp_path, seven + padded) == [
        (1, "expected.relevant.0.doc_id", 'doc_id must be a string, got 7; write "7" in quotes.')
    ]
    assert refused(expected={"relevant": [{"doc_id": " 007"}]}) == [
        (
            "expected.relevant.0.doc_id",
            'doc_id begins or ends with white space, got " 007"; remove it.',
        )
    ]


def test_digests_are_stable_under_key_order(tmp_path: Path) -> None:
    one, two = valid(
        tmp_path,
        '{"id":"n1","input":{"question":"Q?","filters":{"year":2024,"tags":["a",null]}},'
        '"expected":{"answer":"x"}}\n'
        '{"id":"n2","input":{"filters":{"tags":["a",null],"year":2024},"question":"Q?"},'
        '"expected":{"answer":"x"}}\n',
    ).cases
    assert one.input_digest == two.input_digest
    assert one.expected_digest == two.expected_digest
    assert one.digest != two.digest


def test_digests_tell_apart_what_json_tells_apart() -> None:
    digests = {accepted(input=value).input_digest for value in (1, 1.0, "1", True, [1], {"a": 1})}
    assert len(digests) == 6


def test_big_inputs_load(tmp_path: Path) -> None:
    wide = {f"key-{number}": number for number in range(2000)}
    deep: Any = None
    for _ in range(150):
        deep = [deep]
    row = {"id": "big", "input": {"text": "x" * 200_000, "deep": deep}, "metadata": wide}
    (case,) = valid(tmp_path, json.dumps(row)).cases
    assert len(case.input["text"]) == 200_000
    assert case.metadata["key-1999"] == 1999


def test_separators_of_unicode_are_data(tmp_path: Path) -> None:
    (case,) = valid(tmp_path, '{"id":"u","input":"a\u2028b\u2029c\u0085d"}\n').cases
    assert case.input == "a\u2028b\u2029c\u0085d"
    assert found(tmp_path, '{"id":"u","input":1}\n\u0085\n')[0][0] == 2


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    dataset = valid(tmp_path, '\n \t \r\n{"id":"a","input":1}\n\r\n\n{"id":"b","input":1}\n\n')
    assert [case.line for case in dataset.cases] == [3, 6]


@pytest.mark.parametrize("data", [b"", b"\n\r\n  \n", b"\xef\xbb\xbf"])
def test_a_dataset_without_a_case(tmp_path: Path, data: bytes) -> None:
    assert found(tmp_path, data) == [
        (0, "", "The dataset holds no case; write one JSON object a line.")
    ]


def test_a_missing_file(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert read_dataset(tmp_path / "none.jsonl", problems, name="none.jsonl") is None
    assert problems == [
        Problem("none.jsonl", 0, "", "The file cannot be read: No such file or directory.")
    ]


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        ("NaN", "", "NaN is no JSON number; leave the key out or write null."),
        ("[-Infinity]", "", "-Infinity is no JSON number; leave the key out or write null."),
        ('{"b":{"a":1,"a":2}}', "", 'The key "a" stands twice in one object; keep one.'),
        ("1e999", "input", "The value is inf, and JSON has no such number."),
        (
            '{"q":["\\ud800"]}',
            "input.q.0",
            "The value holds half of a surrogate pair, which UTF-8 cannot write.",
        ),
        ("[" * 100_000 + "]" * 100_000, "", "The case is nested deeper than 200 levels."),
        ("[" * 200 + "]" * 200, "", "The case is nested deeper than 200 levels."),
        ("9" * 5000, "", "An integer has too many digits to be read; write it as a string."),
    ],
)
def test_json_that_is_refused(tmp_path: Path, value: str, key: str, message: str) -> None:
    data = f'{{"id":"a","input":1}}\n{{"id":"b","input":{value}}}\n'
    assert found(tmp_path, data) == [(2, key, message)]


def test_large_integers_and_nesting_up_to_the_limit_are_fine(tmp_path: Path) -> None:
    nested = "[" * 199 + "]" * 199
    first, second = valid(
        tmp_path,
        f'{{"id":"a","input":{"9" * 4000}}}\n{{"id":"b","input":{nested}}}\n',
    ).cases
    assert first.input == 10**4000 - 1
    assert json.dumps(second.input) == nested


def test_a_line_with_two_problems_and_a_taken_id_reports_all(tmp_path: Path) -> None:
    data = '{"id":"a","input":null}\n{"id":"a","input":1,"group":"","metadata":[]}\n'
    assert [(line, key) for line, key, _ in found(tmp_path, data)] == [
        (1, "input"),
        (2, "metadata"),
        (2, "group"),
        (2, "id"),
    ]


def test_the_suite_digest_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    a, b = '{"id":"a","input":1}\n', '{"id":"b","input":2}\n'
    digest = valid(tmp_path, a + b).digest
    assert valid(tmp_path, b + a).digest == digest
    assert valid(tmp_path, a).digest != digest
    assert valid(tmp_path, a + b.replace("2", "3")).digest != digest


def test_the_caller_shows_the_first_twenty(tmp_path: Path) -> None:
    _, problems = read(tmp_path, "x\n" * 25)
    lines = str(InputError(problems, shown=20)).splitlines()
    assert len(lines) == 21
    assert lines[19].startswith("cases.jsonl:20: The line is not JSON: Expecting value")
    assert lines[20] == "… and 5 more"


# One case


@pytest.mark.parametrize("case_id", ["a", "ä b", "refund/annual#2", "x" * 512, "a..b", "007"])
def test_ids_that_are_fine(case_id: str) -> None:
    assert accepted(id=case_id).id == case_id


@pytest.mark.parametrize(
    ("case_id", "message"),
    [
        ("", "id must not be empty."),
        (7, 'id must be a string, got 7; write "7" in quotes.'),
        (None, "id must be a string, got null."),
        (" a", 'id begins or ends with white space, got " a"; remove it.'),
        ("a\u00a0", 'id begins or ends with white space, got "a\u00a0"; remove it.'),
        ("a\tb", 'id must not hold a control character, got "a\\tb".'),
        ("a\x7fb", 'id must not hold a control character, got "a\x7fb".'),
        ("a...b", 'id must not hold "...", got "a...b".'),
        ("x" * 513, "id has 513 characters; at most 512 are allowed."),
    ],
)
def test_ids_that_are_refused(case_id: Any, message: str) -> None:
    assert refused(id=case_id) == [("id", message)]


@pytest.mark.parametrize("value", [0, "", False, [], {}, "text", 1.5])
def test_any_json_but_null_is_an_input(value: Any) -> None:
    assert accepted(input=value).input == value
    assert refused(input=None) == [
        ("input", "input is required and must not be null; it is what the system receives.")
    ]


@pytest.mark.parametrize(("key", "wanted"), [("idd", "id"), ("inputs", "input")])
def test_a_misspelt_required_key_is_one_problem(key: str, wanted: str) -> None:
    raw = {"id": "a", "input": 1}
    raw[key] = raw.pop(wanted)
    with pytest.raises(InputError) as caught:
        parse_case(raw, line=4)
    assert caught.value.problems == (
        Problem("", 4, "", f'The key "{key}" is not known. Did you mean "{wanted}"?'),
    )


@pytest.mark.parametrize("value", ["x", 7, 1.5, True, None, {}, {"answer": [1, 2]}])
def test_expected_is_an_object_or_a_scalar(value: Any) -> None:
    assert accepted(expected=value).expected == value


@pytest.mark.parametrize("value", ["ann", {"id": "ann"}, {"id": "ann", "roles": ["hr", "it"]}])
def test_users(value: Any) -> None:
    assert accepted(user=value).user == value


@pytest.mark.parametrize("value", ["2026-09-16", "2026-09-16T10:00:00", "2026-09-16T10:00:00Z"])
def test_dates(value: str) -> None:
    assert accepted(as_of=value).as_of == value


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("metadata", [], "metadata must be an object, got []; leave it out where there is none."),
        ("group", "", "group must not be empty."),
        ("group", None, "group must be a string, got null."),
        ("as_of", "yesterday", 'as_of must be an ISO date like "2026-09-16", got "yesterday".'),
        ("as_of", 20260916, 'as_of must be an ISO date like "2026-09-16", got 20260916.'),
        (
            "user",
            7,
            (
                'user must be a string, got 7; write "7" in quotes. An object with id and roles '
                "will do too."
            ),
        ),
        ("user", {"roles": ["hr"]}, "In user, id is required, as a non-empty string."),
        (
            "user",
            {"id": "ann", "roles": "hr"},
            'The roles of user must be a list of strings, got "hr".',
        ),
    ],
)
def test_optional_fields_that_are_refused(field: str, value: Any, message: str) -> None:
    assert refused(**{field: value}) == [(field, message)]


def test_labels_of_chunks_and_grades() -> None:
    case = accepted(
        expected={
            "relevant": [
                {"doc_id": "a", "chunk_id": "1"},
                {"doc_id": "a", "chunk_id": "2", "grade": 0},
                {"doc_id": "a", "grade": 0.5},
                {"doc_id": "a", "chunk_id": None, "grade": 0.5, "note": "again"},
                {"doc_id": "b", "grade": 1},
                {"doc_id": "b", "grade": 1.0},
            ]
        }
    )
    assert case.relevant == (
        Label("a", "1", 1.0),
        Label("a", "2", 0.0),
        Label("a", None, 0.5),
        Label("b", None, 1.0),
    )


@pytest.mark.parametrize("grade", [True, -1, "2", None, float("inf"), 10**400])
def test_grades_are_finite_numbers_from_zero(grade: Any) -> None:
    key, message = refused(expected={"relevant": [{"doc_id": "a", "grade": grade}]})[0]
    assert key == "expected.relevant.0.grade"
    assert message.startswith("grade must be a finite number of at least 0, got ")


@pytest.mark.parametrize(
    ("relevant", "key", "message"),
    [
        ({"doc_id": "a"}, "", 'expected.relevant must be a list of objects, got {"doc_id": "a"}.'),
        (["kb-1"], ".0", 'The entry must be an object with a doc_id, got "kb-1".'),
        ([{"chunk_id": "1"}], ".0.doc_id", "doc_id is required, as a non-empty string."),
        ([{"doc_id": ""}], ".0.doc_id", "doc_id must not be empty."),
        (
            [{"doc_id": "a"}, {"doc_id": "b", "chunk_id": 1}],
            ".1.chunk_id",
            'chunk_id must be a string, got 1; write "1" in quotes.',
        ),
        (
            [{"doc_id": "a", "chunk_id": "1 "}],
            ".0.chunk_id",
            'chunk_id begins or ends with white space, got "1 "; remove it.',
        ),
        (
            [{"doc_id": "a", "chunk_id": "1"}, {"doc_id": "a", "chunk_id": "1", "grade": 0}],
            ".1",
            'Case "c" labels the document "a", chunk "1", with the grades 1 and 0; keep one.',
        ),
    ],
)
def test_labels_that_are_refused(relevant: Any, key: str, message: str) -> None:
    assert refused(expected={"relevant": relevant}) == [(f"expected.relevant{key}", message)]


@pytest.mark.parametrize(
    ("passage", "key", "message"),
    [
        ({"doc_id": "a"}, ".text", "text is required, as a non-empty string."),
        ({"doc_id": "a", "text": ""}, ".text", "text must not be empty."),
        (
            {"doc_id": " a", "text": "t"},
            ".doc_id",
            'doc_id begins or ends with white space, got " a"; remove it.',
        ),
        ("text", "", 'The entry must be an object with a doc_id, got "text".'),
    ],
)
def test_gold_passages_that_are_refused(passage: Any, key: str, message: str) -> None:
    problems = refused(expected={"gold_context": [passage]})
    assert problems == [(f"expected.gold_context.0{key}", message)]


@pytest.mark.parametrize("value", ["some", None, 1, ["any"]])
def test_requires_is_any_or_all(value: Any) -> None:
    ((key, message),) = refused(expected={"requires": value})
    assert key == "expected.requires"
    assert message.startswith("requires must be any or all, got ")


def test_what_each_digest_covers() -> None:
    base = accepted()
    assert accepted(id="other").input_digest == base.input_digest
    for told in ({"user": "ann"}, {"as_of": "2026-09-16"}, {"expected": "x"}):
        case = accepted(**told)
        assert case.input_digest == base.input_digest
        assert case.expected_digest != base.expected_digest
        assert case.digest != base.digest
    for rest in ({"group": "g"}, {"metadata": {"a": 1}}, {"id": "other"}):
        case = parse_case({"id": "c", "input": "Q?", **rest})
        assert case.expected_digest == base.expected_digest
        assert case.digest != base.digest


# Properties

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
inputs = json_values.filter(lambda value: value is not None)


@deterministic
@given(
    values=st.lists(inputs, min_size=1, max_size=5),
    bom=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n", "\n\n", "\r\n \t\r\n"]),
    ascii_only=st.booleans(),
)
def test_what_was_written_is_read_with_its_line(
    tmp_path: Path, values: list[Any], bom: bool, ending: str, ascii_only: bool
) -> None:
    rows = [{"id": f"case-{number}", "input": value} for number, value in enumerate(values)]
    text = "".join(json.dumps(row, ensure_ascii=ascii_only) + ending for row in rows)
    dataset = valid(tmp_path, text.encode("utf-8-sig" if bom else "utf-8"))
    assert [canonical_json(case.input) for case in dataset.cases] == [
        canonical_json(value) for value in values
    ]
    step = ending.count("\n")
    assert [case.line for case in dataset.cases] == [1 + step * n for n in range(len(values))]
    assert dataset.cases == tuple(
        parse_case(row, line=case.line) for row, case in zip(rows, dataset.cases, strict=True)
    )


@deterministic
@given(
    st.lists(
        st.binary(max_size=30)
        | st.sampled_from(
            [
                b'{"id":"a","input":1}',
                b'{"id":"b","input":{"q":"\\ud800"}}',
                b'{"id":"c","input":1,"expected":{"relevant":[{"doc_id":"x"}]}}',
                b'{"id":"d","input":[[[]]],"metadata":{"":null}}',
                b'{"id":"","input":null,"expected":[]}',
                b'{"id":"e","input":1e999}',
            ]
        ),
        max_size=6,
    )
)
def test_any_bytes_give_a_dataset_or_problems_on_lines_of_the_file(
    tmp_path: Path, lines: list[bytes]
) -> None:
    data = b"\n".join(lines)
    dataset, problems = read(tmp_path, data)
    assert (dataset is None) == bool(problems)
    numbers = [problem.line for problem in problems]
    assert numbers == sorted(numbers)
    assert all(0 <= number <= data.count(b"\n") + 1 for number in numbers)


@deterministic
@given(
    st.dictionaries(
        st.sampled_from(["id", "input", "expected", "user", "as_of", "group", "metadata", "x"]),
        json_values,
    )
)
def test_any_row_is_a_case_or_has_problems(raw: dict[str, Any]) -> None:
    problems: list[Problem] = []
    case = check_case(raw, "cases.jsonl", 3, problems)
    assert (case is None) == bool(problems)
    assert {(problem.file, problem.line) for problem in problems} <= {("cases.jsonl", 3)}
    if case is not None:
        assert case.id == raw["id"]
        assert canonical_json(case.input) == canonical_json(raw["input"])
