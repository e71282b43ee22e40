"""What the labels of several reviewers come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_assets.contracts.human_labels import (
    NO_CLAIMS,
    STRICTEST_FIRST,
    About,
    Disagreement,
    HumanLabel,
)

Said = Mapping[str, str]
"""Reviewer → label, of one unit."""


class DisputedError(Exception):
    """The reviewers disagree, and the declared rule does not settle it."""


def said_of(labels: Iterable[HumanLabel]) -> dict[tuple[About, str], dict[str, str]]:
    """(what, unit) → what each reviewer says of it, sorted."""
    found: dict[tuple[About, str], dict[str, str]] = {}
    for one in sorted(labels, key=lambda one: (one.about, one.unit, one.reviewer)):
        found.setdefault((one.about, one.unit), {})[one.reviewer] = one.label
    return found


def labels_record(said: Mapping[tuple[About, str], Said]) -> list[dict[str, Any]]:
    """What was said of each unit, as JSON."""
    return [{"about": about, "unit": unit, "by": dict(by)} for (about, unit), by in said.items()]


def settled(said: Said, about: About, rule: Disagreement) -> str:
    """The label that several reviewers come to.

    Args:
        said: by at least one reviewer.
        about: what they label.
        rule: `majority` needs more than half of the reviewers; `strictest` takes the least
            favourable label.

    Raises:
        DisputedError: they disagree, and the rule does not settle it.
    """
    (label, count), *others = Counter(said.values()).most_common()
    if not others:
        return label
    if rule == "majority" and 2 * count > len(said):
        return label
    if rule == "strictest":
        return min(said.values(), key=STRICTEST_FIRST[about].index)
    raise DisputedError


def makes_claims(claims: Sequence[Said], whole: Said, rule: Disagreement) -> bool:
    """Whether an answer makes claims, where some reviewers may say that it makes none.

    Args:
        claims: what was said of each claim.
        whole: what was said of the answer as a whole.
        rule: under `strictest` it makes the claims that any reviewer found.

    Raises:
        DisputedError: they disagree, and the rule does not settle it.
    """
    none = {reviewer for reviewer, label in whole.items() if label == NO_CLAIMS}
    some = {reviewer for said in claims for reviewer in said}
    some |= whole.keys() - none
    if not none or not some:
        return bool(some)
    if rule == "strictest":
        return True
    if rule == "majority" and len(none) != len(some):
        return len(some) > len(none)
    raise DisputedError
