"""The corpus as a run keeps it, and what the users of its cases could use of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_assets.contracts.canonical import canonical_json, digest_text
from rag_assets.contracts.cases import Case, parse_case
from rag_assets.contracts.corpus import Corpus, read_corpus, with_texts_of
from rag_assets.contracts.moments import day
from rag_assets.contracts.reference_set import ReferenceSets
from rag_assets.evaluation.places import root_of
from rag_assets.evaluation.redaction import Redactor, may_hide, passages_of
from rag_assets.evaluators.leak_check import LeakParameters, leaks_in
from rag_assets.evaluators.leaks import MIN_CHARS
from rag_assets.store.reader import Reader

if TYPE_CHECKING:
    from rag_assets.evaluation.project import Project

MANIFEST_KIND = "corpus/v1"


def manifest_text(project: Project) -> str | None:
    """The manifest as it is stored: without texts and titles. None without a corpus."""
    return None if project.corpus is None else canonical_json(project.corpus.record())


def manifest_record(project: Project) -> dict[str, Any] | None:
    """What a run freezes of the manifest, as JSON; None without a corpus.

    `artifact` is the digest of what is stored of it, `as_of` the date of the run, `passed` how many
    documents begin to hold, and end, before that, and `min_chars` the length of a verbatim run that
    may not be shown.
    """
    corpus, text = project.corpus, manifest_text(project)
    if corpus is None or text is None:
        return None
    return {
        "file": corpus.file,
        "digest": corpus.digest,
        "documents": len(corpus.documents),
        "artifact": digest_text(text),
        "as_of": project.as_of.isoformat(),
        "passed": corpus.passed(day(project.as_of)),
        "min_chars": least_chars(project),
    }


def least_chars(project: Project) -> int:
    """The least number of characters that a `no_leak` of a project takes for a verbatim run."""
    declared = [
        one.parameters.min_chars
        for one in project.evaluators
        if isinstance(one.parameters, LeakParameters)
    ]
    return min(declared, default=MIN_CHARS)


class RecordedCases:
    """Makes cases of their records, with their reference sets where the run had a corpus."""

    def __init__(
        self,
        corpus: Corpus | None = None,
        as_of: str = "",
        min_chars: int = MIN_CHARS,
        manifest: Path | None = None,
    ) -> None:
        self._min_chars = min_chars
        self._corpus = corpus
        self._manifest = manifest
        self._sets = None
        if corpus is not None:
            self._sets = ReferenceSets(corpus, date.fromisoformat(as_of))

    @property
    def has_corpus(self) -> bool:
        """Whether the run had a corpus."""
        return self._sets is not None

    def case(self, record: Mapping[str, Any]) -> Case:
        """The case of a record."""
        case = parse_case(record)
        return case if self._sets is None else self._sets.of(case)

    def redactor(self, case: Case, artifacts: Iterable[Mapping[str, Any]]) -> Redactor:
        """What takes out of a case what its user may not see.

        Args:
            case: made here.
            artifacts: what is recorded of its retrieval and context.
        """
        passages = [one for artifact in artifacts for one in passages_of(artifact)]
        said = None
        if self._said is not None and may_hide(case):
            said = partial(leaks_in, case=case, min_chars=self._min_chars, corpus=self._said)
        return Redactor(case, passages, self._min_chars, said)

    def text_of(self, doc_id: str) -> str | None:
        """The text of a document, as far as the manifest still stands beside the config."""
        document = None if self._said is None else self._said.documents.get(doc_id)
        return None if document is None else document.text

    @cached_property
    def _said(self) -> Corpus | None:
        """The corpus with texts: the records hold none, and the manifest may have changed since."""
        if self._corpus is None or self._manifest is None or not self._manifest.is_file():
            return None
        found = read_corpus(self._manifest, [])
        return None if found is None else with_texts_of(self._corpus, found)


def recorded_cases(reader: Reader, record: Mapping[str, Any]) -> RecordedCases:
    """What makes cases of the records of a run.

    Args:
        reader: the open store.
        record: what the run froze at its start.
    """
    manifest = record.get("manifest")
    if not manifest:
        return RecordedCases()
    payload = json.loads(reader.payloads([manifest["artifact"]])[manifest["artifact"]])
    corpus = Corpus.recall(manifest["file"], manifest["digest"], payload)
    root = None if reader.path is None else root_of(reader.path)
    path = None if root is None else root / manifest["file"]
    return RecordedCases(corpus, manifest["as_of"], manifest["min_chars"], path)
