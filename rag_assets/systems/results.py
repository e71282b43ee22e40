"""Reading recorded results: from the rows of a table to what each of them says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from rag_assets.contracts.canonical import NotJsonError, digest
from rag_assets.contracts.errors import ArtifactError, Problem, nearest
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL, stored_artifact
from rag_assets.contracts.paths import NOTHING, value_at
from rag_assets.contracts.recorded_config import RecordedSettings
from rag_assets.contracts.table import FORMATS, Row, read_table
from rag_assets.contracts.text import read_bytes, shown
from rag_assets.systems.reporting import Report

State = Literal["valid", "empty", "denied", "error", "timeout"]
STATES: tuple[str, ...] = get_args(State)
FAILED = ("error", "timeout")
_HINTS = 20
KINDS = {"doc_ids": RETRIEVAL, "context_ids": CONTEXT, "citations": CITATIONS}
"""Part of a row → kind of the artifact that is made of it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a row says of its case.

    Attributes:
        line: 1-based line of the row.
        digest: of the whole row.
        state: None where nothing is said of the retrieval.
        output: the answer and whether it abstained, under these names, where the file has them.
        artifacts: kind → artifact, where the row has them.
        error: why there is no result, "" where nothing is said.
    """

    line: int
    digest: str
    state: State | None
    output: Mapping[str, Any]
    artifacts: Mapping[str, Any]
    error: str


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a file.

    Attributes:
        rows: case id → result.
        columns: part → the column or dotted path that holds it, for the parts that the file has.
        content: SHA-256 of the file.
    """

    rows: Mapping[str, Result]
    columns: Mapping[str, str]
    content: str

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of artifacts that at least one row has."""
        return frozenset(kind for row in self.rows.values() for kind in row.artifacts)


def read_results(
    root: Path,
    settings: RecordedSettings,
    case_ids: Sequence[str] | None,
    report: Report,
    problems: list[Problem],
) -> Results | None:
    """Read the results that a config names.

    Args:
        root: the folder of the config.
        settings: the file, and where in a row things stand.
        case_ids: the cases that rows may belong to; None where they are not known.
        report: takes problems of the config.
        problems: problems of the file are appended here, with file and line.

    Returns:
        The results, or None when there is no table to read; see `problems` as well.
    """
    file = settings.path
    kind = FORMATS.get(Path(file).suffix.lower())
    if kind is None:
        report("recorded.path", f"must end in {', '.join(FORMATS)}, got {shown(file)}.")
        return None
    data = read_bytes(root / file, file, problems)
    if data is None:
        return None
    before = len(problems)
    rows = read_table(data, kind, file, problems)
    if len(problems) > before:
        return None
    columns = _columns(settings, rows, kind == "jsonl", report)
    if columns is None:
        return None
    reader = _Reader(file, columns, kind == "jsonl", case_ids, problems)
    return Results(reader.read(rows), columns, hashlib.sha256(data).hexdigest())


def _columns(
    settings: RecordedSettings, rows: Sequence[Row], is_json: bool, report: Report
) -> dict[str, str] | None:
    """The parts that the file has; what the config names must be there."""
    named = settings.map.model_fields_set
    found: dict[str, str] = {}
    ok = True
    for part in type(settings.map).model_fields:
        place = getattr(settings.map, part)
        if any(_at(row, place, is_json) is not NOTHING for row in rows):
            found[part] = place
        elif part in named or part == "case_id":
            what = "has a value at" if is_json else "has the column"
            key = f"recorded.map.{part}" if part in named else "recorded.path"
            report(key, f"No row of {settings.path} {what} {shown(place)}. {_HINT}")
            ok = False
    return found if ok else None


_HINT = "Name the place of each part in system.recorded.map."


def _at(row: Row, place: str, is_json: bool) -> Any:
    return value_at(row.values, place) if is_json else row.values.get(place, NOTHING)


class _RowError(ValueError):
    """What is wrong with one part of a row."""


class _Reader:
    """Turns rows into results, and notes what is wrong with them."""

    def __init__(
        self,
        file: str,
        columns: Mapping[str, str],
        is_json: bool,
        case_ids: Sequence[str] | None,
        problems: list[Problem],
    ) -> None:
        self._file = file
        self._columns = columns
        self._is_json = is_json
        self._case_ids = None if case_ids is None else dict.fromkeys(case_ids)
        self._problems = problems

    def read(self, rows: Iterable[Row]) -> dict[str, Result]:
        results: dict[str, Result] = {}
        for row in rows:
            case_id = self._case_id(row)
            if case_id is None:
                continue
            first = results.get(case_id)
            if first is not None:
                message = (
                    f"The case {shown(case_id)} of line {row.line} is that of line {first.line} "
                    "as well; keep one row for each case."
                )
                self._report(row, "case_id", message)
                continue
            result = self._result(row)
            if result is not None:
                results[case_id] = result
        return results

    def _report(self, row: Row, part: str, message: str) -> None:
        self._problems.append(Problem(self._file, row.line, self._columns[part], message))

    def _get(self, row: Row, part: str) -> Any:
        """The value of a part; `NOTHING` where the row has none, and for null in JSON Lines."""
        place = self._columns.get(part)
        found = NOTHING if place is None else _at(row, place, self._is_json)
        return NOTHING if found is None and part != "answer" else found

    def _case_id(self, row: Row) -> str | None:
        value = self._get(row, "case_id")
        if not isinstance(value, str) or not value:
            got = "nothing" if value is NOTHING else shown(value)
            self._report(row, "case_id", f"The id of a case must be a non-empty text, got {got}.")
            return None
        if self._case_ids is not None and value not in self._case_ids:
            # Looking for the nearest id takes long, and only the first problems are shown.
            few = len(self._problems) < _HINTS
            hint = nearest(value, list(self._case_ids)) if few else ""
            self._report(row, "case_id", f"The dataset has no case {shown(value)}.{hint}")
            return None
        return value

    def _result(self, row: Row) -> Result | None:
        before = len(self._problems)
        try:
            row_digest = digest(row.values)
        except NotJsonError as error:
            self._problems.append(
                Problem(self._file, row.line, error.path, f"The value {error.message}.")
            )
            return None
        why = self._part(row, "error", _text) or ""
        state = self._part(row, "state", _state)
        if state is None and why:
            state = "error"
        if state in FAILED:
            return Result(row.line, row_digest, state, {}, {}, why)
        output = {}
        answer = self._get(row, "answer")
        if answer is not NOTHING:
            output["answer"] = answer
        abstained = self._part(row, "abstained", _flag)
        if abstained is not None:
            output["abstained"] = abstained
        artifacts = self._artifacts(row, state)
        if len(self._problems) > before:
            return None
        return Result(row.line, row_digest, state, output, artifacts, why)

    def _part(self, row: Row, part: str, read: Callable[[Any], Any]) -> Any:
        """A part as it is meant; None where the row has none."""
        value = self._get(row, part)
        if value is NOTHING:
            return None
        try:
            return read(value)
        except _RowError as error:
            self._report(row, part, f"{part} {error}.")
        return None

    def _artifacts(self, row: Row, state: State | None) -> dict[str, Any]:
        parts = {part: self._part(row, part, _READ[kind]) for part, kind in KINDS.items()}
        if state in ("empty", "denied") and parts["doc_ids"] is None:
            parts["doc_ids"] = []
        retrieved = parts["doc_ids"]
        if retrieved is not None and state is not None and bool(retrieved) != (state == "valid"):
            wanted = "at least one id" if state == "valid" else "no id"
            got = shown([one.get("doc_id") for one in retrieved])
            message = f"A row whose state is {state} has {wanted} here, got {got}."
            self._report(row, "doc_ids", message)
        made: dict[str, Any] = {}
        for part, kind in KINDS.items():
            found = parts[part]
            if found is None:
                continue
            try:
                made[kind] = stored_artifact(kind, _artifact(kind, found))
            except ArtifactError as error:
                self._report(row, part, f"{_told(error.field)} {error.message}.")
        return made


def _artifact(kind: str, found: list[Any]) -> dict[str, Any]:
    if kind == RETRIEVAL:
        # To which depth the other system searched is not known.
        return {"query": None, "candidates": found}
    return {"items": found} if kind == CONTEXT else {"ids": found}


def _told(field: str) -> str:
    """What a field of an artifact, such as `candidates.2.score`, is for the author of the row."""
    _, place, *inside = field.split(".")
    if inside in ([], ["doc_id"]):
        return "An id"
    return f"In passage {int(place) + 1}, {'.'.join(inside)}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _RowError(f"must be a text, got {shown(value)}")
    return value


def _state(value: Any) -> State | None:
    text = _text(value)
    if text and text not in STATES:
        raise _RowError(f"must be one of {', '.join(STATES)}, got {shown(value)}")
    return text or None  # type: ignore[return-value]


def _flag(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "": None}
    if not isinstance(value, str) or value.lower() not in words:
        raise _RowError(f"must be true or false, got {shown(value)}")
    return words[value.lower()]


def _ids(value: Any) -> list[str]:
    """A list of ids, or text with `|` between them; an empty text holds none."""
    if isinstance(value, str):
        return [one.strip() for one in value.split("|")] if value.strip() else []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _RowError(f'must be a list of ids, or text like "a|b", got {shown(value)}')
    return value


def _passages(value: Any) -> list[dict[str, Any]]:
    """The same, where an id in a list may also be an object: a passage with its `doc_id`."""
    if isinstance(value, list) and all(isinstance(one, (str, dict)) for one in value):
        return [one if isinstance(one, dict) else {"doc_id": one} for one in value]
    try:
        return [{"doc_id": one} for one in _ids(value)]
    except _RowError:
        wanted = 'a list of ids or of objects with a doc_id, or text like "a|b"'
        raise _RowError(f"must be {wanted}, got {shown(value)}") from None


_READ: Mapping[str, Callable[[Any], Any]] = {
    RETRIEVAL: _passages,
    CONTEXT: _passages,
    CITATIONS: _ids,
}
