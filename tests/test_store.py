"""The store on a real DuckDB file, with real other processes."""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rag_assets.contracts.errors import StoreError, StoreLockedError, StoreVersionError
from rag_assets.store import (
    CaseStage,
    Decision,
    Head,
    Judgment,
    Metric,
    RunJudgment,
    RunRow,
    StageResult,
    Store,
)
from rag_assets.store.schema import MIGRATIONS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "store.duckdb"


@pytest.fixture
def store(path: Path) -> Store:
    return Store(path, lock_timeout_s=5.0)


def run_row(run_id: str, created_at: str = "2026-09-16T10:00:00.000+00:00") -> RunRow:
    return RunRow(
        id=run_id,
        created_at=created_at,
        finished_at=None,
        project="support",
        origin="run",
        parent=None,
        dagster_run_id=None,
        state="RUNNING",
        completeness=None,
        gate=None,
        exit_code=None,
        owner='{"pid":1}',
        heartbeat="2026-09-16T10:00:00.000+00:00",
        error=None,
        record='{"a":1}',
        summary=None,
    )


def stage_result(identity: str, digest: str = "d1") -> StageResult:
    return StageResult(identity, "retrieval", digest, "run_1", 12.5, '{"input_tokens":3}')


METRIC = Metric("run_1", "global", "hit_at_2", "verdict", 0.5, 0.25, None, 4, 1, 0, "{}")
CASE_STAGE = CaseStage("run_1", "c1", "retrieval", "i1", "d1", "miss", 1.5, None, None, None)
RUN_JUDGMENT = RunJudgment("run_1", "c1", "hit_at_2", "k1", "miss", "observed", 1.0, None, None)
JUDGMENT = Judgment("k1", "observed", 1.0, None, '{"invalid":[]}')
DECISION = Decision("run_1", "quality", "hit_at_2", "PASS", "{}")
HEAD = Head("prod", "support/retrieval", "c1", "f1", "v1")


# An empty store


def test_a_store_that_does_not_exist_reads_as_empty_and_is_not_made(
    store: Store, path: Path
) -> None:
    assert not store.exists()
    with store.reading() as reader:
        assert reader.stage_results(["i1"]) == {}
        assert reader.payloads(["d1"]) == {}
        assert reader.judgments(["k1"]) == {}
        assert reader.heads("prod", ["support/retrieval"]) == {}
        assert (reader.runs(), reader.running(), reader.run("run_1")) == ([], [], None)
        assert (reader.case_stages("run_1"), reader.run_judgments("run_1")) == ([], [])
        assert (reader.metrics("run_1"), reader.decisions("run_1")) == ([], [])
        assert reader.decisions_of(["run_1"]) == []
    assert not path.parent.exists()


def test_a_database_without_tables_reads_as_empty(store: Store, path: Path) -> None:
    path.parent.mkdir()
    duckdb.connect(str(path)).close()
    with store.reading() as reader:
        assert reader.runs() == []


def test_the_first_write_makes_folder_tables_and_version(store: Store, path: Path) -> None:
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    assert store.exists()
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        versions = connection.execute("SELECT number FROM schema_migrations").fetchall()
    assert [name for (name,) in tables] == [
        "artifacts",
        "comparisons",
        "decisions",
        "diagnoses",
        "heads",
        "judgments",
        "labels",
        "metrics",
        "run_cases",
        "run_judgments",
        "runs",
        "sample_stages",
        "schema_migrations",
        "settled_cases",
        "stage_results",
    ]
    assert versions == [(number,) for number in range(1, len(MIGRATIONS) + 1)]


def test_an_empty_look_up_finds_nothing(store: Store) -> None:
    with store.writing() as writer:
        writer.put_stage_results([stage_result("i1")])
    with store.reading() as reader:
        assert reader.stage_results([]) == {}
        assert reader.payloads([]) == {}
        assert reader.heads("prod", []) == {}


# Writing and reading back


