"""Cases about which nothing has changed since a run that came through with them.

Everything that a case comes to is a function of the system, the evaluators and the case itself.
Where all three are as they were, the records of the earlier run stand for the case as a whole, and
neither its identities nor its artifacts are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_assets.contracts.canonical import canonical_json, digest, digest_text
from rag_assets.contracts.cases import Case
from rag_assets.evaluation.matching import CaseFacts, Match
from rag_assets.evaluation.project import Project
from rag_assets.evaluators import Outcome
from rag_assets.store import SettledCase, Store
from rag_assets.store.reader import Reader

_CHUNK = 2000


@dataclass
class Settled:
    """What is recorded of settled cases.

    Attributes:
        runs: case id → run whose records stand for it, in the order of the cases.
        facts: case id → what slices ask.
        stages: stage → case id → (identity, digest).
        outcomes: criterion → case id → outcome.
        judged: how many of the outcomes were judged; for the others there was nothing to judge.
    """

    runs: dict[str, str] = field(default_factory=dict)
    facts: dict[str, CaseFacts] = field(default_factory=dict)
    stages: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    judged: int = 0

    def is_whole(self) -> bool:
        """Whether nothing is absent that was recorded once."""
        sizes = {len(cases) for cases in self.stages.values()}
        sizes |= {len(cases) for cases in self.outcomes.values()}
        return sizes <= {len(self.runs)}


def settled_base(project: Project) -> str | None:
    """Digest of everything but the case that decides what a case comes to.

    None for a system that is called as a whole: what it did not record is no result to repeat, so
    each case is looked at by itself.
    """
    if project.is_whole:
        return None
    evaluators = [[one.criterion, one.identity] for one in project.criteria]
    corpus = project.corpus and [project.corpus.rights, project.corpus.contents]
    parts = [project.keys.execution, evaluators, project.relevance_unit, corpus]
    return digest(["settled/v2", *parts])


def settled_case(base: str, run_id: str, case: Case, facts: CaseFacts) -> SettledCase:
    """The row that lets the records of a run stand for a case."""
    match = facts.match
    return SettledCase(
        _key(base, case),
        run_id,
        case.id,
        match.labelled if match else None,
        match.position if match else None,
        match.ambiguous if match else None,
        facts.truncated,
        facts.stale,
    )


def recall_settled(store: Store, project: Project, cases: Sequence[Case]) -> Settled:
    """Read what is recorded of the cases that are settled."""
    base = settled_base(project)
    settled = Settled()
    if base is None:
        return settled
    with store.reading() as reader:
        for start in range(0, len(cases), _CHUNK):
            keys = {_key(base, case): case.id for case in cases[start : start + _CHUNK]}
            known = {row.case_id: row for row in reader.settled(list(keys))}
            runs = {one: known[one].run_id for one in keys.values() if one in known}
            settled.runs |= runs
            settled.facts |= {case_id: _facts(known[case_id]) for case_id in runs}
            _recall_stages(settled, reader, runs)
            _recall_outcomes(settled, reader, runs)
    return settled if settled.is_whole() else Settled()


def _recall_stages(settled: Settled, reader: Reader, runs: Mapping[str, str]) -> None:
    for case_id, stage, identity, content in reader.settled_stages(runs):
        settled.stages.setdefault(stage, {})[case_id] = identity, content


def _recall_outcomes(settled: Settled, reader: Reader, runs: Mapping[str, str]) -> None:
    # A suite comes to few different outcomes: one object stands for all that are alike.
    alike: dict[tuple[Any, ...], Outcome] = {}
    for case_id, criterion, is_judged, *parts in reader.settled_outcomes(runs):
        outcome = alike.get(tuple(parts))
        if outcome is None:
            outcome = alike[tuple(parts)] = Outcome.recall(*parts)
        settled.outcomes.setdefault(criterion, {})[case_id] = outcome
        settled.judged += is_judged


def _key(base: str, case: Case) -> str:
    # The day of the run may have changed what its user may use.
    standing = "" if case.sources is None else canonical_json(case.sources.standing)
    labels = " ".join(sorted(one.key for one in case.human_labels))
    return digest_text(f"{base} {case.digest} {standing} {labels} {case.id}")


def _facts(row: SettledCase) -> CaseFacts:
    match = None
    if row.labelled is not None:
        match = Match(row.labelled, row.position, bool(row.ambiguous))
    return CaseFacts(match, row.truncated, row.stale)
