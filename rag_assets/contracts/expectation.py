"""What a case expects of a system besides the answer itself: `expected.behavior` and its kin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rag_assets.contracts.errors import nearest
from rag_assets.contracts.folding import folded
from rag_assets.contracts.labels import Report
from rag_assets.contracts.text import shown

Behavior = Literal["answer", "abstain", "clarify", "report_error"]
AbstentionReason = Literal["source_absent", "access_denied", "source_retired", "ambiguous"]
BEHAVIORS: tuple[Behavior, ...] = get_args(Behavior)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a correct system does.

    Attributes:
        behavior: what it does with the input.
        facts: ids of the facts that a complete answer states.
        forbidden: texts that must not appear in the answer.
        reason: why it abstains, where it does; never shown to the system.
    """

    behavior: Behavior = "answer"
    facts: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    reason: AbstentionReason | None = None


def read_expectation(fields: Mapping[str, Any], report: Report) -> Expectation:
    """What `expected` says of behavior, facts, forbidden texts and the reason to abstain.

    Args:
        fields: `expected` as an object.
        report: is told everything that is wrong, with the dotted key.
    """
    behavior: Behavior = _choice(fields, "behavior", BEHAVIORS, report) or "answer"
    reason = _choice(fields, "reason", get_args(AbstentionReason), report)
    if reason is not None and behavior != "abstain":
        message = (
            f"reason says why a system abstains, and the expected behavior is {behavior}. Write "
            "behavior: abstain, or remove the reason."
        )
        report("expected.reason", message)
    forbidden = _texts(fields, "forbidden", report)
    for index, text in enumerate(forbidden):
        if not folded(text):
            message = (
                f"The forbidden text {shown(text)} holds nothing that could be found: nothing is "
                "left of it when white space is folded. Remove it."
            )
            report(f"expected.forbidden.{index}", message)
    facts = _texts(fields, "facts", report)
    for index, fact in enumerate(facts):
        if not fact or fact in facts[:index]:
            what = f"{shown(fact)} stands here twice" if fact else "The id of a fact is empty"
            report(f"expected.facts.{index}", f"{what}; remove it.")
    return Expectation(behavior, facts, forbidden, reason)


def _choice(fields: Mapping[str, Any], name: str, known: tuple[Any, ...], report: Report) -> Any:
    value = fields.get(name)
    if value is None or (isinstance(value, str) and value in known):
        return value
    hint = nearest(value, known) if isinstance(value, str) else ""
    message = f"{name} must be one of {', '.join(known)}, got {shown(value)}.{hint}"
    report(f"expected.{name}", message)
    return None


def _texts(fields: Mapping[str, Any], name: str, report: Report) -> tuple[str, ...]:
    value = fields.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        report(f"expected.{name}", f"{name} must be a list of texts, got {shown(value)}.")
        return ()
    return tuple(value)
