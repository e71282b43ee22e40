"""What the tests of evaluators build their cases, evidence and evaluators with."""

from dataclasses import replace
from pathlib import Path

from rag_assets.contracts.artifacts import Citations, Context, Retrieval
from rag_assets.contracts.cases import Dataset, Label, parse_case
from rag_assets.contracts.config import EvaluatorEntry
from rag_assets.contracts.errors import InputError
from rag_assets.evaluators import Absent, Evidence, build_evaluators

ALL_RECORDED = frozenset({"retrieval", "context", "citations"})
NOWHERE = Path("/nowhere")


def case(expected=None, *, relevant=None, line=0, **row):
    """A case; `relevant` sets labels past the checks of the dataset."""
    made = parse_case({"id": "c1", "input": "Q?", "expected": expected, **row}, line=line)
    if relevant is None:
        return made
    labels = [Label(x["doc_id"], x.get("chunk_id"), float(x.get("grade", 1))) for x in relevant]
    return replace(made, relevant=tuple(labels))


NOT_EXECUTED = Absent("not_executed")


def evidence(of, output=NOT_EXECUTED, *, retrieval=None, context=None, citations=None):
    absent = Absent("artifact_absent")
    return Evidence(of, output, retrieval or absent, context or absent, citations or absent)


def retrieval(*names, depth=None):
    """From "doc" or "doc#chunk", best first."""
    return Retrieval(query="Q?", depth=depth, candidates=[_passage(name) for name in names])


def context(*names):
    return Context(items=[_passage(name) for name in names])


def citations(*ids):
    return Citations(ids=ids)


def _passage(name):
    doc, _, chunk = name.partition("#")
    return {"doc_id": doc, "chunk_id": chunk or None}


def entry(type, criterion=None, *, line=10, lines=None, **parameters):
    keys = ("type", "criterion", *parameters)
    return EvaluatorEntry(
        type=type,
        criterion=criterion,
        parameters=parameters,
        line=line,
        lines=lines or {key: line + number for number, key in enumerate(keys)},
    )


def build_all(*entries, cases=(), depth=None, recorded=ALL_RECORDED, root=NOWHERE, has_corpus=True):
    """The evaluators and the problems."""
    problems = []
    dataset = Dataset(root / "cases.jsonl", tuple(cases), "digest")
    built = build_evaluators(
        entries,
        file="rag_assets.yaml",
        depth=depth,
        recorded=recorded,
        dataset=dataset,
        root=root,
        problems=problems,
        has_corpus=has_corpus,
    )
    return built, [str(problem) for problem in problems]


def build(type, criterion="metric", *, cases=(), depth=None, root=NOWHERE, **parameters):
    """One evaluator that must be right."""
    made = entry(type, criterion, **parameters)
    built, problems = build_all(made, cases=cases, depth=depth, root=root)
    if problems:
        raise InputError("\n".join(problems))
    return built[0]


def problems_of(type, criterion="metric", *, cases=(), depth=None, root=NOWHERE, **parameters):
    made = entry(type, criterion, **parameters)
    return build_all(made, cases=cases, depth=depth, root=root)[1]
