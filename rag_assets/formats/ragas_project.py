"""From samples of Ragas to a project: a row becomes a case and its recorded result.

Documents are compared by the ids of the file where it has both `retrieved_context_ids` and
`reference_context_ids`. Otherwise a passage gets an id that is made of its text, so that two
passages are the same document exactly when their texts are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.contracts.canonical import digest_text
from rag_assets.contracts.cases import check_case
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.table import FORMATS
from rag_assets.contracts.text import read_bytes, shown
from rag_assets.formats.project import (
    CONFIG_FILE,
    DATASET,
    POLICY_FILE,
    Entry,
    Fact,
    Facts,
    ImportedProject,
    config_text,
    json_lines,
    policy_text,
)
from rag_assets.formats.ragas import Sample, read_samples

RESULTS = "data/results.jsonl"
_GIVEN = "answer_given"
_F1 = "answer_token_f1"
_OF_ANSWERS = "(contains, exact, token_f1, …)"
_NO_CONTEXT = (
    "metrics of the context and of citations: the file does not say which of the retrieved "
    "passages reached the model, nor what was cited"
)
_RECORDED = f"""\
    # Results that are there already: no code runs.
    path: {RESULTS}
    # Metrics of the context need to know which passages reached the model. If all that were
    # retrieved did, say so here:
    # map: {{context_ids: doc_ids}}
