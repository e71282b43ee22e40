"""Texts that stand in an answer although its reader may not see them.

What is looked for is found by its first characters, or by the hash of every window of `min_chars`
characters, and never by going through the documents: the time for an answer depends on its length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rag_assets.contracts.folding import folded, folded_places
from rag_assets.evaluators.windows import Windows, codes_of, window_hashes

MIN_CHARS = 40
What = Literal["text", "title", "forbidden"]
IsAdmissible = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Leak:
    """A part of a text that its reader may not see.

    Attributes:
        what: whether it stands in a document, is its title, or is forbidden by the case.
        doc_id: the document; None for what the case forbids.
        offset: where it begins, in characters of the text.
        length: how many characters it takes.
    """

    what: What
    doc_id: str | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Guarded:
    """A document whose title and text may have to be kept from somebody.

    Attributes:
        doc_id: its id.
        group: documents of one group are admissible together or not at all.
        title, text: None where there is none.
    """

    doc_id: str
    group: Hashable
    title: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found in a folded text, from `start` up to `end`."""

    what: What
    doc_id: str | None
    start: int
    end: int


class LeakIndex:
    """Finds what of some documents stands in a text.

    Restricted is a document's title (as words of its own), its whole text where that is shorter
    than `min_chars`, and otherwise every run of `min_chars` of its characters, after folding; but
    nothing that an admissible document holds as well.

    Args:
        documents: all documents: also those that everybody may see.
        min_chars: the least number of characters of a run, ≥ 1.
    """

    def __init__(self, documents: Iterable[Guarded], min_chars: int = MIN_CHARS) -> None:
        self._min_chars = min_chars
        self._documents = [
            (one, folded(one.title or ""), folded(one.text or "")) for one in documents
        ]
        self._containing: dict[str, list[str]] = {}

    def find(
        self, text: str, is_admissible: IsAdmissible, forbidden: Sequence[str] = ()
    ) -> list[Leak]:
        """What a text holds that its reader may not see, by where it begins.

        Args:
            text: the text as it was written.
            is_admissible: whether the reader may see a document.
            forbidden: texts that it must not hold whatever the documents say.
        """
        content = folded(text)
        found = [
            *_occurrences(content, forbidden),
            *self._phrases_in(content, is_admissible),
            *self._runs_in(content, is_admissible),
        ]
        if not found:
            return []
        _, places = folded_places(text)
        leaks = {
            Leak(one.what, one.doc_id, places[one.start][0], _length(places, one)): None
            for one in found
        }
        return sorted(leaks, key=lambda leak: (leak.offset, -leak.length, leak.what))

    def _phrases_in(self, content: str, is_admissible: IsAdmissible) -> Iterator[_Found]:
        """Titles and short texts."""
        for start in range(len(content)):
            for size in self._prefix_sizes:
                for phrase, owners in self._phrases.get(content[start : start + size], ()):
                    if not content.startswith(phrase, start):
                        continue
                    is_title = all(what == "title" for what, _ in owners)
                    if is_title and not _stands_alone(content, start, start + len(phrase)):
                        continue
                    # Looking for all holders takes long, and an owner may do.
                    if any(is_admissible(doc_id) for _, doc_id in owners):
                        continue
                    if not any(map(is_admissible, self._holders_of(phrase))):
                        yield _Found(*owners[0], start, start + len(phrase))

    @cached_property
    def _phrases(self) -> dict[str, list[tuple[str, list[tuple[What, str]]]]]:
        """The first characters of a phrase → (phrase, what of which document it is)."""
        owners: defaultdict[str, list[tuple[What, str]]] = defaultdict(list)
        for one, title, text in self._documents:
            if title:
                owners[title].append(("title", one.doc_id))
            if text and len(text) < self._min_chars:
                owners[text].append(("text", one.doc_id))
        found: defaultdict[str, list[tuple[str, list[tuple[What, str]]]]] = defaultdict(list)
        for phrase, of in owners.items():
            found[phrase[: _prefix_size(phrase)]].append((phrase, of))
        return dict(found)

    @cached_property
    def _prefix_sizes(self) -> tuple[int, ...]:
        return tuple(sorted({len(prefix) for prefix in self._phrases}))

    def _holders_of(self, phrase: str) -> list[str]:
        """A document of each group in whose text or title a phrase stands."""
        if phrase not in self._containing:
            groups: dict[Hashable, str] = {}
            for one, title, text in self._documents:
                if one.group not in groups and (phrase in text or phrase in title):
                    groups[one.group] = one.doc_id
            self._containing[phrase] = list(groups.values())
        return self._containing[phrase]

    def _runs_in(self, content: str, is_admissible: IsAdmissible) -> Iterator[_Found]:
        """Runs of long texts: windows that follow each other are one run."""
        run: _Found | None = None
        for start, doc_id in self._windows_in(content, is_admissible):
            end = start + self._min_chars
            if run is not None and start < run.end:
                run = _Found("text", run.doc_id, run.start, end)
                continue
            if run is not None:
                yield run
            run = _Found("text", doc_id, start, end)
        if run is not None:
            yield run

    def _windows_in(self, content: str, is_admissible: IsAdmissible) -> Iterator[tuple[int, str]]:
        """(start, document) of the windows of a text that only restricted documents hold."""
        size = self._min_chars
        if len(content) < size or not len(self._windows.hashes):
            return
        import numpy as np

        hashes = window_hashes(codes_of(content), size)
        first = np.searchsorted(self._windows.hashes, hashes, "left")
        behind = np.searchsorted(self._windows.hashes, hashes, "right")
        for start in np.flatnonzero(first < behind).tolist():
            window = content[start : start + size]
            holders = self._holders_at(window, int(first[start]), int(behind[start]))
            restricted = None
            for doc_id in holders:
                if is_admissible(doc_id):
                    break
                restricted = restricted or doc_id
            else:
                if restricted is not None:
                    yield start, restricted

    def _holders_at(self, window: str, first: int, behind: int) -> Iterator[str]:
        """A document of each group that really holds a window with one of these entries."""
        for entry in range(first, behind):
            place = int(self._windows.places[entry])
            number, offset = self._windows.document_at(place)
            one, _, text = self._documents[number]
            if text.startswith(window, offset):
                yield one.doc_id

    @cached_property
    def _windows(self) -> Windows:
        return Windows.of(
            [text for _, _, text in self._documents],
            [one.group for one, _, _ in self._documents],
            self._min_chars,
        )


def _stands_alone(content: str, start: int, end: int) -> bool:
    """Whether a part of a text is not within a longer word."""
    return not (
        _are_one_word(content[:start][-1:], content[start])
        or _are_one_word(content[end - 1], content[end : end + 1])
    )


def _are_one_word(before: str, after: str) -> bool:
    # Scripts without spaces between words begin there.
    return all(one.isalnum() and ord(one) < 0x2E80 for one in (before or " ", after or " "))


def _prefix_size(phrase: str) -> int:
    """The largest power of two that is no more than the length: few sizes have to be tried."""
    return 1 << (min(len(phrase), MIN_CHARS).bit_length() - 1)


def _occurrences(content: str, forbidden: Sequence[str]) -> Iterator[_Found]:
    for text in forbidden:
        wanted = folded(text)
        start = content.find(wanted)
        while start >= 0:
            yield _Found("forbidden", None, start, start + len(wanted))
            start = content.find(wanted, start + 1)


def _length(places: Sequence[tuple[int, int]], one: _Found) -> int:
    return places[one.end - 1][1] - places[one.start][0]
