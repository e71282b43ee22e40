"""Code digests: what is part of a stage's code, and what is not."""

import ast
import functools
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.contracts.fingerprint import CodeDigest, code_digest

EXAMPLE = Path(__file__).parents[1] / "examples" / "support_rag"

CLEAN = "def clean(x):\n    return x.strip()\n"
BOT = """
import helpers

STOP = ("a", "the")
PROMPT = "Answer: "

def words(text):
    return [word for word in text.split() if word not in STOP]

def answer(text):
    return PROMPT + text

class Bot:
    def retrieve(self, text, depth):
        return words(helpers.clean(text))[:depth]

    def generate(self, text, context):
        return answer(text)
"""


class Sample:
    """A small project on disk, whose modules are imported once and whose files may change."""

    def __init__(self, root):
        self.root = root
        self.writes = 0

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self.writes += 1
            os.utime(path, ns=(self.writes * 10**9, self.writes * 10**9))

    def edit(self, name, old, new):
        text = (self.root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        self.write({name: text.replace(old, new)})

    def load(self, reference):
        """`bot:Bot.retrieve` is the bound method of a new Bot; `bot:search` the object itself."""
        module, _, attribute = reference.partition(":")
        value = importlib.import_module(module)
        for name in attribute.split("."):
            value = getattr(value() if isinstance(value, type) else value, name)
        return value

    def digest(self, reference="bot:Bot.retrieve", **extra) -> CodeDigest:
        return code_digest(self.load(reference), self.root, **extra)


@pytest.fixture
def own_modules(monkeypatch):
    """The test's imports are its own: they are forgotten before and after."""
    names = ("app", "bot", "helpers", "other", "pkg", "slow", "space")
    saved = dict(sys.modules)
    for name in names:
        sys.modules.pop(name, None)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in set(sys.modules) - set(saved):
        if name.partition(".")[0] in names:
            del sys.modules[name]
    sys.modules.update({name: saved[name] for name in names if name in saved})


@pytest.fixture
def sample(tmp_path, monkeypatch, own_modules):
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.syspath_prepend(root)
    return Sample(root)


def moved(sample, files, edit, stages=("retrieve", "generate"), owner="bot:Bot."):
    """The stages whose digest an edit changes."""
    sample.write(files)
    before = {stage: sample.digest(f"{owner}{stage}") for stage in stages}
    sample.edit(*edit)
    return {stage for stage in stages if sample.digest(f"{owner}{stage}") != before[stage]}


RETRIEVE, GENERATE, BOTH, NONE = {"retrieve"}, {"generate"}, {"retrieve", "generate"}, set()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("bot.py", "[:depth]", "[: depth + 1]"), RETRIEVE),
        (("bot.py", "return answer(text)", "return answer(text.lower())"), GENERATE),
        (("bot.py", "text.split()", "text.split(' ')"), RETRIEVE),
        (("bot.py", '"the")', '"the", "an")'), RETRIEVE),
        (("bot.py", '"Answer: "', '"A: "'), GENERATE),
        (("bot.py", "return PROMPT + text", "return text + PROMPT"), GENERATE),
        (("helpers.py", "x.strip()", "x.strip().lower()"), RETRIEVE),
        (("helpers.py", "(x):\n    return x", "(y):\n    return y"), RETRIEVE),
        (("bot.py", "text.split() if word", "text.split()  # all\n        if word"), NONE),
        (("bot.py", "def words(text):", 'def words(text):\n    """Split."""'), NONE),
        (("bot.py", "class Bot:", 'class Bot:\n    """A bot."""\n'), NONE),
        (("bot.py", 'STOP = ("a", "the")', "STOP = (\n    'a',\n    'the',\n)"), NONE),
        (("bot.py", "def answer(text):", "def answer(text: str) -> str:"), NONE),
        (("bot.py", 'PROMPT = "', 'PROMPT: str = "'), NONE),
        (("bot.py", "import helpers", "import json\nimport helpers\nUNUSED = 1"), NONE),
        (("bot.py", "class Bot", "if __name__ == '__main__':\n    print(STOP)\n\nclass Bot"), NONE),
        (("bot.py", "class Bot", "if __name__ != '__main__':\n    print(STOP)\n\nclass Bot"), BOTH),
        (("bot.py", "class Bot", "if TYPE_CHECKING:\n    import json\n\nclass Bot"), NONE),
    ],
)
def test_a_stage_owns_what_it_reaches(sample, edit, expected):
    assert moved(sample, {"bot.py": BOT, "helpers.py": CLEAN}, edit) == expected


def test_a_helper_of_both_stages_moves_both(sample):
    shared = BOT.replace("return PROMPT + text", 'return PROMPT + " ".join(words(text))')
    edit = ("bot.py", "text.split()", "text.split(' ')")
    assert moved(sample, {"bot.py": shared, "helpers.py": CLEAN}, edit) == BOTH


def test_covered_names_everything_that_went_in(sample):
    sample.write({"bot.py": BOT, "helpers.py": CLEAN})
    found = sample.digest()
    assert found.covered == (
        "bot:Bot",
        "bot:Bot.retrieve",
        "bot:STOP",
        "bot:words",
        "helpers:clean",
    )
    assert found.widened == ()
    assert len(found.digest) == 64
    assert sample.digest("bot:Bot.generate").covered == (
        "bot:Bot",
        "bot:Bot.generate",
        "bot:PROMPT",
        "bot:answer",
    )


def test_functions_that_reach_the_same_code_have_digests_of_their_own(sample):
    sample.write(
        {
            "bot.py": "def ping(n):\n    return pong(n)\n\ndef pong(n):\n    return ping(n)\n",
        }
    )
    ping, pong = sample.digest("bot:ping"), sample.digest("bot:pong")
    assert ping.covered == pong.covered == ("bot:ping", "bot:pong")
    assert ping.digest != pong.digest


