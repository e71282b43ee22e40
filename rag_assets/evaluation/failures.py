"""Which cases of a run failed, errored or stayed unfinished, and what is known of each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rag_assets.evaluation.case_view import found_leaks
from rag_assets.evaluation.recorded_sources import RecordedCases, recorded_cases
from rag_assets.evaluation.replicates import samples_of
from rag_assets.evaluation.views import JudgmentView, RunView
from rag_assets.evaluation.words import (
    CASE_STAGES,
    PASSAGE_STAGES,
    UNLABELLED,
    WHOLE_STAGES,
    Stage,
)
from rag_assets.store import CaseStage, SampleStage
from rag_assets.store.reader import Reader


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
        output: its output, any JSON; None where it has none (see `has_output`). Of several samples
            it is that of the first.
        samples: (number, output) of the samples that failed, where the case has several.
        errors: failures of its stages.
        unfinished: the first stage that was not executed, or None.
        failed: judgments whose verdict is fail, or is in one of several samples.
        below: scores below a rule's floor.
        missing: judgments without a value.
    """

    case_id: str
    has_output: bool = False
    output: Any = None
    samples: tuple[tuple[int, Any], ...] = ()
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
            "samples": [{"sample": number, "output": made} for number, made in self.samples],
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
    stages = ("cases", *(PASSAGE_STAGES if cases.has_corpus else ()))
    payloads = reader.payloads([one for case in found for one in case.digests(stages)])
    return [case.conclude(payloads, cases) for case in found]


@dataclass
class _Case:
    """What is gathered of one case.

    Attributes:
        expected: the stages that a case of the run goes through.
        outputs: sample → digest of its output; None where it has none.
        contents: stage → digests of what it produced, of what tells what may be shown.
        judgments: all outcomes.
        failing: the numbers of the samples in which a judgment failed or is missing.
    """

    case_id: str
    expected: tuple[Stage, ...]
    stages: set[str] = field(default_factory=set)
    outputs: dict[int, str | None] = field(default_factory=dict)
    failing: set[int] = field(default_factory=set)
    contents: dict[str, list[str]] = field(default_factory=dict)
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
            (stage for stage in self.expected if stage not in self.stages or stage in self.skipped),
            None,
        )

    @property
    def went_wrong(self) -> bool:
        """Whether anything did: what only waits for a reviewer did not."""
        missing = any(one.reason not in UNLABELLED for one in self.missing)
        return bool(self.errors or self.unfinished or self.failed or self.below or missing)

    @property
    def shown(self) -> dict[int, str]:
        """Sample → digest, for the outputs that are shown: the first, and those that failed."""
        return {
            sample: digest
            for sample, digest in sorted(self.outputs.items())
            if digest is not None and sample in {0} | self.failing
        }

    def digests(self, stages: Iterable[str]) -> list[str]:
        """Of the outputs that are shown, and of what some stages produced; none without one."""
        outputs = list(self.shown.values())
        others = (one for stage in stages for one in self.contents.get(stage, ()))
        return [*outputs, *others] if outputs else []

    def conclude(self, payloads: Mapping[str, str], cases: RecordedCases) -> FailedCase:
        found = self._outputs(payloads, cases)
        # Where no single sample can be named, the first stands for all.
        failing = self.failing or {0}
        several = len(self.outputs) > 1
        return FailedCase(
            case_id=self.case_id,
            has_output=0 in found,
            output=found.get(0),
            samples=tuple(one for one in found.items() if several and one[0] in failing),
            errors=tuple(self.errors),
            unfinished=self.unfinished,
            failed=tuple(self.failed),
            below=tuple(self.below),
            missing=tuple(self.missing),
        )

    def _outputs(self, payloads: Mapping[str, str], cases: RecordedCases) -> dict[int, Any]:
        """Sample → output, as it may be shown."""
        found = {one: digest for one, digest in self.shown.items() if digest in payloads}
        if not found:
            return {}
        (record,) = self.contents["cases"]
        passages = (
            json.loads(payloads[one])
            for stage in PASSAGE_STAGES
            for one in self.contents.get(stage, ())
            if one in payloads
        )
        redactor = cases.redactor(cases.case(json.loads(payloads[record])), passages)
        return {
            sample: redactor.answer(json.loads(payloads[one]), found_leaks(self.judgments, sample))
            for sample, one in found.items()
        }


class _Cases:
    """All cases of a run, filled with its records one by one."""

    def __init__(self, view: RunView) -> None:
        self.cases: dict[str, _Case] = {}
        self._stages = CASE_STAGES if view.system_kind == "rag" else WHOLE_STAGES
        self._floors: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for decision in view.decisions:
            rule = decision.rule
            if rule["kind"] == "min" and decision.measure.kind == "score":
                self._floors[rule["metric"]].append((rule["id"], rule["threshold"]))

    def _case(self, case_id: str) -> _Case:
        return self.cases.setdefault(case_id, _Case(case_id, self._stages))

    def add_stage(self, row: CaseStage) -> None:
        """Take in what a stage came to."""
        case = self._case(row.case_id)
        case.stages.add(row.stage)
        if row.source == "error" and row.failure is not None:
            case.errors.append({"stage": row.stage, **json.loads(row.failure)})
        elif row.source == "none":
            case.skipped.append(row.stage)
        if row.stage == "generation":
            case.outputs[0] = row.digest
        if row.stage in ("cases", *PASSAGE_STAGES) and row.digest is not None:
            case.contents.setdefault(row.stage, []).append(row.digest)

    def add_sample(self, row: SampleStage) -> None:
        """Take in what a stage came to for a further sample."""
        case = self._case(row.case_id)
        if row.stage == "generation":
            case.outputs[row.sample] = row.digest
        if row.stage in PASSAGE_STAGES and row.digest is not None:
            case.contents.setdefault(row.stage, []).append(row.digest)
        if row.source == "error" and row.failure is not None:
            case.errors.append(
                {"stage": row.stage, "sample": row.sample, **json.loads(row.failure)}
            )

    def add_judgment(self, judgment: JudgmentView) -> None:
        """Take in an outcome."""
        case = self._case(judgment.case)
        value = judgment.value
        case.judgments.append(judgment)
        if judgment.status == "missing":
            case.missing.append(judgment)
        elif value is None:
            return  # Excluded: the criterion does not apply.
        elif judgment.kind == "verdict" and value is not True:
            case.failed.append(judgment)
            case.failing |= _samples_below(judgment, 1.0)
        elif judgment.kind == "score":
            for rule, floor in self._floors[judgment.criterion]:
                if value < floor:
                    case.below.append(Floor(judgment.criterion, value, floor, rule))
                    case.failing |= _samples_below(judgment, floor)


def _samples_below(judgment: JudgmentView, least: float) -> set[int]:
    """The numbers of the samples whose value is too low, or missing."""
    return {
        number
        for number, one in enumerate(samples_of(judgment.detail) or ())
        if one["status"] == "missing" or (one["value"] is not None and one["value"] < least)
    }


def to_diagnose(view: RunView, failed: Iterable[FailedCase]) -> str | None:
    """The first criterion that failed and that another generation could change; None without.

    Args:
        view: the run; what recorded results come from cannot be executed again.
        failed: its failed cases.
    """
    if view.system_kind == "recorded":
        return None
    made = {"output", "citations"}
    criteria = {
        one["criterion"]
        for one in view.record["evaluators"]
        if not made.isdisjoint(one.get("reads", ()))
    }
    found = (judgment.criterion for case in failed for judgment in case.failed)
    return next((one for one in found if one in criteria), None)
