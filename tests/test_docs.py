"""The pages of the documentation say what the program does now."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from docs.meanings import CONFIG, POLICY
from docs.outputs import PAGES, ROOT, PageError, with_outputs
from docs.reference import REFERENCE, keys
from rag_assets.cli import main
from rag_assets.contracts.config import Config
from rag_assets.contracts.policy import Policy

ALL_PAGES = (*PAGES, *REFERENCE, "docs/metrics.md")
STALE = "The page is out of date: run `make docs` and look at the difference."
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Up to a comment, a pipe, or what the shell does with the output.
CALL = re.compile(r"(?:^[ $]*|Next: |&& )(rag-assets .+?)(?= +[#|>&]|$)", re.MULTILINE)


def calls_on(text):
    """Every call of the program in the blocks of a page, and in its inline code."""
    inline = re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    return CALL.findall("\n".join([*BLOCK.findall(text), *inline]))


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_outputs_on_a_page_are_what_the_commands_print(page, tmp_path):
    assert with_outputs(text_of(page), tmp_path) == text_of(page), STALE


@pytest.mark.parametrize("page", REFERENCE)
def test_a_reference_page_is_what_the_program_says_of_itself(page):
    assert REFERENCE[page]() == text_of(page), STALE


@pytest.mark.parametrize(("model", "meanings"), [(Config, CONFIG), (Policy, POLICY)])
def test_every_key_of_a_file_has_a_meaning(model, meanings):
    assert [key for key, _, _ in keys(model)] == list(meanings)


def parsed(call):
    """The command of a call, once click has accepted its arguments."""
    _, *arguments = shlex.split(call)
    try:
        context = main.make_context("rag-assets", list(arguments))
        name, command, rest = main.resolve_command(context, arguments)
        command.make_context(name, rest, parent=context)
    except click.exceptions.Exit:
        return "--help"
    except click.ClickException as error:
        pytest.fail(f"{call}: {error.format_message()}")
    return name


@pytest.mark.parametrize("page", ALL_PAGES)
def test_every_call_on_a_page_parses(page):
    assert {parsed(call) for call in calls_on(text_of(page))} <= {"--help", *main.commands}


def test_the_calls_on_a_page_are_found():
    text = (
        "Type `rag-assets run --limit 3` here;\n"
        "rag-assets says so.\n"
        "```sh\ncd my-rag && rag-assets check  # first\n$ rag-assets runs | grep -E x\n```\n"
    )
    assert calls_on(text) == ["rag-assets check", "rag-assets runs", "rag-assets run --limit 3"]


def test_a_call_that_does_not_exist_is_found_out():
    with pytest.raises(pytest.fail.Exception, match="No such option"):
        parsed("rag-assets run --everything")


def test_the_readme_shows_every_command():
    shown = {parsed(call) for call in calls_on(text_of("README.md"))}
    assert shown == {"--help", *main.commands}


@pytest.mark.parametrize("page", ALL_PAGES)
def test_relative_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text_of(page))
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_every_make_target_of_the_readme_exists():
    targets = set(re.findall(r"^(\w+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", text_of("README.md"), re.MULTILINE)) <= targets


def test_a_page_is_a_sequence_of_steps(tmp_path):
    page = (
        "<!-- project: support_rag -->\n"
        "<!-- output: rag-assets run --limit 2 | grep -E '^(Run|Stages)' -->\n"
        "```console\nwhat was here before\n```\n"
        "in between\n"
        "<!-- edit: rag_assets.yaml: token_budget: 40 -> token_budget: 400 -->\n"
        "<!-- output: rag-assets runs | grep -E '^run_' -->\n"
    )
    assert with_outputs(page, tmp_path) == (
        "<!-- project: support_rag -->\n"
        "<!-- output: rag-assets run --limit 2 | grep -E '^(Run|Stages)' -->\n"
        "```console\n"
        "$ rag-assets run --limit 2 | grep -E '^(Run|Stages)'\n"
        "Run run_01KF0000000000000000000001 [DECIDED/PARTIAL]\n"
        "Stages: retrieve 0 hit/2 miss; generate 0 hit/2 miss\n"
        "```\n"
        "in between\n"
        "<!-- edit: rag_assets.yaml: token_budget: 40 -> token_budget: 400 -->\n"
        "<!-- output: rag-assets runs | grep -E '^run_' -->\n"
        "```console\n"
        "$ rag-assets runs | grep -E '^run_'\n"
        "run_01KF0000000000000000000001  2026-01-15 09:30:00Z  DECIDED/PARTIAL  BLOCK  "
        "answer-floor INSUFFICIENT_EVIDENCE  retrieval-floor INSUFFICIENT_EVIDENCE  "
        "citations-valid PASS\n"
        "```\n"
    )
    config = next(tmp_path.rglob("rag_assets.yaml")).read_text(encoding="utf-8")
    assert "\n    token_budget: 400\n" in config


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("<!-- output: rag-assets runn -->\n", "rag-assets runn ended with 2"),
        ("<!-- error: rag-assets check -->\n", "rag-assets check ended with 0"),
        ("<!-- output: rm -r x -->\n", "rm -r x is no command"),
        ("<!-- output: rag-assets runs | grep -E -v x -->\n", "is no command"),
        ("<!-- edit: rag_assets.yaml: depth: 7 -> depth: 8 -->\n", "and holds it 0 ×"),
        ("<!-- file: notes.txt -->\n", "No block stands below"),
    ],
)
def test_a_step_that_cannot_be_taken_is_named(steps, message, tmp_path):
    page = f"<!-- project: support_rag -->\n{steps}"
    with pytest.raises(PageError, match=re.escape(message)):
        with_outputs(page, tmp_path)