def test_every_row_comes_back_as_it_was_written(store: Store) -> None:
    excluded = replace(JUDGMENT, key="k2", status="excluded", value=None, reason="no_expected")
    second = replace(METRIC, criterion="exact", kind="score", estimate=None, lower=None)
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
        writer.put_artifacts("retrieval/v1", {"d1": '{"ä":"\\u0000 \x7f"}', "d2": ""})
        writer.put_stage_results([stage_result("i1"), replace(stage_result("i2"), usage=None)])
        writer.put_judgments([JUDGMENT, excluded])
        writer.add([CASE_STAGE, replace(CASE_STAGE, stage="generation", digest=None)])
        writer.add([RUN_JUDGMENT, replace(RUN_JUDGMENT, case_id="c2", key=None, value=None)])
        writer.add([METRIC, second])
        writer.add([DECISION, replace(DECISION, rule="other")])
        writer.put_heads({("prod", "support/retrieval", "c1"): HEAD})
    with store.reading() as reader:
        assert reader.runs() == [run_row("run_1")]
        assert reader.run("run_1") == run_row("run_1")
        assert reader.run("run_2") is None
        assert reader.payloads(["d2", "d1", "d3"]) == {"d1": '{"ä":"\\u0000 \x7f"}', "d2": ""}
        assert reader.stage_results(["i1", "i2", "i3"]) == {
            "i1": stage_result("i1"),
            "i2": replace(stage_result("i2"), usage=None),
        }
        assert reader.judgments(["k1", "k2", "k3"]) == {"k1": JUDGMENT, "k2": excluded}
        assert reader.case_stages("run_1") == [
            CASE_STAGE,
            replace(CASE_STAGE, stage="generation", digest=None),
        ]
        assert reader.run_judgments("run_1", ["c2"]) == [
            replace(RUN_JUDGMENT, case_id="c2", key=None, value=None)
        ]
        assert reader.metrics("run_1") == [METRIC, second]
        assert reader.decisions("run_1") == [DECISION, replace(DECISION, rule="other")]
        assert reader.decisions("run_2") == []
        assert reader.decisions_of(["run_1", "run_2"]) == reader.decisions("run_1")
        assert reader.heads("prod", ["support/retrieval"]) == {("support/retrieval", "c1"): HEAD}
        assert reader.heads("other", ["support/retrieval"]) == {}


def test_values_of_one_column_may_be_whole_broken_or_missing(store: Store) -> None:
    values = [1, 0.5, None, 0.0]
    rows = [
        replace(RUN_JUDGMENT, case_id=f"c{index}", value=value)
        for index, value in enumerate(values)
    ]
    with store.writing() as writer:
        writer.add(rows)
        writer.add([replace(row, criterion="none", value=None) for row in rows])
    with store.reading() as reader:
        found = reader.run_judgments("run_1")
    assert [row.value for row in found] == [1.0, 0.5, None, 0.0, None, None, None, None]


def test_a_run_is_updated_in_some_columns(store: Store) -> None:
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
        writer.add_run(run_row("run_2"))
    with store.writing() as writer:
        writer.update_run("run_1", state="DECIDED", exit_code=3, gate=None)
    with store.reading() as reader:
        assert reader.run("run_1") == replace(run_row("run_1"), state="DECIDED", exit_code=3)
        assert reader.running() == [run_row("run_2")]


def test_runs_are_listed_newest_first_and_by_id_within_a_millisecond(store: Store) -> None:
    rows = [
        run_row("run_b", "2026-09-16T10:00:00.001+00:00"),
        run_row("run_c", "2026-09-16T10:00:00.001+00:00"),
        run_row("run_a", "2026-09-16T10:00:00.002+00:00"),
    ]
    with store.writing() as writer:
        for row in rows:
            writer.add_run(row)
    with store.reading() as reader:
        assert [row.id for row in reader.runs()] == ["run_a", "run_c", "run_b"]
        assert [row.id for row in reader.runs(2)] == ["run_a", "run_c"]
        assert reader.run_ids() == ["run_a", "run_c", "run_b"]


