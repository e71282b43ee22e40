"""Evaluators of the user's own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluating import (
    build,
    build_all,
    case,
    citations,
    context,
    entry,
    evidence,
    problems_of,
    retrieval,
)
from rag_assets.contracts.loading import forget_project_modules
from rag_assets.evaluators import Absent, Outcome, judge

CODE = """
import functools

LIMIT = 20

class Judge:
    pass

def short(output):
    return len(output) <= LIMIT

def share(output, expected, *, metadata=None):
    return {"value": len(set(output) & set(expected)) / 4, "reason": "shared letters"}

def labelled(expected, output):
    return {"excluded": "no_label"} if expected is None else output == expected

def everything(input, output, expected, metadata, retrieval, context, citations):
    return [input, output, expected, metadata] == ["Q?", "o", "e", {"m": 1}] and (
        retrieval.candidates[0].doc_id, context.items[0].doc_id, citations.ids
    ) == ("a", "b", ("c",))

def returns(output):
    return output

def changes(output, expected):
    output.clear()
    expected.clear()
    return True

def fails(output):
    raise ValueError("cannot judge " + output)

limited = functools.partial(returns)

@functools.lru_cache
def remembered(output):
    return output == "x"

async def later(output):
    return True

def needs_more(output, threshold):
    return True

def by_position(output, /):
    return True

def anything(output, *args, threshold=3, **kwargs):
    return not args and not kwargs and threshold == 3
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("custom")
    (folder / "custom_checks.py").write_text(CODE, encoding="utf-8")
    return folder


def custom(root, name, kind="verdict", **parameters):
    return build("custom", root=root, object=f"custom_checks:{name}", kind=kind, **parameters)


def refused(root, name, kind="verdict", **parameters):
    (problem,) = problems_of(
        "custom", root=root, object=f"custom_checks:{name}", kind=kind, **parameters
    )
    return problem


def test_a_verdict(root):
    short = custom(root, "short")
    assert (short.kind, short.value_range, short.reads) == ("verdict", (0.0, 1.0), ("output",))
    assert judge(short, evidence(case("x"), "short")) == Outcome.verdict(True)
    assert judge(short, evidence(case("x"), "x" * 30)) == Outcome.verdict(False)


def test_a_score_with_a_reason(root):
    share = custom(root, "share", "score", range=[0, 2])
    assert (share.kind, share.value_range) == ("score", (0.0, 2.0))
    outcome = judge(share, evidence(case("abcd"), "abx"))
    assert outcome == Outcome("observed", 0.5, "shared letters")


def test_an_exclusion_by_the_function(root):
    labelled = custom(root, "labelled")
    assert judge(labelled, evidence(case(None), "x")) == Outcome.excluded("no_label")
    assert judge(labelled, evidence(case("x"), "x")) == Outcome.verdict(True)


def test_the_function_gets_what_its_signature_names(root):
    everything = custom(root, "everything")
    assert everything.reads == ("output", "retrieval", "context", "citations")
    shown = evidence(
        case("e", metadata={"m": 1}),
        "o",
        retrieval=retrieval("a"),
        context=context("b"),
        citations=citations("c"),
    )
    assert judge(everything, shown) == Outcome.verdict(True)
    assert judge(custom(root, "anything"), evidence(case(), "x")) == Outcome.verdict(True)
    assert judge(custom(root, "remembered"), evidence(case(), "x")) == Outcome.verdict(True)


def test_an_absent_part_is_missing_only_where_it_is_read(root):
    failed = evidence(case("x"), "short", retrieval=Absent("timeout"))
    assert judge(custom(root, "short"), failed) == Outcome.verdict(True)
    assert judge(custom(root, "everything"), failed) == Outcome.missing("timeout")


def test_reads_restricts_what_the_function_gets(root):
    share = custom(root, "share", "score", range=[0, 1], reads=["expected", "output"])
    assert share.arguments == ("expected", "output")
    assert share.reads_of_case(case("abcd", metadata={"m": 1})) == {"expected": "abcd"}
    free = custom(root, "share", "score", range=[0, 1])
    assert free.reads_of_case(case("abcd", metadata={"m": 1})) == {
        "expected": "abcd",
        "metadata": {"m": 1},
    }
    assert free.identity != share.identity
    named = custom(root, "share", "score", range=[0, 1], reads=["output", "expected", "metadata"])
    assert named.identity == free.identity


def test_a_function_that_changes_its_arguments_changes_nothing_for_others(root):
    one, output = case({"a": 1}), {"b": 2}
    assert judge(custom(root, "changes"), evidence(one, output)) == Outcome.verdict(True)
    assert (one.expected, output) == ({"a": 1}, {"b": 2})


def test_an_exception_is_missing_with_the_users_frames(root):
    outcome = judge(custom(root, "fails"), evidence(case(), "this"))
    assert (outcome.status, outcome.reason) == ("missing", "evaluator_error")
    assert outcome.detail["error"] == "ValueError: cannot judge this"
    assert 'raise ValueError("cannot judge " + output)' in outcome.detail["traceback"]
    assert "rag_assets" not in outcome.detail["traceback"]


WRONG_VERDICTS = [1, 0.5, "pass", None, [], {}, {"value": 1}, {"value": True, "score": 1}]
WRONG_SCORES = [True, -0.1, 1.1, float("nan"), float("inf"), "1", None, {"value": True}]
WRONG_MAPPINGS = [
    {"excluded": ""},
    {"excluded": 1},
    {"excluded": "x", "value": True},
    {"value": True, "reason": 3},
    {"value": True, "reason": "\ud800"},
]


