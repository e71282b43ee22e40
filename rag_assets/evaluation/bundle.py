"""A bundle: a folder that comes into being as a whole or not at all, and names what it holds."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from rag_assets.contracts.errors import InputError

FORMAT = "bundle/v1"
MANIFEST = "manifest.json"


@contextmanager
def new_bundle(target: Path, subject: str) -> Iterator[Path]:
    """A folder to fill, which takes its place when the block ends without an error.

    Args:
        target: where the bundle shall be, an absolute path; an earlier bundle of the same subject
            is replaced.
        subject: the id of what is exported.

    Raises:
        InputError: the place is taken by something else, or cannot be written.
    """
    if not target.name:
        raise InputError(f"{target} cannot be a bundle; name a folder in it.")
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        _refuse_others(target, subject)
        part.mkdir(parents=True)
        yield part
        _put_in_place(part, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write one JSON document, for people and programs."""
    text = json.dumps(document, indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="ascii")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON document a line, as they come. In ASCII, so that a line is always one line."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, allow_nan=False) + "\n")


def write_manifest(folder: Path, subject: str, facts: Mapping[str, Any]) -> None:
    """Write what the bundle is about, and the size and SHA-256 of each of its files."""
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _digest(folder / name)}
        for name in sorted(_files(folder))
    }
    write_json(folder / MANIFEST, {"format": FORMAT, "id": subject, **facts, "files": files})


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(folder: Path) -> set[str]:
    """The files of a folder and the folders in it, by their path inside it."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in found}


def _refuse_others(target: Path, subject: str) -> None:
    """Refuse a place that holds anything but an earlier bundle of the subject, untouched."""
    if not target.exists():
        return
    what = f"{target} is not an earlier bundle of {subject}"
    advice = "Name another folder with --out, or move it away."
    if not target.is_dir():
        raise InputError(f"{what} but a file. {advice}")
    held = _files(target)
    if not held:
        return
    digests = _digests_in_bundle(target, subject)
    if digests is None:
        raise InputError(f"{what}. {advice}")
    others = sorted(held - digests.keys() - {MANIFEST})
    if others:
        raise InputError(f"{target} holds {others[0]}, which is no part of the bundle. {advice}")
    for name in sorted(held & digests.keys()):
        if _digest(target / name) != digests[name]:
            raise InputError(f"{target / name} is not as it was exported. {advice}")


def _digests_in_bundle(target: Path, subject: str) -> dict[str, str] | None:
    """File → SHA-256, as a bundle of the subject says; None where there is no such bundle."""
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        if (manifest["format"], manifest["id"]) != (FORMAT, subject):
            return None
        return {name: file["sha256"] for name, file in manifest["files"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _put_in_place(part: Path, target: Path) -> None:
    if not target.exists():
        part.rename(target)
        return
    earlier = part.with_suffix(".earlier")
    target.rename(earlier)
    try:
        part.rename(target)
    except OSError:
        earlier.rename(target)
        raise
    shutil.rmtree(earlier)
