"""Which stage factor the labels of a diagnosis implicate, and what could be tried next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_assets.evaluation.diagnosis.labels import LabelName


@dataclass(frozen=True, slots=True)
class Experiment:
    """Something to try: a hypothesis, not a cause.

    Attributes:
        kind: what to change.
        value: the value to try, where the evidence suggests one.
    """

    kind: str
    value: int | None = None

    @property
    def text(self) -> str:
        """In words, like "a larger token budget" or "top_k 5"."""
        return f"top_k {self.value}" if self.kind == "top_k" else _WORDS[self.kind]


_WORDS = {
    "depth": "a larger depth",
    "index_configuration": "another index or embedding configuration",
    "token_budget": "a larger token budget",
    "smaller_chunks": "smaller chunks",
    "reranker": "a reranker",
    "prompt_or_model": "another prompt or model",
}


@dataclass(frozen=True, slots=True)
class Implicated:
    """A stage factor, and the share of cases whose label points at it.

    Attributes:
        cases, of: `cases` of the `of` recovered or selected ones.
        among: which of the two.
    """

    factor: str
    cases: int
    of: int
    among: Literal["recovered", "selected"]
    experiments: tuple[Experiment, ...]


# In the order in which ties are told.
_FACTORS: Mapping[LabelName, str] = {
    "RANKED_OUT": "ranking depth",
    "RETRIEVAL_MISS": "retrieval coverage",
    "CONTEXT_ASSEMBLY_LOSS": "context budget",
}
_EXPERIMENTS: Mapping[LabelName, tuple[Experiment, ...]] = {
    "RETRIEVAL_MISS": (Experiment("depth"), Experiment("index_configuration")),
    "CONTEXT_ASSEMBLY_LOSS": (Experiment("token_budget"), Experiment("smaller_chunks")),
}


def implicated_factors(
    counts: Mapping[str, int],
    ranked_out_positions: Sequence[int],
    *,
    selected: int,
    recovered: int,
    depth: int,
) -> tuple[Implicated, ...]:
    """The factors that the labels of a gold-context diagnosis point at most.

    Args:
        counts: label → number of cases.
        ranked_out_positions: best positions of the RANKED_OUT cases, as far as they are known.
        selected: number of diagnosed cases.
        recovered: how many of them recovered under gold context.
        depth: how many candidates are retrieved, the most that top_k can be.

    Returns:
        Of retrieval and assembly the one with the largest count, or all that tie; generation
        when at least half of the selected cases failed with the gold passages as well.
    """
    return tuple(_found(counts, ranked_out_positions, selected, recovered, depth))


def _found(
    counts: Mapping[str, int], positions: Sequence[int], selected: int, recovered: int, depth: int
) -> Iterator[Implicated]:
    most = max((counts.get(label, 0) for label in _FACTORS), default=0)
    for label, factor in _FACTORS.items():
        if most > 0 and counts.get(label, 0) == most:
            experiments = (
                _ranking_experiments(positions, depth)
                if label == "RANKED_OUT"
                else _EXPERIMENTS[label]
            )
            yield Implicated(factor, most, recovered, "recovered", experiments)
    generation = counts.get("GENERATION_FAILURE", 0)
    if generation > 0 and 2 * generation >= selected:
        tried = (Experiment("prompt_or_model"),)
        factor = "generation with correct context"
        yield Implicated(factor, generation, selected, "selected", tried)


def _ranking_experiments(positions: Sequence[int], depth: int) -> tuple[Experiment, ...]:
    """A reranker, and the top_k that reaches the 90th percentile (nearest rank) of positions."""
    reranker = Experiment("reranker")
    if not positions:
        return (reranker,)
    rank = -(-9 * len(positions) // 10)
    return reranker, Experiment("top_k", min(sorted(positions)[rank - 1], depth))
