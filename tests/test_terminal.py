"""No text of a case, a passage, an answer or an error reaches the terminal with control in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import call, events
from projects import SampleProject, relevant
from rag_assets.reports.layout import Cell, block, grid, heading, line, packed, rows

# Clear the screen, set the title, colours by a C1 character, back over what was printed, a next
# line, a bell, text turned around, and a line and a paragraph separator.
NASTY = "\x1b[2J\x1b]0;title\x07\x9b31m\r\b\x85\x00\x7f\u202e\u2066\u200f\u061c\u2028\u2029!"
# An id must not hold control characters, but it may hold these.
TURNED = "\u202e\u2066\u200f\u061c\u2028\u2029!"
_DIRECTION = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_MARKS = {"\u200e", "\u200f", "\u061c"}

APP = """
from rag_assets import Passage, Retrieval, rag_system

NASTY = {nasty!r}
METADATA = {{NASTY: NASTY}}


@rag_system(name="s" + NASTY, version="v" + NASTY, depth=4, top_k=2, config={{"c" + NASTY: NASTY}})
class Sample:
    def retrieve(self, input, depth):
        passages = [
            Passage(doc_id=NASTY + place, chunk_id=NASTY, text="t" + NASTY, metadata=METADATA)
            for place in "012"
        ]
        return Retrieval(query=NASTY, candidates=passages)

    def generate(self, input, context):
        if input["kind"] == "error":
            raise type("Error" + NASTY, (Exception,), {{}})("no " + NASTY)
        return {{"answer": "a" + NASTY, NASTY: NASTY, "citations": [NASTY]}}


def judge(output):
    return {{"value": False, "reason": "r" + NASTY}}


def broken(output):
    raise ValueError("b" + NASTY)
"""
CONFIG = """
project: {project}
dataset: cases.jsonl
system:
  name: {nasty}
  version: {nasty}
  rag: {{object: "app:Sample", index_version: {nasty}}}
evaluators:
  - {{type: contains, criterion: answer_correct, field: answer}}
  - {{type: hit_rate, k: 2}}
  - {{type: citation_validity}}
  - {{type: custom, criterion: judged, object: "app:judge", kind: verdict}}
  - {{type: custom, criterion: broken, object: "app:broken", kind: verdict}}
slices: [metadata.topic]
min_slice_support: 1
"""


def controls(text: str) -> set[str]:
    """What in a text could move the cursor, turn text around or start another line."""
    return {
        char
        for char in text
        if (unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") and char != "\n")
        or unicodedata.bidirectional(char) in _DIRECTION
        or char in _MARKS
    }


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A project that has NASTY wherever text may stand, with two runs."""
    sample = SampleProject(tmp_path_factory.mktemp("nasty"))
    sample.write("app.py", APP.format(nasty=NASTY))
    sample.write(
        "rag_assets.yaml", CONFIG.format(nasty=json.dumps(NASTY), project=json.dumps("p" + NASTY))
    )
    sample.write("release.yaml", "rules:\n  - {id: floor, metric: answer_correct, min: 0.9}\n")
    sample.write(
        "compare.yaml",
        "rules:\n  - {id: as-good, kind: non_inferiority, metric: judged, margin: 0.1}\n",
    )
    sample.cases(
        *(
            {
                "id": f"{kind}{TURNED}",
                "input": {"kind": kind, NASTY: NASTY},
                "expected": {**relevant(NASTY + "0"), "answer": "w" + NASTY},
                "metadata": {"topic": "m" + NASTY, NASTY: NASTY},
            }
            for kind in ("error", "good")
        )
    )
    runs = [call(sample.root, "run", "--slices")]
    sample.replace("rag_assets.yaml", "judged", "judged_anew")
    sample.replace("compare.yaml", "judged", "judged_anew")
    runs.append(call(sample.root, "run"))
    assert [run.exit_code for run in runs] == [3, 3], runs[0].output
    return sample.root, runs


COMMANDS = {
    "check": ["check"],
    "runs": ["runs"],
    "inspect": ["inspect", "latest"],
    "failures": ["inspect", "latest", "--failures"],
    "case": ["inspect", "latest", "--case", f"good{TURNED}"],
    "error": ["inspect", "latest", "--case", f"error{TURNED}"],
    "no case": ["inspect", "latest", "--case", f"none{NASTY}"],
    "no run": ["inspect", f"run{NASTY}"],
    "one too many": ["inspect", "latest", NASTY],
    "compare": ["compare", "latest", "latest~1", "--slices"],
    "gate": ["gate", "latest"],
    "plan": ["plan", "latest"],
}
WITH_JSON = COMMANDS.keys() - {"check"}


def test_a_run_shows_no_control_characters(nasty):
    _, runs = nasty
    for run in runs:
        assert r"m\x1b[2J\x1b]0;title\x07" in run.stdout
        assert not controls(run.stdout)
        assert not controls(run.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_control_characters(nasty, command):
    root, _ = nasty
    result = call(root, *COMMANDS[command])
    assert result.exit_code in (0, 2, 3)
    assert len(result.output) > 40
    assert not controls(result.stdout)
    assert not controls(result.stderr)


@pytest.mark.parametrize("command", sorted(WITH_JSON))
def test_json_is_ascii(nasty, command):
    root, _ = nasty
    shown = call(root, *COMMANDS[command], "--json").stdout
    assert shown.isascii()
    assert not controls(shown)


def test_json_loses_nothing(nasty):
    root, _ = nasty
    (case,) = events(call(root, "inspect", "latest", "--case", f"good{TURNED}", "--json"))
    assert case["case"]["id"] == f"good{TURNED}"
    assert case["case"]["metadata"] == {"topic": "m" + NASTY, NASTY: NASTY}
    assert case["retrieval"][0]["text"] == "t" + NASTY
    assert case["output"] == {"answer": "a" + NASTY, NASTY: NASTY, "citations": [NASTY]}
    judged = next(one for one in case["judgments"] if one["criterion"] == "judged_anew")
    assert judged["reason"] == "r" + NASTY


@pytest.mark.parametrize("command", ["runs", "inspect", "failures", "case", "error", "compare"])
def test_a_terminal_receives_colours_and_no_other_control(nasty, command):
    root, _ = nasty
    shown = on_a_terminal(root, COMMANDS[command])
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.replace("\r\n", "\n"))
    assert not controls(text), text
    assert not any(row.endswith(" ") for row in text.split("\n"))


def on_a_terminal(root, arguments) -> str:
    """What a command writes to a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    program = f"from rag_assets.cli import main; main({arguments!r})"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        found = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return found.decode("utf-8")


def _read(terminal: int) -> bytes:
    """What there is to read; nothing when the other side is closed, which Linux calls an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


TEXT = st.text(st.one_of(st.characters(), st.sampled_from(NASTY)), max_size=20)
ROW = st.tuples(TEXT, TEXT, TEXT)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(ROW, min_size=1, max_size=4), st.one_of(st.none(), st.integers(1, 80)))
def test_no_part_of_the_layout_lets_control_characters_pass(table, width):
    cells = [Cell(text, "bold") for row in table for text in row]
    shown = [
        *rows(table, width, below=[block(row[0], 4) for row in table]),
        *grid(table[0], table, width),
        *packed(cells, width),
        heading(table[0][0]),
        line(*cells, *table[0], indent=2),
    ]
    assert not controls("\n".join(one.plain for one in shown))
    assert not controls("".join(cell.text for one in shown for cell in one.cells) + "\n")
