"""`rag-assets labels`: out to reviewers, and back into the store."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from command_line import call, document
from corpora import lines
from projects import Example

WORKSHEET = (
    "case_id,criterion,question,context,facts,answer,answer_digest,value,claim_id,claim_text,supported,"
    "fact_id,covered,reviewer,at,note"
)

AGREED = "claim_support: r1 and r2 agree on 1 of 2 labels (50.0%), kappa 0.000"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The example with a formula for a question, without labels, after a run."""
    project = Example(tmp_path_factory.mktemp("desk"), "access_rag")
    project.replace("rag_assets.yaml", "labels: data/labels.jsonl\n", "")
    project.replace("data/cases.jsonl", "Is there a kiln for pottery?", "=1+1")
    project.replace(
        "data/results.jsonl",
        '"state": "denied", "answer": "I cannot help with that: it is not for members."',
        '"state": "valid", "doc_ids": ["P-v1"], "context_ids": [{"doc_id": "P-v1", "text": '
        '"At night the alarm in the store is disarmed with 7714 at the side entrance, within half '
        'a minute."}], "answer": "The alarm in the store is disarmed with '
        '7714 at the side entrance."',
    )
    project.run()
    return project


def sheet(project: Example, *options: str) -> list[dict[str, str]]:
    """The rows of the worksheet for the claims of the latest run."""
    command = ("labels", "export", "latest", "--criterion", "claim_support", *options)
    result = call(project.root, *command)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == WORKSHEET
    return list(csv.DictReader(io.StringIO(result.stdout)))


