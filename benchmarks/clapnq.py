"""Abstaining by score on CLAPNQ: 300 questions that a passage answers, and 300 that none does.

python -m benchmarks --only clapnq

The corpus are the passages of all 600 questions. A question without an answer comes with a passage
of the right article, too, which does not answer it: what has to be told apart looks alike.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.budgets import Section, table
from benchmarks.cranfield import APP, recorded_candidates
from benchmarks.data import data_folder
from rag_assets.assets.running import run_suite
from rag_assets.evaluation.comparing import compare_runs
from rag_assets.evaluation.project import Project, load_project
from rag_assets.evaluation.session import Silent
from rag_assets.store import Metric

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "abstention.png"
DEPTH = 10
CHOSEN = 7
THRESHOLDS = (0, 4, 5, 6, CHOSEN, 8, 9, 10, 12, 15)
_KINDS = {
    "slice/metadata.answerable=yes": "answered, of the 300 with an answer",
    "slice/metadata.answerable=no": "abstained, of the 300 without",
}
"""Scope → what a pass of `abstention` is there."""
EVALUATORS = """\
evaluators:
  - {type: hit_rate, k: 1}
  - {type: hit_rate, k: 5}
  - {type: mrr, k: 10}
  - {type: abstention, field: abstained}
slices: [metadata.answerable]
"""
STAGED = f"""\
project: clapnq
dataset: cases.jsonl
system:
  name: abstaining-bm25
  config: {{abstain_below: {CHOSEN}}}
  rag: {{object: "app:AbstainingBm25", depth: {DEPTH}, top_k: 3, index_version: "1"}}
{EVALUATORS}"""
RECORDED = """\
project: clapnq_{threshold}
dataset: cases.jsonl
system:
  name: threshold-{threshold}
  recorded: {{path: results-{threshold}.jsonl}}
{evaluators}"""
POLICY = """\
rules:
  # The right passage is first in at least four of five questions that have one.
  - {id: found-first, metric: hit_rate_at_1, min: 0.8}
  # It answers where it can and abstains where it cannot, in at least three of four.
  - {id: knows-its-limits, metric: abstention, min: 0.75}
"""


@dataclass(frozen=True)
class Point:
    """What a threshold comes to.

    Attributes:
        threshold: the least score with which the system answers.
        metrics: scope → the metric `abstention`, for all questions and the two kinds.
        change: scope → difference from the threshold before, with its interval; empty for the
            first.
    """

    threshold: float
    metrics: Mapping[str, Metric]
    change: Mapping[str, str]


def clapnq(folder: Path, picture: Path = PICTURE) -> Section:
    """Run the staged system once, then every threshold on what it retrieved."""
    project = load_project(write_project(folder / "clapnq", data_folder("clapnq")))
    run_id = run_suite(project, cases=None, use_cache=True, observer=Silent())
    points = _sweep(project, run_id)
    draw(points, picture)
    link = f"../docs/images/{picture.name}"
    lines = [
        *_run_lines(project, run_id),
        "",
        *_sweep_lines(points),
        "",
        f"![Answered and abstained, against the threshold]({link})",
    ]
    return Section("clapnq", lines)


def write_project(folder: Path, data: Path) -> Path:
    """Write the staged project; returns its config file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(APP, folder / "app.py")
    documents: dict[str, str] = {}
    cases = [
        _case(row, is_answerable, documents)
        for name, is_answerable in (("answerable", True), ("unanswerable", False))
        for row in _rows(data / f"clapnq_dev_{name}.jsonl")
    ]
    assert len({case["id"] for case in cases}) == 600
    _write_rows(folder / "cases.jsonl", cases)
    rows = [{"doc_id": doc_id, "text": text} for text, doc_id in documents.items()]
    _write_rows(folder / "documents.jsonl", rows)
    (folder / "release.yaml").write_text(POLICY, encoding="utf-8")
    config = folder / "rag_assets.yaml"
    config.write_text(STAGED, encoding="utf-8")
    return config


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _case(row: Mapping[str, Any], is_answerable: bool, documents: dict[str, str]) -> dict[str, Any]:
    """The case of a question; its passage is added to the documents, each text once."""
    (passage,) = row["passages"]
    text = f"{passage['title']}. {passage['text']}"
    doc_id = documents.setdefault(text, f"passage-{len(documents) + 1}")
    answers = {"behavior": "answer", "relevant": [{"doc_id": doc_id}]}
    return {
        "id": row["id"],
        "input": {"question": row["input"]},
        "expected": answers if is_answerable else {"behavior": "abstain"},
        "metadata": {"answerable": "yes" if is_answerable else "no"},
    }


