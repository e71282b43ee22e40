"""Checks on the answer: golden vectors, the rules one by one, and properties."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluating import build, build_all, case, entry, evidence, problems_of
from rag_assets.contracts.canonical import canonical_json
from rag_assets.evaluators import Absent, Outcome, judge

GOLDEN = Path(__file__).parent / "golden"
VECTORS = json.loads((GOLDEN / "deterministic_checks.json").read_text(encoding="utf-8"))
PASS, FAIL = Outcome.verdict(True), Outcome.verdict(False)
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


def outcome(type, output, expected=None, **parameters):
    return judge(build(type, **parameters), evidence(case(expected), output))


@pytest.mark.parametrize("v", VECTORS, ids=lambda v: v["type"])
def test_golden_vectors(v):
    found, right = outcome(v["type"], v["output"], v["expected"], **v["params"]), v["result"]
    assert found.status == right["status"]
    if found.status == "observed":
        assert found.value == pytest.approx(float(right.get("score", right.get("passed"))), 1e-12)
    else:
        assert (found.value, found.reason) == (None, right["reason"])


# Where values are read


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (None, FAIL),
        ("a", FAIL),
        ("a.0", FAIL),
        ("a.0.b", PASS),
        ("a.1.b", Outcome.missing("field_absent")),
        ("a.-1.b", Outcome.missing("field_absent")),
        ("a.x.b", Outcome.missing("field_absent")),
        ("a.0.b.c", Outcome.missing("field_absent")),
        ("0", Outcome.verdict(False)),
    ],
)
def test_field_is_a_dotted_path_with_list_indices(field, expected):
    output = {"a": [{"b": "yes"}], "0": "no"}
    assert outcome("exact", output, "yes", field=field) == expected


def test_a_null_field_is_there_and_an_absent_one_is_missing():
    assert outcome("contains", {"answer": None}, "a", field="answer") == FAIL
    assert outcome("contains", {}, "a", field="answer") == Outcome.missing("field_absent")
    assert outcome("contains", None, "a", field="answer") == Outcome.missing("field_absent")
    assert outcome("contains", None, "a") == FAIL


@pytest.mark.parametrize(
    ("expected", "expected_field", "result"),
    [
        ({"text": "a", "answer": "b"}, "text", PASS),
        ({"text": "b", "answer": "a"}, None, PASS),
        ("a", "text", PASS),
        ("a", None, PASS),
        ({"text": "a"}, None, Outcome.excluded("no_expected")),
        ({"text": "a"}, "other", Outcome.excluded("no_expected")),
        (None, "text", Outcome.excluded("no_expected")),
    ],
)
def test_where_the_expected_value_stands(expected, expected_field, result):
    found = outcome(
        "exact", {"answer": "a"}, expected, field="answer", expected_field=expected_field
    )
    assert found == result


@pytest.mark.parametrize("type", ["contains", "exact", "numeric", "token_f1"])
@pytest.mark.parametrize("expected", [None, {}, {"answer": None}, {"answer": ""}, ""])
def test_without_an_expected_value_a_case_is_excluded(type, expected):
    failed = evidence(case(expected), Absent("execution_error"))
    judged = judge(build(type, field="answer"), failed)
    assert judged == Outcome.excluded("no_expected")


@pytest.mark.parametrize(
    ("type", "parameters"),
    [
        ("contains", {}),
        ("exact", {}),
        ("numeric", {}),
        ("token_f1", {}),
        ("regex", {"pattern": "x"}),
        ("json_schema", {"schema": {}}),
    ],
)
def test_an_absent_output_is_missing_with_the_reason_of_its_stage(type, parameters):
    failed = evidence(case(5), Absent("timeout", "generate took longer than 120 s"))
    assert judge(build(type, **parameters), failed) == Outcome.missing(
        "timeout", "generate took longer than 120 s"
    )


def test_what_is_read_of_a_case_tells_null_from_absent():
    contains = build("contains", field="answer")
    assert contains.reads_of_case(case({"answer": "x", "note": "y"})) == {"expected": "x"}
    assert contains.reads_of_case(case({"answer": None})) == {"expected": None}
    assert contains.reads_of_case(case({"note": "y"})) == {}
    assert build("regex", pattern="x").reads_of_case(case({"answer": "x"})) is None
    assert build("json_schema", schema={}).reads_of_case(case({"answer": "x"})) is None


# contains and exact


@pytest.mark.parametrize(
    ("output", "expected", "result"),
    [
        ("seats: 5", 5, PASS),
        ("it is true", True, PASS),
        ("it is True", True, FAIL),
        (1.5, "1.5", PASS),
        ({"a": ["x"]}, '"x"', PASS),
        (["a", "b"], '["a","b"]', PASS),
        ("", "a", FAIL),
    ],
)
def test_contains_compares_texts_and_the_json_form_of_the_rest(output, expected, result):
    assert outcome("contains", output, expected) == result


@pytest.mark.parametrize(
    ("parameters", "output", "expected", "result"),
    [
        ({}, "Straße", "STRASSE", FAIL),
        ({"casefold": True}, "Straße", "STRASSE", PASS),
        ({}, "ﬁle", "file", FAIL),
        ({"normalize": "nfkc"}, "ﬁle", "file", PASS),
        ({"normalize": "none"}, "ﬁle", "file", FAIL),
        ({"normalize": None}, "ﬁle", "file", FAIL),
        ({}, "\n file ", "file", PASS),
        ({"strip": False}, "\n file ", "file", FAIL),
        ({"normalize": "nfkc"}, "x", "\u00a0", Outcome.excluded("no_expected")),
        ({"strip": False}, "x", " ", FAIL),
    ],
)
def test_text_options_of_exact(parameters, output, expected, result):
    assert outcome("exact", output, expected, **parameters) == result
    assert outcome("exact_match", output, expected, **parameters) == result


@pytest.mark.parametrize(
    ("output", "expected", "result"),
    [
        (1, 1.0, PASS),
        (1, True, FAIL),
        (0, False, FAIL),
        (True, True, PASS),
        ("1", 1, FAIL),
        ("true", True, FAIL),
        ([1, {"a": [2.0]}], [1.0, {"a": [2]}], PASS),
        ([1, {"a": [True]}], [1, {"a": [1]}], FAIL),
        ([1, 2], [2, 1], FAIL),
        ([1], [1, 1], FAIL),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, PASS),
        ({"a": 1}, {"a": 1, "b": None}, FAIL),
        ([" a"], ["a"], FAIL),
        ({}, [], FAIL),
        (None, "a", FAIL),
        (9007199254740993, 9007199254740992.0, FAIL),
    ],
)
def test_exact_compares_json_values(output, expected, result):
    # In a field of its own, because a list cannot be the whole of `expected`.
    found = outcome("exact", {"v": output}, {"v": expected}, field="v")
    assert found == result


def test_an_object_can_be_the_whole_expected_value_of_exact():
    assert outcome("exact", {"a": 1}, {"a": 1.0}) == PASS


@pytest.mark.parametrize(
    ("expected", "key", "kind"),
    [
        ({"answer": {"text": "x"}}, "expected.answer", "an object"),
        ({"answer": ["x"]}, "expected.answer", "a list"),
    ],
)
def test_contains_refuses_an_expected_value_that_is_not_one_text(expected, key, kind):
    rows = [case({"answer": "fine"}, line=1), case(expected, line=2)]
    assert problems_of("contains", "answered", field="answer", cases=rows) == [
        (
            f"cases.jsonl:2: {key}: answered looks for a text in the answer, and the expected "
            f"value is {kind}. Name a text inside it with expected_field, or use type: exact."
        )
    ]


def test_contains_without_a_field_refuses_an_object_as_expected():
    (problem,) = problems_of("contains", cases=[case({"answer": "x"}, line=7)])
    assert problem.startswith("cases.jsonl:7: expected: metric looks for a text")


# regex


@pytest.mark.parametrize(
    ("pattern", "pass_if", "output", "result"),
    [
        ("\\d+", "match", "in 14 days", PASS),
        ("^\\d+$", "match", "in 14 days", FAIL),
        ("5", "match", 15, PASS),
        ('"a"', "match", ["a"], PASS),
        (".*", "match", None, FAIL),
        (".*", "no_match", None, PASS),
        ("", "match", "", PASS),
        ("error", "no_match", "an error", FAIL),
    ],
)
def test_regex_searches_anywhere_and_null_never_matches(pattern, pass_if, output, result):
    assert outcome("regex", output, pattern=pattern, pass_if=pass_if) == result


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing ), unterminated subpattern at position 0"),
        ("a{99999999999}", "the repetition number is too large"),
    ],
)
def test_an_invalid_pattern_is_refused_with_its_line(pattern, why):
    assert problems_of("regex", pattern=pattern) == [
        f"rag_assets.yaml:12: evaluators.0.pattern: pattern is not a regular expression: {why}."
    ]


def test_regex_needs_a_pattern():
    (problem,) = problems_of("regex")
    assert problem.startswith("rag_assets.yaml:10: evaluators.0.pattern: pattern is required")


# json_schema

ANSWERS = {
    "type": "object",
    "properties": {"answer": {"$ref": "#/$defs/text"}},
    "required": ["answer"],
    "$defs": {"text": {"type": "string", "minLength": 1}},
}


def test_json_schema_says_where_and_why_it_fails():
    schema = build("json_schema", schema=ANSWERS)
    assert judge(schema, evidence(case(), {"answer": "x"})) == PASS
    assert judge(schema, evidence(case(), {"answer": 3})) == Outcome.verdict(
        False, detail={"at": "$.answer", "message": "3 is not of type 'string'"}
    )
    assert judge(schema, evidence(case(), {})) == Outcome.verdict(
        False, detail={"at": "$", "message": "'answer' is a required property"}
    )
    assert judge(schema, evidence(case(), None)).value == 0.0


def test_json_schema_follows_draft_2020_12():
    schema = {"prefixItems": [{"type": "integer"}], "items": False}
    assert outcome("json_schema", [1.0], schema=schema) == PASS
    assert outcome("json_schema", [1, 2], schema=schema).value == 0.0


def test_a_schema_file_counts_by_its_content(tmp_path):
    (tmp_path / "answer.json").write_text(json.dumps(ANSWERS), encoding="utf-8")
    from_file = build("json_schema", schema="answer.json", root=tmp_path)
    assert judge(from_file, evidence(case(), {"answer": ""})).value == 0.0
    assert from_file.identity == build("json_schema", schema=ANSWERS).identity
    assert str(from_file) == "json_schema(schema=answer.json)"
    (tmp_path / "answer.json").write_text("{}", encoding="utf-8")
    edited = build("json_schema", schema="answer.json", root=tmp_path)
    assert edited.identity != from_file.identity


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "text"}, "The schema is not valid at $.type: 'text' is not valid under any of"),
        ({"items": [{"type": "string"}]}, "The schema is not valid at $.items"),
        ({"$ref": "#/$defs/none"}, "The schema refers to #/$defs/none, which it does not hold."),
        (
            {"properties": {"a": {"$ref": "https://example.org/a.json"}}},
            "The schema refers to https://example.org/a.json, which it does not hold.",
        ),
        ("none.json", "The schema file none.json cannot be read: No such file or directory."),
        ("broken.json", "The schema file broken.json is not JSON: "),
        ("list.json", "The schema file list.json must hold an object."),
        (3, "schema must be a mapping, the schema, or the path of a JSON file."),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_line(tmp_path, schema, message):
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (problem,) = problems_of("json_schema", schema=schema, root=tmp_path)
    assert problem.startswith(f"rag_assets.yaml:12: evaluators.0.schema: {message}")


def test_json_schema_needs_a_schema():
    assert problems_of("json_schema") == [
        (
            "rag_assets.yaml:10: evaluators.0.schema: "
            "schema must be a mapping, the schema, or the path of a JSON file."
        )
    ]


# numeric


@pytest.mark.parametrize(
    ("output", "expected", "tolerance", "result"),
    [
        (12, 12, {}, PASS),
        (12.0, 12, {}, PASS),
        (1.1, 1.0, {"absolute": 0.1}, PASS),
        (1.11, 1.0, {"absolute": 0.1}, FAIL),
        (-90, -100, {"relative": 0.1}, PASS),
        (-89.9, -100, {"relative": 0.1}, FAIL),
        (0.5, 0, {"relative": 0.9}, FAIL),
        (110, 100, {"absolute": 2, "relative": 0.1}, PASS),
        (110, 100, {"absolute": 10, "relative": 0.01}, PASS),
        (" 1.2e3\n", 1200, {}, PASS),
        ("+.5", 0.5, {}, PASS),
        ("5.", 5, {}, PASS),
        (9007199254740993, 9007199254740992, {}, FAIL),
        ("9007199254740993", 9007199254740993, {}, PASS),
        ("1e999999999999", 1, {}, FAIL),
        ("1e-999999999999", 0, {"absolute": 0.1}, PASS),
    ],
)
def test_numeric_compares_within_the_tolerance(output, expected, tolerance, result):
    assert outcome("numeric", output, expected, tolerance=tolerance) == result


@pytest.mark.parametrize(
    "output", ["600 requests", "", "1,000", "1_000", "nan", "inf", "٣", True, False, None, [1], {}]
)
def test_what_is_not_wholly_a_number_fails_with_a_reason(output):
    assert outcome("numeric", output, 1) == Outcome.verdict(False, "not_a_number")


@pytest.mark.parametrize(
    ("expected", "rest"),
    [
        ("many", 'the expected value is "many".'),
        ("12", 'the expected value is "12". Write 12 without quotes.'),
        (True, "the expected value is true."),
        ({"v": 1}, 'the expected value is {"v": 1}.'),
    ],
)
def test_numeric_refuses_an_expected_value_that_is_not_a_number(expected, rest):
    rows = [case({"n": 3}, line=1), case({"n": expected}, line=5)]
    assert problems_of("numeric", field="n", cases=rows) == [
        f"cases.jsonl:5: expected.n: metric compares numbers, and {rest}"
    ]


@pytest.mark.parametrize(
    ("tolerance", "key", "rest"),
    [
        ({"absolute": -1}, ".absolute", "absolute must be at least 0, got -1."),
        ({"absolute": "1"}, ".absolute", "write absolute: 1 without quotes."),
        ({"abs": 1}, ".abs", "The keys here are absolute, relative."),
        (0.5, "", "tolerance must be a mapping, got 0.5."),
    ],
)
def test_a_wrong_tolerance_is_refused(tolerance, key, rest):
    (problem,) = problems_of("numeric", tolerance=tolerance)
    assert problem.startswith(f"rag_assets.yaml:12: evaluators.0.tolerance{key}: ")
    assert problem.endswith(rest)


# token_f1


@pytest.mark.parametrize(
    ("output", "expected", "score"),
    [
        ("the refund takes 14 days", "14 days", 4 / 7),
        ("days 14", "14 DAYS!", 1.0),
        ("a a b", "a b b", 2 / 3),
        ("ﬁle", "FILE", 1.0),
        ("nothing shared", "14 days", 0.0),
        (None, "14 days", 0.0),
        (14, "14 days", 2 / 3),
        ({"a": "b"}, "a b", 1.0),
    ],
)
def test_token_f1(output, expected, score):
    assert outcome("token_f1", output, expected).value == pytest.approx(score, abs=1e-12)


def test_token_f1_excludes_an_expected_text_without_a_word():
    assert outcome("token_f1", "x", "?!") == Outcome.excluded("no_expected")
    assert outcome("token_f1", "x", {"a": []}, expected_field="a") == Outcome.excluded(
        "no_expected"
    )


# Settings


def test_how_a_check_prints_itself():
    assert str(build("contains", field="answer")) == (
        "contains(field=answer, casefold=false, strip=false, normalize=none)"
    )
    assert str(build("exact_match")) == "exact(casefold=false, strip=true, normalize=none)"
    assert str(build("numeric", tolerance={"absolute": 1})) == (
        'numeric(tolerance={"absolute":1.0,"relative":0.0})'
    )


def test_identities_hold_the_meaning_and_not_the_wording():
    assert build("exact_match").identity == build("exact", "other", strip=True).identity
    assert build("exact").identity != build("exact", strip=False).identity
    assert build("exact", strip=False).identity != build("contains").identity
    assert build("numeric").identity == build("numeric", tolerance={"relative": 0}).identity


# Properties

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
texts = st.text(max_size=12)


@deterministic
@given(json_values)
def test_every_value_equals_itself_after_json(value):
    again = json.loads(json.dumps(value))
    found = outcome("exact", {"v": value}, {"v": again}, field="v")
    assert found in (PASS, Outcome.excluded("no_expected"))


@deterministic
@given(json_values, json_values)
def test_exact_agrees_with_canonical_json_up_to_the_form_of_numbers(one, other):
    found = outcome("exact", {"v": one}, {"v": other}, field="v", strip=False)
    if canonical_json(one) == canonical_json(other) and other not in (None, ""):
        assert found == PASS


@deterministic
@given(texts, texts, texts, st.booleans(), st.booleans())
def test_a_text_is_contained_in_what_surrounds_it(before, text, after, casefold, strip):
    found = outcome("contains", before + text + after, text, casefold=casefold, strip=strip)
    empty = not (text.strip() if strip else text)
    assert found == (Outcome.excluded("no_expected") if empty else PASS)


@deterministic
@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
)
def test_a_larger_tolerance_never_fails_what_passed(value, expected, small, large):
    small, large = sorted((small, large))
    narrow = outcome("numeric", value, expected, tolerance={"absolute": small})
    wide = outcome("numeric", value, expected, tolerance={"absolute": large})
    assert narrow.value <= wide.value


@deterministic
@given(st.floats(-1e300, 1e300) | st.integers())
def test_a_number_and_its_text_are_the_same_number(number):
    assert outcome("numeric", repr(number), number) == PASS


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=6)


@deterministic
@given(words, words)
def test_token_f1_is_symmetric_bounded_and_blind_to_order(one, other):
    score = outcome("token_f1", " ".join(one), " ".join(other)).value
    assert 0.0 <= score <= 1.0
    assert score == outcome("token_f1", " ".join(other), " ".join(one)).value
    assert score == outcome("token_f1", " ".join(reversed(one)), " ".join(other)).value
    assert (score == 1.0) == (sorted(one) == sorted(other))


@deterministic
@given(st.text(max_size=8))
def test_a_pattern_is_refused_or_can_be_judged(pattern):
    built, found = build_all(entry("regex", "matches", pattern=pattern))
    assert len(built) + len(found) == 1
    assert all("pattern is not a regular expression" in problem for problem in found)
    for regex in built:
        assert judge(regex, evidence(case(), "some text")).status == "observed"
