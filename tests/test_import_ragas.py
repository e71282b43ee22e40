"""`import ragas`: samples, row by row, and the project that is made of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import call
from projects import Run, SampleProject
from rag_assets.contracts.errors import Problem
from rag_assets.formats.ragas import COLUMNS, UnreadableError, listed, read_samples
from rag_assets.formats.ragas_project import text_id

deterministic = settings(derandomize=True, deadline=None, max_examples=60)

REFUND, SHIP = "Refunds take 14 days.", "It ships in 3 days."
SAMPLES = [
    {
        "user_input": "How long do refunds take?",
        "retrieved_contexts": [SHIP, REFUND, REFUND],
        "response": "14 days",
        "reference": "Within 14 days",
        "reference_contexts": [REFUND],
        "persona": "buyer",
    },
    {
        "id": "ship",
        "user_input": "When does it ship?",
        "retrieved_contexts": [REFUND],
        "reference": "3 days",
        "reference_contexts": [SHIP],
    },
    {"user_input": "A phone number?", "response": "I do not know.", "reference": None},
    {"user_input": "When does it arrive?", "response": "Soon.", "reference_contexts": [SHIP]},
]


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(*rows: dict[str, Any]) -> str:
    """As Ragas writes CSV: lists as Python prints them."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def read(name: str, content: str):
    problems: list[Problem] = []
    found = read_samples(content.encode(), name.rpartition(".")[2], name, problems)
    return found, [str(one) for one in problems]


def imported(folder: Path, content: str, name: str = "s.jsonl") -> SampleProject:
    (folder / name).write_text(content, encoding="utf-8")
    result = call(folder, "import", "ragas", name, "--out", "made")
    assert result.exit_code == 0, result.stderr
    project = object.__new__(SampleProject)
    project.root = folder / "made"
    return project


def rows(project: SampleProject, name: str) -> list[dict[str, Any]]:
    text = (project.root / "data" / name).read_text(encoding="utf-8")
    return [json.loads(row) for row in text.splitlines()]


def outcome(run: Run, case_id: str, criterion: str) -> tuple[str, str | None, float | None]:
    found = run.judgment(case_id, criterion)
    return found.status, found.reason, found.value


# Rows


def test_both_formats_hold_the_same_samples() -> None:
    found, problems = read("s.jsonl", jsonl(*SAMPLES))
    assert problems == []
    assert [one.id for one in found] == [None, "ship", None, None]
    assert found[0].retrieved_contexts == [SHIP, REFUND, REFUND]
    assert found[0].rest == {"persona": "buyer"}
    assert (found[2].reference, found[2].retrieved_contexts, found[2].rest) == (None, None, {})
    again, problems = read("s.csv", as_csv(*SAMPLES))
    assert problems == []
    names = [*COLUMNS, "rest"]
    assert [[getattr(one, name) for name in names] for one in again] == [
        [getattr(one, name) for name in names] for one in found
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("[]", []),
        ("['a\\nb']", ["a\nb"]),
        ("[\n 'a', # first\n 'b']", ["a", "b"]),
    ],
)
def test_a_cell_holds_a_list(text: str, value: list[str]) -> None:
    assert listed(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "['a' 'b']",
        "['a'\n 'b']",
        "a, b",
        "[a]",
        "['a'",
        "__import__('os')",
        "[" * 500,
        "\x00",
        "{[]}",
    ],
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        listed(text)


@deterministic
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_lists_come_back_as_python_and_json_write_them(texts):
    assert listed(repr(texts)) == texts
    assert listed(json.dumps(texts)) == texts


@deterministic
@given(st.text())
def test_any_cell_is_read_or_refused(text):
    try:
        listed(text)
    except UnreadableError:
        return


