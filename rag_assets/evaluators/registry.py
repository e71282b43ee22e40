"""From the `evaluators` of a config to evaluators, with everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import EvaluatorEntry
from rag_assets.contracts.errors import InputError, Problem, nearest
from rag_assets.contracts.human_labels import Disagreement
from rag_assets.contracts.validation import validate
from rag_assets.contracts.yaml_source import YamlSource
from rag_assets.evaluators.acceptance import TaskAcceptance
from rag_assets.evaluators.admissible import (
    AdmissibleCitations,
    AdmissibleContext,
    AdmissibleRetrieval,
)
from rag_assets.evaluators.answer import Contains, Exact, Regex
from rag_assets.evaluators.base import Evaluator, Parameters, Project
from rag_assets.evaluators.citations import CitationValidity
from rag_assets.evaluators.conduct import Abstention, BehaviorCheck
from rag_assets.evaluators.coverage import EvidenceCoverage
from rag_assets.evaluators.custom import Custom
from rag_assets.evaluators.labelled import ClaimSupport, ContextSupport, FactCoverage
from rag_assets.evaluators.leak_check import NoLeak
from rag_assets.evaluators.ranking import (
    AveragePrecision,
    HitRate,
    Ndcg,
    Precision,
    Recall,
    ReciprocalRank,
)
from rag_assets.evaluators.structured import JsonSchema, Numeric, TokenF1

EVALUATORS: tuple[type[Evaluator], ...] = (
    Contains,
    Exact,
    Regex,
    JsonSchema,
    Numeric,
    TokenF1,
    Custom,
    HitRate,
    Recall,
    Precision,
    ReciprocalRank,
    AveragePrecision,
    Ndcg,
    CitationValidity,
    EvidenceCoverage,
    AdmissibleContext,
    AdmissibleRetrieval,
    AdmissibleCitations,
    NoLeak,
    Abstention,
    BehaviorCheck,
    ClaimSupport,
    FactCoverage,
    ContextSupport,
    TaskAcceptance,
)
"""Every type of this version, in the order of the documentation."""

_TYPES = {name: cls for cls in EVALUATORS for name in (cls.type, *cls.aliases)}
_LATER = frozenset(
    {
        "groundedness_judge",
        "citation_support_judge",
        "rubric_judge",
        "answer_equivalence_judge",
        "claims_judge",
    }
)


def build_evaluators(
    entries: Sequence[EvaluatorEntry | None],
    *,
    file: str,
    depth: int | None,
    is_depth_known: bool = True,
    recorded: frozenset[str],
    dataset: Dataset | None,
    root: Path,
    problems: list[Problem],
    has_corpus: bool = False,
    label_disagreement: Disagreement = "exclude",
) -> tuple[Evaluator, ...]:
    """Build what a config declares, and check it against the system and the dataset.

    Args:
        entries: the entries of `evaluators`, in order; None for one that could not be read.
        file: the config file, as messages name it.
        depth: the declared retrieval depth; None where the system declares none.
        is_depth_known: False where the system could not be loaded; a criterion that depends on
            its depth is then not known either.
        recorded: which of retrieval, context and citations the system can record.
        dataset: all cases; None when the dataset is broken: cases are then not checked, and the
            kind of recall is not known.
        root: the project folder.
        problems: one problem for each error is appended here.
        has_corpus: whether a manifest is declared.
        label_disagreement: what the labels of reviewers who disagree come to.

    Returns:
        The evaluators that could be built and named: as many as entries when no problem was
        appended.
    """
    cases = dataset.cases if dataset else ()
    project = Project(root, depth, cases, has_corpus, label_disagreement)
    builders = [
        _Builder(entry, index, file, problems)
        for index, entry in enumerate(entries)
        if entry is not None
    ]
    made: dict[_Builder, Evaluator | None] = {}
    for _, level in groupby(sorted(builders, key=_Builder.built_after), key=_Builder.built_after):
        parts = [one for by, one in made.items() if one is not None and by.criterion is not None]
        # Of one that could not be built or named, nobody knows whether it is a verdict.
        are_known = len(parts) == len(made) and None not in entries
        project = replace(project, parts=tuple(parts), parts_are_known=are_known)
        made |= {one: one.build(project, recorded, is_depth_known=is_depth_known) for one in level}
    built = [made[one] for one in builders]
    _check_criteria(builders)
    if dataset is not None:
        problems += _case_problems([one for one in built if one is not None], dataset, root)
    return tuple(
        one
        for one, builder in zip(built, builders, strict=True)
        if one is not None and builder.criterion is not None
    )


class _Builder:
    """One entry on its way to an evaluator."""

    def __init__(
        self, entry: EvaluatorEntry, index: int, file: str, problems: list[Problem]
    ) -> None:
        self.entry = entry
        self.key = f"evaluators.{index}"
        self.problems = problems
        self.criterion = entry.criterion
        lines = {f"{self.key}.{name}": line for name, line in entry.lines.items()}
        self.source = YamlSource(file, {}, lines | {self.key: entry.line}, {})

    def built_after(self) -> int:
        """How many others build on each other before it; one of an unknown type builds on none."""
        cls = _TYPES.get(self.entry.type)
        return 0 if cls is None else cls.built_after

    def report(self, name: str, message: str) -> None:
        self.problems.append(self.source.problem(f"{self.key}.{name}", message))

    def build(
        self, project: Project, recorded: frozenset[str], *, is_depth_known: bool
    ) -> Evaluator | None:
        cls = _TYPES.get(self.entry.type)
        if cls is None:
            self.report("type", _unknown_type(self.entry.type))
            return None
        parameters = self._parameters(cls, project)
        # A name that goes by a default of the depth is not known without the depth.
        if is_depth_known or cls.defaults(None).keys() <= self.entry.parameters.keys():
            self._name(cls, parameters)
        evaluator = self._make(cls, parameters, project)
        for part in (evaluator or cls).reads:
            if part != "output" and part not in recorded:
                self.report("type", _unrecorded(cls, part))
        return evaluator

    def _parameters(self, cls: type[Evaluator], project: Project) -> Parameters | None:
        given, accepted = self.entry.parameters, ("type", "criterion", *cls.accepts.key_names())
        unknown = [name for name in given if name not in accepted]
        for name in unknown:
            self.report(
                name,
                f"{cls.type} has no key {name}.{nearest(name, accepted)} "
                f"It accepts: {', '.join(accepted)}.",
            )
        return validate(
            cls.accepts,
            {**cls.defaults(project.depth), **given},
            self.source,
            self.problems,
            key=self.key,
            said=[f"{self.key}.{name}" for name in unknown],
        )

    def _name(self, cls: type[Evaluator], parameters: Parameters | None) -> None:
        """Settle the criterion: the one given, the default, or a problem."""
        if self.criterion is not None or self.entry.is_nameless:
            return
        if cls.criterion_template is None:
            # A misspelt key has been reported already.
            if not any(nearest(name, ["criterion"]) for name in self.entry.parameters):
                self.report(
                    "criterion",
                    f"{cls.type} has no default criterion. Name the metric, for example: "
                    "criterion: answer_correct.",
                )
        elif parameters is not None:
            self.criterion = cls.criterion_template.format(type=cls.type, **dict(parameters))

    def _make(
        self, cls: type[Evaluator], parameters: Parameters | None, project: Project
    ) -> Evaluator | None:
        if parameters is None:
            return None
        try:
            evaluator = cls.build(self.criterion or cls.type, parameters, project)
        except InputError as error:
            for problem in error.problems:
                self.report(problem.key, problem.message)
            return None
        for name, message in evaluator.project_problems(project):
            self.report(name, message)
        return evaluator


def _check_criteria(builders: Sequence[_Builder]) -> None:
    first: dict[str, _Builder] = {}
    for builder in builders:
        if builder.criterion is not None:
            other = first.setdefault(builder.criterion, builder)
            if other is not builder:
                builder.report(
                    "criterion",
                    f"The criterion {builder.criterion} is also that of {other.key} "
                    f"(line {other.entry.line}). Give one of them another criterion.",
                )


def _case_problems(built: Sequence[Evaluator], dataset: Dataset, root: Path) -> list[Problem]:
    path = dataset.path
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    found = (
        Problem(file, case.line, key, message)
        for case in dataset.cases
        for evaluator in built
        for key, message in evaluator.case_problems(case)
    )
    # Several evaluators can say the same of one case.
    return list(dict.fromkeys(found))


def _unknown_type(name: str) -> str:
    if name in _LATER:
        return f"The type {name} is not in this version of rag-assets; remove this evaluator."
    hint = nearest(name, list(_TYPES))
    return f"There is no evaluator type {name}.{hint} The types are: {', '.join(_TYPES)}."


def _unrecorded(cls: type[Evaluator], part: str) -> str:
    return (
        f"{cls.type} reads the {part}, and this system never records one. Let the system record "
        "it, or remove this evaluator."
    )
