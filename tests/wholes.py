"""Small projects whose system is called as a whole, run through the real Dagster job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from projects import Run, SampleProject, relevant

APP = '''
from pathlib import Path

from rag_assets import current_case, system

HERE = Path(__file__).parent


def log(question):
    with (HERE / "calls.log").open("a") as file:
        file.write(f"call {question}\\n")


@system(version="1", records=["retrieval/v1", "context/v1", "citations/v1", "trace"])
def answer(case_input):
    """Plays back the documents that a question names; the first two are its context."""
    question = case_input["question"]
    log(question)
    case = current_case()
    passages = [{"doc_id": w, "text": f"text of {w}"} for w in question.split()]
    case.retrieval(query=question, depth=4, candidates=passages)
    case.context(items=passages[:2])
    case.citations([one["doc_id"] for one in passages[:2]])
    case.artifact("trace", {"words": len(passages)})
    case.usage(input_tokens=10)
    return {"answer": " ".join(one["text"] for one in passages[:2])}
'''

CONFIG = """
project: sample
dataset: cases.jsonl
system:
  name: sample
  callable: app:answer
evaluators:
  - {type: contains, criterion: answer_correct, field: answer}
  - {type: hit_rate, k: 2}
  - {type: citation_validity}
"""


class WholeProject(SampleProject):
    """A project folder whose files a test may change between runs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write("app.py", APP)
        self.write("rag_assets.yaml", CONFIG)

    def of_system(self, *lines: str) -> None:
        """Replace the system of the config."""
        self.replace("rag_assets.yaml", "  callable: app:answer", "\n".join(lines))

    def of_service(self, url: str, *lines: str) -> None:
        """Call a service that answers {"answer": …, "found": […]}, and let it find documents."""
        self.of_system(
            '  version: "1"',
            *lines,
            "  http:",
            f"    url: {url}",
            "    output_path: out",
            "    artifacts: {retrieval/v1: found}",
        )
        self.replace("rag_assets.yaml", "  - {type: citation_validity}\n", "")

    def payload(self, run: Run, case_id: str, stage: str) -> Any:
        """What a stage of a case produced."""
        found = run.stage(case_id, stage).digest
        assert found is not None
        with self.store.reading() as reader:
            return json.loads(reader.payloads([found])[found])


def cases_of(*questions: str) -> list[dict[str, Any]]:
    """Cases c1, c2, … of which each names its relevant document first."""
    return [
        {
            "id": f"c{number}",
            "input": {"question": question},
            "expected": relevant(question.split()[0], answer=question.split()[0]),
        }
        for number, question in enumerate(questions, start=1)
    ]
