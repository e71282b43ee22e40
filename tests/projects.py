"""Small projects for tests: written to a folder, run through the real Dagster job."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from command_line import copy_example
from instances import give_instance, instance_of
from rag_assets.assets.running import run_suite
from rag_assets.evaluation.places import state_folder
from rag_assets.evaluation.project import load_project
from rag_assets.evaluation.session import Silent
from rag_assets.store import CaseStage, Decision, Metric, RunJudgment, RunRow, Store

APP = '''
import json
from pathlib import Path
from rag_assets import Passage, Retrieval, rag_system

HERE = Path(__file__).parent


def log(stage, question):
    with (HERE / "calls.log").open("a") as file:
        file.write(f"{stage} {question}\\n")


def answer_of(context):
    return {"answer": " ".join(p.text for p in context), "citations": [p.doc_id for p in context]}


@rag_system(name="sample", depth=4, top_k=2)
class Sample:
    """Plays back the documents that a question names: "a b c" retrieves a, b and c."""

    def retrieve(self, input, depth):
        log("retrieve", input["question"])
        passages = [Passage(doc_id=w, text=f"text of {w}") for w in input["question"].split()]
        return Retrieval(query=input["question"], candidates=passages[:depth])

    def generate(self, input, context):
        log("generate", input["question"])
        return answer_of(context)

    def count_tokens(self, passage):
        return len(passage.text.split())
'''

CONFIG = """
project: sample
dataset: cases.jsonl
system:
  name: sample
  rag:
    object: app:Sample
    index_version: v1
evaluators:
  - {type: contains, criterion: answer_correct, field: answer}
  - {type: hit_rate, k: 2}
  - {type: citation_validity}
"""


_FIRST_RUNS: dict[frozenset[tuple[str, bytes]], tuple[Path, str]] = {}
"""Files of a project → a project of those files after its first run, and the id of that run."""


@dataclass(frozen=True)
class Run:
    """What one run left in the store."""

    row: RunRow
    stages: list[CaseStage]
    judgments: list[RunJudgment]
    metrics: list[Metric]
    decisions: list[Decision]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads(self.row.summary or "{}")

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return self.summary["counts"]

    def metric(self, criterion: str, scope: str = "global") -> Metric:
        return next(m for m in self.metrics if m.criterion == criterion and m.scope == scope)

    def stage(self, case_id: str, stage: str) -> CaseStage:
        return next(s for s in self.stages if (s.case_id, s.stage) == (case_id, stage))

    def judgment(self, case_id: str, criterion: str) -> RunJudgment:
        return next(j for j in self.judgments if (j.case_id, j.criterion) == (case_id, criterion))


class SampleProject:
    """A project folder whose files a test may change between runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("app.py", APP)
        self.write("rag_assets.yaml", CONFIG)
        self.cases(
            {"id": "one", "input": {"question": "a b"}, "expected": relevant("a", answer="of a")},
            {"id": "two", "input": {"question": "c d e"}, "expected": relevant("d", answer="of d")},
            {"id": "far", "input": {"question": "f g h"}, "expected": relevant("h", answer="of h")},
        )

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def cases(self, *rows: Mapping[str, Any]) -> None:
        self.write("cases.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def calls(self) -> Counter[str]:
        """Stage → number of calls since the last look."""
        log = self.root / "calls.log"
        if not log.exists():
            return Counter()
        lines = log.read_text(encoding="utf-8").splitlines()
        log.unlink()
        return Counter(line.split()[0] for line in lines)

    @property
    def store(self) -> Store:
        return Store(self.root / ".rag_assets" / "store.duckdb")

    def instance(self) -> AbstractContextManager[dg.DagsterInstance]:
        """The Dagster instance of the project, open during the block."""
        return instance_of(self.root)

    def first_run(self) -> Run:
        """Be a project that was run once, and whose calls were looked at.

        Projects of the same files have the same first run: what it left is copied.
        """
        files = [path for path in sorted(self.root.rglob("*")) if path.is_file()]
        key = frozenset((str(path.relative_to(self.root)), path.read_bytes()) for path in files)
        if key not in _FIRST_RUNS:
            _FIRST_RUNS[key] = self._run_a_copy()
        folder, run_id = _FIRST_RUNS[key]
        shutil.copytree(state_folder(folder), state_folder(self.root))
        return self.read(run_id)

    def _run_a_copy(self) -> tuple[Path, str]:
        twin = copy(self)
        twin.root = Path(tempfile.mkdtemp(prefix="rag_assets_first_run_"))
        atexit.register(shutil.rmtree, twin.root, ignore_errors=True)
        shutil.copytree(self.root, twin.root, dirs_exist_ok=True)
        return twin.root, twin.run().row.id

    def run(
        self,
        cases: Sequence[str] | None = None,
        *,
        use_cache: bool = True,
        config: str = "rag_assets.yaml",
    ) -> Run:
        project = load_project(self.root / config)
        give_instance(self.root)
        run_id = run_suite(project, cases=cases, use_cache=use_cache, observer=Silent())
        return self.read(run_id)

    def newest(self) -> Run:
        with self.store.reading() as reader:
            (run_id, *_) = reader.run_ids()
        return self.read(run_id)

    def read(self, run_id: str) -> Run:
        with self.store.reading() as reader:
            row = reader.run(run_id)
            assert row is not None
            return Run(
                row,
                reader.case_stages(run_id),
                reader.run_judgments(run_id),
                reader.metrics(run_id),
                reader.decisions(run_id),
            )


class Example(SampleProject):
    """A copy of an example, without what earlier runs left behind."""

    def __init__(self, folder: Path, name: str = "support_rag") -> None:
        self.root = copy_example(folder / name, name)


def slow_at(sample: SampleProject, *, cases: int, place: int) -> None:
    """Let a project have so many cases c0, c1, …, which are answered one at a time.

    The generation at a place, counted from 1, makes the file `waiting`, and waits for `go`.
    """
    sample.cases(
        *(
            {"id": f"c{index}", "input": {"question": f"d{index}"}, "expected": relevant("x")}
            for index in range(cases)
        )
    )
    one_at_a_time = "project: sample\nconcurrency: {system: 1}"
    sample.replace("rag_assets.yaml", "project: sample", one_at_a_time)
    sample.replace("app.py", "import json", "import json, time")
    sample.replace(
        "app.py",
        "return answer_of(context)",
        "wait_if_its_turn(input)\n        return answer_of(context)",
    )
    sample.replace(
        "app.py",
        "def answer_of(",
        "def wait_if_its_turn(input):\n"
        f"    if input['question'] == 'd{place - 1}':\n"
        "        (HERE / 'waiting').touch()\n"
        "        while not (HERE / 'go').exists():\n"
        "            time.sleep(0.01)\n\n\n"
        "def answer_of(",
    )


def relevant(*doc_ids: str, answer: str | None = None) -> dict[str, Any]:
    """An `expected` with relevance labels."""
    return {"answer": answer, "relevant": [{"doc_id": doc_id} for doc_id in doc_ids]}