def test_lists_leave_out_children_and_single_materializations(store: Store) -> None:
    shown = run_row("run_1", "2026-09-16T10:00:00+00:00")
    child = replace(run_row("run_2", "2026-09-16T10:00:01+00:00"), parent="diagnosis_1")
    single = replace(run_row("run_3", "2026-09-16T10:00:02+00:00"), origin="materialize")
    with store.writing() as writer:
        for row in (shown, child, single):
            writer.add_run(row)
    with store.reading() as reader:
        assert reader.listed_runs(10) == [shown]
        assert reader.listed_runs(2, everything=True) == [single, child]


# The first one stays


def test_what_is_known_keeps_its_first_value(store: Store) -> None:
    with store.writing() as writer:
        writer.put_artifacts("a/v1", {"d1": "first"})
        writer.put_stage_results([stage_result("i1", "first")])
        writer.put_judgments([JUDGMENT])
    with store.writing() as writer:
        writer.put_artifacts("b/v1", {"d1": "second", "d2": "new"})
        writer.put_stage_results([stage_result("i1", "second"), stage_result("i2", "new")])
        writer.put_judgments([replace(JUDGMENT, value=0.0), replace(JUDGMENT, key="k2")])
    with store.reading() as reader:
        assert reader.payloads(["d1", "d2"]) == {"d1": "first", "d2": "new"}
        found = reader.stage_results(["i1", "i2"])
        assert {key: result.digest for key, result in found.items()} == {
            "i1": "first",
            "i2": "new",
        }
        assert {key: one.value for key, one in reader.judgments(["k1", "k2"]).items()} == {
            "k1": 1.0,
            "k2": 1.0,
        }


def test_the_first_of_two_in_one_batch_is_kept(store: Store, path: Path) -> None:
    with store.writing() as writer:
        writer.put_stage_results([stage_result("i1", "first"), stage_result("i1", "second")])
        writer.put_stage_results([stage_result("i1", "third")])
    with store.reading() as reader:
        assert reader.stage_results(["i1"])["i1"].digest == "first"
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM stage_results").fetchone() == (1,)


def test_heads_are_replaced_and_forgotten(store: Store) -> None:
    keys = {name: ("prod", "support/retrieval", name) for name in ("c1", "c2", "c3")}
    heads = {key: replace(HEAD, case_id=name) for name, key in keys.items()}
    with store.writing() as writer:
        writer.put_heads(heads)
        writer.put_heads({("test", *keys["c1"][1:]): replace(HEAD, instance="test")})
    with store.writing() as writer:
        changed = replace(HEAD, case_id="c2", fingerprint="f2")
        writer.put_heads({keys["c1"]: None, keys["c2"]: changed, ("prod", "x", "c9"): None})
    with store.reading() as reader:
        assert reader.heads("prod", ["support/retrieval"]) == {
            ("support/retrieval", "c2"): changed,
            ("support/retrieval", "c3"): replace(HEAD, case_id="c3"),
        }
        assert list(reader.heads("test", ["support/retrieval"])) == [("support/retrieval", "c1")]


# Many rows


def test_ten_thousand_identities_are_looked_up_at_once(store: Store) -> None:
    results = [stage_result(f"i{index}", f"d{index}") for index in range(10_000)]
    payloads = {f"d{index}": f'"{index}"' for index in range(10_000)}
    with store.writing() as writer:
        writer.put_stage_results(results)
        writer.put_artifacts("retrieval/v1", payloads)
    asked = [f"i{index}" for index in range(5_000, 15_000)]
    began = time.monotonic()
    with store.reading() as reader:
        found = reader.stage_results(asked)
        texts = reader.payloads(list(payloads))
    assert time.monotonic() - began < 3.0
    assert found == {result.identity: result for result in results[5_000:]}
    assert texts == payloads


def test_rows_keep_their_order_over_many_statements(store: Store) -> None:
    rows = [replace(CASE_STAGE, case_id=f"c{index}") for index in range(2_501)]
    with store.writing() as writer:
        writer.add(rows[:2])
        writer.add(rows[2:])
    with store.reading() as reader:
        assert reader.case_stages("run_1") == rows
        assert reader.case_stages("run_1", ["c2000"]) == [rows[2000]]


