"""The corpus manifest: which documents there are, who may see them, and when they hold."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from rag_assets.contracts.artifacts import Identifier
from rag_assets.contracts.canonical import digest
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.moments import Moment, moment
from rag_assets.contracts.table import FORMATS, Format, Row, read_table
from rag_assets.contracts.text import read_bytes, shown
from rag_assets.contracts.validation import FileModel, NonEmpty, Texts, validate
from rag_assets.contracts.yaml_source import YamlSource

EVERYBODY: Literal["all"] = "all"


def _must_be_moment(value: str) -> str:
    moment(value)
    return value


def _must_not_end_before(value: str, info: ValidationInfo) -> str:
    begins = info.data.get("valid_from")
    if begins is not None and moment(value).last < moment(begins).first:
        raise ValueError(f"must not be before valid_from, got {value}, and valid_from is {begins}")
    return value


def _access(value: Any) -> Any:
    if value == EVERYBODY:
        return EVERYBODY
    is_list = isinstance(value, (list, tuple))
    if not is_list or not all(isinstance(one, str) and one for one in value):
        raise ValueError(f"must be all, or a list of roles and users, got {shown(value)}")
    for one in value:
        if one != one.strip():
            raise ValueError(f"names {shown(one)}, which begins or ends with white space")
    if EVERYBODY in value:
        raise ValueError(f"lists all beside others, got {shown(value)}; write access: all")
    return tuple(value)


Date = Annotated[str, AfterValidator(_must_be_moment)]


class CorpusDocument(FileModel):
    """One document of the manifest.

    Attributes:
        doc_id: the id that passages carry.
        document: the logical document that versions belong to.
        version: a free label.
        status: a retired document is never admissible.
        valid_from, valid_to: ISO dates or times, both inclusive; None for no limit.
        access: `all`, or the roles and users that may see it.
        authority: higher wins where sources conflict.
        text, title: what leak detection looks for, and gold text.
        facts: ids of the facts that the document states.
    """

    doc_id: Identifier
    document: NonEmpty
    version: NonEmpty | None = None
    status: Literal["active", "retired"] = "active"
    valid_from: Date | None = None
    valid_to: Annotated[Date, AfterValidator(_must_not_end_before)] | None = None
    access: Annotated[Literal["all"] | tuple[str, ...], BeforeValidator(_access)] = EVERYBODY
    authority: int = 0
    text: NonEmpty | None = None
    title: NonEmpty | None = None
    facts: Annotated[Texts, Field(strict=False)] = ()

    @model_validator(mode="before")
    @classmethod
    def _is_its_own_document(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("document") is None:
            doc_id = value.get("doc_id")
            # Where the id is refused, nothing is said of the document that it would stand for.
            return {**value, "document": doc_id if isinstance(doc_id, str) and doc_id else "-"}
        return value

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The roles and users that may see it; None for everybody."""
        return None if self.access == EVERYBODY else frozenset(self.access)

    @cached_property
    def begins(self) -> Moment | None:
        """When it begins to hold; None for no limit."""
        return None if self.valid_from is None else moment(self.valid_from)

    @cached_property
    def ends(self) -> Moment | None:
        """When it holds for the last time; None for no limit."""
        return None if self.valid_to is None else moment(self.valid_to)


