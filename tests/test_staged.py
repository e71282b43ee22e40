import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assets.contracts.config import read_config
from rag_assets.contracts.errors import Problem
from rag_assets.contracts.loading import forget_project_modules
from rag_assets.systems.staged import StagedSystem, load_staged

APP = """
from rag_assets import Passage, Retrieval, rag_system


@rag_system({declaration})
class Rag:
    def retrieve(self, input, depth):
        return Retrieval(query=input, candidates=[])

    def generate(self, input, context):
        return ""

    def count_tokens(self, passage):
        return 1
"""
DECLARED = 'depth=6, top_k=2, version="1"'

CONFIG = """\
project: support
dataset: cases.jsonl
system:
  name: bot
{system}  rag:
    object: {object}
{rag}evaluators:
  - type: contains
    criterion: answer_correct
"""


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    path = list(sys.path)
    yield
    forget_project_modules()
    sys.path[:] = path


def lines(indent: int, **keys: Any) -> str:
    return "".join(f"{' ' * indent}{key}: {value}\n" for key, value in keys.items())


class Place:
    """A project folder with an app and a config."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("cases.jsonl", '{"id": "c", "input": "Q?"}\n')
        self.app()

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    def app(
        self, declaration: str = DECLARED, *, edit: tuple[str, str] = ("", ""), more: str = ""
    ) -> None:
        source = APP.replace("{declaration}", declaration)
        assert edit[0] in source
        self.write("app.py", source.replace(*edit) + more)

    def load(
        self, *, object: str = "app:Rag", system: dict[str, Any] | None = None, **rag: Any
    ) -> tuple[StagedSystem | None, list[Problem]]:
        forget_project_modules()
        text = CONFIG.format(object=object, system=lines(2, **(system or {})), rag=lines(4, **rag))
        self.write("rag_assets.yaml", text)
        problems: list[Problem] = []
        config = read_config(self.root / "rag_assets.yaml", problems)
        assert config is not None, problems
        return load_staged(config, "rag_assets.yaml", problems), problems

    def system(self, **settings: Any) -> StagedSystem:
        system, problems = self.load(**settings)
        assert problems == []
        assert system is not None
        return system

    def problems(self, **settings: Any) -> list[tuple[int, str, str]]:
        """Line, key and message of each problem."""
        system, problems = self.load(**settings)
        assert system is None
        assert {problem.file for problem in problems} == {"rag_assets.yaml"}
        return [(problem.line, problem.key, problem.message) for problem in problems]

    def problem(self, **settings: Any) -> tuple[int, str, str]:
        (problem,) = self.problems(**settings)
        return problem


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# What applies


def test_the_decorator_declares_what_the_config_leaves_open(place: Place) -> None:
    place.app(
        'name="decorated", version="3", depth=6, top_k=2, token_budget=40, '
        'index_version="kb-1", config={"model": "small"}, citations_path="cited.ids"'
    )
    system = place.system()
    assert system.settings == {
        "name": "bot",
        "version": "3",
        "config": {"model": "small"},
        "depth": 6,
        "top_k": 2,
        "token_budget": 40,
        "index_version": "kb-1",
        "citations_path": "cited.ids",
        "code": {name: code.digest for name, code in system.code.items()},
    }
    assert list(system.code) == ["retrieve", "generate", "count_tokens"]
    assert system.function("generate")("Q?", []) == ""


def test_the_config_overrides_the_decorator(place: Place) -> None:
    place.app(
        'version="3", depth=6, top_k=2, token_budget=40, index_version="kb-1", '
        'config={"model": "small", "more": 1}'
    )
    system = place.system(
        system={"version": '"4"', "config": "{model: large}"},
        depth=5,
        top_k=4,
        token_budget=9,
        index_version="kb-2",
    )
    assert (system.version, system.config) == ("4", {"model": "large"})
    assert (system.depth, system.top_k, system.token_budget) == (5, 4, 9)
    assert system.index_version == "kb-2"


def test_null_in_the_config_leaves_the_value_of_the_decorator(place: Place) -> None:
    place.app("depth=6, top_k=2, token_budget=40, index_version='kb-1'")
    system = place.system(depth="null", top_k="null", token_budget="null", index_version="null")
    assert (system.depth, system.top_k, system.token_budget) == (6, 2, 40)
    assert system.index_version == "kb-1"


def test_an_undecorated_class_works_with_a_config(place: Place) -> None:
    place.app(edit=(f"@rag_system({DECLARED})\n", ""))
    system = place.system(depth=3, top_k=3)
    assert (system.depth, system.top_k, system.token_budget) == (3, 3, None)
    assert (system.version, system.config, system.index_version) == (None, {}, None)
    assert system.citations_path == "citations"


def test_an_instance_is_used_as_it_is(place: Place) -> None:
    place.app(more="\n\nready = Rag()\nready.marked = True\n")
    system = place.system(object="app:ready")
    assert system.instance.marked is True
    assert system.depth == 6


def test_a_class_inherits_its_declaration(place: Place) -> None:
    place.app(more="\n\nclass Better(Rag):\n    pass\n")
    assert place.system(object="app:Better").depth == 6


def test_citations_may_be_switched_off(place: Place) -> None:
    place.app("depth=6, top_k=2, citations_path=None")
    assert place.system().citations_path is None


def test_the_identity_tells_settings_apart(place: Place) -> None:
    base = place.system().identity
    assert place.system().identity == base
    others = [
        place.system(depth=7),
        place.system(top_k=3),
        place.system(token_budget=3),
        place.system(index_version="kb"),
        place.system(system={"version": '"2"'}),
        place.system(system={"config": "{a: 1}"}),
    ]
    unchanged = [
        place.system(system={"timeout_s": 3}),
        place.system(system={"retries": "{attempts: 2}"}),
        place.system(depth=6),
    ]
    assert len({base, *(system.identity for system in others)}) == 7
    assert {system.identity for system in unchanged} == {base}
    place.app(edit=('return ""', 'return "x"'))
    assert place.system().identity != base


# Seeds and async stages


def test_a_stage_takes_the_seed_when_it_names_it(place: Place) -> None:
    place.app(
        edit=("def generate(self, input, context)", "def generate(self, input, context, seed)")
    )
    system = place.system()
    assert (system.takes_seed("generate"), system.takes_seed("retrieve")) == (True, False)
    place.app(edit=("input, context)", "input, context, **more)"))
    assert not place.system().takes_seed("generate")
    place.app(edit=("input, context)", "input, context, *, seed=0)"))
    assert place.system().takes_seed("generate")


def test_async_stages_are_seen(place: Place) -> None:
    place.app(edit=("def generate", "async def generate"))
    system = place.system()
    assert (system.is_async("generate"), system.is_async("retrieve")) == (True, False)


def test_what_a_decorator_makes_of_a_stage_counts(place: Place) -> None:
    decorators = """