# ---- imports ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import helpers", "helpers.clean(x)"),
        ("import helpers as h", "h.clean(x)"),
        ("from helpers import clean", "clean(x)"),
        ("from helpers import clean as c", "c(x)"),
        ("import pkg.mod", "pkg.mod.clean(x)"),
        ("import pkg.mod as m", "m.clean(x)"),
        ("from pkg import mod", "mod.clean(x)"),
        ("from pkg import clean", "clean(x)"),
        ("import pkg", "pkg.clean(x)"),
        ("from pkg import renamed", "renamed(x)"),
        ("import pkg.deep.er", "pkg.deep.er.clean(x)"),
        ("from pkg.deep import up", "up(x)"),
        ("from pkg.deep import up2", "up2(x)"),
        ("from space import mod", "mod.clean(x)"),
        ("import space.mod", "space.mod.clean(x)"),
        ("", "__import__('helpers').clean(x)"),
        ("import importlib", "importlib.import_module('helpers').clean(x)"),
        ("from importlib import import_module", "import_module('pkg.mod').clean(x)"),
        ("import helpers", "getattr(helpers, 'clean')(x)"),
        ("import helpers", "getattr(helpers, 'clean', None)(x)"),
        ("try:\n    from slow import clean\nexcept ImportError:\n    clean = None", "clean(x)"),
    ],
)
@pytest.mark.parametrize("local", [False, True])
def test_every_form_of_import_is_followed(sample, imports, call, local):
    """The function `clean` is covered where it is defined, its neighbour `dirty` is not."""
    code = CLEAN + "def dirty(x):\n    return x\n"
    inside = "\n".join("    " + line for line in imports.splitlines())
    head, body = ("", inside) if local else (imports, "")
    sample.write(
        {
            "bot.py": f"{head}\n\ndef stage(x):\n{body}\n    return {call}\n",
            "helpers.py": code,
            "slow.py": code,
            "space/mod.py": code,
            "pkg/__init__.py": "from .mod import clean\nfrom pkg.mod import clean as renamed\n",
            "pkg/mod.py": code,
            "pkg/deep/__init__.py": (
                "from ..mod import clean as up\nfrom .. import mod\nup2 = mod.clean\n"
            ),
            "pkg/deep/er.py": code,
        }
    )
    found = sample.digest("bot:stage")
    (home,) = (name for name in found.covered if name.endswith(":clean") and name != "bot:clean")
    assert found.widened == ()
    assert not any(name.endswith((":dirty", ":*")) for name in found.covered)
    sample.edit(f"{home.partition(':')[0].replace('.', '/')}.py", "x.strip()", "x.lstrip()")
    assert sample.digest("bot:stage").digest != found.digest


def test_the_target_of_an_import_counts(sample):
    files = {
        "bot.py": "from helpers import f, g\n\ndef stage(x):\n    return f(g(x))\n",
        "helpers.py": "def f(x):\n    return x\n\ndef g(x):\n    return x * 2\n",
    }
    edit = ("bot.py", "import f, g", "import f as g, g as f")
    assert moved(sample, files, edit, stages=("stage",), owner="bot:") == {"stage"}


def test_the_installed_module_behind_a_name_counts(sample):
    files = {"bot.py": "from json import loads\n\ndef stage(x):\n    return loads(x)\n"}
    edit = ("bot.py", "from json", "from pickle")
    assert moved(sample, files, edit, stages=("stage",), owner="bot:") == {"stage"}


def test_installed_files_below_the_root_are_not_followed(sample, monkeypatch):
    monkeypatch.syspath_prepend(sample.root / ".venv/lib/site-packages")
    files = {
        ".venv/lib/site-packages/helpers.py": CLEAN,
        "bot.py": "import helpers\n\ndef stage(x):\n    return helpers.clean(x)\n",
    }
    edit = (".venv/lib/site-packages/helpers.py", "strip", "lstrip")
    assert moved(sample, files, edit, stages=("stage",), owner="bot:") == NONE
    assert sample.digest("bot:stage").covered == ("bot:stage",)


def test_modules_that_import_each_other_are_followed_once(sample):
    sample.write(
        {
            "bot.py": "import helpers\n\nN = 3\n\ndef stage(x):\n    return helpers.f(x)\n",
            "helpers.py": "import bot\n\ndef f(x):\n    return bot.stage(x) if x else bot.N\n",
        }
    )
    assert sample.digest("bot:stage").covered == ("bot:N", "bot:stage", "helpers:f")


# ---- classes ---------------------------------------------------------------------------------

