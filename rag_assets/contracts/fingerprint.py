"""Digests of the code that a stage function reaches.

A digest is made of the syntax of the function and of every function, class member, constant and
import of the project that it leads to, so that an edit elsewhere leaves it as it was. Installed
packages are not in it. What only shows while the program runs (`getattr` with a computed name,
star imports, `exec`) takes the whole module or class concerned, and the digest says so.

Limits. Docstrings, and annotations of functions without a decorator that may read them, are no
code here, even where a library turns them into a prompt. What another module does to a name after
it was made (`helpers.TABLE.update()` in a function, a plug-in that registers itself there) is
followed only where the reached code mentions it. Code that is loaded from data belongs into
`system.code_paths`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.code.reach import Reach
from rag_assets.contracts.code.source import Project
from rag_assets.contracts.code.start import take_object


@dataclass(frozen=True, slots=True)
class CodeDigest:
    """What the code of a stage is.

    Attributes:
        digest: 64 hex digits.
        covered: sorted "module:qualname" of everything that went in. "module:*" is a whole module,
            "module:<module>" the calls that run when it is imported.
        widened: sorted sentences: what could not be followed, and what was taken instead.
    """

    digest: str
    covered: tuple[str, ...]
    widened: tuple[str, ...]


def code_digest(function: Any, root: Path, *, extra_files: Sequence[Path] = ()) -> CodeDigest:
    """Digest of a function and of everything of the project that it reaches.

    Args:
        function: a function, a method of an object or class, a class, a `functools.partial`, or
            any other callable object.
        root: the project folder. Files below it are the project, except installed ones.
        extra_files: files below `root` that are added by their content.

    Returns:
        The digest. Two processes give the same one for the same files, wherever `root` lies.

    Raises:
        OSError: an extra file cannot be read.
        ValueError: an extra file lies outside `root`.
    """
    root = root.resolve()
    reach = Reach(Project(root))
    start = take_object(function, reach)
    reach.walk()
    units = sorted(
        (name, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        for name, text in reach.units.items()
    )
    links = sorted(reach.resolver.links)
    files = sorted({_file_part(path.resolve(), root) for path in extra_files})
    return CodeDigest(
        digest=digest(["code/v1", start, units, links, files]),
        covered=tuple(sorted(reach.units)),
        widened=reach.sentences(),
    )


def _file_part(path: Path, root: Path) -> tuple[str, str]:
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return path.relative_to(root).as_posix(), content