Q = {"user_input": "Q?", "response": "A"}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "s.jsonl",
            jsonl({"question": "Q?", "answer": "A", "contexts": []}),
            (
                's.jsonl:1: No row has a user_input, the question. The first one has "question", '
                '"answer", "contexts". Rename the columns of Ragas before 0.2: question is now '
                "user_input, contexts is now retrieved_contexts, answer is now response."
            ),
        ),
        (
            "s.jsonl",
            jsonl(Q, {"response": "A"}),
            "s.jsonl:2: user_input: The row has no user_input, the question.",
        ),
        (
            "s.jsonl",
            jsonl({"user_input": [{"content": "Hi", "type": "human"}]}),
            (
                "s.jsonl:1: user_input: user_input must be a text, got "
                '[{"content": "Hi", "type": "human"}]; conversations of several turns are not in '
                "this version."
            ),
        ),
        (
            "s.jsonl",
            jsonl({**Q, "retrieved_contexts": "one text"}),
            (
                "s.jsonl:1: retrieved_contexts: retrieved_contexts must be a list of texts, like "
                '["first", "second"], got "one text".'
            ),
        ),
        (
            "s.csv",
            "user_input,retrieved_contexts\nQ?,\"['a' 'b']\"\n",
            (
                "s.csv:2: retrieved_contexts: retrieved_contexts must be a list of texts, like "
                '["first", "second"], got "[\'a\' \'b\']".'
            ),
        ),
        (
            "s.jsonl",
            jsonl({**Q, "retrieved_context_ids": [7]}),
            (
                "s.jsonl:1: retrieved_context_ids: retrieved_context_ids must be a list of texts, "
                'like ["first", "second"], got [7].'
            ),
        ),
        (
            "s.jsonl",
            jsonl({**Q, "reference_context_ids": ["a "]}),
            (
                "s.jsonl:1: reference_context_ids: An id begins or ends with white space, got "
                '"a "; remove it.'
            ),
        ),
        (
            "s.jsonl",
            jsonl({**Q, "retrieved_contexts": ["A.", "B."], "retrieved_context_ids": ["a"]}),
            (
                "s.jsonl:1: retrieved_context_ids: retrieved_context_ids has 1 entries, and "
                "retrieved_contexts has 2; each text has its id."
            ),
        ),
        (
            "s.jsonl",
            '{"user_input": "Q?", "note": "\\ud800"}\n',
            "s.jsonl:1: note: The value holds half of a surrogate pair, which UTF-8 cannot write.",
        ),
    ],
)
def test_what_is_wrong_with_a_row_is_named(name: str, content: str, problem: str) -> None:
    assert read(name, content)[1] == [problem]


@deterministic
@given(
    st.sampled_from(["jsonl", "csv"]),
    st.binary(max_size=80) | st.text(max_size=80).map(lambda text: f"user_input\n{text}".encode()),
)
def test_any_file_is_samples_or_has_problems(kind, data):
    problems: list[Problem] = []
    found = read_samples(data, kind, "file", problems)
    assert problems or all(isinstance(one.user_input, str) for one in found)


def test_cells_may_be_long() -> None:
    samples = [{**Q, "retrieved_contexts": ["x" * 200_000]}]
    found, problems = read("s.csv", as_csv(*samples))
    assert problems == []
    assert found[0].retrieved_contexts == samples[0]["retrieved_contexts"]


# Projects


def test_the_summary_counts_what_each_rule_applies_to(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(as_csv(*SAMPLES), encoding="utf-8")
    result = call(tmp_path, "import", "ragas", "s.csv", "--out", "made")
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == """\
made holds 4 recorded results.

Samples of s.csv
    4  samples
    3  without an id, named row-N by their place
    1  without a response: missing in every metric of the answer, field_absent
    2  without a reference: excluded from metrics that compare the answer, no_expected
    2  without a retrieval, or its ids: missing in every metric of it, artifact_absent
    1  without reference contexts: excluded from metrics of retrieval, no_relevance_labels
    4  retrieved passages, compared by their texts, because the file has no ids of both
    1  further columns, kept as metadata: persona

Left out
    metrics of the context and of citations: the file does not say which of the retrieved passages \
reached the model, nor what was cited

Next: cd made && rag-assets run
"""
    )


def test_an_imported_project_runs_at_once(tmp_path: Path) -> None:
    project = imported(tmp_path, jsonl(*SAMPLES))
    done = call(project.root, "run")
    assert done.exit_code == 0, done.output
    with project.store.reading() as reader:
        run = project.read(reader.runs()[0].id)
    ids = ("row-1", "ship", "row-3", "row-4")
    assert [outcome(run, one, "answer_token_f1") for one in ids] == [
        ("observed", None, 0.8),
        ("missing", "field_absent", None),
        ("excluded", "no_expected", None),
        ("excluded", "no_expected", None),
    ]
    # The same passage twice keeps its place; a retrieval that is not there is not an empty one.
    assert [outcome(run, one, "mrr_at_3") for one in ids] == [
        ("observed", None, 0.5),
        ("observed", None, 0.0),
        ("excluded", "no_relevance_labels", None),
        ("missing", "artifact_absent", None),
    ]
    given = ["observed", "missing", "observed", "observed"]
    assert [outcome(run, one, "answer_given")[0] for one in ids] == given


def test_passages_without_ids_are_named_by_their_texts(tmp_path: Path) -> None:
    project = imported(tmp_path, jsonl(*SAMPLES))
    case, *_ = rows(project, "cases.jsonl")
    assert case == {
        "id": "row-1",
        "input": {"question": "How long do refunds take?"},
        "expected": {
            "answer": "Within 14 days",
            "relevant": [{"doc_id": text_id(REFUND)}],
            "gold_context": [{"doc_id": text_id(REFUND), "text": REFUND}],
        },
        "metadata": {"persona": "buyer"},
    }
    result, _, last, _ = rows(project, "results.jsonl")
    assert result["doc_ids"][1:] == [{"doc_id": text_id(REFUND), "text": REFUND}] * 2
    assert last == {"case_id": "row-3", "answer": "I do not know."}