CLASSES = """
from dataclasses import dataclass
from helpers import Base

CORPUS = ["a"]
MODEL = "m"

def load():
    return CORPUS

class Bot(Base):
    LIMIT = 3
    TONE = "kind"
    lines = sorted(["x"])

    def __init__(self):
        self.documents = load()
        self.seen = []

    @property
    def size(self):
        return len(self.documents)

    def retrieve(self, text, depth):
        self.seen.append(text)
        return self.rank(self.size, self.LIMIT)

    def rank(self, size, limit):
        return size + limit + self.score(size)

    def tone(self):
        return self.TONE

    @classmethod
    def default(cls):
        return cls.name()

    @staticmethod
    def name():
        return MODEL

    def generate(self, text, context):
        self.seen.append(context)
        return super().generate(text, context) + self.default() + self.tone()
"""
BASES = """
class Root:
    def score(self, size):
        return size

    def close(self):
        return 0

class Base(Root):
    def retrieve(self, text, depth):
        return []

    def generate(self, text, context):
        return self.finish(text)

    def finish(self, text):
        return text + "."
"""


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("bot.py", "LIMIT = 3", "LIMIT = 4"), RETRIEVE),
        (("bot.py", "self.seen = []", "self.seen = [0]"), BOTH),
        (("bot.py", '["a"]', '["b"]'), BOTH),
        (("bot.py", "return len(self.documents)", "return 1 + len(self.documents)"), RETRIEVE),
        (("bot.py", "size + limit", "limit + size"), RETRIEVE),
        (("bot.py", 'TONE = "kind"', 'TONE = "curt"'), GENERATE),
        (("bot.py", "return self.TONE", "return self.TONE * 2"), GENERATE),
        (("bot.py", "return MODEL", "return MODEL.lower()"), GENERATE),
        (("bot.py", 'MODEL = "m"', 'MODEL = "n"'), GENERATE),
        (("bot.py", 'sorted(["x"])', 'sorted(["y"])'), NONE),
        (("helpers.py", "return size", "return -size"), RETRIEVE),
        (("helpers.py", "return []", "return [0]"), NONE),
        (("helpers.py", "return self.finish(text)", "return self.finish(text + text)"), GENERATE),
        (("helpers.py", 'text + "."', 'text + "!"'), GENERATE),
        (("helpers.py", "return 0", "return 1"), NONE),
        (("helpers.py", "class Base(Root)", "class Base(Root, object)"), BOTH),
    ],
)
def test_members_are_followed_one_by_one(sample, edit, expected):
    assert moved(sample, {"bot.py": CLASSES, "helpers.py": BASES}, edit) == expected


def test_members_are_looked_up_on_the_class_of_the_object(sample):
    """`Base.retrieve` calls `self.search`, and the object is a `Bot`, which replaces it."""
    sample.write(
        {
            "bot.py": (
                "from helpers import Base\n\n"
                "class Bot(Base):\n    def search(self):\n        return 1\n"
            ),
            "helpers.py": (
                "class Base:\n    def retrieve(self):\n        return self.search()\n\n"
                "    def search(self):\n        return 2\n"
            ),
        }
    )
    assert sample.digest().covered == (
        "bot:Bot",
        "bot:Bot.search",
        "helpers:Base",
        "helpers:Base.retrieve",
    )
    assert "helpers:Base.search" in sample.digest("helpers:Base.retrieve").covered


def test_the_order_of_bases_decides_which_member_is_taken(sample):
    """A diamond: Python asks Right before Top."""
    sample.write(
        {
            "bot.py": (
                "class Top:\n    def find(self):\n        return 0\n\n"
                "class Left(Top):\n    pass\n\n"
                "class Right(Top):\n    def find(self):\n        return 1\n\n"
                "class Bot(Left, Right):\n    def retrieve(self):\n        return self.find()\n"
            )
        }
    )
    covered = sample.digest().covered
    assert "bot:Right.find" in covered
    assert "bot:Top.find" not in covered


def test_methods_that_assign_an_attribute_belong_to_it(sample):
    files = {
        "bot.py": (
            "class Bot:\n    def open(self):\n        self.index = {'a': 1}\n\n"
            "    def retrieve(self):\n        return self.index\n\n"
            "    def generate(self):\n        self.count = 1\n"
        )
    }
    assert moved(sample, files, ("bot.py", "'a': 1", "'a': 2")) == RETRIEVE


def test_counters_do_not_tie_stages_together(sample):
    files = {
        "bot.py": (
            "CALLS = []\nTOTAL = {}\n\n"
            "class Bot:\n    def __init__(self):\n        self.calls = 0\n\n"
            "    def retrieve(self):\n"
            "        CALLS.append('r')\n        TOTAL['r'] = 1\n        self.calls += 1\n\n"
            "    def generate(self):\n"
            "        CALLS.append('g')\n        TOTAL['g'] = 1\n        self.calls += 1\n"
        )
    }
    assert moved(sample, files, ("bot.py", "append('g')", "append('h')")) == GENERATE


@pytest.mark.parametrize(
    ("use", "covered"),
    [
        ("Tool().run()", {"Tool.run", "Tool.other", "Tool.SIZE"}),
        ("Tool.SIZE", {"Tool.SIZE"}),
        ("Tool.fixed()", {"Tool.fixed"}),
        ("Tool.make()", {"Tool.run", "Tool.other", "Tool.SIZE", "Tool.make"}),
        ("Color.RED.label()", {"Color.RED", "Color.label"}),
        ("Inner.Deep().go()", {"Inner.Deep"}),
    ],
)
def test_a_class_by_name_is_all_of_its_members(sample, use, covered):
    sample.write(
        {
            "bot.py": (
                "import enum\n\n"
                "class Tool:\n    SIZE = 3\n\n    def run(self):\n        return 1\n\n"
                "    def other(self):\n        return 2\n\n"
                "    @staticmethod\n    def fixed():\n        return 3\n\n"
                "    @classmethod\n    def make(cls):\n        return cls()\n\n"
                "class Color(enum.Enum):\n    RED = 1\n\n"
                "    def label(self):\n        return 'r'\n\n"
                "class Inner:\n    class Deep:\n        def go(self):\n            return 1\n\n"
                "    def far(self):\n        return 2\n\n"
                f"def stage():\n    return {use}\n"
            )
        }
    )
    found = sample.digest("bot:stage").covered
    members = {name.partition(":")[2] for name in found if "." in name}
    assert covered <= members
    if len(covered) == 1:
        assert members == covered


def test_fields_of_a_dataclass_keep_their_annotations(sample):
    files = {
        "bot.py": (
            "from dataclasses import dataclass\n\n"
            "@dataclass\nclass Hit:\n    score: int\n\n"
            "class Bot:\n    def retrieve(self):\n        return Hit(1)\n\n"
            "    def generate(self):\n        return 1\n"
        )
    }
    assert moved(sample, files, ("bot.py", "score: int", "score: float")) == RETRIEVE


