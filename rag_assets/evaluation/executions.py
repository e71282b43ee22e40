"""One call of a system that is called as a whole, and the stages that it stands for.

```
case ──► execution ──► retrieval · assembled context · citations · generation
```

The execution is memoized as one piece. Its parts are put on record under the stages of a staged
system, so that nothing that follows asks how an answer was made. A part that the system did not
record is absent: no error, and nothing that would hold up the case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from rag_assets.contracts.canonical import canonical_json, digest_text
from rag_assets.contracts.cases import Case
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.evaluation.matching import holds_stale
from rag_assets.evaluation.memo import CHUNK, Batch, Work, case_stage_row, run_stage
from rag_assets.evaluation.session import CaseResult, Counted, Session
from rag_assets.evaluation.stages import count_result
from rag_assets.evaluation.words import Stage
from rag_assets.store.reader import Reader
from rag_assets.store.records import Source
from rag_assets.systems.attempts import Failure
from rag_assets.systems.blackbox import BlackBox

OUTPUT = "generation/v1"
PARTS: Mapping[Stage, str] = {
    "retrieval": RETRIEVAL,
    "assembled_context": CONTEXT,
    "citations": CITATIONS,
    "generation": OUTPUT,
}
"""Stage → kind of what an execution says of it, in the order in which they are put on record."""


class ExecutionStage:
    """Calls the system."""

    stage: Stage = "execution"
    parent: Stage = "cases"
    kind = "execution/v1"
    counted: tuple[Counted, ...] = ("execution",)
    reuses = True
    has_contract = True

    def __init__(self, session: Session) -> None:
        # With one seed for all, the samples of a case would be one and the same.
        system = system_of(session)
        self._system = replace(system, seed=system.seed + session.sample)
        self._is_strict = session.project.config.system.on_malformed == "stop"
        self.asynchronous = self._system.is_async

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Every case is ready: an execution needs nothing but the case."""
        for case in cases:
            identity = self._system.execution_of(case, session.sample)
            yield Work(case, identity, partial(self._system.invoke, case), self._accept)

    def concluded(self, session: Session, case: Case, result: CaseResult) -> None:
        """Count it."""
        count_result(session, "execution", result)

    def _accept(self, value: Any) -> dict[str, Any]:
        execution = self._system.accept(value)
        if self._is_strict:
            execution = execution.complete()
        return {
            "output": execution.output,
            "artifacts": dict(execution.artifacts),
            "state": execution.state,
            "unusable": dict(execution.unusable),
        }


def system_of(session: Session) -> BlackBox:
    """The system of a run in which it is called as a whole."""
    system = session.project.evaluated
    assert isinstance(system, BlackBox)
    return system


def execute_cases(session: Session, *, execute: bool) -> None:
    """Take a sample of the cases through its execution, and put the parts on record.

    Args:
        session: the run; the results of all stages of an answer are filled in.
        execute: False only looks up: what is not memoized is then `not_executed`.

    Raises:
        ContractError: an artifact was malformed or not recorded, and `on_malformed` is `stop`.
            Everything that was in flight has finished and is committed.
    """
    session.results.update({stage: {} for stage in PARTS})
    recipe = ExecutionStage(session)
    try:
        run_stage(session, recipe, execute=execute)
    finally:
        if recipe.asynchronous:
            session.loop.leave_if_blocked()
            session.loop.run(system_of(session).close())
        _record_parts(session)


def _record_parts(session: Session) -> None:
    executions = session.results["execution"]
    cases = (case for case in session.cases if case.id in executions)
    while chunk := list(islice(cases, CHUNK)):
        digests = {case.id: executions[case.id].digest for case in chunk}
        payloads = session.payloads_of(one for one in digests.values() if one is not None)
        contents = {
            case_id: json.loads(payloads[found])
            for case_id, found in digests.items()
            if found is not None
        }
        parts = [Batch(session, stage, kind) for stage, kind in PARTS.items()]
        for part in parts:
            for case in chunk:
                _take_part(part, case, contents.get(case.id))
        with session.store.writing() as writer:
            for part in parts:
                part.put(writer)
            session.take_pending(writer)
        for part in parts:
            session.projector.committed(part.stage, [row.case_id for row in part.rows])


def _take_part(part: Batch, case: Case, content: Mapping[str, Any] | None) -> None:
    """Take a part of the execution of a case, of which there is no content where it failed."""
    session = part.session
    execution = session.results["execution"][case.id]
    result = _without_content(execution)
    if content is not None:
        result = _of_content(part, execution, content)
        if part.kind == CONTEXT and CONTEXT in content["artifacts"]:
            items = content["artifacts"][CONTEXT]["items"]
            session.facts_of(case.id).stale = holds_stale(case, items)
    session.results[part.stage][case.id] = result
    part.rows.append(case_stage_row(session, case, part.stage, result))


def _without_content(execution: CaseResult) -> CaseResult:
    source: Source = "none" if execution.source == "none" else "blocked"
    return CaseResult(source, execution.identity, failure=execution.failure)


def _of_content(part: Batch, execution: CaseResult, content: Mapping[str, Any]) -> CaseResult:
    recorded = {**content["artifacts"], OUTPUT: content["output"]}
    if part.kind not in recorded:
        why = content["unusable"].get(part.kind, "was not recorded for this case")
        failure = Failure("artifact_absent", "", f"{part.kind} {why}")
        return CaseResult("absent", execution.identity, failure=failure)
    text = canonical_json(recorded[part.kind])
    digest = digest_text(text)
    part.artifacts[digest] = text
    part.session.keep_payload(digest, text)
    return replace(execution, digest=digest, latency_ms=0.0, attempts=(), usage=None)
