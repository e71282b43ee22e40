"""Files of human labels: what they mean, and everything that is wrong with them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.human_labels import HumanLabel, Labelling, last_words
from rag_assets.contracts.label_files import read_label_file
from rag_assets.contracts.label_rows import COLUMNS, Known
from rag_assets.contracts.spreadsheet import neutralised, restored

ANSWER = {"answer": "Fourteen days."}
SEEN = digest(ANSWER)
KNOWN = Known(
    facts={"c1": ("F1", "F2"), "c2": ()},
    criteria={
        "claim_support": Labelling(("claim",), "score"),
        "fact_coverage": Labelling(("fact",), "score"),
        "context_support": Labelling(("answer", "claim")),
        "quality": Labelling(("answer",), "score", (1.0, 5.0)),
    },
)


def row(**cells: Any) -> dict[str, Any]:
    """A row that is right, with other cells; None takes one away."""
    made = {
        "case_id": "c1",
        "criterion": "claim_support",
        "answer_digest": SEEN,
        "claim_id": "a",
        "supported": "supported",
        "reviewer": "r1",
        **cells,
    }
    return {name: cell for name, cell in made.items() if cell is not None}


def verdict(value: Any, **cells: Any) -> dict[str, Any]:
    return row(criterion="context_support", claim_id=None, supported=None, value=value, **cells)


def read(
    folder: Path, *rows: Mapping[str, Any], kind: str = "jsonl"
) -> tuple[tuple[HumanLabel, ...], list[str]]:
    """The labels and the problems of a file."""
    if kind == "jsonl":
        text = "".join(json.dumps(one) + "\n" for one in rows)
    else:
        made = io.StringIO()
        names = list(dict.fromkeys(name for one in rows for name in one))
        writer = csv.DictWriter(made, names, delimiter="," if kind == "csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
        text = made.getvalue()
    path = folder / f"labels.{kind}"
    path.write_text(text, encoding="utf-8", newline="")
    problems: list[Any] = []
    found = read_label_file(path, KNOWN, problems, name=path.name)
    return found, [str(one) for one in problems]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv"])
def test_labels_of_all_three_sorts(tmp_path: Path, kind: str) -> None:
    found, problems = read(
        tmp_path,
        row(claim_text="It is fourteen days.", at="2026-09-17", note="clear"),
        row(criterion="fact_coverage", claim_id=None, supported=None, fact_id="F2", covered="true"),
        verdict("fail"),
        row(
            criterion="quality", claim_id=None, supported=None, value="4" if kind != "jsonl" else 4
        ),
        kind=kind,
    )
    assert problems == []
    bound = ("c1", "claim_support", SEEN)
    assert found[0] == HumanLabel(
        *bound, "claim", "a", "supported", "r1", "2026-09-17", "clear", "It is fourteen days."
    )
    assert [(one.criterion, one.about, one.unit, one.label) for one in found[1:]] == [
        ("fact_coverage", "fact", "F2", "covered"),
        ("context_support", "answer", "", "fail"),
        ("quality", "answer", "", "4.0"),
    ]


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("supported", "supported"),
        ("unsupported", "unsupported"),
        ("contradicted", "contradicted"),
        ("TRUE", "supported"),
        ("False", "unsupported"),
        ("yes", "supported"),
        ("0", "unsupported"),
        (True, "supported"),
        (False, "unsupported"),
    ],
)
def test_what_supported_may_be(tmp_path: Path, said: Any, label: str) -> None:
    found, problems = read(tmp_path, row(supported=said))
    assert ([one.label for one in found], problems) == ([label], [])


def test_an_answer_stands_for_its_digest(tmp_path: Path) -> None:
    as_value = read(tmp_path, row(answer_digest=None, answer=ANSWER))
    as_text = read(tmp_path, row(answer_digest=None, answer=json.dumps(ANSWER)), kind="csv")
    prefixed = read(tmp_path, row(answer_digest=f"sha256:{SEEN}"))
    upper = read(tmp_path, row(answer_digest=SEEN.upper()))
    assert as_value == as_text == prefixed == upper
    assert as_value[0][0].answer_digest == SEEN


def test_the_same_row_twice_counts_once(tmp_path: Path) -> None:
    found, problems = read(tmp_path, row(), row(), row(reviewer="r2"))
    assert problems == []
    assert [one.reviewer for one in found] == ["r1", "r2"]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"case_id": "c9"}, 'case_id: "c9" is no case of the dataset.'),
        ({"case_id": None}, "case_id: case_id is required."),
        (
            {"criterion": "claim_suport"},
            (
                'criterion: "claim_suport" is no criterion of the config. Did you mean '
                '"claim_support"?'
            ),
        ),
        ({"reviewer": None}, "reviewer: reviewer is required: say who labelled."),
        (
            {"answer": ANSWER},
            "answer: The row has both answer_digest and answer; keep one of them.",
        ),
        (
            {"answer_digest": None},
            (
                "answer_digest: One of answer_digest and answer is required: a label is about one "
                "answer."
            ),
        ),
        (
            {"answer_digest": "abc"},
            'answer_digest: answer_digest must be a SHA-256 of 64 hex digits, got "abc".',
        ),
        (
            {"supported": "maybe"},
            (
                "supported: supported must be supported, unsupported, contradicted, true or false, "
                'got "maybe".'
            ),
        ),
        ({"supported": None}, "supported: supported is required beside claim_id."),
        ({"claim_id": None}, "claim_id: claim_id is required beside supported."),
        (
            {"claim_id": None, "supported": None},
            "The row labels nothing: write claim_id and supported.",
        ),
        (
            {"fact_id": "F1", "covered": True},
            (
                "The row has claim_id and supported and fact_id and covered: label one thing in "
                "each row."
            ),
        ),
        (
            {"claim_id": None, "supported": None, "value": 0.5},
            (
                'value: "claim_support" is not labelled like this: write claim_id and supported, '
                "or value: no_claims."
            ),
        ),
        ({"at": "yesterday"}, 'at: at must be an ISO date like "2026-09-16", got "yesterday".'),
        ({"note": 7}, "note: note must be a text, got 7."),
        ({"reviewer": " "}, "reviewer: reviewer is required: say who labelled."),
        ({"reviewer": 7}, "reviewer: reviewer must be a text, got 7."),
        (
            {"at": "2999-01-01"},
            'at: at is in the future, got "2999-01-01": it would outdo every later label.',
        ),
    ],
)
def test_what_is_wrong_with_a_row(tmp_path: Path, cells: dict[str, Any], message: str) -> None:
    found, problems = read(tmp_path, row(claim_id="fine"), row(**cells))
    assert problems == [f"labels.jsonl:2: {message}"]
    assert [one.unit for one in found] == ["fine"]


@pytest.mark.parametrize("value", [0.9, 5.1, "high", True, None])
def test_a_score_has_to_be_in_range(tmp_path: Path, value: Any) -> None:
    made = row(criterion="quality", claim_id=None, supported=None) | {"value": value}
    _, problems = read(tmp_path, made)
    assert len(problems) == 1
    if value is not None:
        assert problems[0].startswith(
            "labels.jsonl:1: value: value must be a number in [1, 5], got"
        )


def test_a_fact_has_to_be_one_of_the_case(tmp_path: Path) -> None:
    fact = {"criterion": "fact_coverage", "claim_id": None, "supported": None, "covered": True}
    _, problems = read(tmp_path, row(fact_id="F3", **fact), row(fact_id="F1", case_id="c2", **fact))
    assert problems == [
        'labels.jsonl:1: fact_id: "F3" is no fact of the case, which expects F1, F2.',
        'labels.jsonl:2: fact_id: "F1" is no fact of the case, which expects no facts.',
    ]


def test_every_problem_of_a_file_is_reported(tmp_path: Path) -> None:
    found, problems = read(
        tmp_path, row(case_id="x", reviewer=""), row(), row(supported="?"), kind="csv"
    )
    assert [one.split(": ")[:2] for one in problems] == [
        ["labels.csv:2", "case_id"],
        ["labels.csv:2", "reviewer"],
        ["labels.csv:4", "supported"],
    ]
    assert len(found) == 1


def test_one_reviewer_does_not_contradict_herself(tmp_path: Path) -> None:
    _, problems = read(tmp_path, row(), row(supported="unsupported"))
    assert problems == [
        (
            'labels.jsonl:2: reviewer: r1 says "unsupported" here and "supported" on line 1 of the '
            "same claim. Remove one of them, or say with `at` which is the later one."
        )
    ]
    later = row(supported="unsupported", at="2026-09-18")
    found, problems = read(tmp_path, later, row(at="2026-09-17"), row())
    assert problems == []
    assert [one.label for one in last_words(found)] == ["unsupported"]


def test_white_space_makes_no_other_reviewer(tmp_path: Path) -> None:
    found, problems = read(tmp_path, row(), row(reviewer=" r1 ", claim_id=" a"), kind="csv")
    assert problems == []
    assert {(one.reviewer, one.unit) for one in found} == {("r1", "a")}


def test_who_finds_no_claim_labels_none(tmp_path: Path) -> None:
    none = row(claim_id=None, supported=None, value="no_claims")
    _, problems = read(tmp_path, none, row())
    assert problems == [
        (
            "labels.jsonl:2: claim_id: r1 labels a claim here, and says on line 1 that the answer "
            "makes none (no_claims). Remove one of them."
        )
    ]
    assert read(tmp_path, none, row(reviewer="r2"))[1] == []


def test_an_unknown_column_is_refused_once(tmp_path: Path) -> None:
    _, problems = read(tmp_path, row(claimid="a"), row(claimid="b"))
    assert problems == ['labels.jsonl:1: The column "claimid" is unknown. Did you mean "claim_id"?']


def test_a_worksheet_shows_the_answer_and_has_rows_that_nobody_filled_in(tmp_path: Path) -> None:
    sheet = {"question": "How long?", "context": "", "answer": '"masked"'}
    empty = row(claim_id="", supported="", reviewer="")
    found, problems = read(tmp_path, {**row(), **sheet}, {**empty, **sheet}, kind="csv")
    assert problems == []
    assert [(one.answer_digest, one.unit) for one in found] == [(SEEN, "a")]


def test_other_files_are_no_labels(tmp_path: Path) -> None:
    problems: list[Any] = []
    assert read_label_file(tmp_path / "labels.xlsx", KNOWN, problems, name="labels.xlsx") == ()
    assert [str(one) for one in problems] == [
        "labels.xlsx: Labels must stand in a file that ends in .jsonl, .csv, .tsv."
    ]


@given(st.text(alphabet=st.sampled_from("'=+-@\t\r ab\n\"")) | st.text())
def test_every_cell_is_harmless_and_restored(cell: str) -> None:
    shown = neutralised(cell)
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert restored(shown) == cell


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
NAMES = TEXTS.filter(lambda name: name.strip() != "")
LABELS = st.fixed_dictionaries(
    {
        "claim_id": NAMES,
        "supported": st.sampled_from(["supported", "unsupported", "contradicted"]),
        "reviewer": NAMES,
        "note": TEXTS,
        "claim_text": TEXTS,
    }
)


@given(st.lists(LABELS, min_size=1, max_size=6, unique_by=lambda one: one["claim_id"]))
def test_labels_survive_a_table(tmp_path_factory: Any, labels: list[dict[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("labels")
    rows = [row(**one) for one in labels]
    cells = [{name: neutralised(cell) for name, cell in one.items()} for one in rows]
    assert read(folder, *cells, kind="csv") == read(folder, *rows, kind="jsonl")


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(COLUMNS), st.none() | st.booleans() | st.integers() | TEXTS
        ),
        min_size=1,
        max_size=4,
    )
)
def test_no_row_breaks_the_reader(tmp_path_factory: Any, rows: list[dict[str, Any]]) -> None:
    found, problems = read(tmp_path_factory.mktemp("labels"), *rows)
    assert len(found) <= len(rows)
    lines = {one.split(":")[1] for one in problems}
    assert lines <= {str(number) for number in range(1, len(rows) + 1)}
