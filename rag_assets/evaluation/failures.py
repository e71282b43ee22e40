"""Which cases of a run failed, errored or stayed unfinished, and what is known of each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rag_assets.evaluation.case_view import found_leaks
from rag_assets.evaluation.recorded_sources import RecordedCases, recorded_cases
from rag_assets.evaluation.views import JudgmentView, RunView
from rag_assets.evaluation.words import CASE_STAGES
from rag_assets.store import CaseStage, SampleStage
from rag_assets.store.reader import Reader

_PASSAGES = ("retrieval", "assembled_context")
_SHOWN = ("cases", "generation", *_PASSAGES)


@dataclass(frozen=True, slots=True)
class Floor:
    """A score below the floor that a rule sets."""

    criterion: str
    value: float
    floor: float
    rule: str


@dataclass(frozen=True, slots=True)
class FailedCase:
    """One case that did not go well.

    Attributes:
        case_id: the case.
        output: its output, any JSON; None where it has none (see `has_output`).
        errors: failures of its stages.
        unfinished: the first stage that was not executed, or None.
        failed: judgments whose verdict is fail, or is in one of several samples.
        below: scores below a rule's floor.
        missing: judgments without a value.
    """

    case_id: str
    has_output: bool = False
    output: Any = None
    errors: tuple[Mapping[str, Any], ...] = ()
    unfinished: str | None = None
    failed: tuple[JudgmentView, ...] = ()
    below: tuple[Floor, ...] = ()
    missing: tuple[JudgmentView, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """One object; `output` is absent where there is none."""
        output = {"output": self.output} if self.has_output else {}
        return {
            "case": self.case_id,
            **output,
            "errors": [dict(error) for error in self.errors],
            "unfinished": self.unfinished,
            "failed": [one.as_json() for one in self.failed],
            "below": [asdict(one) for one in self.below],
            "missing": [one.as_json() for one in self.missing],
        }


def failed_cases(reader: Reader, view: RunView) -> list[FailedCase]:
    """The cases that failed, errored or stayed unfinished, in the order of the run.

    Args:
        reader: the open store.
        view: the run.
    """
    looked_at = _Cases(view)
    for stage in reader.case_stages(view.row.id):
        looked_at.add_stage(stage)
    for further in reader.sample_stages(view.row.id):
        looked_at.add_sample(further)
    for judgment in reader.run_judgments(view.row.id):
        looked_at.add_judgment(view.judgment(judgment))
    found = [case for case in looked_at.cases.values() if case.went_wrong]
    cases = recorded_cases(reader, view.record)
    stages = ("cases", "generation", *(_PASSAGES if cases.has_corpus else ()))
    digests = (case.contents.get(stage) for case in found for stage in stages if case.has_output)
    payloads = reader.payloads([digest for digest in digests if digest is not None])
    return [case.conclude(payloads, cases) for case in found]


@dataclass
class _Case:
    """What is gathered of one case. `contents` maps a stage to the digest of what it produced."""

    case_id: str
    stages: set[str] = field(default_factory=set)
    contents: dict[str, str] = field(default_factory=dict)
    judgments: list[JudgmentView] = field(default_factory=list)
    errors: list[Mapping[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: list[JudgmentView] = field(default_factory=list)
    below: list[Floor] = field(default_factory=list)
    missing: list[JudgmentView] = field(default_factory=list)

    @property
    def unfinished(self) -> str | None:
        """The first stage that was not executed, unless an error before it explains that."""
        if self.errors:
            return None
        return next(
            (stage for stage in CASE_STAGES if stage not in self.stages or stage in self.skipped),
            None,
        )

    @property
    def went_wrong(self) -> bool:
        return bool(self.errors or self.unfinished or self.failed or self.below or self.missing)

    @property
    def has_output(self) -> bool:
        return "generation" in self.contents

    def conclude(self, payloads: Mapping[str, str], cases: RecordedCases) -> FailedCase:
        contents = {
            stage: json.loads(payloads[digest])
            for stage, digest in self.contents.items()
            if digest in payloads
        }
        has_output = self.has_output and "generation" in contents
        return FailedCase(
            case_id=self.case_id,
            has_output=has_output,
            output=self._output(contents, cases) if has_output else None,
            errors=tuple(self.errors),
            unfinished=self.unfinished,
            failed=tuple(self.failed),
            below=tuple(self.below),
            missing=tuple(self.missing),
        )

    def _output(self, contents: Mapping[str, Any], cases: RecordedCases) -> Any:
        """The output as it may be shown."""
        case = cases.case(contents["cases"])
        found = [contents[stage] for stage in _PASSAGES if stage in contents]
        redactor = cases.redactor(case, found)
        return redactor.answer(contents["generation"], found_leaks(self.judgments))


class _Cases:
    """All cases of a run, filled with its records one by one."""

    def __init__(self, view: RunView) -> None:
        self.cases: dict[str, _Case] = {}
        self._floors: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for decision in view.decisions:
            rule = decision.rule
            if rule["kind"] == "min" and decision.measure.kind == "score":
                self._floors[rule["metric"]].append((rule["id"], rule["threshold"]))

    def add_stage(self, row: CaseStage) -> None:
        """Take in what a stage came to."""
        case = self.cases.setdefault(row.case_id, _Case(row.case_id))
        case.stages.add(row.stage)
        if row.source == "error" and row.failure is not None:
            case.errors.append({"stage": row.stage, **json.loads(row.failure)})
        elif row.source == "none":
            case.skipped.append(row.stage)
        if row.stage in _SHOWN and row.digest is not None:
            case.contents[row.stage] = row.digest

    def add_sample(self, row: SampleStage) -> None:
        """Take in an error of a further sample."""
        if row.source == "error" and row.failure is not None:
            case = self.cases.setdefault(row.case_id, _Case(row.case_id))
            case.errors.append(
                {"stage": row.stage, "sample": row.sample, **json.loads(row.failure)}
            )

    def add_judgment(self, judgment: JudgmentView) -> None:
        """Take in an outcome."""
        case = self.cases.setdefault(judgment.case, _Case(judgment.case))
        value = judgment.value
        case.judgments.append(judgment)
        if judgment.status == "missing":
            case.missing.append(judgment)
        elif value is None:
            return  # Excluded: the criterion does not apply.
        elif judgment.kind == "verdict" and value is not True:
            case.failed.append(judgment)
        elif judgment.kind == "score":
            case.below += [
                Floor(judgment.criterion, value, floor, rule)
                for rule, floor in self._floors[judgment.criterion]
                if value < floor
            ]