def test_ids_of_the_file_are_used_where_both_sides_have_them(tmp_path: Path) -> None:
    sample = {
        **Q,
        "retrieved_contexts": ["A, cut.", ""],
        "retrieved_context_ids": ["007", "b"],
        "reference_context_ids": ["007", "7"],
    }
    project = imported(tmp_path, jsonl(sample, Q | {"retrieved_contexts": ["A, cut."]}))
    assert rows(project, "results.jsonl") == [
        {
            "case_id": "row-1",
            "doc_ids": [{"doc_id": "007", "text": "A, cut."}, {"doc_id": "b"}],
            "answer": "A",
        },
        # Texts without ids could not be compared, so nothing is known of this retrieval.
        {"case_id": "row-2", "answer": "A"},
    ]
    assert rows(project, "cases.jsonl")[0]["expected"] == {
        "relevant": [{"doc_id": "007"}, {"doc_id": "7"}],
        "gold_context": [],
    }
    config = (project.root / "rag_assets.yaml").read_text(encoding="utf-8")
    assert "type: hit_rate\n    k: 2\n" in config
    assert "compare the answer (contains, exact, token_f1, …): no answered row has a ref" in config


def test_one_line_says_that_all_passages_reached_the_model(tmp_path: Path) -> None:
    project = imported(tmp_path, jsonl(*SAMPLES))
    project.replace("rag_assets.yaml", "    # map: {", "    map: {")
    checked = call(project.root, "check")
    assert checked.exit_code == 0
    assert "records context/v1, retrieval/v1" in checked.stdout


@pytest.mark.parametrize(
    ("sample", "kinds", "left_out"),
    [
        (Q, ["regex"], ["compare the answer", "metrics of retrieval", "metrics of the context"]),
        (
            Q | {"retrieved_contexts": ["A."], "retrieved_context_ids": ["a"]},
            ["regex"],
            ["compare the answer", "metrics of retrieval", "metrics of the context"],
        ),
        (
            {"user_input": "Q?", "retrieved_contexts": [], "reference_contexts": ["A."]},
            ["hit_rate", "recall", "mrr"],
            ["every metric that needs an answer", "metrics of the context"],
        ),
        (
            Q | {"reference": "A", "reference_context_ids": ["a"], "retrieved_contexts": ["A."]},
            ["regex", "token_f1"],
            ["metrics of retrieval", "metrics of the context"],
        ),
    ],
)
def test_metrics_that_nothing_feeds_are_left_out_with_the_reason(
    tmp_path: Path, sample: dict[str, Any], kinds: list[str], left_out: list[str]
) -> None:
    project = imported(tmp_path, jsonl(sample))
    config = (project.root / "rag_assets.yaml").read_text(encoding="utf-8")
    types = [row.partition("type: ")[2] for row in config.splitlines() if "- type: " in row]
    assert types == kinds
    told = config.partition("# Left out:\n")[2]
    assert [words for words in left_out if words in told] == left_out
    assert told.count("metric") == len(left_out)
    assert call(project.root, "check").exit_code == 0


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "s.json",
            "{}",
            (
                "s.json: Samples are read from .jsonl (one JSON object a line) and .csv files. "
                "Traces of an application are not in this version."
            ),
        ),
        (
            "s.jsonl",
            jsonl({"user_input": "Q?", "retrieved_contexts": ["A."]}),
            "s.jsonl: There is nothing to evaluate: no row has a response or reference contexts.",
        ),
        (
            "s.jsonl",
            jsonl(Q | {"id": "a"}, Q | {"id": "a"}),
            's.jsonl:2: id: The id "a" is that of line 1 as well; ids are unique.',
        ),
        (
            "s.jsonl",
            jsonl(Q | {"id": "a...b"}),
            's.jsonl:1: id: id must not hold "...", got "a...b".',
        ),
        (
            "s.csv",
            "user_input,response\nQ?\n",
            "s.csv:2: The number of cells is 1, and that of columns 2.",
        ),
    ],
)
def test_nothing_is_written_when_a_file_is_wrong(
    tmp_path: Path, name: str, content: str, problem: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    result = call(tmp_path, "import", "ragas", name, "--out", "made")
    assert (result.exit_code, result.stderr) == (2, f"{problem}\n")
    assert [one.name for one in tmp_path.iterdir()] == [name]
