"""Lines of text for a terminal or a pipe: spans with styles, and rows that fit a width.

Every text that enters a line is made printable here, so nothing that a system, a passage or an
error message holds can control the terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

GAP = "  "
INDENT = 4
# Characters that turn the direction of text around: they could make a line read as another one.
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str, *, keep: str = "") -> str:
    """The text with control characters, and what acts like them, shown as escapes.

    Args:
        text: anything.
        keep: control characters that may stay, such as a line feed.
    """
    if text.isprintable():
        return text
    return "".join(char if char in keep else _shown(char) for char in text)


def _shown(char: str) -> str:
    if char in _DIRECTION or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
        return char.encode("unicode_escape").decode("ascii")
    return char


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text with a style ("", or as rich names it, like "bold" or "red")."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output.

    Attributes:
        cells: its pieces, printable.
        indent: columns of white space before it, and before the rest of it where it is wrapped.
    """

    cells: tuple[Cell, ...]
    indent: int = 0

    @property
    def plain(self) -> str:
        """The line without styles."""
        return (" " * self.indent + "".join(cell.text for cell in self.cells)).rstrip()


BLANK = Line(())


def heading(text: str) -> Line:
    """A line above a part of a report."""
    return line(Cell(text, "bold"))


def blocks(*parts: Sequence[Line]) -> list[Line]:
    """Parts of a report with a blank line between them; empty ones leave no trace."""
    found: list[Line] = []
    for part in filter(None, parts):
        found += [BLANK, *part] if found else part
    return found


def line(*cells: Cell | str, indent: int = 0) -> Line:
    """A line of pieces; every piece is made printable."""
    return Line(tuple(_cell(cell) for cell in cells), indent)


def block(text: str, indent: int = 0, style: str = "") -> list[Line]:
    """The lines of a longer text, each of them indented."""
    parts = text.replace("\r\n", "\n").split("\n")
    return [line(Cell(part.expandtabs(4), style), indent=indent) for part in parts]


def rows(
    table: Sequence[Sequence[Cell | str]],
    width: int | None,
    *,
    below: Sequence[Sequence[Line]] = (),
    align_piped: bool = True,
) -> list[Line]:
    """Rows that belong together, aligned.

    When they are too wide for the terminal, their last cells move to an indented line below.

    Args:
        table: the rows; they may differ in length.
        width: columns of the terminal; None for a pipe, where nothing is too wide.
        below: further lines for each row.
        align_piped: False sets the cells two spaces apart in a pipe, so that each row can be
            searched for without knowing the others.
    """
    cells = [[_cell(cell) for cell in row] for row in table]
    kept = max(map(len, cells), default=0)
    while width is not None and kept > 1 and _total(cells, kept) > width:
        kept -= 1
    widths = _widths(cells, kept)
    found: list[Line] = []
    for row, more in zip(cells, below or [()] * len(cells), strict=True):
        is_aligned = align_piped or width is not None
        found.append(Line(_aligned(row[:kept], widths) if is_aligned else _spaced(row)))
        found += packed(row[kept:], width, INDENT)
        found += more
    return found


def packed(cells: Sequence[Cell], width: int | None, indent: int = 0) -> list[Line]:
    """Cells two spaces apart, as many on a line as fit."""
    found: list[list[Cell]] = []
    room = 0
    for cell in (_cell(cell) for cell in cells if cell.text):
        needed = len(GAP) + text_width(cell.text)
        if not found or (width is not None and needed > room):
            found.append([])
            room = 0 if width is None else width - indent + len(GAP)
        found[-1].append(cell)
        room -= needed
    return [Line(_spaced(row), indent) for row in found]


def grid(
    header: Sequence[str],
    table: Sequence[Sequence[Cell | str]],
    width: int | None,
    indent: int = 0,
) -> list[Line]:
    """A table with a header, always aligned.

    When it is too wide, its columns are spread over several tables below each other, each of
    which starts with the first column.
    """
    head = [Cell(printable(name), "dim") for name in header]
    cells = [head, *([_cell(cell) for cell in row] for row in table)]
    found: list[Line] = []
    for columns in _bands(cells, None if width is None else width - indent):
        if found:
            found.append(BLANK)
        band = [[row[column] for column in columns] for row in cells]
        widths = _widths(band, len(columns))
        found += [Line(_aligned(row, widths), indent) for row in band]
    return found


def text_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    # What stands before the combining characters is one column wide each.
    if all(char < "\u0300" for char in text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cell(cell: Cell | str) -> Cell:
    if isinstance(cell, str):
        return Cell(printable(cell))
    return Cell(printable(cell.text), cell.style)


def _spaced(row: Iterable[Cell]) -> tuple[Cell, ...]:
    found: list[Cell] = []
    for cell in row:
        if cell.text:
            found += [Cell(GAP), cell] if found else [cell]
    return tuple(found)


def _aligned(row: Sequence[Cell], widths: Sequence[int]) -> tuple[Cell, ...]:
    found: list[Cell] = []
    for cell, width in zip(row, widths, strict=False):
        found += [cell, Cell(" " * (width - text_width(cell.text)) + GAP)]
    return tuple(found[:-1])


def _widths(table: Sequence[Sequence[Cell]], columns: int) -> list[int]:
    return [
        max((text_width(row[column].text) for row in table if column < len(row)), default=0)
        for column in range(columns)
    ]


def _total(table: Sequence[Sequence[Cell]], columns: int) -> int:
    return sum(_widths(table, columns)) + len(GAP) * (columns - 1)


def _bands(table: Sequence[Sequence[Cell]], width: int | None) -> list[list[int]]:
    """Which columns stand in which of the tables below each other."""
    columns = len(table[0])
    if width is None or columns < 2 or _total(table, columns) <= width:
        return [list(range(columns))]
    widths = _widths(table, columns)
    bands: list[list[int]] = []
    room = 0
    for column in range(1, columns):
        needed = len(GAP) + widths[column]
        if not bands or needed > room:
            bands.append([0])
            room = width - widths[0]
        bands[-1].append(column)
        room -= needed
    return bands