def _sweep(project: Project, run_id: str) -> list[Point]:
    """Every threshold as a recorded config, compared with the one before."""
    folder, before = project.config.root, ""
    retrieved = recorded_candidates(project.store, run_id)
    points = []
    for threshold in THRESHOLDS:
        results = [
            {
                "case_id": case_id,
                "doc_ids": candidates,
                "abstained": not candidates or candidates[0]["score"] < threshold,
            }
            for case_id, candidates in retrieved.items()
        ]
        _write_rows(folder / f"results-{threshold}.jsonl", results)
        config = folder / f"threshold-{threshold}.yaml"
        text = RECORDED.format(threshold=threshold, evaluators=EVALUATORS)
        config.write_text(text, encoding="utf-8")
        recorded = load_project(config)
        ours = run_suite(recorded, cases=None, use_cache=True, observer=Silent())
        change = _changes(config, ours, before) if before else {}
        points.append(Point(threshold, _abstention(recorded, ours), change))
        before = ours
    return points


def _abstention(project: Project, run_id: str) -> dict[str, Metric]:
    with project.store.reading() as reader:
        metrics = reader.metrics(run_id)
    return {one.scope: one for one in metrics if one.criterion == "abstention"}


def _changes(config: Path, candidate: str, baseline: str) -> dict[str, str]:
    """Scope → paired difference of `abstention`, as the table shows it."""
    document = compare_runs(config, candidate, baseline, None).view.as_json()
    (whole,) = (one for one in document["metrics"] if one["criterion"] == "abstention")
    rows = {"global": whole} | {
        f"slice/{'='.join(one['slice'])}": one
        for one in document["slices"]["rows"]
        if one["criterion"] == "abstention"
    }
    return {scope: _points(row) for scope, row in rows.items()}


def _points(row: Mapping[str, Any]) -> str:
    difference, lower, upper = (100 * row[key] for key in ("estimate", "lower", "upper"))
    return f"{difference:+.1f} [{lower:+.1f}, {upper:+.1f}]"


def _share(metric: Metric) -> str:
    numbers = (metric.estimate, metric.lower, metric.upper)
    form = "{:.1%} [{:.1%}, {:.1%}]" if metric.kind == "verdict" else "{:.3f} [{:.3f}, {:.3f}]"
    return "none" if None in numbers else form.format(*numbers)


def _run_lines(project: Project, run_id: str) -> list[str]:
    """The run at the chosen threshold: metrics, the two slices, and the gate."""
    with project.store.reading() as reader:
        metrics, decisions = reader.metrics(run_id), reader.decisions(run_id)
        run = reader.run(run_id)
    assert run is not None
    shown = {(one.scope, one.criterion): one for one in metrics}
    rows = [
        (
            f"`{one.criterion}`",
            _share(one),
            f"{one.observed} / {one.missing} / {one.excluded}",
            *(_share(shown[scope, one.criterion]) if _is_split(one) else "–" for scope in _KINDS),
        )
        for one in metrics
        if one.scope == "global"
    ]
    header = ("metric", "all", "observed / missing / excluded", *_KINDS.values())
    told = "; ".join(f"`{one.rule}` {one.state}" for one in decisions)
    return [*table(header, rows), "", f"Gate: {run.gate}. {told}."]


def _is_split(metric: Metric) -> bool:
    """Only `abstention` has a value for both kinds of questions."""
    return metric.criterion == "abstention"


def _sweep_lines(points: Sequence[Point]) -> list[str]:
    header = ["threshold"]
    for kind in ("all", *_KINDS.values()):
        header += [kind, "change, in points"]
    rows = [
        [
            f"{point.threshold:g}",
            *(
                cell
                for scope in ("global", *_KINDS)
                for cell in (_share(point.metrics[scope]), point.change.get(scope, ""))
            ),
        ]
        for point in points
    ]
    return table(header, rows)


def draw(points: Sequence[Point], picture: Path) -> None:
    """Draw the shares against the threshold, and against each other, with their intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    thresholds = [point.threshold for point in points]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for (scope, name), colour in zip(_KINDS.items(), ("tab:blue", "tab:orange"), strict=True):
        found = [point.metrics[scope] for point in points]
        shares, label = [one.estimate for one in found], name.partition(",")[0]
        left.plot(thresholds, shares, marker="o", color=colour, label=label)
        lower, upper = [one.lower for one in found], [one.upper for one in found]
        left.fill_between(thresholds, lower, upper, color=colour, alpha=0.2, linewidth=0)
    left.set(title="Right reactions, with 95 % intervals", xlabel="threshold", ylabel="share")
    left.legend(loc="center right")
    answered, abstained = (
        [point.metrics[scope].estimate or 0 for point in points] for scope in _KINDS
    )
    right.plot(answered, abstained, marker="o", color="tab:green")
    right.plot([0, 1], [1, 0], linestyle=":", color="grey", label="by chance")
    for x, y, threshold in zip(answered, abstained, thresholds, strict=True):
        right.annotate(f"{threshold:g}", (x, y), textcoords="offset points", xytext=(6, 4))
    right.set(title="The trade-off", xlabel="answered", ylabel="abstained")
    right.legend(loc="lower left")
    for axes in (left, right):
        axes.set(ylim=(0, 1.03))
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=110, metadata={"Software": None})
    plt.close(figure)
