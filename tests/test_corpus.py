"""Reading the corpus manifest: every field, three formats, and everything that can be wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import corpus_of, lines
from rag_assets.contracts.canonical import canonical_json
from rag_assets.contracts.corpus import Corpus, CorpusDocument, read_corpus
from rag_assets.contracts.errors import Problem

deterministic = settings(derandomize=True, deadline=None, max_examples=150)

FULL = {
    "doc_id": "A-v2",
    "document": "A",
    "version": "2",
    "status": "retired",
    "valid_from": "2024-01-01",
    "valid_to": "2024-05-01T12:00:00+02:00",
    "access": ["staff", "ann"],
    "authority": 3,
    "text": "The text.",
    "title": "The title",
    "facts": ["F1", "F2"],
}


def read(folder: Path, name: str, content: str | bytes) -> tuple[Corpus | None, list[str]]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    problems: list[Problem] = []
    found = read_corpus(path, problems, name=name)
    return found, [str(problem) for problem in problems]


def test_every_field(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, FULL, {"doc_id": "b"})
    assert corpus.documents["A-v2"] == CorpusDocument(
        **{**FULL, "access": ("staff", "ann"), "facts": ("F1", "F2")}
    )
    plain = corpus.documents["b"]
    assert (plain.document, plain.version, plain.status) == ("b", None, "active")
    assert (plain.valid_from, plain.valid_to, plain.access) == (None, None, "all")
    assert (plain.authority, plain.text, plain.title, plain.facts) == (0, None, None, ())
    content = (tmp_path / "corpus.jsonl").read_bytes()
    assert corpus.digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(("name", "mark"), [("m.csv", ","), ("m.tsv", "\t"), ("m.CSV", ",")])
def test_tables(tmp_path: Path, name: str, mark: str) -> None:
    rows = [list(FULL), [*map(str, FULL.values())], ["b", *[""] * 10]]
    rows[1][6], rows[1][10] = "staff | ann", "F1|F2"
    corpus, problems = read(tmp_path, name, "".join(mark.join(row) + "\n" for row in rows))
    assert problems == []
    assert corpus is not None
    assert corpus.documents == corpus_of(tmp_path, FULL, {"doc_id": "b"}).documents


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "doc_id: doc_id is required."),
        ({"doc_id": 7}, 'doc_id: doc_id must be a string, got 7; write doc_id: "7" in quotes.'),
        (
            {"doc_id": " a"},
            "doc_id: doc_id must not begin or end with white space, got ' a'.",
        ),
        (
            {"doc_id": "a", "status": "retird"},
            'status: status must be one of active, retired, got "retird". Did you mean "retired"?',
        ),
        (
            {"doc_id": "a", "valid_from": "May"},
            'valid_from: valid_from must be an ISO date like "2026-09-16", got "May".',
        ),
        (
            {"doc_id": "a", "valid_to": "2024-02-30"},
            'valid_to: valid_to must be an ISO date like "2026-09-16", got "2024-02-30".',
        ),
        (
            {"doc_id": "a", "valid_from": "2024-05-02", "valid_to": "2024-05-01"},
            (
                "valid_to: valid_to must not be before valid_from, got 2024-05-01, and valid_from "
                "is 2024-05-02."
            ),
        ),
        (
            {"doc_id": "a", "access": "staff"},
            'access: access must be all, or a list of roles and users, got "staff".',
        ),
        (
            {"doc_id": "a", "access": ["staff "]},
            'access: access names "staff ", which begins or ends with white space.',
        ),
        (
            {"doc_id": "a", "access": ["all", "staff"]},
            ('access: access lists all beside others, got ["all", "staff"]; write access: all.'),
        ),
        (
            {"doc_id": "a", "authority": 1.5},
            "authority: authority must be an integer, got 1.5.",
        ),
        (
            {"doc_id": "a", "acess": ["staff"]},
            'acess: The key "acess" is not known. Did you mean "access"?',
        ),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    corpus, problems = read(tmp_path, "corpus.jsonl", lines({"doc_id": "x"}, row))
    assert corpus is None
    assert problems == [f"corpus.jsonl:2: {message}"]


def test_a_repeated_id_names_both_lines(tmp_path: Path) -> None:
    text = lines({"doc_id": "a"}, {"doc_id": "b"}, {"doc_id": "a"})
    assert read(tmp_path, "corpus.jsonl", text) == (
        None,
        [
            (
                'corpus.jsonl:3: doc_id: The doc_id "a" of line 3 is that of line 1 as well; ids '
                "are unique."
            )
        ],
    )


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    text = 'no JSON\n{"doc_id": "a", "status": "gone"}\n{"doc_id": "a", "authority": "x"}\n'
    _, problems = read(tmp_path, "corpus.jsonl", text)
    assert [one.split(":")[1] for one in problems] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", "\n", "corpus.jsonl: The file holds no row."),
        ("corpus.json", "{}", "corpus.json: The manifest must be a file that ends in .jsonl, .csv"),
        ("m.csv", "doc_id,doc_id\na,b\n", 'm.csv:1: The column "doc_id" stands here twice'),
        ("m.csv", "doc_id,authority\na,one\n", "m.csv:2: authority: authority must be an integer"),
        ("m.csv", b"doc_id\n\xff\n", "m.csv:2: Byte offset 7 (0xff) is not UTF-8"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    corpus, problems = read(tmp_path, name, content)
    assert corpus is None
    assert len(problems) == 1
    assert problems[0].startswith(message)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert read_corpus(tmp_path / "no.jsonl", problems, name="no.jsonl") is None
    assert str(problems[0]).startswith("no.jsonl: The file cannot be read")


def test_what_a_run_keeps_has_no_text(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, FULL, {"doc_id": "b"})
    kept = canonical_json(corpus.record())
    assert "The text." not in kept
    assert "The title" not in kept
    again = Corpus.recall(corpus.file, corpus.digest, corpus.record())
    assert again.rights == corpus.rights
    assert again.documents["A-v2"] == corpus.documents["A-v2"].model_copy(
        update={"text": None, "title": None}
    )


def test_digests_cover_what_they_say(tmp_path: Path) -> None:
    whole = corpus_of(tmp_path, FULL)
    for key, value in {"status": "active", "valid_from": None, "access": "all"}.items():
        other = corpus_of(tmp_path, {**FULL, key: value})
        assert (other.rights == whole.rights, other.contents == whole.contents) == (False, True)
    for key in ("text", "title"):
        other = corpus_of(tmp_path, {**FULL, key: "other"})
        assert (other.rights == whole.rights, other.contents == whole.contents) == (True, False)
    for key, value in {"authority": 9, "version": "9", "facts": []}.items():
        other = corpus_of(tmp_path, {**FULL, key: value})
        assert (other.rights, other.contents) == (whole.rights, whole.contents)
        assert other.digest != whole.digest


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@deterministic
@given(st.lists(st.dictionaries(st.sampled_from([*FULL, "x"]), json_values), max_size=4))
def test_any_rows_give_a_corpus_or_problems_with_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    corpus, problems = read(folder, "corpus.jsonl", lines(*rows))
    assert (corpus is None) == bool(problems)
    for problem in problems:
        assert problem.startswith("corpus.jsonl:")
