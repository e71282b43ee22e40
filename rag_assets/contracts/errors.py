"""Every exception of rag-assets.

RagAssetsError                exit code 4 unless a subclass says otherwise
├── InputError                2   a file, option or reference is wrong; carries every problem
│   └── ContractError         2   a system or recorder broke its contract while a run was executing
├── StoreError                2   the store cannot be used
│   ├── StoreLockedError      2   another process holds the store longer than `store.lock_timeout_s`
│   └── StoreVersionError     2   the store was written by a newer version
└── ArtifactError             –   an artifact of the user's system is malformed (also a ValueError)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong with the input, as a person should read it.

    Attributes:
        file: the file as the user would name it, or "" where there is none.
        line: 1-based line, or 0 where no line applies.
        key: dotted key inside the file ("system.rag.depth"), or "".
        message: one or more sentences: what is wrong, what is expected, what to do.
    """

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.key, self.message) if part)


class RagAssetsError(Exception):
    """Base of all errors that rag-assets raises on purpose."""

    exit_code = 4


class InputError(RagAssetsError):
    """The input is wrong. All problems of one look are carried together.

    Args:
        problems: one message, or the problems found, in the order of their lines.
        shown: how many are printed in full before "… and <n> more" (None: all of them).
    """

    exit_code = 2

    def __init__(self, problems: str | Iterable[Problem], *, shown: int | None = None) -> None:
        self.problems: tuple[Problem, ...] = (
            (Problem("", 0, "", problems),) if isinstance(problems, str) else tuple(problems)
        )
        self.shown = shown
        super().__init__(self.render())

    def render(self) -> str:
        """The text for stderr: one problem a line."""
        lines = [str(problem) for problem in self.problems]
        if self.shown is not None and len(lines) > self.shown:
            lines[self.shown :] = [f"… and {len(lines) - self.shown} more"]
        return "\n".join(lines)


class ContractError(InputError):
    """A system broke its contract; the run stops with exit code 2."""


class StoreError(RagAssetsError):
    """The store cannot be used."""

    exit_code = 2


class StoreLockedError(StoreError):
    """Another process held the store for longer than the lock time-out."""


class StoreVersionError(StoreError):
    """The store was written by a newer version of rag-assets."""


class ArtifactError(RagAssetsError, ValueError):
    """An artifact is malformed.

    Args:
        field: dotted path of the field inside the artifact ("candidates.2.score").
        message: what is wrong with it and what is expected.
    """

    exit_code = 2

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message
        super().__init__(f"{field}: {message}" if field else message)


class RerankerError(ArtifactError):
    """A reranker returned something else than the candidates in another order.

    Args:
        reranker: its reference.
        message: what is wrong.
    """

    def __init__(self, reranker: str, message: str) -> None:
        super().__init__("", f"the reranker {reranker} {message}")


def nearest(word: str, known: Sequence[str]) -> str:
    """A suffix like ` Did you mean "depth"?`, or "" where nothing is near."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f' Did you mean "{found[0]}"?' if found else ""
