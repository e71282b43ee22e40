"""What `rag-assets import` prints: what was found, what became of it, and what to do next."""

from __future__ import annotations

import shlex

from rag_assets.evaluation.wording import counted
from rag_assets.formats.project import Facts, ImportedProject
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, heading, line, packed


def import_report(project: ImportedProject, folder: str, width: int | None) -> list[Line]:
    """The report of an import.

    Args:
        project: what was written.
        folder: where to, as a shell takes it.
        width: columns of the terminal; None for no limit.
    """
    steps = [f"cd {folder} && rag-assets run"]
    for config, label in zip(project.configs[1:], project.labels[1:], strict=True):
        newest = shlex.quote(f"{label}:latest")
        steps += [f"rag-assets run --config {config}", f"rag-assets compare {newest} latest"]
    return blocks(
        [line(f"{folder} holds {' over '.join(counted(*size) for size in project.sizes)}.")],
        *(_found(facts, width) for facts in project.facts),
        [
            heading("Left out"),
            *(found for text in project.left_out for found in packed([Cell(text)], width, INDENT)),
        ]
        if project.left_out
        else [],
        [line(f"{'Next:' if step is steps[0] else '':<6}{step}") for step in steps],
    )


def _found(facts: Facts, width: int | None) -> list[Line]:
    counts = [f"{fact.count:,}" for fact in facts.facts]
    column = max(map(len, counts))
    return [
        heading(facts.title),
        *(
            line(f"{count:>{column}}  ", fact.meaning, indent=INDENT)
            for count, fact in zip(counts, facts.facts, strict=True)
        ),
    ]
