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
from functools import partial
from itertools import islice
from typing import Any

from rag_assets.contracts.canonical import canonical_json, digest_text
from rag_assets.contracts.cases import Case
from rag_assets.contracts.kinds import CITATIONS, CONTEXT, RETRIEVAL
from rag_assets.evaluation.memo import CHUNK, Work, case_stage_row, run_stage
from rag_assets.evaluation.session import CaseResult, Counted, Session
from rag_assets.evaluation.stages import count_result
from rag_assets.evaluation.words import Stage
from rag_assets.store import CaseStage
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
    """Calls the system.

    Args:
        session: the run.
        sample: number of the sample, from 0.
    """

    stage: Stage = "execution"
    parent: Stage = "cases"
    kind = "execution/v1"
    counted: tuple[Counted, ...] = ("execution",)
    reuses = True
    has_contract = True

    def __init__(self, session: Session, sample: int = 0) -> None:
        self._system = system_of(session)
        self._sample = sample
        self._is_strict = session.project.config.system.on_malformed == "stop"
        self.asynchronous = self._system.is_async

    def prepare(self, session: Session, reader: Reader, cases: Sequence[Case]) -> Iterator[Work]:
        """Every case is ready: an execution needs nothing but the case."""
        for case in cases:
            identity = self._system.execution_of(case, self._sample)
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


def execute_cases(session: Session, *, execute: bool, sample: int = 0) -> None:
    """Take the cases of a run through their execution, and put its parts on record.

    Args:
        session: the run; the results of all stages of an answer are filled in.
        execute: False only looks up: what is not memoized is then `not_executed`.
        sample: number of the sample, from 0.

    Raises:
        ContractError: an artifact was malformed or not recorded, and `on_malformed` is `stop`.
            Everything that was in flight has finished and is committed.
    """
    session.results.update({stage: {} for stage in PARTS})
    recipe = ExecutionStage(session, sample)
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
        digests = (executions[case.id].digest for case in chunk)
        payloads = session.payloads_of(one for one in digests if one is not None)
        contents = {
            case.id: json.loads(payloads[found])
            for case in chunk
            if (found := executions[case.id].digest) is not None
        }
        parts = [_Part(session, stage, kind, chunk, contents) for stage, kind in PARTS.items()]
        with session.store.writing() as writer:
            for part in parts:
                writer.put_artifacts(part.kind, part.artifacts)
                writer.add(part.rows)
            session.take_pending(writer)
        for part in parts:
            session.projector.committed(part.stage, [row.case_id for row in part.rows])


class _Part:
    """One part of the executions of some cases, ready to be written."""

    def __init__(
        self,
        session: Session,
        stage: Stage,
        kind: str,
        cases: Sequence[Case],
        contents: Mapping[str, Any],
    ) -> None:
        self.stage = stage
        self.kind = kind
        self.artifacts: dict[str, str] = {}
        self.rows: list[CaseStage] = []
        for case in cases:
            execution = session.results["execution"][case.id]
            result = self._result(execution, contents.get(case.id))
            if result.digest is not None:
                session.keep_payload(result.digest, self.artifacts[result.digest])
            session.results[stage][case.id] = result
            self.rows.append(case_stage_row(session, case, stage, result))

    def _result(self, execution: CaseResult, content: Mapping[str, Any] | None) -> CaseResult:
        identity = execution.identity
        if content is None:
            source: Source = "none" if execution.source == "none" else "blocked"
            return CaseResult(source, identity, failure=execution.failure)
        if self.kind == OUTPUT:
            value = content["output"]
        elif self.kind in content["artifacts"]:
            value = content["artifacts"][self.kind]
        else:
            why = content["unusable"].get(self.kind, "was not recorded for this case")
            failure = Failure("artifact_absent", "", f"{self.kind} {why}")
            return CaseResult("absent", identity, failure=failure)
        text = canonical_json(value)
        digest = digest_text(text)
        self.artifacts[digest] = text
        return CaseResult(execution.source, identity, digest, is_shared=execution.is_shared)