# ---- statements of a module ------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "TABLE += [§]",
        "TABLE.append(§)",
        "TABLE[0] = §",
        "TABLE.size = §",
        "for item in [§]:\n    TABLE.append(item)",
        "for TABLE in [[§]]:\n    pass",
        "if §:\n    TABLE = [0]\nelse:\n    TABLE = [1]",
        "try:\n    TABLE = [§]\nexcept ValueError:\n    TABLE = []",
        "with open('x') if § > 5 else memoryview(b''):\n    TABLE = []",
        "TABLE, OTHER = [§], 1",
        "(TABLE := [§])",
        "del TABLE\nTABLE = [§]",
        "TABLE: list = [§]",
        "def fill(x):\n    TABLE.append(x)\nfill(§)",
        "def fill():\n    global TABLE\n    TABLE = [§]\nfill()",
        "def register(f):\n    TABLE.append(f)\n    return f\n@register\ndef tool():\n    return §",
        "import random\nrandom.seed(§)",
        "@TABLE.add\ndef tool():\n    return §",
        "class Config:\n    SIZE = §\nTABLE.append(Config.SIZE)",
    ],
)
def test_statements_that_change_a_name_belong_to_it(sample, statement):
    start = (
        "class Table(list):\n    def add(self, f):\n        self.append(f)\n        return f\n\n"
        "TABLE = Table([0])\n"
    )
    stages = (
        "class Bot:\n    def retrieve(self):\n        return TABLE\n\n"
        "    def generate(self):\n        return 1\n"
    )
    text = start + statement.replace("§", "2 ") + "\n" + stages
    assert moved(sample, {"bot.py": text}, ("bot.py", "2 ", "3 ")) >= RETRIEVE


def test_an_edit_of_an_unrelated_name_moves_nothing(sample):
    text = (
        "TABLE = {}\nOTHER = {}\nTABLE.update(a=1)\nOTHER.update(b=1)\n"
        "class Bot:\n    def retrieve(self):\n        return TABLE\n\n"
        "    def generate(self):\n        return OTHER\n"
    )
    assert moved(sample, {"bot.py": text}, ("bot.py", "b=1", "b=2")) == GENERATE


def test_a_module_global_that_a_function_fills_later(sample):
    text = (
        "MODEL = None\n\ndef get():\n    global MODEL\n    MODEL = MODEL or build()\n"
        "    return MODEL\n\ndef build():\n    return 1\n\n"
        "class Bot:\n    def retrieve(self):\n        return MODEL\n\n"
        "    def generate(self):\n        return 1\n"
    )
    assert moved(
        sample, {"bot.py": text}, ("bot.py", "return 1\n\nclass", "return 2\n\nclass")
    ) == (RETRIEVE)


def test_calls_at_import_belong_to_the_whole_module_and_its_submodules(sample):
    files = {
        "bot.py": "from pkg.mod import f\n\ndef stage():\n    return f()\n",
        "pkg/__init__.py": "import os\n\ndef setup():\n    os.getpid()\n\nsetup()\n",
        "pkg/mod.py": "def f():\n    return 1\n",
    }
    sample.write(files)
    assert sample.digest("bot:stage").covered == (
        "bot:stage",
        "pkg.mod:f",
        "pkg:<module>",
        "pkg:setup",
    )


# ---- decorators, defaults, annotations ---------------------------------------------------------

DECORATED = """
import functools
from rag_assets import rag_system
import rag_assets

DEPTH = 3
NAME = "n"

def traced(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call

def plain(function):
    def call(*args):
        return function(*args)
    return call

@functools.cache
def load(size=DEPTH):
    return size

@rag_system(name=NAME, depth=5)
class Bot:
    @traced
    def retrieve(self, text, depth):
        return load()

    @plain
    def generate(self, text, context):
        return 1
"""


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("bot.py", 'NAME = "n"', 'NAME = "m"'), NONE),
        (("bot.py", "depth=5", "depth=6, top_k=2"), NONE),
        (("bot.py", "@rag_system(name=NAME, depth=5)", "@rag_assets.rag_system(depth=5)"), BOTH),
        (("bot.py", "DEPTH = 3", "DEPTH = 4"), RETRIEVE),
        (("bot.py", "@functools.cache", "@functools.lru_cache(5)"), RETRIEVE),
        (
            ("bot.py", "@functools.wraps(function)\n", "@functools.wraps(function)\n    @plain\n"),
            RETRIEVE,
        ),
        (("bot.py", "def plain(function):\n", "def plain(function):\n    print(1)\n"), GENERATE),
    ],
)
def test_decorators_and_defaults(sample, edit, expected):
    assert moved(sample, {"bot.py": DECORATED}, edit) == expected


def test_arguments_of_our_decorators_are_settings_however_they_are_named(sample):
    text = "class Bot:\n    def retrieve(self):\n        return 1\n"
    decorated = (
        "import rag_assets as ra\nfrom rag_assets import system as declared\n\n"
        f"@ra.rag_system(depth=2)\n@declared(version='1')\n{text}"
    )
    sample.write({"bot.py": text})
    loaded = sample.load("bot:Bot.retrieve")
    digests = set()
    for change in ("2", "3"):
        sample.write({"bot.py": decorated.replace("depth=2", f"depth={change}")})
        digests.add(code_digest(loaded, sample.root).digest)
        sample.write({"bot.py": decorated.replace("'1'", f"'{change}'")})
        digests.add(code_digest(loaded, sample.root).digest)
    assert len(digests) == 1


