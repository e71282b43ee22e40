"""Naming a run: by its id, by a unique prefix of it, or as `latest`, of this project or another."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

from rag_assets.contracts.errors import InputError, nearest
from rag_assets.evaluation.places import config_argument, project_name
from rag_assets.evaluation.wording import counted
from rag_assets.store import ComparisonRow, DiagnosisRow, RunRow
from rag_assets.store.reader import Reader

DIGEST = "sha256:"
_SHOWN = 8
_LATEST = re.compile(r"(?:(.+):)?latest(?:~([0-9]{1,9}))?", re.DOTALL)


def find_run(reader: Reader, reference: str, config_path: Path) -> RunRow:
    """The run that a reference names.

    Args:
        reader: the open store.
        reference: a full id, a unique prefix of one, `latest`, or `latest~N` for the N-th run
            before it. `latest` counts what `runs` lists, in any state. `PROJECT:latest` is about
            another project in the same store; an id may be of any of them.
        config_path: the config file whose project `latest` is about.

    Raises:
        InputError: nothing or more than one run is named; the message lists the nearest ids or
            the candidates.
    """
    latest = _LATEST.fullmatch(reference)
    if latest is not None:
        project = latest[1] or project_name(config_path)
        rows = reader.listed_runs(int(latest[2] or 0) + 1, project=project)
        if not rows:
            raise InputError(_no_run_of(reader, latest[1], project, config_path))
        return _last(rows, reference, int(latest[2] or 0))
    ids = reader.run_ids()
    if not ids:
        raise InputError(no_run(config_path))
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


def no_run(config_path: Path) -> str:
    """What to say of a project without a run."""
    return (
        f"This project has no run yet. Start one with: rag-assets run{config_argument(config_path)}"
    )


def others_text(others: Mapping[str, int], config_path: Path) -> str:
    """A sentence: how many runs of other projects there are, and how to see them.

    Args:
        others: name of a project → number of its runs; not empty.
        config_path: the config file of this project.
    """
    runs, names = counted(sum(others.values()), "run"), ", ".join(others)
    whose = "another project" if len(others) == 1 else "other projects"
    lists = f"rag-assets runs --all{config_argument(config_path)}"
    return f"The store also holds {runs} of {whose} ({names}); to see them: {lists}"


def is_digest(reference: str) -> bool:
    """Whether a reference names a comparison or a diagnosis, and not a run."""
    return reference.startswith(DIGEST)


def find_by_digest(
    reader: Reader, reference: str, config_path: Path
) -> ComparisonRow | DiagnosisRow:
    """The comparison or the diagnosis that a reference names.

    Args:
        reader: the open store.
        reference: a full id, or a unique prefix of one that includes `sha256:`.
        config_path: the project's config file.

    Raises:
        InputError: nothing or more than one of them is named.
    """
    found: list[ComparisonRow | DiagnosisRow] = [
        *reader.comparisons(reference),
        *reader.diagnoses(reference),
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = _listed([one.id for one in found])
        raise InputError(
            f'"{reference}" is the beginning of {len(found)} comparisons and diagnoses: {ids}. '
            "Write more of the one you mean."
        )
    newest = reader.comparisons(DIGEST)[:1]
    hint = (
        f"The newest comparison is {newest[0].id}."
        if newest
        else "There is no comparison yet. Make one with: rag-assets compare latest latest~1"
        f"{config_argument(config_path)}"
    )
    raise InputError(f'There is no comparison or diagnosis "{reference}". {hint}')


def find_comparison(reader: Reader, reference: str, config_path: Path) -> ComparisonRow:
    """The comparison that a reference names; arguments as for `find_by_digest`.

    Raises:
        InputError: nothing, more than one, or a diagnosis is named.
    """
    found = find_by_digest(reader, reference, config_path)
    if isinstance(found, DiagnosisRow):
        raise InputError(f"{found.id} is a diagnosis, which decides nothing. Name a comparison.")
    return found


def _no_run_of(reader: Reader, named: str | None, project: str | None, config_path: Path) -> str:
    """Why `latest` names nothing; `named` is the project where the reference names one."""
    others = reader.other_projects(project)
    if named is not None:
        known = f" There are runs of {', '.join(others)}." if others else ""
        return f'There is no run of a project "{named}".{nearest(named, list(others)) or known}'
    more = [others_text(others, config_path)] if others else []
    return "\n".join([no_run(config_path), *more])


def _last(rows: list[RunRow], reference: str, back: int) -> RunRow:
    """The run so many before the newest one."""
    if len(rows) <= back:
        raise InputError(
            f"There is no {reference}: this project has {counted(len(rows), 'run')}, of which the "
            f"oldest is {rows[-1].id}."
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
