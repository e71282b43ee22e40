import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.yaml_source import YamlSource, read_yaml

deterministic = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# Line breaks are folded in YAML strings, and control characters are refused.
plain_text = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Cn", "Zl", "Zp"), exclude_characters="\ufeff"),
    max_size=12,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text, inner, max_size=3),
    max_leaves=12,
)


def read(tmp_path: Path, text: str | bytes) -> tuple[YamlSource | None, list[Problem]]:
    path = tmp_path / "some.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    problems: list[Problem] = []
    return read_yaml(path, problems, name="some.yaml"), problems


def content(tmp_path: Path, text: str) -> Any:
    source, problems = read(tmp_path, text)
    assert problems == []
    assert source is not None
    return source.content


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("7", 7),
        ("-0", 0),
        ("2.0", 2.0),
        ("1e-3", 0.001),
        (".5", 0.5),
        ('"2"', "2"),
        ("yes", "yes"),
        ("on", "on"),
        ("007", "007"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("22:30", "22:30"),
        ("2026-09-16", "2026-09-16"),
        (".inf", ".inf"),
        (".nan", ".nan"),
    ],
)
def test_scalars_mean_what_json_makes_of_them(tmp_path: Path, written: str, value: Any) -> None:
    read_value = content(tmp_path, f"key: {written}\n")["key"]
    assert read_value == value
    assert type(read_value) is type(value)


def test_every_key_and_item_has_its_line_and_every_scalar_its_text(tmp_path: Path) -> None:
    source, problems = read(
        tmp_path,
        "# a comment\nversion: 1.10\n\nsystem:\n  rag: {depth: 6,\n    top_k: 2}\n"
        "slices:\n- metadata.topic\n# another\n- - nested\n",
    )
    assert problems == []
    assert source is not None
    assert dict(source.lines) == {
        "version": 2,
        "system": 4,
        "system.rag": 5,
        "system.rag.depth": 5,
        "system.rag.top_k": 6,
        "slices": 7,
        "slices.0": 8,
        "slices.1": 10,
        "slices.1.0": 10,
    }
    assert source.texts["version"] == "1.10"
    assert source.line("system.rag.absent.deeper") == 5
    assert source.line("absent") == 1


def test_aliases_are_followed(tmp_path: Path) -> None:
    assert content(tmp_path, "a: &x {k: 1}\nb: *x\n") == {"a": {"k": 1}, "b": {"k": 1}}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "The file is empty; a mapping of keys is expected."),
        ("# only a comment\n", 1, "The file is empty; a mapping of keys is expected."),
        ("null\n", 1, "The file is empty; a mapping of keys is expected."),
        (
            "\n- a\n",
            2,
            "The file holds a list; a mapping (lines like `key: value`) is expected.",
        ),
        (
            "7\n",
            1,
            "The file holds a single value; a mapping (lines like `key: value`) is expected.",
        ),
        (
            "a: 1\nb: c: d\n",
            2,
            "The file is not valid YAML: mapping values are not allowed here (column 5).",
        ),
        (
            "a: 1\nb: \x01\n",
            2,
            "The file is not valid YAML: it holds a control character; remove it.",
        ),
        (
            'a: "\\UFFFFFFFF"\n',
            0,
            "The file is not valid YAML: an escape names no Unicode character.",
        ),
        (
            "a: " + "[" * 1000,
            0,
            "The YAML is nested too deeply, or contains itself through an alias.",
        ),
        (
            "a: &a [*a]\n",
            0,
            "The YAML is nested too deeply, or contains itself through an alias.",
        ),
    ],
)
def test_a_file_without_a_mapping_is_one_problem(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    source, problems = read(tmp_path, text)
    assert source is None
    assert problems == [Problem("some.yaml", line, "", message)]


def test_a_file_that_grows_through_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    source, problems = read(tmp_path, "\n".join(lines))
    assert source is None
    assert [problem.message for problem in problems] == [
        (
            "The file cannot be read as YAML: it stands for more than 100000 values through its "
            "aliases."
        )
    ]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert read_yaml(tmp_path / "none.yaml", problems, name="none.yaml") is None
    assert problems == [
        Problem("none.yaml", 0, "", "The file cannot be read: No such file or directory.")
    ]


def test_a_byte_that_is_not_utf8_has_its_line_and_offset(tmp_path: Path) -> None:
    source, problems = read(tmp_path, b"\xef\xbb\xbfa: 1\nb: \xe9\n")
    assert source is None
    assert problems == [
        Problem("some.yaml", 2, "", "Byte offset 11 (0xe9) is not UTF-8; save the file as UTF-8.")
    ]


def test_a_key_written_twice_is_a_problem_and_the_first_value_stays(tmp_path: Path) -> None:
    source, problems = read(tmp_path, "system:\n  depth: 6\n  depth: 7\n")
    assert source is not None
    assert source.content == {"system": {"depth": 6}}
    assert problems == [
        Problem(
            "some.yaml", 3, "system.depth", "The key is written twice, first on line 2; keep one."
        )
    ]


def test_all_that_json_cannot_hold_is_reported_together(tmp_path: Path) -> None:
    source, problems = read(
        tmp_path,
        'a: !color red\nb: "\\ud800"\nc: 1e999\n1: x\n? [k]\n: v\n<<: {d: 1}\n'
        f"e: {'9' * 5000}\nf: !!int x\n",
    )
    assert source is None
    assert [(problem.line, problem.key) for problem in problems] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, ""),
        (5, ""),
        (7, ""),
        (8, "e"),
        (9, "f"),
    ]
    assert problems[0].message == "The tag !color is not supported; remove it."
    assert problems[1].message == '"\\ud800" holds half of a surrogate pair; remove it.'
    assert problems[2].message == '"1e999" is no number that can be held; write it in quotes.'
    assert problems[3].message == 'A key must be a string; write "1" in quotes.'
    assert problems[4].message == "A key must be a string."
    assert problems[5].message == "Merge keys (<<) are not supported; repeat the keys."


@deterministic
@given(st.dictionaries(plain_text, json_values, max_size=4))
def test_every_json_object_is_read_as_the_same_value(tmp_path: Path, value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert canonical_json(content(tmp_path, text)) == canonical_json(value)


@deterministic
@given(
    st.lists(st.sampled_from(["", "# comment", "   # indented"]), max_size=5),
    st.lists(st.sampled_from(["", "  # comment", "  "]), max_size=5),
)
def test_lines_count_comments_and_blank_lines(
    tmp_path: Path, before: list[str], between: list[str]
) -> None:
    source, problems = read(tmp_path, "\n".join([*before, "a:", *between, "  b: 1", ""]))
    assert problems == []
    assert source is not None
    first = len(before) + 1
    assert dict(source.lines) == {"a": first, "a.b": first + len(between) + 1}


@deterministic
@given(
    st.text(st.sampled_from("ab: -\n\t#&*!|>'\"{}[],?%@\\u0<~\r\ud800\x85"), max_size=40)
    | st.binary(max_size=40)
)
def test_any_file_gives_a_mapping_or_problems_inside_the_file(
    tmp_path: Path, text: str | bytes
) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    source, problems = read(tmp_path, data)
    if source is None:
        assert problems
        # The parser counts \r, NEL, U+2028 and U+2029 as line breaks too.
        breaks = len(data.decode("utf-8", "replace").splitlines()) + 1
        assert all(0 <= problem.line <= breaks for problem in problems)
    else:
        assert all(name in source.lines for name in source.content)