def test_annotations_count_only_where_a_decorator_may_read_them(sample):
    text = (
        "import functools\n\nclass A:\n    pass\n\n"
        "def f(x: A) -> A:\n    y: A = x\n    return y\n\n"
        "@functools.cache\ndef g(x: A):\n    return x\n\n"
        "class Bot:\n    @property\n    def size(self) -> A:\n        return 1\n\n"
        "    def retrieve(self):\n        return self.size\n"
    )
    sample.write({"bot.py": text})
    assert sample.digest().covered == ("bot:Bot", "bot:Bot.retrieve", "bot:Bot.size")
    assert sample.digest("bot:f").covered == ("bot:f",)
    assert sample.digest("bot:g").covered == ("bot:A", "bot:g")


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("def stage(f):\n    helper = f\n    return helper()", False),
        ("def stage(helper):\n    return helper()", False),
        ("def stage():\n    def helper():\n        return 1\n    return helper()", False),
        ("def stage(d):\n    return [helper for helper in d]", False),
        ("def stage():\n    return lambda helper: helper", False),
        ("def stage():\n    import json as helper\n    return helper", False),
        (
            "def stage(d):\n    match d:\n        case [helper, *_]:\n            return helper",
            False,
        ),
        ("def stage(d):\n    for helper in d:\n        pass\n    return helper", False),
        ("def stage(d):\n    return [helper() for x in d]", True),
        ("def stage():\n    return lambda: helper()", True),
        ("def stage():\n    def inner():\n        return helper()\n    return inner()", True),
        ("def stage(d):\n    return f'{helper():>{d}}'", True),
        ("def stage(d=lambda: helper()):\n    return d", True),
        ("async def stage(d):\n    async for x in helper():\n        await x", True),
        (
            "def stage():\n    class Local:\n        helper = 1\n        f = lambda: helper()",
            True,
        ),
        ("def stage(d):\n    match d:\n        case helper.x:\n            return 1", True),
        ("def stage(d):\n    return [helper for helper in helper()]", True),
    ],
)
def test_local_names_hide_those_of_the_module(sample, code, reached):
    sample.write({"bot.py": f"def helper():\n    return 1\n\n{code}\n"})
    assert ("bot:helper" in sample.digest("bot:stage").covered) is reached


# ---- what cannot be followed -------------------------------------------------------------------

IMPORTS = "imports a module by a computed name (add its files to system.code_paths)"
HELPERS = "def clean(x):\n    return x\n\ndef other(x):\n    return 2\n"


@pytest.mark.parametrize(
    ("imports", "code", "sentence"),
    [
        (
            "import helpers",
            "getattr(helpers, name)(name)",
            "bot:stage calls getattr with a computed name; all of helpers was taken instead.",
        ),
        (
            "from helpers import *",
            "clean(name)",
            "bot takes names by a star import; all of helpers was taken instead.",
        ),
        (
            "import helpers",
            "vars(helpers)[name](name)",
            "bot:stage uses a module as a whole; all of helpers was taken instead.",
        ),
        (
            "import helpers",
            "helpers.__dict__[name](name)",
            "bot:stage uses a module as a whole; all of helpers was taken instead.",
        ),
    ],
)
def test_computed_names_widen_to_the_module_concerned(sample, imports, code, sentence):
    sample.write(
        {
            "bot.py": (
                f"{imports}\n\ndef free():\n    return 1\n\ndef stage(name):\n    return {code}\n"
            ),
            "helpers.py": HELPERS,
        }
    )
    found = sample.digest("bot:stage")
    assert found.widened == (sentence,)
    assert {"helpers:*", "helpers:other"} <= set(found.covered)
    assert "bot:free" not in found.covered
    sample.edit("helpers.py", "return 2", "return 3")
    assert sample.digest("bot:stage").digest != found.digest


@pytest.mark.parametrize(
    ("code", "clause"),
    [
        ("eval(name)", "calls eval"),
        ("exec(name)", "calls exec"),
        ("globals()[name]", "calls globals"),
        ("getattr(name, name)", "calls getattr with a computed name"),
        ("getattr(TABLE, name)", "calls getattr with a computed name"),
        ("getattr(make(), name)", "calls getattr with a computed name"),
        ("__import__(name)", IMPORTS),
        ("importlib.import_module(name)", IMPORTS),
        ("sys.modules[name]", "uses sys.modules"),
        ("Tool.__subclasses__()", "uses __subclasses__"),
    ],
)
def test_computed_names_of_unknown_origin_widen_to_the_own_module(sample, code, clause):
    sample.write(
        {
            "bot.py": (
                "import importlib\nimport sys\n\nTABLE = {}\n\ndef make():\n    return TABLE\n\n"
                "class Tool:\n    pass\n\n"
                f"def free():\n    return 1\n\ndef stage(name):\n    return {code}\n"
            )
        }
    )
    found = sample.digest("bot:stage")
    assert found.widened == (f"bot:stage {clause}; all of bot was taken instead.",)
    assert {"bot:*", "bot:free", "bot:stage"} <= set(found.covered)
    sample.edit("bot.py", "return 1", "return 3")
    assert sample.digest("bot:stage").digest != found.digest


@pytest.mark.parametrize(
    "code",
    [
        "getattr(math, name)",
        "getattr(math, 'pi')",
        "getattr(name, 'strip')()",
        "hasattr(name, name)",
        "hasattr(name, 'x')",
        "name.eval()",
        "isinstance(name, str)",
    ],
)
def test_names_that_lead_to_installed_code_or_are_fixed_widen_nothing(sample, code):
    sample.write({"bot.py": f"import math\n\ndef stage(name):\n    return {code}\n"})
    found = sample.digest("bot:stage")
    assert (found.covered, found.widened) == (("bot:stage",), ())


