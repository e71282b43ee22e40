"""What `rag-assets inspect RUN --case ID` shows: one case on its way through the stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_assets.evaluation.candidates import CandidateView
from rag_assets.evaluation.case_view import CaseView, SampleView, StageView
from rag_assets.evaluation.replicates import samples_of
from rag_assets.evaluation.views import JudgmentView
from rag_assets.evaluation.wording import counted, cut, sources_text, value_text
from rag_assets.reports.layout import INDENT, Cell, Line, block, blocks, grid, heading, line, rows

NOTHING = "-"
_LONGEST = 4000
"""Characters of one text that are shown; `--json` shows all."""
_STATE_STYLES = {"OK": "green", "ERROR": "bold red", "TIMEOUT": "bold red"}
_STATES = {
    "empty": "nothing was retrieved",
    "denied": "access to the sources was denied",
    "error": "an error: there is no retrieval",
}
_CASE_PARTS = {
    "input": "Input",
    "expected": "Expected",
    "metadata": "Metadata",
    "user": "User",
    "as_of": "As of",
    "group": "Group",
}


def case_report(view: CaseView, width: int | None) -> list[Line]:
    """Everything that is recorded of a case.

    Args:
        view: the case.
        width: columns of the terminal; None for no limit.
    """
    return blocks(
        [line("Case ", Cell(view.case["id"], "bold"), f" of {view.run_id}")],
        *(
            [heading(name), *_value(view.case[key])]
            for key, name in _CASE_PARTS.items()
            if view.case.get(key) is not None
        ),
        [_of_first(view, "Stages", "generation"), *_stages(view, width)],
        *(
            [heading(f"{stage.stage} failed"), *_failure(stage)]
            for stage in view.stages
            if stage.failure
        ),
        [_of_first(view, "Retrieval", "retrieval"), *_retrieval(view, width)],
        [_of_first(view, "Context", "assembled_context"), *_context(view)],
        *([heading("Conflicting sources"), *_conflicts(view)] for _ in view.conflicts[:1]),
        [
            _of_first(view, "Output", "generation"),
            *(_value(view.output) if view.has_output else _none()),
        ],
        [
            _of_first(view, "Citations", "generation"),
            *(_none() if view.citations is None else _value(view.citations)),
        ],
        *([heading(kind), *_value(artifact)] for kind, artifact in view.artifacts.items()),
        *([heading(f"Sample {one.sample}"), *_sample(one)] for one in view.samples),
        [heading("Judgments"), *_judgments(view, width)],
    )


def _of_first(view: CaseView, name: str, stage: str) -> Line:
    """A heading, which names the sample where further samples have a stage of their own."""
    is_sampled = any(one.stage == stage for sample in view.samples for one in sample.stages)
    return heading(f"{name} of sample 0" if is_sampled else name)


def _sample(view: SampleView) -> list[Line]:
    """A further sample: its output, or why there is none."""
    if view.has_output:
        return _value(view.output)
    failures = [found for stage in view.stages if stage.failure for found in _failure(stage)]
    return failures or _none()


def _none() -> list[Line]:
    return [line(NOTHING, indent=INDENT)]


def _value(value: Any) -> list[Line]:
    """A JSON value over several lines: an object by key, a list by item, text as it is."""
    if isinstance(value, dict) and value:
        parts = [f"{key}: {value_text(item)}" for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [value_text(item) for item in value]
    else:
        parts = [value_text(value)]
    return [found for part in parts for found in block(cut(part, _LONGEST), INDENT)]


def _stages(view: CaseView, width: int | None) -> list[Line]:
    table = [
        [
            Cell(stage.stage),
            Cell(stage.state, _STATE_STYLES.get(stage.state, "yellow")),
            Cell(str(stage.attempts)),
            Cell(NOTHING if stage.latency_ms is None else f"{stage.latency_ms:.1f} ms"),
            Cell(_cache(view, stage)),
        ]
        for stage in view.stages
        if stage.stage != "cases"
    ]
    header = ["stage", "state", "attempts", "time", "cache"]
    used = [
        line(f"{stage.stage} used {value_text(dict(stage.usage))}", indent=INDENT)
        for stage in view.stages
        if stage.usage
    ]
    return [*grid(header, table, width, INDENT), *used]


def _cache(view: CaseView, stage: StageView) -> str:
    """Where the result came from; with further samples, how many came from where."""
    alike = [one for sample in view.samples for one in sample.stages if one.stage == stage.stage]
    found = [one.source for one in (stage, *alike) if one.state == "OK" and one.source]
    return sources_text(found) or NOTHING


def _failure(stage: StageView) -> Iterator[Line]:
    """The error with its traceback, and what the attempts before it raised."""
    failure = stage.failure or {}
    for number, error in enumerate(stage.attempt_errors[:-1], start=1):
        yield from block(f"attempt {number}: {error}", INDENT)
    if failure.get("traceback"):
        yield from block(failure["traceback"], INDENT)
    else:
        yield from block(f"{failure['type']}: {failure['message']}", INDENT)


def _retrieval(view: CaseView, width: int | None) -> list[Line]:
    if not view.candidates:
        return [line(_STATES.get(view.retrieval_state or "", NOTHING), indent=INDENT)]
    header = ["position", "document", "chunk", "score", "relevant", "context"]
    is_restricted = any(one.inadmissible for one in view.candidates)
    if is_restricted:
        header.insert(5, "admissible")
    table = [_candidate(one, with_sources=is_restricted) for one in view.candidates]
    return grid(header, table, width, INDENT)


def _conflicts(view: CaseView) -> list[Line]:
    """The versions of one document that the model had side by side."""
    texts = [
        f"{one.document}: {one.doc_id}"
        f"{f', version {one.version}' if one.version else ''}, authority {one.authority}"
        f"{f', {one.inadmissible}' if one.inadmissible else ''}"
        for one in view.conflicts
    ]
    return [line(text, indent=INDENT) for text in texts]


def _candidate(one: CandidateView, *, with_sources: bool) -> list[Cell]:
    relevant = NOTHING if one.relevant is None else "yes" if one.relevant else "no"
    fate = NOTHING
    if one.fate is not None:
        fate = "in context" if one.fate == "context" else f"dropped: {one.fate}"
        fate += "" if one.tokens is None else f" ({counted(one.tokens, 'token')})"
    return [
        Cell(str(one.position)),
        Cell(one.doc_id),
        Cell(NOTHING if one.chunk_id is None else one.chunk_id),
        Cell(NOTHING if one.score is None else f"{one.score:.6g}"),
        Cell(relevant, "green" if one.relevant else ""),
        *([_admissible(one)] if with_sources else []),
        Cell(fate, "" if one.fate == "context" else "dim"),
    ]


def _admissible(one: CandidateView) -> Cell:
    return Cell(one.inadmissible, "red") if one.inadmissible else Cell("yes")


def _context(view: CaseView) -> list[Line]:
    if view.context is None:
        return _none()
    if not view.context["items"]:
        return [line("empty", indent=INDENT)]
    found: list[Line] = []
    for item in view.context["items"]:
        chunk = f"#{item['chunk_id']}" if item.get("chunk_id") else ""
        found.append(line(Cell(f"{item['doc_id']}{chunk}", "bold"), indent=INDENT))
        found += block(cut(item.get("text") or NOTHING, _LONGEST), 2 * INDENT)
    return found


def _judgments(view: CaseView, width: int | None) -> list[Line]:
    table = [
        [Cell(f"{'':{INDENT}}{one.criterion}"), _outcome(one), Cell(one.reason or "")]
        for one in view.judgments
    ]
    return rows(table, width, below=[_detail(one) for one in view.judgments]) or _none()


def _outcome(judgment: JudgmentView) -> Cell:
    if judgment.value is None:
        return Cell(judgment.status, "yellow" if judgment.status == "missing" else "dim")
    if isinstance(judgment.value, bool):
        return Cell("pass", "green") if judgment.value else Cell("fail", "bold red")
    return Cell(f"{judgment.value:.5f}")


def _sample_text(sample: Mapping[str, Any], kind: str) -> str:
    value = sample["value"]
    if value is None:
        return f"{sample['status']} ({sample['reason']})"
    return f"{value:.5f}" if kind == "score" else "pass" if value else "fail"


def _detail(judgment: JudgmentView) -> list[Line]:
    """The detail of a judgment; an evaluator's traceback line by line."""
    if judgment.detail is None:
        return []
    detail = judgment.detail
    samples = samples_of(detail)
    if samples is not None:
        texts = (
            f"sample {number}: {_sample_text(one, judgment.kind)}"
            for number, one in enumerate(samples)
        )
        return [line(", ".join(texts), indent=2 * INDENT)]
    if isinstance(detail, dict) and isinstance(detail.get("traceback"), str):
        return block(detail["traceback"], 2 * INDENT)
    return block(cut(value_text(detail), _LONGEST), 2 * INDENT)
