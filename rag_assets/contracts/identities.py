"""The identities under which results are memoized: SHA-256 of the canonical JSON of their parts.

`top_k` and `token_budget` are in no stage identity: they act through the passages handed over.
Case ids and expectations are in none either: equal inputs are executed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.contracts.canonical import digest
from rag_assets.contracts.cases import Case


@dataclass(frozen=True, slots=True)
class StageKeys:
    """The parts of stage identities that are the same for all cases of a run.

    Attributes:
        retrieval: digest of name, version, config, code of `retrieve`, index_version, depth (and
            the seed, where the stage takes one).
        generation: digest of name, version, config, code of `generate` (and the seed).
        execution: the system identity.
    """

    retrieval: str
    generation: str
    execution: str

    @classmethod
    def of(
        cls,
        *,
        name: str,
        version: str | None,
        config: Mapping[str, Any],
        code: Mapping[str, str],
        index_version: str | None,
        depth: int,
        seeds: Mapping[str, int],
        system_identity: str,
    ) -> StageKeys:
        """Build the fixed parts.

        Args:
            name, version, config, index_version, depth: of the system.
            code: stage function → code digest.
            seeds: stage function → seed, for those that take one.
            system_identity: digest over all settings and code of the system.
        """
        declared = [name, version, config]
        retrieve = [*declared, code["retrieve"], index_version, depth, seeds.get("retrieve")]
        generate = [*declared, code["generate"], seeds.get("generate")]
        return cls(
            retrieval=digest(["retrieval/v1", *retrieve]),
            generation=digest(["generation/v1", *generate]),
            execution=digest(["execution/v1", system_identity, sorted(seeds.items())]),
        )

    def retrieval_of(self, case: Case, sample: int = 0) -> str:
        """Identity of one case's retrieval; further samples have one of their own."""
        return digest([self.retrieval, *_asker(case), *([sample] if sample else [])])

    def generation_of(self, case: Case, passages: Sequence[Any], sample: int = 0) -> str:
        """Identity of one case's generation over exactly these passages (JSON), in this order."""
        return digest([self.generation, *_asker(case), passages, sample])

    def execution_of(self, case: Case, sample: int = 0) -> str:
        """Identity of the whole execution of one case under one setting of the system."""
        return digest([self.execution, *_asker(case), sample])


def execution_key(
    system_identity: str, seeds: Mapping[str, int], case: Case, sample: int = 0
) -> str:
    """Identity of one case's execution by a system that is called as a whole.

    Args:
        system_identity: digest over all settings and code of the system.
        seeds: function → seed, where it takes one.
        case: the case.
        sample: number of the sample, from 0.
    """
    return digest(["execution/v1", system_identity, sorted(seeds.items()), *_asker(case), sample])


def judgment_key(criterion: str, evaluator: str, case_part: Any, artifacts: Sequence[str]) -> str:
    """Identity of one judgment.

    Args:
        criterion: the metric's name.
        evaluator: the evaluator's identity.
        case_part: exactly what it reads of the case, as JSON.
        artifacts: digests of exactly the artifacts that it reads, in its order.
    """
    return digest(["judgment/v1", criterion, evaluator, case_part, list(artifacts)])


def _asker(case: Case) -> tuple[str, Any, str | None]:
    return case.input_digest, case.user, case.as_of