"""


@dataclass(frozen=True, slots=True)
class _Has:
    """What at least one row of the file has.

    Attributes:
        by_id: documents are named and compared by the ids of the file, not by their texts.
        labels: something that retrieved passages can be compared with.
        answers: a response.
        references: a reference, in a row with a response.
        deepest: the longest list of retrieved passages, at least 1.
    """

    by_id: bool
    labels: bool
    answers: bool
    references: bool
    deepest: int

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _Has:
        """What the samples have."""
        reference_ids = any(one.reference_context_ids for one in samples)
        reference_texts = any(one.reference_contexts for one in samples)
        # Retrieved ids alone are good names, unless only texts can be compared.
        by_id = any(one.retrieved_context_ids is not None for one in samples) and (
            reference_ids or not reference_texts
        )
        retrieved = [found for one in samples if (found := _retrieved(one, by_id)) is not None]
        return cls(
            by_id=by_id,
            labels=bool(retrieved) and (reference_ids if by_id else reference_texts),
            answers=any(one.response is not None for one in samples),
            references=any(one.response is not None and one.reference for one in samples),
            deepest=max(1, 1, *map(len, retrieved)),
        )


def read_ragas(path: Path, project: str, problems: list[Problem]) -> ImportedProject | None:
    """Make a project of a file of samples.

    Args:
        path: a .jsonl or .csv file.
        project: the label of the project.
        problems: what is wrong with the file is appended here.

    Returns:
        The project, or None when anything was wrong.
    """
    before, file = len(problems), str(path)
    kind = FORMATS.get(path.suffix.lower())
    if kind not in ("jsonl", "csv"):
        message = "Samples are read from .jsonl (one JSON object a line) and .csv files."
        problems.append(Problem(file, 0, "", f"{message} {_NO_TRACES}"))
        return None
    data = read_bytes(path, file, problems)
    samples = [] if data is None else read_samples(data, kind, file, problems)
    if len(problems) > before:
        return None
    has = _Has.of(samples)
    if not has.labels and not has.answers:
        message = "There is nothing to evaluate: no row has a response or reference contexts."
        problems.append(Problem(file, 0, "", message))
    names = [one.id or f"row-{place}" for place, one in enumerate(samples, 1)]
    cases = [_case(name, one, has) for name, one in zip(names, samples, strict=True)]
    _check_cases(cases, samples, file, problems)
    if len(problems) > before:
        return None
    results = [_result(name, one, has) for name, one in zip(names, samples, strict=True)]
    evaluators, left_out = list(_evaluators(has)), tuple(_left_out(has))
    config = config_text(
        what=f"Samples of Ragas, {path.name}.",
        project=project,
        system={"name": project},
        recorded=_RECORDED,
        evaluators=evaluators,
        left_out=left_out,
    )
    policy = policy_text("What a run must show before a release.", _rules(evaluators))
    return ImportedProject(
        sizes=((len(samples), "recorded result"),),
        configs=(CONFIG_FILE,),
        labels=(project,),
        files={
            CONFIG_FILE: [config],
            POLICY_FILE: [policy],
            DATASET: json_lines(cases),
            RESULTS: json_lines(results),
        },
        facts=(Facts(f"Samples of {file}", tuple(_facts(samples, has))),),
        left_out=left_out,
    )


_NO_TRACES = "Traces of an application are not in this version."


def text_id(text: str) -> str:
    """The id of a passage that has none: of its text alone."""
    return f"text-{digest_text(text)[:16]}"


def _passages(
    texts: Sequence[str] | None, ids: Sequence[str] | None, by_id: bool
) -> list[dict[str, Any]] | None:
    """Passages with their ids; None where there is nothing to make one of.

    Args:
        texts: their texts.
        ids: their ids in the file.
        by_id: whether documents of the file are compared by those ids.
    """
    if by_id:
        texts = texts if texts is not None else [""] * len(ids or ())
    elif texts is not None:
        ids = [text_id(text) for text in texts]
    if ids is None or texts is None:
        return None
    return [
        {"doc_id": one, "text": text} if text else {"doc_id": one}
        for one, text in zip(ids, texts, strict=True)
    ]


def _retrieved(sample: Sample, by_id: bool) -> list[dict[str, Any]] | None:
    return _passages(sample.retrieved_contexts, sample.retrieved_context_ids, by_id)


def _wanted(sample: Sample, by_id: bool) -> list[dict[str, Any]]:
    return _passages(sample.reference_contexts, sample.reference_context_ids, by_id) or []


def _case(name: str, sample: Sample, has: _Has) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    if sample.reference is not None:
        expected["answer"] = sample.reference
    wanted = _wanted(sample, has.by_id)
    if wanted:
        expected["relevant"] = [{"doc_id": one["doc_id"]} for one in wanted]
        expected["gold_context"] = [one for one in wanted if "text" in one]
    case = {"id": name, "input": {"question": sample.user_input}, "expected": expected}
    return case | ({"metadata": sample.rest} if sample.rest else {})


def _result(name: str, sample: Sample, has: _Has) -> dict[str, Any]:
    result: dict[str, Any] = {"case_id": name}
    retrieved = _retrieved(sample, has.by_id)
    if retrieved is not None:
        result["doc_ids"] = retrieved
    if sample.response is not None:
        result["answer"] = sample.response
    return result


def _check_cases(
    cases: Sequence[dict[str, Any]], samples: Sequence[Sample], file: str, problems: list[Problem]
) -> None:
    lines: dict[str, int] = {}
    for case, sample in zip(cases, samples, strict=True):
        check_case(case, file, sample.line, problems)
        first = lines.setdefault(case["id"], sample.line)
        if first != sample.line:
            message = f"The id {shown(case['id'])} is that of line {first} as well; ids are unique."
            problems.append(Problem(file, sample.line, "id", message))


def _evaluators(has: _Has) -> Iterator[Entry]:
    if has.answers:
        yield Entry(
            "Is there an answer at all?",
            {"type": "regex", "criterion": _GIVEN, "field": "answer", "pattern": r"\S"},
        )
    if has.references:
        yield Entry(
            "How many words does the answer share with the reference? 1 when all, 0 when none.",
            {"type": "token_f1", "criterion": _F1, "field": "answer"},
        )
    if has.labels:
        five, ten = min(5, has.deepest), min(10, has.deepest)
        yield Entry("Was a reference passage retrieved?", {"type": "hit_rate", "k": five})
        yield Entry("How many of them were?", {"type": "recall", "k": five})
        yield Entry("How far up does the first one stand?", {"type": "mrr", "k": ten})


def _left_out(has: _Has) -> Iterator[str]:
    if not has.answers:
        yield f"every metric that needs an answer {_OF_ANSWERS}: no row has a response"
    elif not has.references:
        yield f"metrics that compare the answer {_OF_ANSWERS}: no answered row has a reference"
    if not has.labels:
        yield (
            "metrics of retrieval (hit_rate, recall, mrr, …): no two rows have retrieved and "
            "reference contexts, or ids of both, to compare"
        )
    yield _NO_CONTEXT


def _rules(evaluators: Sequence[Entry]) -> list[Entry]:
    rules = {
        "regex": Entry(
            "Every question was answered. This counts what was observed.",
            {"id": "answers-given", "kind": "observed_count", "metric": _GIVEN, "max_failures": 0},
        ),
        "token_f1": Entry(
            "The answers are near the references, on average.",
            {"id": "answer-floor", "metric": _F1, "min": 0.5},
        ),
    }
    found = []
    for one in evaluators:
        kind = one.keys["type"]
        if kind == "hit_rate":
            metric = f"hit_rate_at_{one.keys['k']}"
            why = "The share of questions for which a reference passage was retrieved."
            found.append(Entry(why, {"id": "retrieval-floor", "metric": metric, "min": 0.8}))
        elif kind in rules:
            found.append(rules[kind])
    return found


def _facts(samples: Sequence[Sample], has: _Has) -> Iterator[Fact]:
    yield Fact(len(samples), "samples")
    yield Fact(sum(one.id is None for one in samples), "without an id, named row-N by their place")
    yield Fact(
        sum(one.response is None for one in samples),
        "without a response: missing in every metric of the answer, field_absent",
    )
    yield Fact(
        sum(not one.reference for one in samples),
        "without a reference: excluded from metrics that compare the answer, no_expected",
    )
    yield Fact(
        sum(_retrieved(one, has.by_id) is None for one in samples),
        "without a retrieval, or its ids: missing in every metric of it, artifact_absent",
    )
    yield Fact(
        sum(not _wanted(one, has.by_id) for one in samples),
        "without reference contexts: excluded from metrics of retrieval, no_relevance_labels",
    )
    by = "the ids in the file" if has.by_id else "their texts, because the file has no ids of both"
    yield Fact(
        sum(len(_retrieved(one, has.by_id) or ()) for one in samples),
        f"retrieved passages, compared by {by}",
    )
    columns = dict.fromkeys(name for one in samples for name in one.rest)
    named = f": {', '.join(columns)}" if columns else ""
    yield Fact(len(columns), f"further columns, kept as metadata{named}")
