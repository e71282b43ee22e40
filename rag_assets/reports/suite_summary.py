"""What `rag-assets check` prints: the suite in short, and what it can decide."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.contracts.policy import Policy
from rag_assets.evaluation.attainable import Attainable
from rag_assets.evaluation.project import Project
from rag_assets.evaluation.wording import counted, interval_text, plain_number, rule_words
from rag_assets.reports.layout import INDENT, Cell, Line, blocks, heading, line, packed, rows
from rag_assets.statistics.display import RATE
from rag_assets.systems.blackbox import BlackBox

_NAMES = 9


def suite_summary(
    project: Project, attainable: Sequence[Attainable], width: int | None, options: str = ""
) -> list[Line]:
    """The suite, its evaluators and its policy.

    Args:
        project: a checked project.
        attainable: what its threshold rules take.
        width: columns of the terminal; None for no limit.
        options: of the command to type next, such as ` --config FILE`.
    """
    return blocks(
        [heading(f"{project.config.path.name} is valid"), *_suite(project, width)],
        [heading("Evaluators"), *_evaluators(project, width)],
        _rules(project, project.policy, width) if project.policy else [],
        decidable(attainable, width),
        [line(f"Next: rag-assets run{options}")],
    )


def decidable(attainable: Sequence[Attainable], width: int | None) -> list[Line]:
    """What the threshold rules take to PASS, one row each."""
    if not attainable:
        return []
    table = [(Cell(one.rule.id, "bold"), one.rule.metric, _takes(one)) for one in attainable]
    return [heading("What this suite can decide"), *rows(table, width)]


def remarks(project: Project) -> list[str]:
    """What else should be known before a run, one sentence or more each."""
    found = list(project.warnings)
    system = project.evaluated
    if system.declared_name not in (None, system.name):
        found.append(
            f'The decorator names the system "{system.declared_name}", and system.name '
            f'"{system.name}" holds.'
        )
    for stage, code in sorted(system.code.items()):
        found += [f"Code of {stage}: {sentence}" for sentence in code.widened]
    return found


def _takes(one: Attainable) -> str:
    if one.passes is not None:
        words = "PASS from" if one.rule.kind == "min" else "PASS up to"
        return f"{words} {one.passes} of {one.cases}"
    if one.best is None:
        text = "cannot PASS: every case is excluded"
    else:
        best = one.cases if one.rule.kind == "min" else 0
        bounds = interval_text(RATE, one.best.lower, one.best.upper)
        text = f"cannot PASS: even {best} of {one.cases} shows {bounds}"
    if one.needed is None:
        return f"{text}; no number of cases is enough"
    needed = "1 case or more is" if one.needed == 1 else f"{one.needed:,} cases or more are"
    return f"{text}; {needed} needed"


def _suite(project: Project, width: int | None) -> list[Line]:
    config, system = project.config, project.evaluated
    if isinstance(system, BlackBox):
        kind = [system.kind]
        records = ", ".join(sorted(system.records)) or "nothing"
        settings: dict[str, object] = {"version": system.version, "records": records}
    else:
        kind = []
        settings = {
            "version": system.version,
            "depth": system.depth,
            "top_k": system.top_k,
            "token_budget": system.token_budget,
            "index_version": system.index_version,
        }
    told = [f"{name} {value}" for name, value in settings.items() if value is not None]
    cases = counted(len(project.dataset.cases), "case")
    facts = {
        "project": [config.project],
        "dataset": [f"{cases} in {config.dataset.name}", f"suite: {config.suite}"],
    }
    if project.corpus is not None:
        documents = counted(len(project.corpus.documents), "document")
        facts["corpus"] = [f"{documents} in {project.corpus.file}"]
    facts["system"] = [system.name, *kind, *told]
    if config.slices:
        support = f"(support from {counted(config.min_slice_support, 'case')})"
        facts["slices"] = [*config.slices, support]
    return [found for name, texts in facts.items() for found in _fact(name, texts, width)]


def _fact(name: str, texts: Sequence[str], width: int | None) -> list[Line]:
    """A name with what belongs to it, over as many lines as needed."""
    first, *rest = packed([Cell(text) for text in texts], width, _NAMES)
    return [line(Cell(f"{name:<{_NAMES}}", "dim"), *first.cells), *rest]


def _evaluators(project: Project, width: int | None) -> list[Line]:
    table = [
        (Cell(one.criterion, "bold"), _kind(one.kind, one.value_range), str(one))
        for one in project.evaluators
    ]
    below = [[line(one.description, indent=INDENT)] for one in project.evaluators]
    return rows(table, width, below=below)


def _kind(kind: str, value_range: tuple[float, float]) -> str:
    if kind == "verdict":
        return kind
    low, high = map(plain_number, value_range)
    return f"score in [{low}, {high}]"


def _rules(project: Project, policy: Policy, width: int | None) -> list[Line]:
    kinds: dict[str, str] = {one.criterion: one.kind for one in project.measured}
    kinds |= {one.id: one.source for one in project.config.operational_metrics}
    table = [
        (
            Cell(rule.id, "bold"),
            rule.metric,
            rule_words(rule.model_dump(exclude_none=True), kinds[rule.metric]),
            "" if rule.decides_on == "run" else "decides on comparisons",
        )
        for rule in policy.rules
    ]
    level = plain_number(100 * policy.confidence_level)
    title = f"Policy {policy.path.name}, intervals at {level} %"
    return [heading(title), *rows(table, width)]