@dataclass(frozen=True, eq=False)
class Corpus:
    """The documents of a manifest.

    Attributes:
        file: the manifest as messages name it.
        digest: SHA-256 of the file.
        documents: doc id → document, in the order of the file.
    """

    file: str
    digest: str
    documents: Mapping[str, CorpusDocument] = field(repr=False)

    @cached_property
    def rights(self) -> str:
        """Digest of everything that decides which documents are admissible."""
        return digest(
            [
                [one.doc_id, one.status, one.valid_from, one.valid_to, one.access]
                for one in self.documents.values()
            ]
        )

    @cached_property
    def contents(self) -> str:
        """Digest of the texts and titles."""
        return digest([[one.doc_id, one.text, one.title] for one in self.documents.values()])

    @cached_property
    def versions(self) -> Mapping[str, Sequence[CorpusDocument]]:
        """Logical document → its versions, in the order of the file."""
        found: dict[str, list[CorpusDocument]] = {}
        for one in self.documents.values():
            found.setdefault(one.document, []).append(one)
        return found

    @cached_property
    def begins(self) -> Sequence[datetime]:
        """The instants at which documents begin to hold, sorted."""
        return sorted({one.begins.first for one in self.documents.values() if one.begins})

    @cached_property
    def ends(self) -> Sequence[datetime]:
        """The instants at which documents hold for the last time, sorted."""
        return sorted({one.ends.last for one in self.documents.values() if one.ends})

    def passed(self, as_of: Moment) -> list[int]:
        """How many of `begins`, and of `ends`, a date has passed.

        At two dates with the same numbers, the same documents hold.
        """
        return [bisect_right(self.begins, as_of.last), bisect_left(self.ends, as_of.first)]

    @cached_property
    def names(self) -> frozenset[str]:
        """The roles and users that any document names."""
        return frozenset().union(*(one.names for one in self.documents.values() if one.names))

    def record(self) -> dict[str, Any]:
        """The manifest as a run keeps it: without texts and titles, which nobody may see there."""
        return {
            "documents": [
                one.model_dump(mode="json", exclude={"text", "title"}, exclude_defaults=True)
                for one in self.documents.values()
            ]
        }

    @classmethod
    def recall(cls, file: str, digest: str, record: Mapping[str, Any]) -> Corpus:
        """The manifest that a `record()` was made of, without texts and titles."""
        documents = (CorpusDocument.model_validate(one) for one in record["documents"])
        return cls(file, digest, {one.doc_id: one for one in documents})


def with_texts_of(corpus: Corpus, other: Corpus) -> Corpus:
    """A manifest with the texts and titles that another one has of the same documents."""
    documents = {
        doc_id: one.model_copy(update={"text": said.text, "title": said.title})
        if (said := other.documents.get(doc_id)) is not None
        else one
        for doc_id, one in corpus.documents.items()
    }
    return Corpus(corpus.file, corpus.digest, documents)


def read_corpus(path: Path, problems: list[Problem], *, name: str | None = None) -> Corpus | None:
    """Read a manifest.

    Args:
        path: a .jsonl, .csv or .tsv file. In CSV and TSV an empty cell stands for nothing, and `|`
            separates what `access` and `facts` list.
        problems: every problem of the file is appended here, with its line.
        name: the file as messages shall name it (default: the path as given).

    Returns:
        The manifest, or None when anything is wrong with the file.
    """
    file = name or str(path)
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        message = f"The manifest must be a file that ends in {', '.join(FORMATS)}."
        problems.append(Problem(file, 0, "", message))
        return None
    data = read_bytes(path, file, problems)
    if data is None:
        return None
    before = len(problems)
    rows = read_table(data, kind, file, problems)
    documents = _documents(rows, kind, file, problems)
    if len(problems) > before:
        return None
    return Corpus(file, hashlib.sha256(data).hexdigest(), documents)


def _documents(
    rows: Iterable[Row], kind: Format, file: str, problems: list[Problem]
) -> dict[str, CorpusDocument]:
    found: dict[str, CorpusDocument] = {}
    lines: dict[str, int] = {}
    for row in rows:
        values = row.values if kind == "jsonl" else _typed(row.values)
        source = YamlSource(file, {}, {"": row.line}, {})
        one = validate(CorpusDocument, values, source, problems)
        if one is None:
            continue
        first = lines.setdefault(one.doc_id, row.line)
        if first != row.line:
            message = (
                f"The doc_id {shown(one.doc_id)} of line {row.line} is that of line {first} as "
                "well; ids are unique."
            )
            problems.append(Problem(file, row.line, "doc_id", message))
        found[one.doc_id] = one
    return found


def _typed(cells: Mapping[str, str]) -> dict[str, Any]:
    """The values that the cells of a row mean."""
    values: dict[str, Any] = {name: cell for name, cell in cells.items() if cell}
    for name in ("access", "facts"):
        if name in values and (name, values[name]) != ("access", EVERYBODY):
            values[name] = [one.strip() for one in values[name].split("|")]
    with suppress(KeyError, ValueError):
        # Where this is no number, the model says so.
        values["authority"] = int(values["authority"])
    return values
