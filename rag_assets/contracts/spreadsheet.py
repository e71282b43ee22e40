"""Cells that a spreadsheet must not take for formulas."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NEUTRAL = re.compile(r"'+[=+\-@\t\r]")


def neutralised(cell: str) -> str:
    """A cell that no spreadsheet executes: an apostrophe stands before what begins a formula.

    A cell that looks neutralised already has one more, so that every cell can be restored.
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def restored(cell: str) -> str:
    """The cell that `neutralised` was given; any other cell as it is."""
    return cell[1:] if _NEUTRAL.match(cell) else cell
