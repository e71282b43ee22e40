"""`import trec`: judgments and runs, line by line, and the project that is made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import call
from projects import Run, SampleProject
from rag_assets.contracts.errors import Problem
from rag_assets.formats.trec import Judgments, Ranked, TrecRun, read_judgments, read_run
from rag_assets.formats.trec_project import run_names

deterministic = settings(derandomize=True, deadline=None, max_examples=60)

QRELS = """\
# topic iteration document grade
001 0 doc-7 2
001 0 007 1
001 0 x -1
001 0 007 1
2 0 a 0
3\t0\td\t1
"""
FIRST = """\
001 Q0 y 1 9.5 first
001 Q0 007 2 9.25 first and more
001 Q0 doc-7 3 9.25 first

2 Q0 a 1 1e-3 first
4 Q0 q 1 -2 first
"""
SECOND = """\
001 Q0 y 1 1 second
001 Q0 y 2 3 second
3 Q0 d 1 0 second
"""


def read(function, content: bytes | str) -> tuple[Judgments | TrecRun, list[str]]:
    problems: list[Problem] = []
    data = content.encode() if isinstance(content, str) else content
    return function(data, "file", problems), [str(one) for one in problems]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def imported(folder: Path, *runs: str) -> SampleProject:
    result = call(folder, "import", "trec", "qrels.txt", *runs, "--out", "made")
    assert result.exit_code == 0, result.stderr
    project = object.__new__(SampleProject)
    project.root = folder / "made"
    return project


def rows(project: SampleProject, name: str) -> list[dict]:
    text = (project.root / "data" / name).read_text(encoding="utf-8")
    return [json.loads(row) for row in text.splitlines()]


# Lines


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_judgments(start: bytes, end: bytes) -> None:
    found, problems = read(read_judgments, start + QRELS.encode().replace(b"\n", end))
    assert problems == []
    assert found == Judgments(
        {"001": {"doc-7": 2, "007": 1, "x": -1}, "2": {"a": 0}, "3": {"d": 1}}, repeated=1
    )


def test_results_are_ordered_by_score_and_then_by_document_the_last_first() -> None:
    found, problems = read(read_run, FIRST)
    assert problems == []
    assert found == TrecRun(
        tag="first",
        rankings={
            "001": (Ranked("y", 9.5), Ranked("doc-7", 9.25), Ranked("007", 9.25)),
            "2": (Ranked("a", 0.001),),
            "4": (Ranked("q", -2.0),),
        },
        repeated=0,
        disagreeing=1,
        tied=1,
    )


@pytest.mark.parametrize(
    ("ranks", "counts"),
    [("123", (0, 0)), ("111", (0, 0)), ("132", (1, 1)), ("213", (1, 0)), ("312", (1, 0))],
)
def test_ranks_that_contradict_scores_are_counted(ranks: str, counts: tuple[int, int]) -> None:
    scored = zip("cba", ranks, (2, 1, 1), strict=True)
    lines = "".join(f"t Q0 {doc} {rank} {score} tag\n" for doc, rank, score in scored)
    found, _ = read(read_run, lines)
    assert [one.doc_id for one in found.rankings["t"]] == ["c", "b", "a"]
    assert (found.disagreeing, found.tied) == counts


JUDGMENT = "topic iteration document grade"
RESULT = "topic Q0 document rank score run_tag"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("1 0 a\n", f"file:1: The line has 3 fields, and 4 are expected: {JUDGMENT}."),
        ("1 0 a 1 x\n", f"file:1: The line has 5 fields, and 4 are expected: {JUDGMENT}."),
        ("\n1 0 a 1.5\n", 'file:2: The grade must be a whole number, got "1.5".'),
        ("1 0 a 1_0\n", 'file:1: The grade must be a whole number, got "1_0".'),
        (
            "1 0 a 1\n1 0 b 1\n1 0 a 0\n",
            'file:3: The document "a" of topic "1" has the grade 0 here and 1 in line 1; keep one.',
        ),
        (
            "1...2 0 a 1\n1...2 0 b 1\n",
            'file:1: The topic is the id of a case, and id must not hold "...", got "1...2".',
        ),
        (
            "1 0 \u00a0a 1\n",
            'file:1: document begins or ends with white space, got "\u00a0a"; remove it.',
        ),
        (
            b"1 0 a 1\n1 0 caf\xe9 1\n",
            "file:2: Byte offset 15 (0xe9) is not UTF-8; save the file as UTF-8.",
        ),
        ("# only\n\n", f"file: The file holds no line of the form: {JUDGMENT}."),
    ],
)
def test_what_is_no_judgment_is_named(content: bytes | str, problem: str) -> None:
    assert read(read_judgments, content)[1] == [problem]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 Q0 a 1 2.5", f"The line has 5 fields, and 6 are expected: {RESULT}."),
        ("1 Q0 a first 2.5 t", 'The rank must be a whole number, got "first".'),
        ("1 Q0 a 1 nan t", 'The score must be a finite number, got "nan".'),
        ("1 Q0 a 1 1e999 t", 'The score must be a finite number, got "1e999".'),
        ("1 Q0 a 1 2,5 t", 'The score must be a finite number, got "2,5".'),
    ],
)
def test_what_is_no_result_is_named(line: str, problem: str) -> None:
    found, problems = read(read_run, f"1 Q0 b 1 3 t\n{line}\n")
    assert problems == [f"file:2: {problem}"]
    assert found.rankings == {"1": (Ranked("b", 3.0),)}


ids = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=8).filter(
    lambda text: "..." not in text and not text.startswith("#")
)
scores = st.floats(allow_nan=False, allow_infinity=False)


@deterministic
@given(st.dictionaries(ids, st.dictionaries(ids, st.integers(-2, 4), min_size=1), min_size=1))
def test_judgments_come_back_as_they_were_written(grades):
    lines = (
        f"{topic}\t0 {doc}  {grade}\n"
        for topic, judged in grades.items()
        for doc, grade in judged.items()
    )
    assert read(read_judgments, "".join(lines)) == (Judgments(grades, 0), [])


@deterministic
@given(st.dictionaries(ids, scores, min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_lines_decides_nothing(ranking, shuffler):
    lines = [f"t Q0 {doc} 0 {score!r} tag" for doc, score in ranking.items()]
    shuffler.shuffle(lines)
    found, problems = read(read_run, "\n".join(lines))
    assert problems == []
    assert list(found.rankings["t"]) == sorted(
        (Ranked(doc, score) for doc, score in ranking.items()),
        key=lambda one: (one.score, one.doc_id),
        reverse=True,
    )


@deterministic
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_named(data):
    for function in (read_judgments, read_run):
        found, problems = read(function, data)
        assert problems or found


# Projects


def test_the_summary_counts_what_each_rule_applies_to(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, first=FIRST, second=SECOND)
    arguments = ("qrels.txt", "first.txt", "second.txt", "--out", "made")
    result = call(tmp_path, "import", "trec", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == """\