@pytest.mark.parametrize(
    ("code", "clause"),
    [
        ("getattr(self, text)()", "calls getattr with a computed name"),
        ("sorted(self)", "uses self as a whole"),
        ("vars(self)", "uses self as a whole"),
        ("self.__dict__", "uses self as a whole"),
        ("self.nowhere", "uses self.nowhere, which its class does not set"),
    ],
)
def test_computed_members_widen_to_the_class(sample, code, clause):
    files = {
        "bot.py": (
            "def free():\n    return 1\n\n"
            f"class Bot:\n    def retrieve(self, text):\n        return {code}\n\n"
            "    def generate(self, text):\n        return 2\n"
        )
    }
    assert moved(sample, files, ("bot.py", "return 2", "return 3")) == BOTH
    found = sample.digest()
    assert found.widened == (f"bot:Bot.retrieve {clause}; all of bot:Bot was taken instead.",)
    assert "bot:free" not in found.covered
    assert sample.digest("bot:Bot.generate").widened == ()


@pytest.mark.parametrize(
    "code",
    [
        "type(self).find()",
        "self.__class__.find()",
        "Bot.find()",
        "getattr(self, 'find')()",
        "isinstance(self, dict) or self.find()",
        "hasattr(self, 'find') and hasattr(self, name)",
        "super().__init__() or self.find()",
        "[self.find() for _ in 'ab']",
        "(lambda: self.find())()",
    ],
)
def test_plain_ways_to_a_member_widen_nothing(sample, code):
    sample.write(
        {
            "bot.py": (
                f"class Bot:\n    def retrieve(self, name='x'):\n        return {code}\n\n"
                "    @classmethod\n    def find(cls):\n        return 1\n\n"
                "    def generate(self):\n        return 2\n"
            )
        }
    )
    found = sample.digest()
    assert found.covered == ("bot:Bot", "bot:Bot.find", "bot:Bot.retrieve")
    assert found.widened == ()


def test_an_installed_base_may_have_any_member(sample):
    """What it holds depends on how the object was made."""
    sample.write(
        {
            "bot.py": (
                "import collections\n\n"
                "class Bot(collections.UserDict):\n"
                "    def __init__(self):\n        super().__init__(a=1)\n\n"
                "    def retrieve(self):\n        return self.data\n\n"
                "    def generate(self):\n        return 2\n"
            )
        }
    )
    found = sample.digest()
    assert found.covered == ("bot:Bot", "bot:Bot.__init__", "bot:Bot.retrieve")
    assert found.widened == ()


def test_functions_that_share_a_name_with_those_of_python(sample):
    """`self.type(x)` and `helpers.import_module("x")` are the project's own."""
    sample.write(
        {
            "bot.py": (
                "import helpers\n\n"
                "class Bot:\n    def retrieve(self, x='json'):\n"
                "        return self.type(x), self.getattr(x, x), helpers.import_module('json')\n\n"
                "    def type(self, x):\n        return 1\n\n"
                "    def getattr(self, x, y):\n        return 1\n"
            ),
            "helpers.py": "def import_module(x):\n    return 1\n",
        }
    )
    found = sample.digest()
    assert found.covered == (
        "bot:Bot",
        "bot:Bot.getattr",
        "bot:Bot.retrieve",
        "bot:Bot.type",
        "helpers:import_module",
    )
    assert found.widened == ()


def test_a_module_that_is_imported_for_its_effects_is_taken_whole(sample):
    sample.write(
        {
            "bot.py": "import helpers\nimport json\n\ndef stage():\n    return 1\n",
            "helpers.py": HELPERS,
        }
    )
    found = sample.digest("bot:stage")
    assert found.widened == (
        "bot imports helpers without using the name; all of helpers was taken instead.",
    )
    assert "helpers:other" in found.covered


def test_a_module_with_a_getattr_of_its_own(sample):
    sample.write(
        {
            "bot.py": "import helpers\n\ndef stage():\n    return helpers.anything\n",
            "helpers.py": "def __getattr__(name):\n    return 1\n",
        }
    )
    assert sample.digest("bot:stage").covered == ("bot:stage", "helpers:__getattr__")


def test_a_file_that_is_no_python_counts_byte_by_byte(sample):
    sample.write({"bot.py": "def stage():\n    import helpers\n    return helpers.f()\n"})
    sample.write({"helpers.py": "def f(:\n"})
    found = sample.digest("bot:stage")
    assert found.widened == ("helpers cannot be parsed as Python; its bytes were taken instead.",)
    sample.write({"helpers.py": "def f(::\n"})
    assert sample.digest("bot:stage").digest != found.digest


# ---- objects -----------------------------------------------------------------------------------

OBJECTS = """
import functools
import helpers

SIZE = 3
TONE = "kind"

def base(text, size):
    return text[:size]

def make(size):
    def inner(text):
        return base(text, size)
    return inner

made = make(SIZE)
part = functools.partial(base, size=SIZE)
short = lambda text: base(text, SIZE)
wrapped = helpers.timed(base)

@functools.lru_cache
def cached(text):
    return base(text, SIZE)

@functools.singledispatch
def single(text):
    return text

@single.register
def _(text: int):
    return base(text, SIZE)

async def waits(text):
    return base(text, SIZE)

class Search:
    def __init__(self, size):
        self.size = size

    def __call__(self, text):
        return base(text, self.size)

    def other(self, text):
        return TONE

    @classmethod
    def of_class(cls, text):
        return base(text, SIZE)

    @staticmethod
    def static(text):
        return base(text, SIZE)

search = Search(SIZE)
search.extra = TONE
"""
TIMED = """
def timed(function):
    def call(*args):
        return function(*args)
    return call
"""


