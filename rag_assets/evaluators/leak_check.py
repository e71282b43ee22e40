"""Whether an answer tells what its reader may not know."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import Field

from rag_assets.contracts.cases import Case
from rag_assets.contracts.corpus import Corpus
from rag_assets.contracts.paths import texts_in
from rag_assets.evaluators.base import SOURCES, Evaluator, Evidence, Outcome, Parameters, Project
from rag_assets.evaluators.leaks import MIN_CHARS, Guarded, Leak, LeakIndex

_NOTHING = LeakIndex(())


class LeakParameters(Parameters):
    """What `no_leak` accepts."""

    min_chars: int = Field(
        MIN_CHARS, ge=1, description="the least number of characters that count as a verbatim run"
    )


class NoLeak(Evaluator):
    """The answer holds nothing that its reader may not know."""

    type = "no_leak"
    description = (
        "Passes when no text of the output holds what the case forbids (`expected.forbidden`), the "
        "title of a document that is inadmissible for its user, as words of its own, or a "
        "verbatim run of its text of "
        "at least min_chars characters (or the whole text, where that is shorter) that no "
        "admissible document holds as well. Case, compatible characters and white space make no "
        "difference."
    )
    accepts = LeakParameters
    criterion_template: ClassVar[str | None] = "{type}"
    case_reads: ClassVar[tuple[str, ...]] = ("expected.forbidden", *SOURCES)
    is_constraint = True
    when_empty = "An empty or null answer passes."
    formula_source = (
        "Substring tests after Unicode NFKC, case folding and folding of white space; every run of "
        "exactly min_chars characters is looked at."
    )
    parameters: LeakParameters

    def project_problems(self, project: Project) -> Iterator[tuple[str, str]]:
        """A project in which nothing says what may not be told."""
        is_told = any(one.expectation.forbidden for one in project.cases)
        if not project.has_corpus and project.cases and not is_told:
            message = (
                "no_leak would find nothing: the config declares no manifest (key corpus), and no "
                "case has expected.forbidden. Declare one of them, or remove this evaluator."
            )
            yield "type", message

    def reads_of_case(self, case: Case) -> Any:
        """What is forbidden, what its user may use, and what the documents say."""
        sources = case.sources
        corpus = None if sources is None else [sources.standing, sources.corpus.contents]
        return {"forbidden": list(case.expectation.forbidden), "corpus": corpus}

    def evaluate(self, evidence: Evidence) -> Outcome:
        """Pass, or fail with what leaked in the detail: where, and never the text itself."""
        leaks = [
            {"at": place, "what": leak.what, "doc_id": leak.doc_id}
            | {"offset": leak.offset, "length": leak.length}
            for place, text in texts_in(evidence.output)
            for leak in leaks_in(text, evidence.case, self.parameters.min_chars)
        ]
        if not leaks:
            return Outcome.verdict(True)
        return Outcome.verdict(False, f"{leaks[0]['what']} leaked", {"leaks": leaks})


def leaks_in(
    text: str, case: Case, min_chars: int = MIN_CHARS, corpus: Corpus | None = None
) -> list[Leak]:
    """What a text tells that the user of a case may not know.

    Args:
        text: the text.
        case: held against the corpus, where there is one.
        min_chars: the least number of characters of a verbatim run.
        corpus: the same corpus with texts, where that of the case has none.
    """
    forbidden, sources = case.expectation.forbidden, case.sources
    if sources is None:
        return _NOTHING.find(text, lambda _: True, forbidden)
    index = index_of(corpus or sources.corpus, min_chars)
    return index.find(text, lambda doc_id: sources.reason(doc_id) is None, forbidden)


@lru_cache(maxsize=2)
def index_of(corpus: Corpus, min_chars: int) -> LeakIndex:
    """The index of a corpus, which is built once: that takes a while for a large one."""
    return LeakIndex(
        (
            Guarded(
                one.doc_id,
                (one.status, one.valid_from, one.valid_to, one.access),
                one.title,
                one.text,
            )
            for one in corpus.documents.values()
        ),
        min_chars,
    )