made holds 2 recorded runs over 4 topics.

Judgments of qrels.txt
    3  judged topics
    5  judged documents
    3  of them relevant: the grade is above 0
    1  with a negative grade, kept as grade 0
    1  repeated lines, counted once
    1  topics without a relevant document: excluded, no_relevance_labels

Results of first.txt, run first
    3  topics with results
    5  results
    1  of them not judged for their topic: they count as not relevant
    0  repeat a document of their topic: they keep their position
    1  topics whose ranks contradict the scores: scores decide
    1  of them only where scores are equal: the document id decides
    1  judged topics without a result: missing, not_recorded
    1  topics without a judgment: excluded, no_relevance_labels

Results of second.txt, run second
    2  topics with results
    3  results
    2  of them not judged for their topic: they count as not relevant
    1  repeat a document of their topic: they keep their position
    1  topics whose ranks contradict the scores: scores decide
    0  of them only where scores are equal: the document id decides
    1  judged topics without a result: missing, not_recorded
    0  topics without a judgment: excluded, no_relevance_labels

Left out
    every metric that needs an answer (contains, exact, token_f1, …): a TREC run holds no answers
    every metric that needs a context or citations: a TREC run says nothing of what a model saw

Next: cd made && rag-assets run
      rag-assets run --config rag_assets.second.yaml
      rag-assets compare made-second:latest latest
