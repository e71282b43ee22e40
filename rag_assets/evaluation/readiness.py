"""What a loaded project can be asked: which cases, which parts, what to be warned of."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import Config
from rag_assets.contracts.corpus import Corpus
from rag_assets.contracts.errors import InputError, Problem, nearest
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.contracts.loading import load_object
from rag_assets.contracts.reference_set import reference_warnings
from rag_assets.contracts.text import names, shown
from rag_assets.evaluation.checks import absent_slices
from rag_assets.evaluation.labelling import unmatched_labels
from rag_assets.evaluators import Evaluator
from rag_assets.systems.blackbox import BlackBox
from rag_assets.systems.staged import StagedSystem

_SHOWN = 5


def retry_exceptions(config: Config, problems: list[Problem]) -> tuple[type[BaseException], ...]:
    """Import the exceptions after which a stage is tried again."""
    classes: list[type[BaseException]] = []
    for index, reference in enumerate(config.system.retries.retry_on):
        key = f"system.retries.retry_on.{index}"
        place = (config.path.name, config.lines.get(key, 0), key)
        try:
            loaded = load_object(reference, config.root)
        except InputError as error:
            problems.append(Problem(*place, str(error)))
            continue
        if isinstance(loaded, type) and issubclass(loaded, BaseException):
            classes.append(loaded)
        else:
            problems.append(Problem(*place, f"{reference} is not an exception class."))
    return tuple(classes)


def recorded_parts(system: StagedSystem | BlackBox | None) -> frozenset[str]:
    """The parts that evaluators can read; of a staged system, citations only where a path is."""
    if isinstance(system, BlackBox):
        kinds = {"retrieval": RETRIEVAL, "context": CONTEXT, "citations": CITATIONS}
        return frozenset(part for part, kind in kinds.items() if kind in system.records)
    cites = system is None or system.citations_path is not None
    return frozenset({"retrieval", "context", *(["citations"] if cites else [])})


def warnings_of(
    config: Config,
    system: StagedSystem | BlackBox,
    evaluators: Sequence[Evaluator],
    dataset: Dataset,
    corpus: Corpus | None,
) -> tuple[str, ...]:
    """Sentences for the person who starts a run."""
    found = [
        *absent_slices(config.slices, dataset),
        *reference_warnings(dataset.cases),
        *_likely_slips(config, dataset, corpus),
    ]
    if isinstance(system, StagedSystem) and system.index_version is None:
        found.append(
            "No index_version is declared: retrieval stays cached until the code changes. Set "
            "system.rag.index_version to a string, a file or a callable that changes with the "
            "index."
        )
    for evaluator in evaluators:
        # The first case that is not excluded settles it.
        if all(evaluator.exclusion(case) for case in dataset.cases):
            reasons = sorted({str(evaluator.exclusion(case)) for case in dataset.cases})
            found.append(
                f"{evaluator.criterion} excludes every case ({', '.join(reasons)}): it "
                f"measures nothing. Check the parameters of {evaluator} against the dataset."
            )
    return tuple(found)


def _likely_slips(config: Config, dataset: Dataset, corpus: Corpus | None) -> Iterator[str]:
    """What is valid, and hardly meant so: it would be passed over in silence."""
    keys = {key for case in dataset.cases if isinstance(case.asker, dict) for key in case.asker}
    for key in sorted(keys - {"id", "roles"}):
        if hint := nearest(key, ["roles", "id"]):
            yield f"Users of the dataset have a key {shown(key)}, which nothing reads.{hint}"
    for pattern in unmatched_labels(config):
        yield f"labels: {shown(pattern)} matches no file, so there are no labels from there."
    stated = {fact for one in corpus.documents.values() for fact in one.facts} if corpus else set()
    expected = {fact for case in dataset.cases for fact in case.expectation.facts}
    if stated and (unknown := sorted(expected - stated)):
        yield (
            f"No document of the manifest states {', '.join(map(shown, unknown[:_SHOWN]))}"
            f"{' and others' if len(unknown) > _SHOWN else ''}, which cases expect as facts."
        )


def selection(dataset: Dataset, pattern: str | None, limit: int | None) -> tuple[str, ...] | None:
    """The ids of the cases that a run is restricted to; None for all of them.

    Args:
        dataset: the suite.
        pattern: a glob over case ids.
        limit: the first so many of those that match, ≥ 1.

    Raises:
        InputError: the pattern matches nothing; the nearest ids are listed.
    """
    if pattern is None and limit is None:
        return None
    ids = [case.id for case in dataset.cases]
    chosen = [one for one in ids if pattern is None or names(pattern, one)]
    if not chosen:
        near = difflib.get_close_matches(pattern or "", ids, n=3, cutoff=0.3)
        hint = f" Nearest ids: {', '.join(near)}." if near else ""
        of = (
            "does not match the 1 case"
            if len(ids) == 1
            else f"matches none of the {len(ids)} cases"
        )
        raise InputError(f'--cases "{pattern}" {of}.{hint}')
    return tuple(chosen[:limit])
