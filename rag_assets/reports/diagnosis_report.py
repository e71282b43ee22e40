"""What `rag-assets diagnose` prints, and `inspect` prints again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_assets.evaluation.diagnosis.diagnosed_case import DiagnosedCase, Execution
from rag_assets.evaluation.diagnosis.record import DiagnosisView
from rag_assets.evaluation.wording import counted, cut, interval_text, plain_number, value_text
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, grid, heading, line
from rag_assets.statistics.display import RATE

HYPOTHESIS = "This is a hypothesis to test, not a cause."
_LABEL_STYLES = {"UNRESOLVED": "yellow"}
_CELLS = {"passed": "pass", "failed": "fail", "error": "error", "no_verdict": "missing"}
_CELL_STYLES = {"passed": "green", "failed": "red", "error": "bold red", "no_verdict": "yellow"}
_OUTPUT_SHOWN = 400
_NOT_STAGED = (
    "the system is not staged, so nothing was re-executed: only a staged system (system.rag) can "
    "be given another context"
)


def diagnosis_report(view: DiagnosisView, config: str = "") -> list[Line]:
    """The lines of a diagnosis.

    Args:
        view: the diagnosis.
        config: what a command needs to find the config file.
    """
    return [*map(_as_line, _lines(view)), *_ids(view, config)]


def case_lines(view: DiagnosisView) -> list[Line]:
    """One line for each diagnosed case."""
    return [line(Cell(one["id"], "bold"), f": {case_text(view, one)}") for one in view.cases]


def case_text(view: DiagnosisView, one: Mapping[str, Any]) -> str:
    """The label of a case with everything that it rests on, in one line."""
    strength = one["strength"] + ("" if view.record["control"] else " (without control)")
    position = "none" if one["best_position"] is None else one["best_position"]
    parts = [
        one["label"],
        one["reason"],
        f"strength {strength}",
        f"best relevant position {position}",
        *one["notes"],
    ]
    return ", ".join(parts)


def selection_lines(selection: Mapping[str, Any], *, is_staged: bool = True) -> Iterator[str]:
    """Which failed cases are diagnosed, and why not the others."""
    number = len(selection["selected"])
    with_gold = " with gold context" if is_staged else ""
    yield f"Selected: {counted(number, 'failed case')}{with_gold} ({_population(selection)})"
    without = selection["without_gold"]
    if without:
        yield (
            f"Excluded: {counted(len(without), 'failed case')}, no_gold_context - declare "
            f"expected.gold_context (doc_id and text) in {selection['dataset']} for: "
            f"{', '.join(without)}"
        )
    yield from _others(selection["not_selected"])


def _others(not_selected: Mapping[str, int]) -> Iterator[str]:
    if not_selected:
        reasons = ", ".join(f"{number} {reason}" for reason, number in not_selected.items())
        yield f"Not selected: {counted(sum(not_selected.values()), 'case')} ({reasons})"


def intervention_table(views: Sequence[DiagnosisView], width: int | None) -> list[Line]:
    """Cases × interventions: what each re-execution came to."""
    head = ["case", "label", "control", *(view.name for view in views)]
    body = [
        [
            Cell(one["id"], "bold"),
            Cell(one["label"], _LABEL_STYLES.get(one["label"], "")),
            _cell(one["control"]),
            *(_cell((view.case(one["id"]) or {}).get("intervention")) for view in views),
        ]
        for one in views[0].cases
    ]
    return grid(head, body, width)


def all_report(views: Sequence[DiagnosisView], width: int | None, config: str = "") -> list[Line]:
    """Gold context in full, what each replay adds to it, and the table of all of them."""
    gold, *replays = views
    added = ([*map(_as_line, _replay_lines(one)), *_ids(one, config)] for one in replays)
    return blocks(diagnosis_report(gold, config), *added, intervention_table(views, width))


def diagnosed_case_report(view: DiagnosisView, case: DiagnosedCase, config: str = "") -> list[Line]:
    """One case of a diagnosis: its label, and what each execution made of it."""
    case_id = case.record["id"]
    return blocks(
        [line("Case ", Cell(case_id, "bold"), f" of {view.id}")],
        [line(case_text(view, case.record))],
        *(_execution(one) for one in case.executions),
        [
            line(f"Next: rag-assets inspect {one.run_id}{config} --case {shlex.quote(case_id)}")
            for one in case.executions[-1:]
        ],
    )


def _execution(one: Execution) -> list[Line]:
    passages = "unknown" if one.passages is None else ", ".join(one.passages) or "empty"
    output = cut(value_text(one.output), _OUTPUT_SHOWN) if one.has_output else "none"
    style = _CELL_STYLES[one.verdict]
    why = f": {one.why}" if one.why else ""
    return [
        line(Cell(one.name, "bold"), f" ({one.run_id})"),
        line(Cell("context  ", "dim"), passages, indent=INDENT),
        line(Cell("output   ", "dim"), output, indent=INDENT),
        line(Cell("verdict  ", "dim"), Cell(one.verdict, style), why, indent=INDENT),
    ]


def _lines(view: DiagnosisView) -> Iterator[str | Line]:
    record, is_staged = view.record, view.record["system"]["kind"] == "rag"
    yield from selection_lines(record["selection"], is_staged=is_staged)
    if not is_staged:
        number = len(view.cases)
        yield f"UNRESOLVED: {number} of {number}, {_NOT_STAGED}."
    else:
        yield from _executed_lines(view)


def _ids(view: DiagnosisView, config: str) -> list[Line]:
    children = _children(view)
    return [
        line("Diagnosis ", Cell(view.id, "bold")),
        *([line(f"Child runs: {children}")] if children else []),
        line(f"Cases: rag-assets inspect {view.id}{config}"),
    ]


def _as_line(text: str | Line) -> Line:
    return line(text) if isinstance(text, str) else text


def _executed_lines(view: DiagnosisView) -> Iterator[str | Line]:
    record, number, gold = view.record, len(view.cases), view.gold
    if record["control"]:
        passed = record["control_passed"]
        yield f"Control: {passed} of {number} passed when re-executed without the intervention"
    else:
        yield "Control: not executed (--no-control), so no label tells a flaky answer apart"
    yield from _replay_lines(view)
    if gold is not None:
        yield (
            f"Labels from gold context (diagnosis {gold['diagnosis']}): "
            f"{gold['recovered']} of {number} recovered"
        )
    yield from _label_lines(view)
    for one in record["implicated"]:
        share = f"in {one['cases']} of the {one['of']}"
        among = "recovered failures" if one["among"] == "recovered" else "selected"
        yield f"Implicated: {one['factor']}, {share} {among}."
        for experiment in one["experiments"]:
            yield f"Candidate experiment: {experiment}. {HYPOTHESIS}"


def _replay_lines(view: DiagnosisView) -> Iterator[str]:
    """How many recovered under the intervention, and what a replay confirms with that."""
    number, gold = len(view.cases), view.gold
    yield f"Recovered under {view.name}: {view.record['recovered']} of {number}"
    if gold is not None:
        errors = [one["id"] for one in view.cases if one["intervention"]["verdict"] == "error"]
        if errors:
            yield (
                f"intervention_error: {counted(len(errors), 'case')} failed to execute under "
                f"{view.name}, counted as not recovered: {', '.join(errors)}"
            )
        yield (
            f"Confirmed under {view.name}: {gold['confirmed']} of {gold['confirmable']} "
            f"{gold['confirms']} cases also recovered"
        )


def _label_lines(view: DiagnosisView) -> Iterator[Line]:
    for label, number in view.counts().items():
        clause = _clause(view, label)
        share = f": {number} of {len(view.cases)}, {clause}"
        yield line(Cell(label, _LABEL_STYLES.get(label, "bold")), share)


def _clause(view: DiagnosisView, label: str) -> str:
    system = view.record["system"]
    cases = [one for one in view.cases if one["label"] == label]
    if label == "RETRIEVAL_MISS":
        return f"recovered; the relevant evidence was not among the {system['depth']} retrieved"
    if label == "RANKED_OUT":
        positions = sorted(one["best_position"] for one in cases)
        listed = ", ".join(str(one) for one in positions)
        return f"recovered; it was retrieved below top_k {system['top_k']} (position {listed})"
    if label == "CONTEXT_ASSEMBLY_LOSS":
        return "recovered; it ranked within top_k and was dropped from the context"
    if label == "GENERATION_FAILURE":
        return "still failed over the gold passages"
    reasons = Counter(one["reason"] for one in cases)
    ordered = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{reason} {number}" for reason, number in ordered)


def _children(view: DiagnosisView) -> str:
    own, gold = view.record["children"], view.gold
    named: list[tuple[str, str | None]] = []
    if gold is not None:
        named += [("gold context", gold["children"]["intervention"])]
        named += [("control", gold["children"]["control"])]
    named += [(view.name, own["intervention"])]
    if gold is None:
        named += [("control", own["control"])]
    elif own["control"] != gold["children"]["control"]:
        named += [("replay control", own["control"])]
    return ", ".join(f"{name} {run}" for name, run in named if run is not None)


def _population(selection: Mapping[str, Any]) -> str:
    interval = selection["failing_interval"]
    if interval is None:
        return "observed; no population claim"
    bounds = interval_text(RATE, interval["lower"], interval["upper"])
    failing, observed = selection["failing"], selection["observed"]
    share = RATE.estimate(failing / observed)
    return f"{failing} of {plain_number(observed)} observed cases failed: {share} {bounds}"


def _cell(replayed: Mapping[str, Any] | None) -> Cell:
    if replayed is None:
        return Cell("-")
    verdict = replayed["verdict"]
    return Cell(_CELLS[verdict], _CELL_STYLES[verdict])


def nothing_failed(criterion: str, not_selected: Mapping[str, int]) -> list[Line]:
    """What is said when there is nothing to diagnose."""
    text = f"No failed case for {criterion}: nothing was executed."
    return [line(text), *map(line, _others(not_selected))]


def plan_lines(selection: Mapping[str, Any], generations: int, *, is_staged: bool) -> list[Line]:
    """What a diagnosis would execute."""
    return [
        *(line(text) for text in selection_lines(selection, is_staged=is_staged)),
        heading(generations_text(generations)),
    ]


def generations_text(generations: int) -> str:
    """How many generations will be executed."""
    return f"{counted(generations, 'generation')} will be executed"