"""
    )


def test_runs_of_an_imported_project_are_compared_by_topic(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, first=FIRST, second=SECOND)
    project = imported(tmp_path, "first.txt", "second.txt")
    assert rows(project, "cases.jsonl")[:2] == [
        {
            "id": "001",
            "input": {"topic": "001"},
            "expected": {
                "relevant": [
                    {"doc_id": "doc-7", "grade": 2},
                    {"doc_id": "007", "grade": 1},
                    {"doc_id": "x", "grade": 0},
                ]
            },
        },
        {
            "id": "2",
            "input": {"topic": "2"},
            "expected": {"relevant": [{"doc_id": "a", "grade": 0}]},
        },
    ]
    for config in ("rag_assets.yaml", "rag_assets.second.yaml"):
        assert call(project.root, "check", "--config", config).exit_code == 0
        done = call(project.root, "run", "--config", config)
        assert done.exit_code == 0, done.output
    with project.store.reading() as reader:
        second, first = (project.read(row.id) for row in reader.runs())
    assert [outcome(first, topic) for topic in ("001", "2", "3", "4")] == [
        ("observed", None, 0.5),
        ("excluded", "no_relevance_labels", None),
        ("missing", "not_recorded", None),
        ("excluded", "no_relevance_labels", None),
    ]
    assert [outcome(second, topic) for topic in ("001", "3")] == [
        ("observed", None, 0.0),
        ("observed", None, 1.0),
    ]
    compared = call(project.root, "compare", "made-second:latest", "latest")
    assert compared.exit_code == 0
    (row,) = (row for row in compared.stdout.splitlines() if row.startswith("mrr_at_3: "))
    assert row.startswith("mrr_at_3: -0.500 [")
    assert row.endswith("] · 1 paired · 1 missing · 2 excluded")


def outcome(run: Run, topic: str) -> tuple[str, str | None, float | None]:
    found = run.judgment(topic, "mrr_at_3")
    return found.status, found.reason, found.value


def test_one_run_needs_no_policy_for_comparisons(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, first=FIRST)
    project = imported(tmp_path, "first.txt")
    made = {str(one.relative_to(project.root)) for one in project.root.rglob("*") if one.is_file()}
    assert made == {"rag_assets.yaml", "release.yaml", "data/cases.jsonl", "data/first.jsonl"}


def test_long_rankings_stay_out_of_the_event_log(tmp_path: Path) -> None:
    lines = [f"001 Q0 d{place} {place} {-place} long\n" for place in range(1, 102)]
    write(tmp_path, qrels=QRELS, first="".join(lines), second="".join(lines[:100]))
    setting = "dagster: {rich_metadata_cases: 0}"
    long = imported(tmp_path, "first.txt")
    assert setting in (long.root / "rag_assets.yaml").read_text(encoding="utf-8")
    assert call(long.root, "check").exit_code == 0
    arguments = ("qrels.txt", "second.txt", "--out", "short")
    assert call(tmp_path, "import", "trec", *arguments).exit_code == 0
    assert setting not in (tmp_path / "short" / "rag_assets.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/bm25.run", "b/dense.txt"], ["bm25", "dense"]),
        (["results.test", "results.trunc"], ["results_test", "results_trunc"]),
        (["a/x.txt", "b/x.txt", "x_txt_2"], ["x_txt", "x_txt_2", "x_txt_2_2"]),
        (["été.txt", "-.txt"], ["t", "run"]),
    ],
)
def test_names_of_runs_are_unique(paths: list[str], names: list[str]) -> None:
    assert run_names([Path(one) for one in paths]) == names


def test_nothing_is_written_when_a_line_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS + "1 0 a x\n", first=FIRST + "1 Q0 a\n")
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for out in ("made", "empty"):
        arguments = ("qrels.txt", "first.txt", "gone.txt", "--out", out)
        result = call(tmp_path, "import", "trec", *arguments)
        assert result.exit_code == 2
        assert result.stderr.splitlines() == [
            'qrels.txt:8: The grade must be a whole number, got "x".',
            f"first.txt:7: The line has 3 fields, and 6 are expected: {RESULT}.",
            "gone.txt: The file cannot be read: No such file or directory.",
        ]
        assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_in_use_is_refused_and_an_empty_one_filled(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, first=FIRST)
    used = call(tmp_path, "import", "trec", "qrels.txt", "first.txt", "--out", ".")
    assert (used.exit_code, used.stderr) == (2, ". is not empty; name a new or empty folder.\n")
    (tmp_path / "empty").mkdir()
    files = ("../qrels.txt", "../first.txt")
    filled = call(tmp_path / "empty", "import", "trec", *files, "--out", ".")
    assert filled.exit_code == 0
    made = sorted(one.name for one in (tmp_path / "empty").iterdir())
    assert made == ["data", "rag_assets.yaml", "release.yaml"]


@pytest.mark.parametrize("name", ["openinference", "otel_genai", "TREC"])
def test_traces_and_other_formats_are_not_in_this_version(tmp_path: Path, name: str) -> None:
    (tmp_path / "trace.json").write_text('{"name": "search", "attributes": {}}', encoding="utf-8")
    result = call(tmp_path, "import", name, "trace.json", "--out", "made")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f'The format "{name}" is not in this version. The formats are: trec, ragas. Traces '
    )
    assert "choose yourself which span is the retrieval" in result.stderr
    assert not (tmp_path / "made").exists()
