"""`rag-assets export`: what a bundle holds, that it is the same every time, and what is refused."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from command_line import call, copy_example
from projects import SampleProject, relevant
from rag_assets.contracts.canonical import digest
from rag_assets.store import Store
from rag_assets.store.records import RunRow


@pytest.fixture(scope="module")
def rough(tmp_path_factory):
    """One run in which a case errors after a retry, and one cites nothing that a path leads to."""
    sample = SampleProject(tmp_path_factory.mktemp("rough"))
    sample.replace(
        "app.py",
        'log("generate", input["question"])',
        "assert not input['question'].startswith('f'), 'no\\u2028way'\n"
        "        if input['question'].startswith('c'):\n"
        "            return 'd'",
    )
    sample.replace(
        "rag_assets.yaml",
        "  name: sample\n",
        "  name: sample\n"
        "  retries: {attempts: 2, wait_s: 0.001, retry_on: ['builtins:AssertionError']}\n",
    )
    sample.write("release.yaml", "rules:\n  - {id: rank, metric: hit_rate_at_2, min: 0.5}\n")
    assert call(sample.root, "run").exit_code == 3
    return sample.root


@pytest.fixture(scope="module")
def bundle(rough):
    """The bundle of that run."""
    result = call(rough, "export", "latest")
    assert result.exit_code == 0, result.output
    folder = the_run(rough)
    assert result.stdout == f"bundles/{folder} holds 3 cases of {folder}.\n"
    return rough / "bundles" / folder


def the_run(root: Path) -> str:
    with Store(root / ".rag_assets" / "store.duckdb").reading() as reader:
        return reader.run_ids()[0]


def document(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def lines(path: Path):
    return [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_manifest_says_what_ran_and_what_the_files_are(rough, bundle):
    manifest = document(bundle / "manifest.json")
    assert (manifest["format"], manifest["id"]) == ("bundle/v1", the_run(rough))
    assert (manifest["state"], manifest["completeness"]) == ("DECIDED", "COMPLETE")
    assert (manifest["gate"], manifest["exit_code"], manifest["error"]) == ("BLOCK", 3, None)
    assert manifest["counts"] == {
        "cases": 3,
        "executions": {"BLOCKED": 1, "ERROR": 1, "OK": 13},
        "judgments": {"missing": 4, "observed": 5},
    }
    record = manifest["record"]
    assert {"config", "policy", "dataset", "evaluators", "packages"} <= record.keys()
    assert {"identity", "code"} <= record["system"].keys()
    held = content(bundle)
    del held["manifest.json"]
    assert manifest["files"] == {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in held.items()
    }
    assert sorted(held) == [
        "cases.jsonl",
        "decisions.json",
        "metrics.json",
        "tables/decisions.parquet",
        "tables/executions.parquet",
        "tables/judgments.parquet",
        "tables/metrics.parquet",
    ]


def test_a_line_holds_all_of_a_case(bundle):
    first, second, third = lines(bundle / "cases.jsonl")
    assert [first["id"], second["id"], third["id"]] == ["one", "two", "far"]
    assert first["case"]["expected"] == relevant("a", answer="of a")
    stages = {one["stage"]: one for one in first["executions"]}
    assert {name: one["state"] for name, one in stages.items()} == dict.fromkeys(stages, "OK")
    retrieved = first["artifacts"][stages["retrieval"]["digest"]]
    assert [one["text"] for one in retrieved["candidates"]] == ["text of a", "text of b"]
    output = first["artifacts"][stages["generation"]["digest"]]
    assert output == {"answer": "text of a text of b", "citations": ["a", "b"]}
    assert {name: digest(value) for name, value in first["artifacts"].items()} == {
        name: name for name in first["artifacts"]
    }
    assert [(one["criterion"], one["value"]) for one in first["judgments"]] == [
        ("answer_correct", True),
        ("hit_rate_at_2", True),
        ("citations_valid", True),
    ]
    (retrieval,) = first["retrieval"]
    assert retrieval["digest"] == stages["retrieval"]["digest"]
    assert retrieval["candidates"][0] == {
        "position": 1,
        "doc_id": "a",
        "chunk_id": None,
        "score": None,
        "relevant": True,
        "inadmissible": None,
        "fate": "context",
        "tokens": None,
    }
    assert [one["fate"] for one in second["retrieval"][0]["candidates"]] == [
        "context",
        "context",
        "top_k",
    ]
    assert first["citations"] == [{"digest": stages["generation"]["digest"], "value": ["a", "b"]}]
    assert second["citations"] == []


def test_an_error_comes_with_its_attempts_and_its_traceback(bundle):
    case = lines(bundle / "cases.jsonl")[2]
    failed = next(one for one in case["executions"] if one["stage"] == "generation")
    assert (failed["state"], failed["digest"]) == ("ERROR", None)
    assert failed["failure"]["reason"] == "execution_error"
    assert failed["failure"]["traceback"].startswith("Traceback")
    assert len(failed["attempts"]) == 2
    assert {one["state"] for one in failed["attempts"]} == {"error"}
    outcome = {one["criterion"]: one for one in case["judgments"]}["answer_correct"]
    assert (outcome["status"], outcome["reason"]) == ("missing", "execution_error")
    # A line separator of Unicode must not end a line for those who split by it.
    assert (bundle / "cases.jsonl").read_bytes().isascii()


def test_metrics_and_decisions_are_those_of_inspect(rough, bundle):
    shown = json.loads(call(rough, "inspect", "latest", "--json").stdout)
    metrics = document(bundle / "metrics.json")
    assert metrics == {"metrics": shown["metrics"], "slices": shown["slices"]}
    decisions = document(bundle / "decisions.json")
    assert decisions == {"gate": "BLOCK", "decisions": shown["decisions"]}
    assert decisions["decisions"][0]["rule"] == "rank"


def test_the_tables_are_rows_in_the_order_of_recording(rough, bundle):
    def rows(sql: str):
        return duckdb.sql(sql.format(tables=bundle / "tables")).fetchall()

    assert rows("SELECT case_id, criterion, value FROM '{tables}/judgments.parquet' LIMIT 2") == [
        ("one", "answer_correct", 1.0),
        ("one", "hit_rate_at_2", 1.0),
    ]
    assert rows("SELECT DISTINCT run_id FROM '{tables}/executions.parquet'") == [(the_run(rough),)]
    assert rows("SELECT count(*) FROM '{tables}/executions.parquet'") == [(15,)]
    assert rows("SELECT rule, state FROM '{tables}/decisions.parquet'") == [
        ("rank", "INSUFFICIENT_EVIDENCE")
    ]
    assert rows(
        "SELECT observed FROM '{tables}/metrics.parquet' WHERE criterion = 'hit_rate_at_2'"
    ) == [(3,)]


def test_a_repeated_export_is_the_same_whatever_ran_since(sample):
    sample.first_run()
    hits = sample.run().row.id
    assert call(sample.root, "export", hits, "--out", "first").exit_code == 0
    before = content(sample.root / "first")
    sample.run(use_cache=False)
    sample.run(["one"])
    assert call(sample.root, "export", hits, "--out", "second").exit_code == 0
    assert content(sample.root / "second") == before
    assert call(sample.root, "export", hits, "--out", "first").exit_code == 0
    assert content(sample.root / "first") == before
    assert sorted(path.name for path in sample.root.iterdir() if path.name[0] == ".") == [
        ".rag_assets"
    ]


def test_no_time_of_day_is_inside(rough, bundle):
    with Store(rough / ".rag_assets" / "store.duckdb").reading() as reader:
        (row,) = reader.runs()
    day = row.created_at[:10].encode()
    assert not [name for name, data in content(bundle).items() if day in data]


def test_a_selection_exports_its_cases(sample):
    sample.run(["two"])
    assert call(sample.root, "export", "latest", "--out", "out").exit_code == 0
    assert [one["id"] for one in lines(sample.root / "out" / "cases.jsonl")] == ["two"]
    manifest = document(sample.root / "out" / "manifest.json")
    assert (manifest["completeness"], manifest["record"]["selection"]) == ("PARTIAL", ["two"])


def test_several_rows_of_a_stage_all_appear(sample):
    run = sample.first_run()
    again = dataclasses.replace(run.stage("one", "generation"), latency_ms=7.0)
    judged = dataclasses.replace(run.judgment("one", "answer_correct"), value=0.0)
    other = dataclasses.replace(judged, case_id="unheard_of")
    with sample.store.writing() as writer:
        writer.add([again])
        writer.add([judged, other])
    assert call(sample.root, "export", "latest", "--out", "out").exit_code == 0
    first, *_, last = lines(sample.root / "out" / "cases.jsonl")
    generated = [one for one in first["executions"] if one["stage"] == "generation"]
    assert [one["latency_ms"] == 7.0 for one in generated] == [False, True]
    assert len(first["citations"]) == 2
    values = [one["value"] for one in first["judgments"] if one["criterion"] == "answer_correct"]
    assert values == [True, False]
    assert (last["id"], last["case"], last["executions"]) == ("unheard_of", None, [])
    assert len(last["judgments"]) == 1


# Going on, and dead


def unfinished(run: RunRow, owner: str) -> RunRow:
    return dataclasses.replace(
        run,
        id="run_" + "Z" * 26,
        state="RUNNING",
        completeness=None,
        gate=None,
        exit_code=None,
        finished_at=None,
        summary=None,
        owner=owner,
    )


def test_a_run_that_goes_on_is_refused(sample):
    first = sample.first_run().row
    row = unfinished(first, first.owner)
    with sample.store.writing() as writer:
        writer.add_run(row)
    result = call(sample.root, "export", row.id)
    assert result.exit_code == 2
    assert result.stderr == f"{row.id} is still going on. Export it when it has ended.\n"
    assert not (sample.root / "bundles").exists()


def test_a_dead_run_is_exported_as_it_will_be_marked(sample):
    nobody = json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1, "started": "1"})
    row = unfinished(sample.first_run().row, owner=nobody)
    with sample.store.writing() as writer:
        writer.add_run(row)
    assert call(sample.root, "export", row.id).exit_code == 0
    before = content(sample.root / "bundles" / row.id)
    manifest = json.loads(before["manifest.json"])
    assert (manifest["state"], manifest["completeness"]) == ("INTERRUPTED", "PARTIAL")
    assert (manifest["exit_code"], manifest["error"]) == (
        130,
        "its process ended before the run did",
    )
    sample.run()
    with sample.store.reading() as reader:
        marked = reader.run(row.id)
    assert marked is not None
    assert marked.state == "INTERRUPTED"
    assert call(sample.root, "export", row.id).exit_code == 0
    assert content(sample.root / "bundles" / row.id) == before


# Where it goes


def test_anything_else_in_its_place_is_left_alone(rough, bundle, tmp_path):
    run_id = the_run(rough)
    file = tmp_path / "file"
    file.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"format": "bundle/v1", "id": "run_other"}')
    for target, what in ((file, " but a file"), (folder, "")):
        result = call(rough, "export", "latest", "--out", str(target))
        assert result.exit_code == 2
        assert result.stderr == (
            f"{target} is not an earlier bundle of {run_id}{what}. "
            "Name another folder with --out, or move it away.\n"
        )
    assert file.read_text() == "mine"
    assert list(content(folder)) == ["manifest.json"]


def test_a_file_that_was_put_into_a_bundle_is_not_lost(rough, bundle, tmp_path):
    target = tmp_path / "made"
    assert call(rough, "export", "latest", "--out", str(target)).exit_code == 0
    (target / "tables" / "notes.txt").write_text("mine")
    result = call(rough, "export", "latest", "--out", str(target))
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"{target} holds tables/notes.txt, which is no part of the bundle."
    )
    assert (target / "tables" / "notes.txt").read_text() == "mine"
    (target / "tables" / "notes.txt").unlink()
    (target / "metrics.json").unlink()
    assert call(rough, "export", "latest", "--out", str(target)).exit_code == 0
    assert content(target) == content(bundle)


@pytest.mark.parametrize("name", ["cases.jsonl", "tables/metrics.parquet"])
def test_a_bundle_that_was_edited_is_left_alone(rough, tmp_path, name):
    target = tmp_path / "made"
    assert call(rough, "export", "latest", "--out", str(target)).exit_code == 0
    (target / name).write_bytes((target / name).read_bytes() + b"\n")
    edited = content(target)
    result = call(rough, "export", "latest", "--out", str(target))
    assert result.exit_code == 2
    assert result.stderr == (
        f"{target / name} is not as it was exported. "
        "Name another folder with --out, or move it away.\n"
    )
    assert content(target) == edited
    assert [one.name for one in tmp_path.iterdir()] == ["made"]


def test_a_bundle_that_cannot_be_replaced_stays(rough, tmp_path, monkeypatch):
    target = tmp_path / "made"
    assert call(rough, "export", "latest", "--out", str(target)).exit_code == 0
    before = content(target)
    rename = Path.rename

    def refusing(path, place):
        if path.suffix == ".part":
            raise OSError(errno.EACCES, "Permission denied")
        return rename(path, place)

    monkeypatch.setattr(Path, "rename", refusing)
    result = call(rough, "export", "latest", "--out", str(target))
    assert (result.exit_code, result.stderr) == (
        2,
        f"{target} cannot be written: Permission denied.\n",
    )
    assert content(target) == before
    assert [one.name for one in tmp_path.iterdir()] == ["made"]


def test_an_empty_folder_and_one_that_is_not_there_are_filled(rough, bundle, tmp_path):
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "a" / "b"):
        assert call(rough, "export", "latest", "--out", str(target)).exit_code == 0
        assert content(target) == content(bundle)


def test_a_place_that_cannot_be_written_is_named(rough, tmp_path):
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "bundle"
    result = call(rough, "export", "latest", "--out", str(target))
    assert result.exit_code == 2
    assert result.stderr == f"{target} cannot be written: Not a directory.\n"


def test_an_export_that_breaks_off_leaves_what_was_there(sample):
    sample.first_run()
    assert call(sample.root, "export", "latest").exit_code == 0
    (target,) = (sample.root / "bundles").iterdir()
    before = content(target)
    with duckdb.connect(str(sample.store.path)) as connection:
        connection.execute("UPDATE artifacts SET payload = '{' WHERE kind = 'retrieval/v1'")
    assert call(sample.root, "export", "latest").exit_code == 4
    assert list((sample.root / "bundles").iterdir()) == [target]
    assert content(target) == before


def test_unknown_references(sample):
    assert call(sample.root, "export", "latest").stderr.startswith("This project has no run yet.")
    sample.first_run()
    for reference, what in (("run_nothing", "run"), ("sha256:0", "comparison or diagnosis")):
        result = call(sample.root, "export", reference)
        assert result.exit_code == 2
        assert f'There is no {what} "{reference}"' in result.stderr
    assert not (sample.root / "bundles").exists()


# Comparisons


def test_a_comparison_is_its_record_and_both_sides_of_every_pair(tmp_path):
    root = copy_example(tmp_path / "p")
    call(root, "run")
    call(root, "run", "--cases", "se*")
    compared = call(root, "compare", "latest", "latest~1", "--json")
    record = json.loads(compared.stdout)
    name = record["comparison"].replace(":", "-")
    result = call(root, "export", record["comparison"][:20])
    assert result.exit_code == 0
    assert result.stdout == f"bundles/{name} holds 2 pairs of {record['comparison']}.\n"
    folder = root / "bundles" / name
    assert sorted(content(folder)) == ["comparison.json", "manifest.json", "pairs.jsonl"]
    held = document(folder / "comparison.json")
    assert f"sha256:{digest(held)}" == record["comparison"]
    manifest = document(folder / "manifest.json")
    assert (manifest["kind"], manifest["counts"]) == ("comparison", {"pairs": 2})
    assert (manifest["candidate"], manifest["gate"]) == (record["candidate"]["run"], "BLOCK")
    pairs = lines(folder / "pairs.jsonl")
    assert [one["id"] for one in pairs] == ["security_review", "seat_count"]
    for side in ("candidate", "baseline"):
        assert {one["criterion"]: one["value"] for one in pairs[1][side]} == {
            "answer_correct": False,
            "hit_rate_at_2": True,
            "recall_at_2": True,
            "ndcg_at_6": 1.0,
            "citations_valid": True,
        }
    before = content(folder)
    assert call(root, "export", record["comparison"]).exit_code == 0
    assert content(folder) == before


def test_a_comparison_with_a_run_that_went_on_is_refused(sample):
    first = sample.first_run().row
    row = unfinished(first, first.owner)
    with sample.store.writing() as writer:
        writer.add_run(row)
    compared = json.loads(call(sample.root, "compare", row.id, first.id, "--json").stdout)
    result = call(sample.root, "export", compared["comparison"])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{row.id} was still going on when it was compared")


# Memory

_MANY = """
import sys
from pathlib import Path
from rag_assets.contracts.canonical import canonical_json, digest_text
from rag_assets.store import CaseStage, Store
store, run_id, cases = Store(Path(sys.argv[1])), sys.argv[2], 3000
for start in range(0, cases, 500):
    payloads, rows = {}, []
    for number in range(start, start + 500):
        texts = [f"{number} {place} " + "text of a passage " * 110 for place in range(10)]
        found = [{"doc_id": str(place), "text": text} for place, text in enumerate(texts)]
        for stage, value in (
            ("cases", {"id": f"c{number}", "input": "q", "expected": {}}),
            ("retrieval", {"query": "q", "candidates": found}),
        ):
            text = canonical_json(value)
            payloads[digest_text(text)] = text
            rows.append(CaseStage(run_id, f"c{number}", stage, None, digest_text(text), "miss",
                                  1.0, None, None, None))
    with store.writing() as writer:
        writer.put_artifacts("any", payloads)
        writer.add(rows)
"""
_PEAK = """
import sys
from pathlib import Path
from rag_assets.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
# Not ru_maxrss, which starts with that of the process that started this one.
(peak,) = (row for row in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in row)
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory_grows_with_the_batch_and_not_with_the_suite(sample):
    """60 MB of passages: held all at once, they take 160 MiB more than three cases."""
    run_id = sample.run().row.id

    def peak() -> int:
        command = [sys.executable, "-c", _PEAK, "export", run_id]
        done = subprocess.run(command, cwd=sample.root, capture_output=True, text=True, check=True)
        return int(done.stdout.splitlines()[-1])

    small = peak()
    program = [sys.executable, "-c", _MANY, str(sample.store.path), run_id]
    subprocess.run(program, check=True)
    large = peak()
    assert len(lines(sample.root / "bundles" / run_id / "cases.jsonl")) == 3003
    assert large - small < 110, f"{small} MiB for 3 cases, {large} MiB for 3003"