@pytest.mark.parametrize(
    ("reference", "covered"),
    [
        ("bot:made", {"bot:made", "bot:make", "bot:base", "bot:SIZE"}),
        ("bot:part", {"bot:part", "bot:base", "bot:SIZE"}),
        ("bot:short", {"bot:short", "bot:base", "bot:SIZE"}),
        ("bot:wrapped", {"bot:wrapped", "bot:base", "helpers:timed"}),
        ("bot:cached", {"bot:cached", "bot:base", "bot:SIZE"}),
        ("bot:single", {"bot:single", "bot:base", "bot:SIZE"}),
        ("bot:waits", {"bot:waits", "bot:base", "bot:SIZE"}),
        (
            "bot:search.__call__",
            {
                "bot:Search",
                "bot:Search.__call__",
                "bot:Search.__init__",
                "bot:base",
                "bot:search",
                "bot:SIZE",
                "bot:TONE",
            },
        ),
        ("bot:Search.of_class", {"bot:Search", "bot:Search.of_class", "bot:base", "bot:SIZE"}),
        ("bot:Search.static", {"bot:Search", "bot:Search.static", "bot:base", "bot:SIZE"}),
    ],
)
def test_objects_are_found_by_the_name_that_holds_them(sample, reference, covered):
    sample.write({"bot.py": OBJECTS, "helpers.py": TIMED})
    module, _, attribute = reference.partition(":")
    value = importlib.import_module(module)
    for name in attribute.split("."):
        value = getattr(value, name)
    found = code_digest(value, sample.root)
    assert set(found.covered) == covered
    assert found.widened == ()


def test_an_object_that_can_be_called_is_its_class_and_how_it_was_made(sample):
    files = {"bot.py": OBJECTS, "helpers.py": TIMED}
    edit = ("bot.py", "search = Search(SIZE)", "search = Search(SIZE + 1)")
    assert moved(sample, files, edit, stages=("search", "part"), owner="bot:") == {"search"}


def test_a_named_instance_keeps_its_stages_apart(sample):
    files = {"bot.py": BOT + "\nbot = Bot()\nbot.depth = 3\n", "helpers.py": CLEAN}
    assert moved(sample, files, ("bot.py", '"Answer: "', '"A: "'), owner="bot:bot.") == GENERATE
    assert moved(sample, files, ("bot.py", "bot.depth = 3", "bot.depth = 4"), owner="bot:bot.") == (
        BOTH
    )
    assert "bot:bot" in sample.digest("bot:bot.retrieve").covered
    assert "bot:bot" not in sample.digest("bot:Bot.retrieve").covered


@pytest.mark.parametrize("name", ["named", "traced"])
def test_members_that_are_no_plain_functions(sample, name):
    text = (
        "import functools\n\n"
        "def trace(f):\n    def call(*a):\n        return f(*a)\n    return call\n\n"
        "class Bot:\n    def far(self):\n        return 0\n\n"
        "    def near(self, x=0):\n        return 1\n\n"
        "    named = lambda self: self.near()\n"
        "    @trace\n    def traced(self):\n        return self.near()\n"
    )
    sample.write({"bot.py": text})
    found = sample.digest(f"bot:Bot.{name}")
    assert {f"bot:Bot.{name}", "bot:Bot.near"} <= set(found.covered)
    assert "bot:Bot.far" not in found.covered
    sample.edit("bot.py", "return 1", "return 2")
    assert sample.digest(f"bot:Bot.{name}").digest != found.digest


def test_an_object_of_a_local_class_is_found_by_the_name_that_holds_it(sample):
    text = (
        "def make(size):\n    class Bot:\n        def retrieve(self):\n            return size\n\n"
        "        def generate(self):\n            return 1\n\n    return Bot()\n\n"
        "SIZE = 3\nbot = make(SIZE)\n"
    )
    assert moved(
        sample, {"bot.py": text}, ("bot.py", "SIZE = 3", "SIZE = 4"), owner="bot:bot."
    ) == (BOTH)
    found = sample.digest("bot:bot.retrieve")
    assert (found.covered, found.widened) == (("bot:SIZE", "bot:bot", "bot:make"), ())


def test_a_closure_that_no_name_holds_takes_its_module(sample):
    sample.write({"bot.py": OBJECTS, "helpers.py": TIMED})
    found = code_digest(sample.load("bot:make")(5), sample.root)
    (sentence,) = found.widened
    assert sentence == (
        "bot:make.<locals>.inner was made while the program ran, and no name of a module holds it; "
        "all of bot was taken instead."
    )
    assert {"bot:*", "bot:make", "bot:Search.other"} <= set(found.covered)


def test_a_partial_that_no_name_holds_is_its_function(sample):
    sample.write({"bot.py": OBJECTS, "helpers.py": TIMED})
    found = code_digest(functools.partial(sample.load("bot:base"), size=5), sample.root)
    assert found.covered == ("bot:base",)
    (sentence,) = found.widened
    assert sentence == (
        "functools:partial was made while the program ran, and no name of a module holds it; "
        "the function in it was taken without what it was made with."
    )


def test_an_instance_that_no_name_holds_is_its_class(sample):
    sample.write({"bot.py": OBJECTS, "helpers.py": TIMED})
    found = code_digest(sample.load("bot:search").__class__(7), sample.root)
    assert {"bot:Search.__call__", "bot:Search.__init__", "bot:base"} <= set(found.covered)
    (sentence,) = found.widened
    assert sentence == (
        "bot:Search was made while the program ran, and no name of a module holds it; "
        "what it was made with was not taken."
    )


def test_a_function_that_text_made_takes_its_module(sample):
    sample.write({"bot.py": "SOURCE = 'def f():\\n    return 1\\n'\nexec(SOURCE)\n"})
    found = code_digest(sample.load("bot:f"), sample.root)
    assert "bot:*" in found.covered
    first, second = found.widened
    assert first == "bot:<module> calls exec; all of bot was taken instead."
    assert second == (
        "bot:f was made while the program ran, and no name of a module holds it; "
        "all of bot was taken instead."
    )
    sample.edit("bot.py", "return 1", "return 2")
    assert code_digest(sample.load("bot:f"), sample.root).digest != found.digest