# Transactions


class UserError(Exception):
    pass


def fail_while_writing(store: Store, kind: type[BaseException]) -> None:
    with store.writing() as writer:
        writer.add_run(run_row("run_2"))
        writer.put_artifacts("a/v1", {"d1": "lost"})
        raise kind


@pytest.mark.parametrize("kind", [UserError, KeyboardInterrupt])
def test_an_exception_leaves_nothing_behind(store: Store, kind: type[BaseException]) -> None:
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    with pytest.raises(kind):
        fail_while_writing(store, kind)
    with store.reading() as reader:
        assert reader.runs() == [run_row("run_1")]
        assert reader.payloads(["d1"]) == {}


def test_a_first_write_that_fails_can_be_repeated(store: Store) -> None:
    with pytest.raises(UserError):
        fail_while_writing(store, UserError)
    with store.reading() as reader:
        assert reader.runs() == []
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    with store.reading() as reader:
        assert reader.runs() == [run_row("run_1")]


def test_a_statement_that_fails_is_the_error_that_is_seen(store: Store) -> None:
    nothing: Any = None
    broken = replace(run_row("run_1"), project=nothing)
    with pytest.raises(duckdb.ConstraintException, match="NOT NULL"), store.writing() as writer:
        writer.add_run(broken)
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    with store.reading() as reader:
        assert reader.runs() == [run_row("run_1")]


def test_what_a_transaction_wrote_it_does_not_write_again(store: Store) -> None:
    with store.writing() as writer:
        writer.put_artifacts("a/v1", {"d1": "first"})
        writer.put_artifacts("a/v1", {"d1": "second"})
    with store.reading() as reader:
        assert reader.payloads(["d1"]) == {"d1": "first"}


# Files that are no store


def test_a_newer_schema_is_refused_for_reading_and_writing(store: Store, path: Path) -> None:
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    newer = len(MIGRATIONS) + 1
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES ($1)", [newer])
    said = (
        f"The store was written by a newer version of rag-assets (schema {newer}; this version "
        f"knows {len(MIGRATIONS)}). Upgrade rag-assets, or use another state folder."
    )
    for opening in (Store(path).reading(), Store(path).writing()):
        with pytest.raises(StoreVersionError) as caught, opening:
            pytest.fail("it was opened")
        assert str(caught.value) == said
    assert StoreVersionError.exit_code == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello " * 1000, "not a valid DuckDB database file"),
        (b"", "not a valid DuckDB database file"),
        (None, "Is a directory"),
    ],
)
def test_another_file_is_refused_at_once(
    store: Store, path: Path, content: bytes | None, words: str
) -> None:
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_bytes(content)
    for opening in (store.reading(), store.writing()):
        with pytest.raises(StoreError, match=words) as caught, opening:
            pytest.fail("it was opened")
        assert str(caught.value).startswith(f"{path} cannot be used: ")
        assert re.search(r"[^. ]\. If the file is damaged, ", str(caught.value))
        assert not isinstance(caught.value, StoreLockedError)
    assert content is None or path.read_bytes() == content


def test_a_damaged_file_is_refused(store: Store, path: Path) -> None:
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    content = bytearray(path.read_bytes())
    content[20:220] = b"\xff" * 200
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="cannot be used"), Store(path).reading():
        pytest.fail("it was opened")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    path = tmp_path / "state" / "deep" / "store.duckdb"
    with pytest.raises(StoreError) as caught, Store(path).writing():
        pytest.fail("it was opened")
    assert str(caught.value) == f"{path} cannot be created: Not a directory."


# Memory

FILL = """
import random, resource, sys
from pathlib import Path
from rag_assets.store import Store

store, batches = Store(Path(sys.argv[1])), int(sys.argv[2])
texts = random.Random(0)
for batch in range(batches):
    payloads = {f"{batch} {row}": texts.randbytes(10_000).hex() for row in range(1000)}
    with store.writing() as writer:
        writer.put_artifacts("a/v1", payloads)
with store.reading() as reader:
    assert reader.payloads(list(payloads)) == payloads
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_what_is_stored(tmp_path: Path) -> None:
    def peak_mb(batches: int) -> int:
        command = [sys.executable, "-c", FILL, str(tmp_path / f"{batches}.duckdb"), str(batches)]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    # 20 MB and 240 MB of payloads; DuckDB keeps some blocks, more of them on a busy machine.
    assert peak_mb(12) - peak_mb(1) < 150


# Other processes

HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
connection.close()
"""

