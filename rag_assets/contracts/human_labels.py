"""Human labels: what a reviewer says of an answer, of a claim in it, or of an expected fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, Literal, get_args

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.moments import moment

About = Literal["answer", "claim", "fact"]
Disagreement = Literal["exclude", "majority", "strictest"]
DISAGREEMENTS: tuple[Disagreement, ...] = get_args(Disagreement)

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)

PASS, FAIL = "pass", "fail"
SUPPORTED, UNSUPPORTED, CONTRADICTED = "supported", "unsupported", "contradicted"
COVERED, NOT_COVERED = "covered", "not covered"
NO_CLAIMS: Final = "no_claims"
"""The value that says of an answer that it makes no claim."""

STRICTEST_FIRST: Mapping[About, tuple[str, ...]] = {
    "answer": (FAIL, PASS),
    "claim": (CONTRADICTED, UNSUPPORTED, SUPPORTED),
    "fact": (NOT_COVERED, COVERED),
}
"""What a label may say, the least favourable first."""


@dataclass(frozen=True)
class HumanLabel:
    """One label of one reviewer.

    Attributes:
        case_id, criterion: which judgment it is about.
        answer_digest: SHA-256 of the canonical JSON of the answer that was labelled.
        about: the answer as a whole, a claim in it, or a fact that it should state.
        unit: the id of the claim or the fact; "" for the answer as a whole.
        label: a word of `STRICTEST_FIRST`, `no_claims`, or a score as JSON.
        reviewer: who labelled.
        labelled_at: when, as an ISO date or time; "" where that is not said.
        note, claim_text: free texts, or "".
    """

    case_id: str
    criterion: str
    answer_digest: str
    about: About
    unit: str
    label: str
    reviewer: str
    labelled_at: str = ""
    note: str = ""
    claim_text: str = ""

    @cached_property
    def key(self) -> str:
        """Digest of all of it: the same row twice is one label."""
        return digest(asdict(self))

    @property
    def place(self) -> tuple[str, str, str, About, str]:
        """What is labelled: two labels of one place can disagree."""
        return self.case_id, self.criterion, self.answer_digest, self.about, self.unit


@dataclass(frozen=True, slots=True)
class Labelling:
    """What the labels of a criterion look like.

    Attributes:
        about: what of an answer is labelled, the usual first.
        kind: of the criterion; the value of a verdict is `pass` or `fail`.
        value_range: lowest and highest value of a score.
    """

    about: tuple[About, ...] = ("answer",)
    kind: Literal["verdict", "score"] = "verdict"
    value_range: tuple[float, float] = (0.0, 1.0)


def last_words(labels: tuple[HumanLabel, ...]) -> tuple[HumanLabel, ...]:
    """The label of each reviewer for each place that counts: the one of the latest time.

    Of several without a time, or of the same one, the one that comes last counts.
    """
    found: dict[tuple[tuple[str, str, str, About, str], str], HumanLabel] = {}
    for one in labels:
        key = one.place, one.reviewer
        before = found.get(key)
        if before is None or _time(one) >= _time(before):
            found[key] = one
    return tuple(found.values())


def _time(label: HumanLabel) -> datetime:
    return moment(label.labelled_at).first if label.labelled_at else _BEFORE_ALL
