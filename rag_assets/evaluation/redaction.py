"""What may be shown of a case: nothing that its user may not see.

The store keeps artifacts as they were recorded. Everything that shows them goes through here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rag_assets.contracts.cases import Case
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.contracts.paths import with_strings, with_texts
from rag_assets.evaluation.replicates import samples_of
from rag_assets.evaluators.leaks import Guarded, Leak, LeakIndex

SHORTEST = 8
"""Shorter texts are only masked in an answer: elsewhere they would garble what is said of it."""

GENERATION = "generation/v1"
EXECUTION = "execution/v1"
_PASSAGES = ("candidates", "items", "dropped")
_NAMES = ("relevant", "requires", "behavior", "reason", "facts")
"""What of an expectation names things, and says nothing of what is in them."""
_DIGITS = 16
_ESCAPED = re.compile(r"\\[nrt]")

Span = tuple[int, int]
"""Offset and length of a part of a text."""


def may_hide(case: Case) -> bool:
    """Whether there may be anything about a case that its user may not see."""
    return case.sources is not None or bool(case.expectation.forbidden)


def hidden(text: str) -> str:
    """What stands in the place of a text that may not be seen: its length and digest."""
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"[restricted: {len(text)} characters, sha256 {found[:_DIGITS]}]"


def masked(text: str, spans: Iterable[Span]) -> str:
    """A text with parts of it masked; parts that overlap become one."""
    parts: list[str] = []
    end = 0
    for start, stop in _united(spans):
        parts += [text[end:start], f"[restricted: {stop - start} characters]"]
        end = stop
    return "".join([*parts, text[end:]])


def _united(spans: Iterable[Span]) -> list[Span]:
    """(start, end) of what is covered."""
    found: list[Span] = []
    for offset, length in sorted(spans):
        if found and offset < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], offset + length)
        else:
            found.append((offset, offset + length))
    return found


@dataclass(frozen=True)
class Redactor:
    """Takes out of a case what its user may not see.

    Attributes:
        case: held against the corpus, where the run had one.
        passages: (document, text) of all passages that are recorded of the case.
        min_chars: the least number of characters of a verbatim run.
        corpus: finds what the manifest says in a text; None where its texts are not at hand.
    """

    case: Case
    passages: Sequence[tuple[str, str]] = ()
    min_chars: int = 40
    corpus: Callable[[str], list[Leak]] | None = None

    @property
    def is_needed(self) -> bool:
        """Whether there may be anything to hide."""
        return may_hide(self.case)

    def artifact(self, kind: str, value: Any, leaks: Sequence[Mapping[str, Any]] = ()) -> Any:
        """An artifact as it may be shown.

        Args:
            kind: of the artifact.
            value: as it is stored.
            leaks: what `no_leak` found in an answer.
        """
        if not self.is_needed:
            return value
        if kind == EXECUTION:
            artifacts = value["artifacts"].items()
            return {
                **value,
                "output": self.artifact(GENERATION, value["output"], leaks),
                "artifacts": {name: self.artifact(name, one) for name, one in artifacts},
            }
        if kind == GENERATION:
            return self.answer(value, leaks)
        if kind in (RETRIEVAL, CONTEXT):
            rest = {name: part for name, part in value.items() if name not in _PASSAGES}
            lists = {name: value[name] for name in _PASSAGES if name in value}
            return self.value(rest) | {
                name: [self._passage(one) for one in passages] for name, passages in lists.items()
            }
        return self.value(value) if kind == CITATIONS else self.said(value)

    def answer(self, value: Any, leaks: Sequence[Mapping[str, Any]] = ()) -> Any:
        """An answer as it may be shown, with everything masked that `no_leak` looks for."""
        if not self.is_needed:
            return value
        known: dict[str, list[Span]] = {}
        for leak in leaks:
            known.setdefault(leak["at"], []).append((leak["offset"], leak["length"]))
        forbidden = self.case.expectation.forbidden

        def change(place: str, text: str) -> str:
            found = self._leaks(text, forbidden)
            return masked(text, [*known.get(place, ()), *_spans(found)])

        return with_texts(value, change)

    def value(self, value: Any) -> Any:
        """JSON that names things as it may be shown: longer parts of restricted texts masked."""
        if not self.is_needed:
            return value
        return with_texts(value, lambda _, text: masked(text, _spans(self._long(text))))

    def said(self, value: Any) -> Any:
        """JSON that says things as it may be shown: details, free artifacts, expected answers."""
        if not self.is_needed:
            return value
        return with_strings(self.value(value), self.text)

    def text(self, text: str) -> str:
        """A message with what the case forbids masked, and longer restricted texts and titles."""
        if not self.is_needed:
            return text
        found = [
            one
            for reading in _readings(text)
            for one in self._leaks(reading, self.case.expectation.forbidden)
        ]
        return masked(
            text, _spans(one for one in found if one.doc_id is None or one.length >= SHORTEST)
        )

    def _long(self, text: str) -> list[Leak]:
        if len(text) < SHORTEST:
            return []
        return [one for one in self._leaks(text) if one.what == "text" and one.length >= SHORTEST]

    def case_record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A case as it may be shown; what its input says is its user's own."""
        if not self.is_needed:
            return dict(record)
        metadata = {"metadata": self.value(record["metadata"])} if "metadata" in record else {}
        record = {**record, **metadata}
        expected = record.get("expected")
        if not isinstance(expected, dict):
            return {**record, **({"expected": self.said(expected)} if expected else {})}
        found = {
            name: self.value(part) if name in _NAMES else self.said(part)
            for name, part in expected.items()
        }
        if isinstance(expected.get("gold_context"), list):
            found["gold_context"] = [self._passage(one) for one in expected["gold_context"]]
        if isinstance(expected.get("forbidden"), list):
            found["forbidden"] = [hidden(one) for one in expected["forbidden"]]
        return {**record, "expected": found}

    def _passage(self, passage: Mapping[str, Any]) -> dict[str, Any]:
        """A passage; of one that the user may not see, all that it says is hidden."""
        sources = self.case.sources
        if sources is None or sources.reason(passage["doc_id"]) is None:
            return dict(self.value(passage))
        found = {name: self.value(part) for name, part in passage.items() if name != "text"}
        if "text" in passage:
            found["text"] = passage["text"]
        if found.get("text") is not None:
            found["text"] = hidden(found["text"])
        if "metadata" in found:
            found["metadata"] = with_texts(
                passage["metadata"], lambda place, text: hidden(text) if place else self.value(text)
            )
        return found

    def _leaks(self, text: str, forbidden: Sequence[str] = ()) -> list[Leak]:
        found = self._recorded.find(text, self._is_admissible, forbidden)
        return found if self.corpus is None else [*found, *self.corpus(text)]

    def _is_admissible(self, doc_id: str) -> bool:
        return self.case.sources is None or self.case.sources.reason(doc_id) is None

    @cached_property
    def _recorded(self) -> LeakIndex:
        """Finds what the recorded passages say."""
        if all(self._is_admissible(doc_id) for doc_id, _ in self.passages):
            return LeakIndex(())
        return LeakIndex(
            (Guarded(doc_id, doc_id, None, text) for doc_id, text in self.passages), self.min_chars
        )


def _readings(text: str) -> list[str]:
    """A message, and what it says where it quotes a text with its line breaks written out."""
    written_out = _ESCAPED.sub("  ", text)
    return [text] if written_out == text else [text, written_out]


def passages_of(artifact: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(document, text) of the passages of a retrieval or a context, where they have a text."""
    return [
        (one["doc_id"], one["text"])
        for name in _PASSAGES
        for one in artifact.get(name, ())
        if one.get("text")
    ]


def leaks_of(detail: Any, sample: int | None = 0) -> list[Mapping[str, Any]]:
    """What `no_leak` found, from the detail of a judgment; nothing for other details.

    Args:
        detail: of a judgment, or of one over several samples.
        sample: whose answer it is; None for all of them.
    """
    samples = samples_of(detail)
    if samples is not None and sample is None:
        return [leak for one in samples for leak in leaks_of(one["detail"])]
    if samples is not None and sample is not None:
        detail = samples[sample]["detail"] if sample < len(samples) else None
    found = detail.get("leaks") if isinstance(detail, Mapping) else None
    return found if isinstance(found, list) else []


def _spans(leaks: Iterable[Leak]) -> list[Span]:
    return [(one.offset, one.length) for one in leaks]