DIE = """
import sys
from pathlib import Path
from rag_assets.store import Store
store = Store(Path(sys.argv[1]))
for number in range(3):
    with store.writing() as writer:
        writer.put_artifacts("a/v1", {f"d{number}": "committed"})
with store.writing() as writer:
    writer.put_artifacts("a/v1", {f"lost{number}": "x" * 10_000 for number in range(500)})
    print("written", flush=True)
    sys.stdin.read()
"""


@contextmanager
def running(script: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has said its word and waits; it ends when its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() != ""
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(timeout=10)


@pytest.fixture
def filled(store: Store, path: Path) -> Store:
    with store.writing() as writer:
        writer.add_run(run_row("run_1"))
    return store


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_a_store_that_is_held_for_long_names_the_process(
    filled: Store, path: Path, how: str
) -> None:
    impatient = Store(path, lock_timeout_s=0.1)
    with running(HOLD, path) as process:
        began = time.monotonic()
        with pytest.raises(StoreLockedError) as caught, getattr(impatient, how)():
            pytest.fail("it was opened")
        assert 0.1 <= time.monotonic() - began < 3.0
    text = str(caught.value)
    assert text.startswith(f"{path} has been in use by process {process.pid} (")
    assert text.endswith(
        ") for more than 0.1 s. Wait for that process or end it; store.lock_timeout_s in the "
        "config sets the patience."
    )
    assert "\n" not in text
    with filled.reading() as reader:
        assert reader.runs() == [run_row("run_1")]


@pytest.mark.parametrize("how", ["reading", "writing"])
def test_a_store_that_is_held_for_a_moment_is_waited_for(
    filled: Store, path: Path, how: str
) -> None:
    with running(HOLD, path) as process:
        assert process.stdin is not None
        threading.Timer(0.2, process.stdin.close).start()
        began = time.monotonic()
        with getattr(filled, how)():
            assert time.monotonic() - began >= 0.15


def test_a_writer_and_a_reader_of_one_process_wait_for_each_other(
    filled: Store, path: Path
) -> None:
    seen: list[list[RunRow]] = []

    def look() -> None:
        with Store(path, lock_timeout_s=5.0).reading() as reader:
            seen.append(reader.runs())

    thread = threading.Thread(target=look)
    with filled.writing() as writer:
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        writer.add_run(run_row("run_2"))
    thread.join(10)
    assert [[row.id for row in rows] for rows in seen] == [["run_2", "run_1"]]


def test_readers_do_not_exclude_each_other(filled: Store, path: Path) -> None:
    with filled.reading() as one, Store(path, lock_timeout_s=0).reading() as other:
        assert one.runs() == other.runs() == [run_row("run_1")]


def test_after_a_kill_only_what_was_committed_is_there(path: Path) -> None:
    lost = [f"lost{number}" for number in range(500)]
    with running(DIE, path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    for _ in range(2):
        store = Store(path, lock_timeout_s=1.0)
        with store.reading() as reader:
            assert reader.payloads([f"d{number}" for number in range(3)]) == {
                f"d{number}": "committed" for number in range(3)
            }
            assert reader.payloads(lost) == {}
        with store.writing() as writer:
            writer.add_run(run_row("run_1"))


def test_a_table_that_cannot_be_written_is_no_fault_of_the_store(
    store: Store, tmp_path: Path
) -> None:
    with store.writing() as writer:
        writer.add([CASE_STAGE])
    target = tmp_path / "nowhere" / "table.parquet"
    with store.reading() as reader, pytest.raises(OSError, match="Cannot open file") as raised:
        reader.write_parquet("run_cases", "run_1", target)
    assert raised.value.filename == str(target)
