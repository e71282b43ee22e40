"""The words and the layout of reports."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.evaluation.views import Measure, MetricView, SliceFacts
from rag_assets.evaluation.wording import (
    cache_line,
    cases_text,
    counted,
    cut,
    decided_interval_text,
    denominator_text,
    estimate_text,
    failure_line,
    interval_text,
    number_format,
    plain_number,
    reasons_text,
    redeployed_note,
    rule_words,
    speaks_for,
    stages_line,
    time_text,
    value_text,
)
from rag_assets.reports.layout import (
    Cell,
    block,
    grid,
    line,
    packed,
    printable,
    rows,
    text_width,
)
from rag_assets.reports.slices import slice_table
from rag_assets.statistics import RATE

GOLDEN = Path(__file__).parent / "golden"
deterministic = settings(derandomize=True, deadline=None, max_examples=100)


def vectors(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


END_TO_END = vectors("end_to_end.json")["staged_baseline"]["metrics"]
RUN_RATES = vectors("gate_run_decisions.json")["rates"]
RUN_MEANS = vectors("gate_run_decisions.json")["means"]
COMPARISONS = vectors("gate_comparison_decisions.json")


@pytest.mark.parametrize("v", END_TO_END, ids=lambda v: f"{v['metric']} {v['scope']}")
def test_golden_metrics_of_a_run(v):
    form = number_format(v["kind"], (0.0, 1.0))
    lower, upper = v["interval"] or (None, None)
    shown = [estimate_text(form, v["estimate"]), interval_text(form, lower, upper)]
    passes = None if v["kind"] == "score" else round(v["estimate"] * v["observed"])
    shown.append(denominator_text(passes, v["observed"], v["missing"], v["excluded"]))
    expected = [text or "none" for text in v["display"]]
    assert shown[: len(expected)] == expected


@pytest.mark.parametrize("v", RUN_RATES, ids=lambda v: v["tag"])
def test_golden_rates(v):
    estimate = v["passed"] / v["observed"] if v["observed"] else None
    lower, upper = v["interval"]
    expected = v["display"]
    assert estimate_text(RATE, estimate) == (expected["estimate"] or "none")
    assert interval_text(RATE, lower, upper) == expected["interval"]
    counts = v["passed"], v["observed"], v["missing"], v["excluded"]
    assert denominator_text(*counts) == expected["denominator"]


@pytest.mark.parametrize("v", RUN_MEANS, ids=lambda v: v["tag"])
def test_golden_means(v):
    form = number_format("score", v["range"])
    lower, upper = v["interval"] or (None, None)
    expected = v["display"]
    assert interval_text(form, lower, upper) == (expected["interval"] or "none")
    assert denominator_text(None, len(v["values"]), v["missing"], 0) == expected["denominator"]


@pytest.mark.parametrize("kind", ["verdict", "score"])
def test_golden_words_of_comparison_rules(kind):
    for v in COMPARISONS[f"{kind}_metrics"]:
        assert rule_words(v["rule"], kind) == v["rule_words"]


@pytest.mark.parametrize(
    ("rule", "kind", "words"),
    [
        ({"kind": "min", "threshold": 0.7}, "verdict", "min 70.0%"),
        ({"kind": "max", "threshold": 0.2}, "verdict", "max 20.0%"),
        ({"kind": "min", "threshold": 0.85}, "score", "min 0.85"),
        ({"kind": "max", "threshold": 4.0}, "score", "max 4"),
        ({"kind": "observed_count", "max_failures": 0}, "verdict", "at most 0 failures"),
        ({"kind": "observed_count", "max_failures": 1}, "verdict", "at most 1 failure"),
        ({"kind": "equivalence", "margin": 0.05}, "score", "equivalence, margin ±0.05"),
    ],
)
def test_rule_words(rule, kind, words):
    assert rule_words(rule, kind) == words


@pytest.mark.parametrize(
    ("rule", "bounds", "text"),
    [
        ({"kind": "min", "threshold": 0.8842966917779723}, (0.8842966917779722, 1.0), "88.42%, 1"),
        ({"kind": "min", "threshold": 0.8842966917779722}, (0.8842966917779722, 1.0), "88.4%, 1"),
        ({"kind": "min", "threshold": 0.7}, (0.1, 0.6995), "10.0%, 69.95%"),
        ({"kind": "max", "threshold": 0.2}, (0.1, 0.2004), "10.0%, 20.1%"),
        ({"kind": "max", "threshold": 0.2}, (0.1, 0.20001), "10.0%, 20.1%"),
        ({"kind": "observed_count", "max_failures": 0}, (0.5, 1.0), "50.0%, 100.0%"),
    ],
)
def test_a_bound_that_misses_its_threshold_does_not_print_like_it(rule, bounds, text):
    assert decided_interval_text(RATE, *bounds, rule).startswith(f"[{text}")


def test_cache_lines_name_shared_results_only_where_there_are_some():
    counts = {
        "execution": {"hit": 3, "miss": 9},
        "judgment": {"miss": 65},
        "retrieve": {"hit": 10, "shared": 2},
    }
    assert cache_line(counts) == "Cache: execution 3 hit/9 miss; judgment 0 hit/65 miss"
    assert stages_line(counts) == "Stages: retrieve 10 hit/0 miss · 2 shared; generate 0 hit/0 miss"


def test_short_texts():
    assert failure_line(3, "generation", "ValueError", "no") == "3 cases: generation ValueError: no"
    assert failure_line(1, "answer_correct", "", "no") == "1 case: answer_correct: no"
    assert (
        reasons_text({"timeout": 1, "not_executed": 2, "a": 1}) == "not_executed 2, a 1, timeout 1"
    )
    assert speaks_for("regression", 13) == "Speaks for: inputs like these 13 cases"
    assert (
        speaks_for("sample", 200)
        == "Speaks for: the population that these 200 cases were sampled from"
    )
    assert cases_text(13, 13) == "13 cases"
    assert cases_text(4, 13) == "4 of 13 cases; 9 outside the selection"
    assert counted(1, "case") == "1 case"
    assert time_text("2026-09-16T10:20:30.123+00:00") == "2026-09-16 10:20:30Z"
    assert value_text("as it is") == "as it is"
    assert value_text({"a": ["ü", None]}) == '{"a": ["ü", null]}'
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcdef… (7 characters)"
    assert plain_number(0.05) == "0.05"
    assert plain_number(1e-7) == "0.0000001"
    assert plain_number(100.0) == "100"


def test_control_characters_are_shown_as_escapes():
    assert printable("a\x1b[2Jb\x9b31m\x07\r") == r"a\x1b[2Jb\x9b31m\x07\r"
    assert printable("right\u202eleft \u2028 \ud800") == r"right\u202eleft \u2028 \ud800"
    assert printable("ü 日本 👩‍👩‍👧 \u00a0") == "ü 日本 👩‍👩‍👧 \u00a0"
    assert printable("one\ntwo") == r"one\ntwo"
    assert printable("one\ntwo\x00", keep="\n") == "one\ntwo\\x00"


@deterministic
@given(st.text())
def test_a_block_loses_nothing_but_line_ends(text):
    lines = block(text, indent=4)
    assert len(lines) == text.replace("\r\n", "\n").count("\n") + 1
    assert all(one.indent == 4 for one in lines)


TABLE = [
    ("answer-floor", "answer_correct", Cell("FAIL", "red"), "upper_bound_below_minimum"),
    ("x", "hit_rate_at_2", Cell("PASS", "green"), ""),
]


def plain(lines):
    return [one.plain for one in lines]


def test_rows_are_aligned():
    assert plain(rows(TABLE, 80)) == [
        "answer-floor  answer_correct  FAIL  upper_bound_below_minimum",
        "x             hit_rate_at_2   PASS",
    ]
    assert plain(rows(TABLE, None)) == plain(rows(TABLE, 80))


def test_rows_in_a_pipe_can_stand_two_spaces_apart():
    assert plain(rows(TABLE, None, align_piped=False)) == [
        "answer-floor  answer_correct  FAIL  upper_bound_below_minimum",
        "x  hit_rate_at_2  PASS",
    ]


def test_rows_that_are_too_wide_continue_below():
    assert plain(rows(TABLE, 40, below=[[line("more", indent=4)], []])) == [
        "answer-floor  answer_correct  FAIL",
        "    upper_bound_below_minimum",
        "    more",
        "x             hit_rate_at_2   PASS",
    ]
    assert plain(rows(TABLE, 30))[:3] == [
        "answer-floor  answer_correct",
        "    FAIL",
        "    upper_bound_below_minimum",
    ]


def test_packed_cells_are_never_broken():
    cells = [Cell("one two"), Cell("three"), Cell("four five")]
    assert plain(packed(cells, 16, 2)) == ["  one two  three", "  four five"]
    assert plain(packed(cells, 15, 2)) == ["  one two", "  three", "  four five"]
    assert plain(packed(cells, None)) == ["one two  three  four five"]


def test_a_grid_that_is_too_wide_becomes_several():
    header = ["slice", "first", "second"]
    body = [("topic=a", "10.0%", "20.0% [1.0%, 40.0%]"), ("日本", "0.0%", "")]
    assert plain(grid(header, body, None)) == [
        "slice    first  second",
        "topic=a  10.0%  20.0% [1.0%, 40.0%]",
        "日本     0.0%",
    ]
    assert plain(grid(header, body, 30)) == [
        "slice    first",
        "topic=a  10.0%",
        "日本     0.0%",
        "",
        "slice    second",
        "topic=a  20.0% [1.0%, 40.0%]",
        "日本",
    ]


WORDS = st.text(alphabet="abc日 ", max_size=12)


@deterministic
@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=5), min_size=1, max_size=5), st.integers(60, 90)
)
def test_rows_fit_the_width_whenever_their_cells_do(table, width):
    assert all(text_width(one.plain) <= width for one in rows(table, width))


def a_metric(criterion, kind="verdict", *, name=None, support=9, interval=(0.2, 0.9), mark=None):
    lower, upper = interval
    measure = Measure(
        kind=kind,
        range=(0.0, 1.0),
        estimate=0.5,
        lower=lower,
        upper=upper,
        observed=support,
        missing=0,
        excluded=0,
        passes=None if kind == "score" else 4,
        method=None,
        level=0.95,
    )
    facts = None
    if name is not None:
        facts = SliceFacts("metadata.topic", name, support, 0.001, mark and 0.0123, mark)
    return MetricView(criterion, measure, {}, {}, facts)


def a_run(slices, *, too_few=False):
    return SimpleNamespace(
        metrics=(a_metric("correct"), a_metric("ndcg", "score")),
        slices=slices,
        record={"min_slice_support": 5},
        summary={"slices_too_few": too_few},
    )


SLICES = (
    a_metric("correct", name="billing", mark="worse"),
    a_metric("ndcg", "score", name="billing", support=8),
    a_metric("correct", name="api", support=2, interval=(None, None)),
    a_metric("correct", name="data", mark="better"),
    a_metric("ndcg", "score", name="data", support=3, interval=(None, None)),
)


def test_slices_that_differ_are_marked_with_the_adjusted_p():
    assert plain(slice_table(a_run(SLICES), None, everything=False)) == [
        "Slices                  correct                                ndcg",
        "metadata.topic=billing  50.0% [20.0%, 90.0%] worse (p 0.012)   0.500 [0.200, 0.900]",
        "metadata.topic=data     50.0% [20.0%, 90.0%] better (p 0.012)  0.500",
        "",
        "1 slice row below support 5 not shown (--slices)",
    ]


def test_all_slices_are_shown_with_their_support():
    shown = plain(slice_table(a_run(SLICES, too_few=True), None, everything=True))
    assert [row[24:33] for row in shown[:4]] == ["support  ", "8-9      ", "2        ", "3-9      "]
    assert shown[4:] == ["", "too few cases to mark anything"]


def test_a_run_without_slices_has_no_table():
    assert slice_table(a_run(()), None, everything=True) == []


def test_one_is_singular_everywhere():
    assert speaks_for("regression", 1) == "Speaks for: inputs like this 1 case"
    population = "Speaks for: the population that this 1 case was sampled from"
    assert speaks_for("sample", 1) == population
    assert speaks_for("regression", 2) == "Speaks for: inputs like these 2 cases"
    assert redeployed_note(1).startswith("1 call made; ")
    assert redeployed_note(0).startswith("0 calls made; ")
