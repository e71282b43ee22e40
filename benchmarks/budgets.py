"""A budget beside what was measured, and the sections that hold both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Budget:
    """What a work may take, and what it took.

    Attributes:
        work: what was done.
        allowed: the budget, for people.
        measured: what was measured, for people.
        is_met: whether it keeps to the budget.
    """

    work: str
    allowed: str
    measured: str
    is_met: bool

    @classmethod
    def at_most(cls, work: str, limit: float, measured: float, unit: str, more: str = "") -> Self:
        """A number that may not be above a limit.

        Args:
            work: what was done.
            limit: the highest number allowed.
            measured: the number.
            unit: of both, as it stands behind a number.
            more: what else there is to say about the measured number.
        """
        shown = f"{measured:.3g} {unit}{more}"
        return cls(work, f"≤ {limit:g} {unit}", shown, measured <= limit)


@dataclass(frozen=True)
class Section:
    """A part of the report: Markdown, and the budgets that it decides on."""

    name: str
    lines: Sequence[str]
    budgets: Sequence[Budget] = ()

    def markdown(self) -> str:
        """The lines, and a table of the budgets below them."""
        parts = ["\n".join(self.lines)] if self.lines else []
        if self.budgets:
            rows = [
                (one.work, one.allowed, one.measured, "PASS" if one.is_met else "**MISS**")
                for one in self.budgets
            ]
            parts.append("\n".join(table(("work", "budget", "measured", ""), rows)))
        return "\n\n".join(parts)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
