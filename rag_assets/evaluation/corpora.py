"""The corpus of a project: read, and held against the cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import ConfigDraft
from rag_assets.contracts.corpus import Corpus, read_corpus
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.reference_set import ReferenceSets, reference_problems, user_problems
from rag_assets.evaluation.checks import relative


def today() -> date:
    """The date in UTC: that of a run, and of the cases that name none."""
    return datetime.now(UTC).date()


def load_corpus(draft: ConfigDraft, problems: list[Problem]) -> Corpus | None:
    """Read the manifest that a config declares; None where it declares none, or it is broken."""
    if draft.corpus is None:
        return None
    return read_corpus(draft.corpus, problems, name=relative(draft.corpus, draft.path.parent))


def with_reference_sets(dataset: Dataset, corpus: Corpus | None, as_of: date) -> Dataset:
    """The dataset with the reference sets of its cases; itself without a corpus.

    Args:
        dataset: its users are known to be well-formed.
        corpus: the manifest.
        as_of: the date of the cases that name none.
    """
    if corpus is None:
        return dataset
    sets = ReferenceSets(corpus, as_of)
    return replace(dataset, cases=tuple(map(sets.of, dataset.cases)))


def checked_reference_sets(
    dataset: Dataset, corpus: Corpus, as_of: date, file: str, problems: list[Problem]
) -> Dataset:
    """The dataset with its reference sets; labels that contradict an expectation are problems.

    Args:
        dataset, corpus, as_of: as for `with_reference_sets`; nothing is known of the users yet.
        file: the dataset as messages name it.
        problems: the list to append to.
    """
    wrong = list(user_problems(dataset.cases, file))
    problems += wrong
    if wrong:
        return dataset
    found = with_reference_sets(dataset, corpus, as_of)
    problems += reference_problems(found.cases, file)
    return found