def test_installed_functions_are_only_their_name(sample):
    found = code_digest(os.path.join, sample.root)
    assert found.covered == ()
    assert found.widened == ("posixpath:join is not code of the project; only its name was taken.",)
    assert code_digest(os.path.split, sample.root).digest != found.digest
    assert code_digest(len, sample.root).widened == (
        "builtins:len is not code of the project; only its name was taken.",
    )


# ---- the digest as a whole ---------------------------------------------------------------------


def test_extra_files_are_added_by_content(sample):
    sample.write({"bot.py": BOT, "helpers.py": CLEAN, "prompts/a.txt": "one", "b.txt": "two"})
    files = [sample.root / "prompts/a.txt", sample.root / "b.txt"]
    plain, extra = sample.digest(), sample.digest(extra_files=files)
    assert extra.digest != plain.digest
    assert extra.covered == plain.covered
    assert sample.digest(extra_files=[*reversed(files), files[0]]).digest == extra.digest
    assert sample.digest(extra_files=files[:1]).digest != extra.digest
    sample.write({"b.txt": "three"})
    assert sample.digest(extra_files=files).digest != extra.digest
    sample.write({"b.txt": "two"})
    assert sample.digest(extra_files=files).digest == extra.digest
    (sample.root / "b.txt").rename(sample.root / "c.txt")
    moved_files = [files[0], sample.root / "c.txt"]
    assert sample.digest(extra_files=moved_files).digest != extra.digest


def test_extra_files_must_exist_below_the_root(sample, tmp_path):
    sample.write({"bot.py": BOT, "helpers.py": CLEAN})
    (tmp_path / "outside.txt").write_text("x", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        sample.digest(extra_files=[sample.root / "none.txt"])
    with pytest.raises(ValueError, match=r"outside\.txt"):
        sample.digest(extra_files=[tmp_path / "outside.txt"])


SCRIPT = """
import sys
from pathlib import Path
from rag_assets.contracts.fingerprint import code_digest
sys.path.insert(0, sys.argv[1])
import bot
print(code_digest(bot.Bot().retrieve, Path(sys.argv[1])).digest)
print(code_digest(bot.Bot().generate, Path(sys.argv[1])).digest)
"""


def test_digests_are_the_same_in_other_processes_and_folders(sample, tmp_path):
    for root in (sample.root, tmp_path / "elsewhere"):
        Sample(root).write({"bot.py": CLASSES, "helpers.py": BASES})
    here = [sample.digest(f"bot:Bot.{stage}").digest for stage in ("retrieve", "generate")]
    for root, seed in ((sample.root, "1"), (tmp_path / "elsewhere", "2")):
        process = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(root)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert process.stdout.split() == here


def test_the_stages_of_the_example(monkeypatch, own_modules):
    monkeypatch.syspath_prepend(EXAMPLE)
    bot = importlib.import_module("app").SupportBot()
    found = code_digest(bot.retrieve, EXAMPLE)
    assert found.covered == (
        "app:CORPUS",
        "app:STOP_WORDS",
        "app:SupportBot",
        "app:SupportBot.__init__",
        "app:SupportBot.retrieve",
        "app:content_words",
        "app:shared_words",
    )
    assert found.widened == ()
    assert code_digest(bot.generate, EXAMPLE).covered == (
        "app:NO_ANSWER",
        "app:STOP_WORDS",
        "app:SupportBot",
        "app:SupportBot.generate",
        "app:content_words",
        "app:sentences",
        "app:shared_words",
    )


def test_the_digest_of_a_known_project_stays_the_same(sample):
    """On every version of Python; a change of this value runs every user's stages anew."""
    sample.write({"bot.py": CLASSES, "helpers.py": BASES})
    assert sample.digest().digest == (
        "f27df8f5b6a7f908456e05a38f0993c60830cd6fb959501622a2289d4b098d14"
    )


def statements(text):
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]


@settings(
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_comments_and_blank_lines_change_nothing(sample, data):
    """Wherever a statement starts, lines before it may be blank or comments."""
    files = {"bot.py": CLASSES, "helpers.py": BASES + TIMED, "other.py": OBJECTS}
    sample.write(files)
    stages = ("bot:Bot.retrieve", "bot:Bot.generate", "other:made", "other:search")
    before = [sample.digest(stage) for stage in stages]
    name = data.draw(st.sampled_from(sorted(files)))
    lines = files[name].splitlines()
    starts = sorted({node.lineno - 1 for node in statements(files[name])})
    fillers = st.sampled_from(["", "# a note", "        # TABLE.append(1)", "\t", "#" * 70])
    for start in sorted(data.draw(st.sets(st.sampled_from(starts), min_size=1)), reverse=True):
        lines[start:start] = data.draw(st.lists(fillers, min_size=1, max_size=3))
    sample.write({name: "\n".join(lines)})
    assert [sample.digest(stage) for stage in stages] == before


def test_a_large_project_takes_no_time(sample):
    """3,000 lines; the limit is generous, for busy machines."""
    function = (
        "def f{n}(text, depth=SIZE):\n"
        "    found = []\n"
        "    for index, word in enumerate(sorted(set(text.split()))):\n"
        "        if len(word) > depth and word not in ('a', 'b'):\n"
        "            found.append((index, word, {{'index': index}}))\n"
        "    found.sort(key=lambda item: (-item[0], item[1]))\n"
        "    return found[:depth] + f{next}(text, depth - 1)\n\n\n"
    )
    text = "SIZE = 3\n" + "".join(function.format(n=n, next=n + 1) for n in range(330))
    sample.write({"bot.py": text + "def f330(text, depth):\n    return []\n"})
    started = time.perf_counter()
    found = sample.digest("bot:f0")
    assert time.perf_counter() - started < 2
    assert len(found.covered) == 332
