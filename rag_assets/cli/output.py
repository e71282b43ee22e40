"""Writing to the terminal or into a pipe. A pipe that was closed swallows the rest quietly."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from rag_assets.reports.layout import Line, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def width() -> int | None:
    """Columns of the terminal that stdout is; None for a pipe or a file, where nothing wraps."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def show(lines: Iterable[Line]) -> None:
    """Print the answer of a command."""
    if width() is None:
        _write(sys.stdout, "".join(f"{line.plain}\n" for line in lines))
    else:
        _show_on_terminal(lines)


def show_json(document: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Print one JSON document on one line, in ASCII, so that no text in it can do harm.

    Args:
        document: the document.
        stream: where to; None for stdout.
    """
    _write(stream or sys.stdout, json.dumps(document) + "\n")


def note(message: str) -> None:
    """Print something that is not the answer, on stderr."""
    text = printable(message, keep="\n")
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(stderr=True, highlight=False)
        for part in text.split("\n"):
            _show_wrapped(console, Text(part))
    else:
        _write(sys.stderr, f"{text}\n")


def _show_on_terminal(lines: Iterable[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        text = Text.assemble(*((cell.text, cell.style) for cell in line.cells))
        _show_wrapped(console, text, line.indent)


def _show_wrapped(console: Console, text: Text, indent: int = 0) -> None:
    """Print a line over as many as it takes, none of which ends in white space."""
    for part in text.wrap(console, max(1, console.width - indent)) or [text]:
        part.rstrip()
        part.pad_left(indent if part else 0)
        console.print(part, no_wrap=True, overflow="ignore", crop=False)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # Whoever read the other end has seen enough; the command goes on as if it were read.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