def filled(rows: list[dict[str, str]]) -> str:
    made = io.StringIO()
    writer = csv.DictWriter(made, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()


def claim(row: dict[str, str], unit: str, supported: str, reviewer: str = "r1") -> dict[str, str]:
    return {**row, "claim_id": unit, "supported": supported, "reviewer": reviewer}


def test_a_worksheet_has_one_row_for_each_answer(desk: Example) -> None:
    rows = sheet(desk)
    assert [row["case_id"] for row in rows] == ["R01", "R02", "R03", "R04", "R05"]
    first = rows[0]
    assert first["question"].startswith("How long can I keep a drill")
    # Nothing but ids is recorded, and the manifest has the texts.
    assert first["context"].startswith("[A-v2] A power tool can be borrowed for seven days.\n\n[X")
    assert [row["facts"] for row in rows] == ["F1|F2", "F3|F4", "", "", ""]
    assert first["answer"].startswith('{"abstained":false,"answer":"You can keep a drill')
    digests = [desk.read(desk_run(desk)).stage(row["case_id"], "generation").digest for row in rows]
    assert [row["answer_digest"] for row in rows] == digests
    empty = WORKSHEET.split(",")[7:]
    assert {row[name] for row in rows for name in empty} == {""}
    # A spreadsheet would have computed the question.
    assert rows[2]["question"] == "'=1+1"


def desk_run(project: Example) -> str:
    with project.store.reading() as reader:
        return reader.runs(1)[0].id


def test_a_worksheet_tells_nobody_what_the_user_may_not_see(desk: Example) -> None:
    restricted = sheet(desk)[3]
    assert "7714" not in str(restricted)
    assert restricted["context"].startswith("[P-v1] [restricted: ")
    assert "[restricted: " in restricted["answer"]


def test_a_worksheet_may_show_everything(desk: Example) -> None:
    (row,) = (one for one in sheet(desk, "--include-restricted") if one["case_id"] == "R04")
    assert "7714" in row["context"]
    assert "7714" in row["answer"]


def test_a_worksheet_that_nothing_reads_says_so(desk: Example) -> None:
    result = call(desk.root, "labels", "export", "latest", "--criterion", "no_leak")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == (
        "No evaluator reads the labels of no_leak: they would change no metric."
    )


def test_a_worksheet_is_written_to_a_new_file_only(desk: Example) -> None:
    out = ("labels", "export", "latest", "--criterion", "fact_coverage", "--out", "sheet.csv")
    result = call(desk.root, *out)
    assert (result.exit_code, result.stdout) == (0, "sheet.csv holds 5 answers to label.\n")
    assert "1 case without an answer left out: R06" in result.stderr
    before = (desk.root / "sheet.csv").read_bytes()
    assert call(desk.root, *out).exit_code == 2
    assert (desk.root / "sheet.csv").read_bytes() == before
    (desk.root / "sheet.csv").unlink()


def test_a_worksheet_is_for_a_criterion_of_the_run(desk: Example) -> None:
    result = call(desk.root, "labels", "export", "latest", "--criterion", "claim_suport")
    assert result.exit_code == 2
    assert 'has no criterion "claim_suport". Did you mean "claim_support"?' in result.stderr


def test_labels_go_out_and_come_back(desk: Example) -> None:
    rows = sheet(desk)
    again = call(desk.root, "run")
    assert again.stderr.splitlines()[-1] == (
        "To label what is not labelled yet: rag-assets labels export latest "
        "--criterion claim_support --out to-label.csv"
    )
    # To wait for a reviewer is no failure.
    failures = document(call(desk.root, "inspect", "latest", "--failures", "--json"))["failures"]
    assert [one["case"] for one in failures] == ["R04", "R06"]
    unlabelled = desk.read(desk_run(desk)).judgment("R02", "claim_support")
    assert (unlabelled.status, unlabelled.reason) == ("missing", "not_labelled")
    labelled = [
        claim(rows[0], "F1", "TRUE"),
        claim(rows[0], "F2", "supported"),
        claim(rows[1], "F3", "supported"),
        claim(rows[1], "G1", "unsupported"),
        rows[2],
    ]
    desk.write("filled.csv", filled(labelled))
    result = call(desk.root, "labels", "import", "filled.csv")
    assert (result.exit_code, result.stdout) == (
        0,
        "filled.csv holds 4 labels; 4 new.\n",
    )
    again = call(desk.root, "labels", "import", "filled.csv")
    assert again.stdout == "filled.csv holds 4 labels; 0 new.\n"

    run = desk.run()
    metric = run.metric("claim_support")
    assert (metric.estimate, metric.observed) == (0.75, 2)
    assert run.judgment("R01", "claim_support").source == "miss"
    # Only what reads the labels of these answers is judged anew.
    assert run.judgment("R01", "recall_at_3").source == "hit"
    repeated = desk.run()
    assert repeated.judgment("R01", "claim_support").source == "hit"

    compared = call(desk.root, "compare", "latest", "latest~2")
    assert "Labels differ: " in compared.stdout


def test_labels_that_nothing_reads_are_kept_and_told(desk: Example) -> None:
    row = {**sheet(desk)[0], "criterion": "abstention", "value": "fail", "reviewer": "r1"}
    desk.write("unread.csv", filled([row]))
    result = call(desk.root, "labels", "import", "unread.csv")
    assert (result.exit_code, result.stdout) == (0, "unread.csv holds 1 label; 1 new.\n")
    assert result.stderr == (
        "No evaluator reads the labels of abstention: they are kept, and change no metric.\n"
    )
    assert desk.run().judgment("R01", "abstention").value == 1.0


def test_a_changed_answer_has_no_labels(desk: Example) -> None:
    desk.replace("data/results.jsonl", "The woodshop opens at ten.", "It opens at ten.")
    run = desk.run()
    found = run.judgment("R02", "claim_support")
    assert (found.status, found.reason) == ("missing", "answer_changed_since_label")
    assert run.judgment("R01", "claim_support").source == "hit"
    desk.replace("data/results.jsonl", "It opens at ten.", "The woodshop opens at ten.")


def test_a_file_with_a_problem_is_refused_as_a_whole(desk: Example) -> None:
    with desk.store.reading() as reader:
        before = reader.labels()
    rows = sheet(desk)
    wrong = [
        claim(rows[0], "new", "supported"),
        {**claim(rows[1], "new", "perhaps"), "case_id": "R99"},
        {**claim(rows[1], "new", "supported"), "criterion": "recall_at_3"},
    ]
    text = filled(wrong)
    desk.write("wrong.csv", text)
    result = call(desk.root, "labels", "import", "wrong.csv")
    assert result.exit_code == 2
    numbers = [number for number, one in enumerate(text.splitlines(), 1) if one.startswith("R")]
    assert [one.split(": ")[:2] for one in result.stderr.splitlines()] == [
        [f"wrong.csv:{numbers[1]}", "case_id"],
        [f"wrong.csv:{numbers[1]}", "supported"],
        [f"wrong.csv:{numbers[2]}", "claim_id"],
    ]
    with desk.store.reading() as reader:
        assert reader.labels() == before


def test_the_files_of_a_config_are_checked_with_it(tmp_path: Path) -> None:
    project = Example(tmp_path, "access_rag")
    project.write("data/labels.jsonl", lines({"case_id": "R01", "criterion": "claim_support"}))
    result = call(project.root, "check")
    assert result.exit_code == 2
    assert "data/labels.jsonl:1: reviewer: reviewer is required: say who labelled." in result.stderr
    project.replace("rag_assets.yaml", "labels: data/labels.jsonl", "labels: data/none.jsonl")
    result = call(project.root, "check")
    assert result.exit_code == 2
    assert "There is no file data/none.jsonl in the folder of the config file." in result.stderr
    # A glob may match nothing yet.
    project.replace("rag_assets.yaml", "labels: data/none.jsonl", "labels: labels/*.csv")
    assert call(project.root, "check").exit_code == 0


def test_reviewers_who_disagree_are_on_record(desk: Example) -> None:
    rows = sheet(desk)
    second = [claim(rows[0], "F1", "contradicted", "r2"), claim(rows[0], "F2", "true", "r2")]
    desk.write("second.csv", filled(second))
    assert call(desk.root, "labels", "import", "second.csv").exit_code == 0
    found = desk.run().judgment("R01", "claim_support")
    assert (found.status, found.reason) == ("excluded", "reviewers_disagree")

    shown = call(desk.root, "inspect", "latest").stdout
    assert AGREED in shown
    assert "    R01  claim F1  r1: supported, r2: contradicted" in shown
    agreement = document(call(desk.root, "inspect", "latest", "--json"))["agreement"]
    assert agreement == [
        {
            "criterion": "claim_support",
            "reviewers": ["r1", "r2"],
            "agreed": 1,
            "labels": 2,
            "kappa": 0.0,
            "disagreements": [
                {
                    "case": "R01",
                    "about": "claim",
                    "unit": "F1",
                    "by": {"r1": "supported", "r2": "contradicted"},
                }
            ],
        }
    ]

    assert f"Agreement of reviewers\n{AGREED}" in call(desk.root, "run").stdout

    none = {**sheet(desk)[1], "value": "no_claims", "reviewer": "r2"}
    desk.write("none.csv", filled([none]))
    assert call(desk.root, "labels", "import", "none.csv").exit_code == 0
    shown = call(desk.root, "run").stdout
    assert "    R02  answer  r1: makes claims, r2: no_claims" in shown

    desk.replace("rag_assets.yaml", "system:", "label_disagreement: strictest\nsystem:")
    assert desk.run().judgment("R01", "claim_support").value == 0.5
