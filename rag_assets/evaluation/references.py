"""Naming a run: by its id, by a unique prefix of it, or as `latest` and `latest~N`."""

from __future__ import annotations

import difflib
import re

from rag_assets.contracts.errors import InputError
from rag_assets.store import ComparisonRow, DiagnosisRow, RunRow
from rag_assets.store.reader import Reader

NO_RUN = "This project has no run yet. Start one with: rag-assets run"
DIGEST = "sha256:"
_SHOWN = 8
_LATEST = re.compile(r"latest(?:~([0-9]{1,9}))?")


def find_run(reader: Reader, reference: str) -> RunRow:
    """The run that a reference names.

    Args:
        reader: the open store.
        reference: a full id, a unique prefix of one, `latest`, or `latest~N` for the N-th run
            before it. `latest` counts what `runs` lists, in any state.

    Raises:
        InputError: nothing or more than one run is named; the message lists the nearest ids or
            the candidates.
    """
    latest = _LATEST.fullmatch(reference)
    if latest is not None:
        return _counted_back(reader, reference, int(latest[1] or 0))
    ids = reader.run_ids()
    if not ids:
        raise InputError(NO_RUN)
    found = [reference] if reference in ids else [one for one in ids if one.startswith(reference)]
    if len(found) > 1:
        raise InputError(
            f'"{reference}" is the beginning of {len(found)} ids: {_listed(found)}. '
            "Write more of the one you mean."
        )
    row = reader.run(found[0]) if found else None
    if row is None:
        raise InputError(f'There is no run "{reference}".{_near(reference, ids)}')
    return row


def is_digest(reference: str) -> bool:
    """Whether a reference names a comparison or a diagnosis, and not a run."""
    return reference.startswith(DIGEST)


def find_comparison(reader: Reader, reference: str) -> ComparisonRow:
    """The comparison that a reference names.

    Args:
        reader: the open store.
        reference: a full id, or a unique prefix of one that includes `sha256:`.

    Raises:
        InputError: nothing or more than one comparison is named.
    """
    found = reader.comparisons(reference)
    if len(found) == 1:
        return found[0]
    if found:
        ids = _listed([one.id for one in found])
        raise InputError(
            f'"{reference}" is the beginning of {len(found)} comparisons: {ids}. '
            "Write more of the one you mean."
        )
    newest = reader.comparisons(DIGEST)[:1]
    hint = (
        f"The newest comparison is {newest[0].id}."
        if newest
        else "This project has no comparison yet. Make one with: rag-assets compare latest latest~1"
    )
    raise InputError(f'There is no comparison or diagnosis "{reference}". {hint}')


def find_diagnosis(reader: Reader, reference: str) -> DiagnosisRow | None:
    """The diagnosis that a reference names; None where no diagnosis begins like it.

    Args:
        reader: the open store.
        reference: a full id, or a unique prefix of one that includes `sha256:`.

    Raises:
        InputError: more than one diagnosis is named.
    """
    found = reader.diagnoses(reference)
    if len(found) > 1:
        raise InputError(
            f'"{reference}" is the beginning of {len(found)} diagnoses: '
            f"{_listed([one.id for one in found])}. Write more of the one you mean."
        )
    return found[0] if found else None


def _counted_back(reader: Reader, reference: str, back: int) -> RunRow:
    rows = reader.listed_runs(back + 1)
    if not rows:
        raise InputError(NO_RUN)
    if len(rows) <= back:
        raise InputError(
            f"There is no {reference}: this project has {len(rows)} "
            f"{'run' if len(rows) == 1 else 'runs'}, of which the oldest is {rows[-1].id}."
        )
    return rows[back]


def _near(reference: str, ids: list[str]) -> str:
    near = difflib.get_close_matches(reference, ids, n=3, cutoff=0.5)
    if near:
        return f" The nearest ids are {', '.join(near)}."
    return f" The newest is {ids[0]}; rag-assets runs lists them."


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more