import asyncio, functools

def blocking(function):
    @functools.wraps(function)
    def run(*args):
        return asyncio.run(function(*args))
    return run

def later(function):
    @functools.wraps(function)
    async def run(*args):
        return function(*args)
    return run

class Rag(Rag):
    @blocking
    async def retrieve(self, input, depth):
        return None
    @later
    def generate(self, input, context):
        return None
"""
    place.app(more=decorators)
    system = place.system()
    assert (system.is_async("retrieve"), system.is_async("generate")) == (False, True)


# What is wrong with the object


def test_whatever_the_constructor_raises_is_reported(place: Place) -> None:
    for raised, last in [
        ("raise ValueError('no key')", "ValueError: no key"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("self.missing", "AttributeError: 'Rag' object has no attribute 'missing'"),
    ]:
        init = f"class Rag:\n    def __init__(self):\n        {raised}\n"
        place.app(edit=("class Rag:\n", init))
        line, key, message = place.problem()
        assert (line, key) == (6, "system.rag.object")
        assert message.startswith("app:Rag cannot be constructed.\nTraceback")
        assert f'File "{place.root}/app.py", line 8, in __init__' in message
        assert message.count("File ") == 1
        assert message.endswith(last)


def test_a_class_that_needs_arguments_is_reported(place: Place) -> None:
    place.app(edit=("class Rag:\n", "class Rag:\n    def __init__(self, index): ...\n"))
    message = place.problem()[2]
    assert message.startswith("app:Rag cannot be constructed.\n")
    assert message.endswith(
        "It must be constructible without arguments, but has a required argument 'index'."
    )


def test_an_object_that_cannot_be_imported_is_reported(place: Place) -> None:
    assert place.problem(object="app:Rog")[2] == (
        "app:Rog cannot be imported: app has no attribute Rog."
    )
    place.app(more="\nraise RuntimeError('at import')\n")
    line, key, message = place.problem()
    assert (line, key) == (6, "system.rag.object")
    assert message.endswith("RuntimeError: at import")


@pytest.mark.parametrize("value", ["None", "len", "7"])
def test_an_object_without_stages_is_reported(place: Place, value: str) -> None:
    place.app(more=f"\n\nthing = {value}\n")
    assert place.problems(object="app:thing", depth=3, top_k=2) == [
        (6, "system.rag.object", "app:thing has no method retrieve(input, depth)."),
        (6, "system.rag.object", "app:thing has no method generate(input, context)."),
    ]


def test_a_stage_that_cannot_be_called_is_reported(place: Place) -> None:
    place.app(
        edit=("def generate(self, input, context)", "def generate(self, input, context, model)")
    )
    assert place.problem()[2] == (
        "app:Rag has generate(input, context, model), which cannot be called as "
        "generate(input, context)."
    )


def test_one_missing_stage_is_named(place: Place) -> None:
    place.app(edit=("def generate", "def generat"))
    assert place.problem() == (
        6,
        "system.rag.object",
        "app:Rag has no method generate(input, context).",
    )


# What is wrong with the settings


def test_depth_and_top_k_must_be_declared_somewhere(place: Place) -> None:
    place.app("")
    assert place.problems() == [
        (5, "system.rag.depth", "is not set: write depth here or in the decorator."),
        (5, "system.rag.top_k", "is not set: write top_k here or in the decorator."),
    ]
    assert place.problems(top_k=3) == [
        (5, "system.rag.depth", "is not set: write depth here or in the decorator.")
    ]


def test_top_k_may_not_be_more_than_the_depth(place: Place) -> None:
    assert place.problem(top_k=7) == (
        7,
        "system.rag.top_k",
        "is 7, more than the depth 6; use at most 6.",
    )
    assert place.problem(depth=1)[2] == "is 2, more than the depth 1; use at most 1."
    assert place.system(top_k=6).top_k == 6


@pytest.mark.parametrize(
    ("declaration", "key", "shown"),
    [
        ("depth=0, top_k=2", "depth", "0"),
        ("depth=6, top_k='2'", "top_k", "'2'"),
        ("depth=6.0, top_k=2", "depth", "6.0"),
        ("depth=True, top_k=1", "depth", "True"),
        ("depth=6, top_k=2, token_budget=-1", "token_budget", "-1"),
    ],
)
def test_numbers_of_the_decorator_are_checked(
    place: Place, declaration: str, key: str, shown: str
) -> None:
    place.app(declaration)
    assert place.problem() == (
        5,
        f"system.rag.{key}",
        f"must be a whole number ≥ 1, got {shown} in the decorator.",
    )


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("version=2", "version in the decorator must be a non-empty string, got 2."),
        ("version=''", 'version in the decorator must be a non-empty string, got "".'),
        ("index_version=7", "index_version in the decorator must be a non-empty string, got 7."),
        (
            "citations_path=['ids']",
            'citations_path in the decorator must be a non-empty string, got ["ids"].',
        ),
        (
            "config={'a': {'b': {1}}}",
            "config.a.b in the decorator must be JSON, but is a set, which JSON cannot hold.",
        ),
        (
            "config={1: 2}",
            "config in the decorator must be JSON, but has the key 1, and JSON keys are strings.",
        ),
    ],
)
def test_texts_and_config_of_the_decorator_are_checked(
    place: Place, declaration: str, message: str
) -> None:
    place.app(f"depth=6, top_k=2, {declaration}")
    assert place.problem() == (6, "system.rag.object", message)


def test_a_budget_needs_a_synchronous_count_tokens(place: Place) -> None:
    assert place.system(token_budget=40).token_budget == 40
    place.app(edit=("def count_tokens", "def count"))
    missing = (
        "needs app:Rag.count_tokens(passage), which returns an int; add the method or remove the "
        "budget."
    )
    assert place.problem(token_budget=40) == (7, "system.rag.token_budget", missing)
    place.app(f"{DECLARED}, token_budget=40", edit=("def count_tokens", "def count"))
    assert place.problem() == (5, "system.rag.token_budget", missing)
    place.app(edit=("def count_tokens", "async def count_tokens"))
    assert place.problem(token_budget=40) == (
        7,
        "system.rag.token_budget",
        "needs app:Rag.count_tokens to be a plain function, not async.",
    )


def test_without_a_budget_nothing_is_asked_of_count_tokens(place: Place) -> None:
    place.app(edit=("def count_tokens", "def count"))
    assert list(place.system().code) == ["retrieve", "generate"]
    place.app(edit=("def count_tokens", "async def count_tokens"))
    assert place.system().token_budget is None


def test_problems_are_reported_together(place: Place) -> None:
    place.app("depth=0, version=2", edit=("def retrieve", "def fetch"))
    assert [key for _, key, _ in place.problems(token_budget=3)] == [
        "system.rag.object",
        "system.rag.depth",
        "system.rag.top_k",
        "system.rag.object",
    ]


# The version of the index


def test_the_version_of_a_file_is_its_trimmed_content(place: Place) -> None:
    place.write("index/VERSION", "\n kb-7 é \r\n")
    assert place.system(index_version="{file: index/VERSION}").index_version == "kb-7 é"


def test_the_version_of_a_callable_is_what_it_returns(place: Place) -> None:
    place.app(more="\n\ndef version():\n    return 'kb-8'\n")
    assert place.system(index_version='{callable: "app:version"}').index_version == "kb-8"


def test_a_version_file_that_cannot_be_read_is_reported(place: Place) -> None:
    place.write("latin", b"\xff\xfe")
    for name, why in [
        ("gone", "No such file or directory"),
        (".", "Is a directory"),
        ("latin", "it is not UTF-8"),
    ]:
        line, key, message = place.problem(index_version=f"{{file: {name}}}")
        assert (line, key) == (7, "system.rag.index_version")
        assert message == f"cannot be read from {name}: {why}."


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 7", "app:version must return a string, got 7."),
        ("return None", "app:version must return a string, got null."),
    ],
)
def test_a_version_that_is_no_string_is_reported(place: Place, body: str, message: str) -> None:
    place.app(more=f"\n\ndef version():\n    {body}\n")
    assert place.problem(index_version='{callable: "app:version"}') == (
        7,
        "system.rag.index_version",
        message,
    )


@pytest.mark.parametrize("body", ["raise OSError('down')", "raise SystemExit('down')"])
def test_a_version_that_cannot_be_had_is_reported(place: Place, body: str) -> None:
    place.app(more=f"\n\ndef version():\n    {body}\n")
    _, key, message = place.problem(index_version='{callable: "app:version"}')
    assert key == "system.rag.index_version"
    assert message.startswith("app:version raised.\nTraceback")
    assert f'File "{place.root}/app.py"' in message
    assert message.count("File ") == 1
    assert message.endswith(": down")


def test_a_version_callable_that_is_missing_is_reported(place: Place) -> None:
    assert place.problem(index_version='{callable: "app:version"}')[2] == (
        "app:version cannot be imported: app has no attribute version."
    )


# Code paths


def test_files_of_code_paths_are_part_of_every_stage(place: Place) -> None:
    place.write("prompts/a.txt", "first")
    place.write("prompts/deep/b.txt", "second")
    base = place.system()
    added = place.system(system={"code_paths": '["prompts/**/*.txt"]'})
    assert all(added.code[stage].digest != base.code[stage].digest for stage in base.code)
    twice = place.system(system={"code_paths": '["prompts/**/*.txt", "prompts/a.txt"]'})
    assert twice.identity == added.identity
    place.write("prompts/deep/b.txt", "changed")
    edited = place.system(system={"code_paths": '["prompts/**/*.txt"]'})
    assert all(edited.code[stage].digest != added.code[stage].digest for stage in base.code)


def test_files_that_are_made_or_installed_in_the_project_are_not_taken(place: Place) -> None:
    place.write("a.txt", "a")
    settings = {"code_paths": '["**/*.txt"]'}
    before = place.system(system=settings).identity
    for folder in (".rag_assets", ".venv/lib", "pkg/__pycache__", ".git"):
        place.write(f"{folder}/b.txt", "b")
    assert place.system(system=settings).identity == before


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("prompts/*.txt", '"prompts/*.txt" matches no file of the project.'),
        ("prompts", '"prompts" matches no file of the project.'),
        (".rag_assets/*", '".rag_assets/*" matches no file of the project.'),
        ("../*.txt", '"../*.txt" reaches outside the project folder.'),
        ("link.txt", '"link.txt" reaches outside the project folder.'),
        ("/etc/*", '"/etc/*" must be relative to the config file.'),
        (
            "prompts/a**b",
            '"prompts/a**b" is not a pattern for files; write one like prompts/*.txt.',
        ),
        (".", '"." is not a pattern for files; write one like prompts/*.txt.'),
    ],
)
def test_code_paths_that_lead_nowhere_or_outside(
    tmp_path: Path, pattern: str, message: str
) -> None:
    place = Place(tmp_path / "project")
    place.write("prompts/a.md", "a")
    place.write(".rag_assets/store.duckdb", "s")
    place.write("../outside.txt", "o")
    (place.root / "link.txt").symlink_to(tmp_path / "outside.txt")
    line, key, said = place.problem(system={"code_paths": f'["app.py", "{pattern}"]'})
    assert (line, key, said) == (5, "system.code_paths.1", message)
