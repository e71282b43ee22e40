"""What becomes of the judgments of a case: parts of others, one of several samples, told or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rag_assets.contracts.cases import Case
from rag_assets.evaluation.redaction import may_hide
from rag_assets.evaluation.replicates import combine, every_sample
from rag_assets.evaluation.restricted import told_outcome
from rag_assets.evaluation.session import NOT_EXECUTED, Session
from rag_assets.evaluators import Absent, Evaluator, Evidence, Outcome, judge
from rag_assets.evaluators.custom import Custom
from rag_assets.store.records import Judgment, Source


@dataclass(frozen=True, slots=True)
class Judged:
    """One judgment on its way to the records."""

    outcome: Outcome
    source: Source
    key: str | None = None


def looking_at(session: Session) -> list[Evaluator]:
    """Those that look at a sample themselves, and are not made of others.

    At the further samples they are only those whose value may be another, and the parts of what
    is made of others.
    """
    looking = [one for one in session.project.evaluators if not one.parts]
    if session.sample == 0:
        return looking
    sampled = {one.criterion for one in session.project.criteria if one.samples > 1}
    sampled |= {
        part.criterion
        for one in session.project.evaluators
        for part in one.parts
        if one.criterion in sampled
    }
    return [one for one in looking if one.criterion in sampled]


def with_composed(session: Session, case: Case, judged: Mapping[str, Judged]) -> dict[str, Judged]:
    """The judgments of a case with those that are made of them, in the order of the config."""
    found: dict[str, Judged] = {}
    absent = Absent(NOT_EXECUTED.reason)
    outcomes = {criterion: one.outcome for criterion, one in judged.items()}
    for one in session.project.evaluators:
        if one.criterion in judged:
            found[one.criterion] = judged[one.criterion]
        elif one.parts and all(part.criterion in judged for part in one.parts):
            evidence = Evidence(case, absent, absent, absent, absent, outcomes)
            found[one.criterion] = Judged(judge(one, evidence), "none")
    return found


def of_all_samples(session: Session, place: int, judged: Mapping[str, Judged]) -> dict[str, Judged]:
    """The outcomes of a case over all of its samples, and those that are made of them."""
    found = dict(judged)
    for criterion in session.project.criteria:
        if criterion.every is not None:
            base = found[criterion.every]
            found[criterion.criterion] = Judged(every_sample(base.outcome), base.source)
        elif criterion.samples > 1:
            own = judged[criterion.criterion]
            further = [other.outcomes[criterion.criterion][place] for other in session.others]
            # What it shares, it shares with another sample of this case, judged just before.
            source: Source = "miss" if own.source == "shared" else own.source
            found[criterion.criterion] = Judged(combine([own.outcome, *further]), source, own.key)
    return found


def may_quote(case: Case, evaluator: Evaluator, outcome: Outcome | Judgment) -> bool:
    """Whether an outcome may hold what the user of the case may not see.

    Of our own evaluators the reason is a name.
    """
    has_reason = evaluator.type == Custom.type and outcome.reason is not None
    return may_hide(case) and (outcome.detail is not None or has_reason)


def told(
    session: Session, case: Case, evaluator: Evaluator, judged: Judged, evidence: Evidence | None
) -> Judged:
    """A judgment as it may be recorded: it may quote what the user of the case may not see."""
    if not may_quote(case, evaluator, judged.outcome):
        return judged
    return replace(judged, outcome=told_outcome(session, case, evidence, evaluator, judged.outcome))
