"""The yardstick: a plain loop over the same stage functions and evaluators, storing nothing."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rag_assets.contracts.artifacts import parse_retrieval
from rag_assets.evaluation.assembly import assemble
from rag_assets.evaluation.judging import read_citations
from rag_assets.evaluation.project import load_project
from rag_assets.evaluators import Evidence, judge


def loop(config: Path) -> float:
    """Seconds for all cases of a project, without loading it."""
    project = load_project(config)
    system = project.system
    retrieve, generate = system.function("retrieve"), system.function("generate")
    count_tokens = system.function("count_tokens")
    began = time.perf_counter()
    for case in project.dataset.cases:
        retrieval = parse_retrieval(retrieve(case.input, system.depth), system.depth)
        context = assemble(
            retrieval.candidates,
            top_k=system.top_k,
            token_budget=system.token_budget,
            tokens=[count_tokens(one) for one in retrieval.candidates[: system.top_k]],
        )
        kept = [retrieval.candidates[(item.position or 1) - 1] for item in context.items]
        output = generate(case.input, kept)
        citations = read_citations(output, system.citations_path)
        evidence = Evidence(case, output, retrieval, context, citations)
        for evaluator in project.evaluators:
            judge(evaluator, evidence)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(loop(Path(sys.argv[1])))