@pytest.mark.parametrize(
    ("kind", "returned"),
    [
        *(("verdict", value) for value in [*WRONG_VERDICTS, *WRONG_MAPPINGS]),
        *(("score", value) for value in [*WRONG_SCORES, *WRONG_MAPPINGS]),
    ],
)
def test_another_result_than_declared_is_missing(root, kind, returned):
    extra = {"range": [0, 1]} if kind == "score" else {}
    outcome = judge(custom(root, "returns", kind, **extra), evidence(case(), returned))
    assert (outcome.status, outcome.reason) == ("missing", "evaluator_error")


def test_the_message_of_a_wrong_result_says_what_is_expected(root):
    outcome = judge(custom(root, "returns", "score", range=[0, 5]), evidence(case(), {"value": 7}))
    assert outcome.detail["error"] == (
        "ValueError: custom_checks:returns returned {'value': 7}; it must return a number in "
        "0.0 … 5.0, {value: …, reason: text} or {excluded: text}"
    )


@pytest.mark.parametrize(
    ("kind", "returned", "outcome"),
    [
        ("verdict", {"value": False, "reason": None}, Outcome.verdict(False)),
        ("verdict", {"value": True, "reason": "why"}, Outcome.verdict(True, "why")),
        ("score", 1, Outcome.score(1.0)),
        ("score", 0.25, Outcome.score(0.25)),
        ("score", {"value": 0}, Outcome.score(0.0)),
    ],
)
def test_results_as_declared(root, kind, returned, outcome):
    extra = {"range": [0, 1]} if kind == "score" else {}
    assert judge(custom(root, "returns", kind, **extra), evidence(case(), returned)) == outcome


# What is refused


@pytest.mark.parametrize(
    ("name", "parameters", "key", "message"),
    [
        ("nothing", {}, "object", "custom_checks has no attribute nothing."),
        ("LIMIT", {}, "object", "custom_checks:LIMIT is not a function. Name a function of"),
        ("Judge", {}, "object", "custom_checks:Judge is not a function."),
        ("limited", {}, "object", "custom_checks:limited is not a function."),
        ("functools.total_ordering", {}, "object", "needs cls, and is called by"),
        ("__builtins__", {}, "object", "custom_checks:__builtins__ is not a function."),
        ("later", {}, "object", "custom_checks:later is an async function. Write it with a plain"),
        ("needs_more", {}, "object", "needs threshold, and is called by name with"),
        ("by_position", {}, "object", "needs output, and is called by name with"),
        ("share", {"reads": ["output"]}, "reads", "needs expected, which reads does not list."),
        ("short", {"reads": ["output", "context"]}, "reads", "has no parameter context."),
        ("short", {"reads": ["answer"]}, "reads.0", "The entry must be one of input, expected"),
        ("short", {"range": [0, 1]}, "range", "range belongs to kind: score; leave it out"),
        ("short", {"kind": "score"}, "range", "range is needed for kind: score; write range: [0"),
        ("short", {"kind": "score", "range": [1, 0]}, "range", "range must be [least, largest]"),
        ("short", {"kind": "score", "range": [1]}, "range", "range must be [least, largest]"),
        ("short", {"kind": "score", "range": ["0", 1]}, "range.0", "must be a finite number"),
        ("short", {"kind": "rating"}, "kind", "kind must be one of verdict, score"),
    ],
)
def test_what_cannot_be_called_is_refused(root, name, parameters, key, message):
    found = refused(root, name, **parameters)
    assert f": evaluators.0.{key}: " in found
    assert message in found


def test_object_and_kind_are_required():
    found = problems_of("custom")
    assert [problem.split(": ")[1] for problem in found] == [
        "evaluators.0.object",
        "evaluators.0.kind",
    ]


def test_an_artifact_that_is_never_recorded_cannot_be_read(root):
    made = entry("custom", "all", object="custom_checks:everything", kind="verdict")
    _, found = build_all(made, recorded=frozenset({"retrieval", "context"}), root=root)
    assert found == [
        (
            "rag_assets.yaml:10: evaluators.0.type: custom reads the citations, and this system "
            "never records one. Let the system record it, or remove this evaluator."
        )
    ]


# Identity


def test_the_identity_follows_the_code(tmp_path):
    def identity(body):
        forget_project_modules()
        text = f"def helper(x):\n    return bool(x)\n\n\ndef check(output):\n    {body}\n"
        (tmp_path / "edited_checks.py").write_text(text, encoding="utf-8")
        return build("custom", root=tmp_path, object="edited_checks:check", kind="verdict").identity

    first = identity("return helper(output)")
    assert identity("return helper(output)  # a comment") == first
    assert identity("return not helper(output)") != first
    assert identity("return helper(output)") == first


def test_how_it_prints_itself(root):
    assert str(custom(root, "share", "score", range=[0, 1])) == (
        "custom(object=custom_checks:share, kind=score, range=[0.0,1.0])"
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(value=st.floats() | st.integers() | st.booleans() | st.none() | st.text())
def test_a_score_is_observed_inside_its_range_and_nowhere_else(root, value):
    evaluator = custom(root, "returns", "score", range=[-1, 1])
    outcome = judge(evaluator, evidence(case(), value))
    inside = type(value) in (int, float) and -1 <= value <= 1
    assert outcome.status == ("observed" if inside else "missing")
    assert outcome.value == (value if inside else None)
