import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rag_assets.contracts.errors import InputError
from rag_assets.contracts.loading import (
    forget_project_modules,
    is_project_file,
    load_object,
    user_frames,
)


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    """Modules and path as they were before."""
    forget_project_modules()
    path, modules = list(sys.path), dict(sys.modules)
    yield
    forget_project_modules()
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.modules.update(modules)


def write(root: Path, **modules: str) -> Path:
    """A project of modules; `a__b` is b.py in the folder a."""
    for name, source in modules.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return root


def refused(reference: str, root: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_object(reference, root)
    return str(caught.value)


# What is loaded


def test_an_attribute_is_loaded_by_its_dotted_name(tmp_path: Path) -> None:
    write(tmp_path, kb__rag="class Rag:\n    class Inner:\n        value = 7\n")
    assert load_object("kb.rag:Rag.Inner.value", tmp_path) == 7
    assert load_object("json:dumps", tmp_path)([1]) == "[1]"


def test_the_project_folder_is_first_on_the_path(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, helper_of_one="NAME = 1", app="from helper_of_one import NAME")
    write(two, app="import json; NAME = json.dumps(2)")
    load_object("app:NAME", one)
    load_object("app:NAME", two)
    assert sys.path[:2] == [str(two), str(one)]
    load_object("app:NAME", one)
    assert sys.path[:2] == [str(one), str(two)]
    assert sys.path.count(str(one)) == 1


def test_two_projects_may_have_a_module_of_one_name(tmp_path: Path) -> None:
    roots = []
    for name in ("one", "two"):
        source = "from helper import NAME\nfrom pkg.deep import DEEP"
        roots.append(write(tmp_path / name, app=source, helper=f"NAME = '{name}'"))
        write(tmp_path / name, pkg__deep=f"DEEP = 'deep {name}'")
    for _ in range(2):
        for root in roots:
            assert load_object("app:NAME", root) == root.name
            assert load_object("app:DEEP", root) == f"deep {root.name}"


def test_an_import_in_the_same_project_is_not_repeated(tmp_path: Path) -> None:
    write(tmp_path, app="class Rag: pass\ndef version(): return '1'")
    assert load_object("app:Rag", tmp_path) is load_object("app:Rag", tmp_path)


# What is wrong


@pytest.mark.parametrize("reference", ["app", "app:", ":Rag", ""])
def test_a_reference_needs_both_sides(reference: str, tmp_path: Path) -> None:
    assert refused(reference, tmp_path) == f'"{reference}" is not of the form module:attribute.'


def test_a_missing_module(tmp_path: Path) -> None:
    assert refused("no_such_app:Rag", tmp_path) == (
        f"no_such_app:Rag cannot be imported: there is no module no_such_app in {tmp_path}, "
        "and none is installed."
    )


def test_a_missing_attribute(tmp_path: Path) -> None:
    write(tmp_path, app="class Rag: pass")
    for attribute in ("Rog", "Rag.inner", "Rag.inner.more"):
        assert refused(f"app:{attribute}", tmp_path) == (
            f"app:{attribute} cannot be imported: app has no attribute {attribute}."
        )


def test_a_syntax_error_is_shown_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, app="import json\ndef broken(:\n    pass\n")
    text = refused("app:Rag", tmp_path)
    assert f'File "{tmp_path}/app.py", line 2' in text
    assert "def broken(:" in text
    assert text.endswith("SyntaxError: invalid syntax")
    assert "importlib" not in text


@pytest.mark.parametrize(
    ("statement", "last"),
    [
        ("raise ValueError('no key')", "ValueError: no key"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("raise BaseException", "BaseException"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("None.x", "AttributeError: 'NoneType' object has no attribute 'x'"),
    ],
)
def test_whatever_is_raised_at_import_is_shown_with_the_users_frames(
    tmp_path: Path, statement: str, last: str
) -> None:
    write(tmp_path, app="import helper", helper=f"\ndef load():\n    {statement}\n\nload()\n")
    text = refused("app:Rag", tmp_path)
    assert text.splitlines()[:2] == [
        "app:Rag cannot be imported.",
        "Traceback (most recent call last):",
    ]
    frames = [line.strip() for line in text.splitlines() if line.startswith("  File")]
    assert frames == [
        f'File "{tmp_path}/app.py", line 1, in <module>',
        f'File "{tmp_path}/helper.py", line 5, in <module>',
        f'File "{tmp_path}/helper.py", line 3, in load',
    ]
    assert text.endswith(last)


def test_an_attribute_that_raises_is_an_import_error_too(tmp_path: Path) -> None:
    write(tmp_path, app="def __getattr__(name):\n    raise RuntimeError(name)\n")
    text = refused("app:Rag", tmp_path)
    assert text.startswith("app:Rag cannot be imported.\n")
    assert f'File "{tmp_path}/app.py", line 2, in __getattr__' in text
    assert text.endswith("RuntimeError: Rag")


def test_a_keyboard_interrupt_is_no_problem_of_the_module(tmp_path: Path) -> None:
    write(tmp_path, app="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_object("app:Rag", tmp_path)


def test_a_module_that_failed_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path, app="import helper\nraise ValueError", helper="VALUE = 1")
    refused("app:VALUE", tmp_path)
    write(tmp_path, app="from helper import VALUE", helper="VALUE = 2")
    forget_project_modules()
    assert load_object("app:VALUE", tmp_path) == 2


# Forgetting


def test_an_edited_file_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path, app="from pkg import helper\nVALUE = helper.VALUE", pkg__helper="VALUE = 1")
    assert load_object("app:VALUE", tmp_path) == 1
    # The same size within the same second: bytecode of the first would be taken for the second.
    write(tmp_path, pkg__helper="VALUE = 2")
    assert load_object("app:VALUE", tmp_path) == 1
    forget_project_modules()
    assert load_object("app:VALUE", tmp_path) == 2
    assert not list(tmp_path.rglob("*.pyc"))


def test_bytecode_is_only_held_back_while_the_project_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, app="import sys\nHELD_BACK = sys.dont_write_bytecode")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert load_object("app:HELD_BACK", tmp_path) is True
    assert sys.dont_write_bytecode is False


def test_a_file_that_is_new_is_found(tmp_path: Path) -> None:
    # No other project of this process has such a module, so none is found in its place.
    refused("made_later:VALUE", tmp_path)
    write(tmp_path, made_later="VALUE = 1")
    forget_project_modules()
    assert load_object("made_later:VALUE", tmp_path) == 1


def imported_by_the_user(name: str, root: Path) -> ModuleType:
    sys.path.insert(0, str(root))
    return importlib.import_module(name)


def test_modules_of_the_users_own_program_are_never_dropped(tmp_path: Path) -> None:
    write(tmp_path, app="import mine, ours", mine="", ours="")
    mine = imported_by_the_user("mine", tmp_path)
    load_object("app:mine", tmp_path)
    app, ours = sys.modules["app"], sys.modules["ours"]
    forget_project_modules()
    assert sys.modules["mine"] is mine
    assert "app" not in sys.modules
    assert "ours" not in sys.modules
    assert load_object("app:mine", tmp_path) is mine
    assert sys.modules["app"] is not app
    assert sys.modules["ours"] is not ours


def test_installed_modules_are_never_dropped(tmp_path: Path) -> None:
    for folder in (".venv/lib/site-packages", "node_modules"):
        write(tmp_path / folder, **{f"installed_{len(folder)}": "VALUE = 1"})
        sys.path.append(str(tmp_path / folder))
    write(tmp_path, app="import installed_12, installed_23, colorsys")
    load_object("app:installed_12", tmp_path)
    kept = [sys.modules[name] for name in ("installed_12", "installed_23", "colorsys")]
    forget_project_modules()
    assert "app" not in sys.modules
    assert [sys.modules[module.__name__] for module in kept] == kept


def test_a_module_is_forgotten_by_a_package_that_stays(tmp_path: Path) -> None:
    write(tmp_path, pkg____init__="", pkg__app="from pkg import helper", pkg__helper="VALUE = 1")
    package = imported_by_the_user("pkg", tmp_path)
    assert load_object("pkg.app:helper.VALUE", tmp_path) == 1
    write(tmp_path, pkg__helper="VALUE = 2")
    forget_project_modules()
    assert sys.modules["pkg"] is package
    assert load_object("pkg.app:helper.VALUE", tmp_path) == 2


def test_another_module_of_the_name_is_not_taken_for_the_projects(tmp_path: Path) -> None:
    write(tmp_path / "one", app="VALUE = 1")
    write(tmp_path / "two", app="VALUE = 2", json="", sys="VALUE = 3")
    imported_by_the_user("app", tmp_path / "one")
    assert refused("app:VALUE", tmp_path / "two") == (
        f"app:VALUE cannot be imported: the name is taken by {tmp_path}/one/app.py, which is "
        "imported already. Rename the module of your project."
    )
    assert "the name is taken by" in refused("json:VALUE", tmp_path / "two")
    assert "taken by the built-in module sys," in refused("sys:VALUE", tmp_path / "two")
    assert load_object("app:VALUE", tmp_path / "one") == 1


# Frames


def raised_by(source: str, root: Path) -> BaseException:
    write(root, app=source)
    function = load_object("app:run", root)
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        function()
    return caught.value


def test_frames_of_other_files_are_left_out(tmp_path: Path) -> None:
    error = raised_by("import json\ndef run():\n    json.loads('{')\n", tmp_path)
    assert user_frames(error, tmp_path) == (
        "Traceback (most recent call last):\n"
        f'  File "{tmp_path}/app.py", line 3, in run\n'
        "    json.loads('{')\n"
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)"
    )


def test_causes_are_shown_and_what_was_merely_handled_is_not(tmp_path: Path) -> None:
    source = (
        "import json\n"
        "def inner():\n"
        "    try:\n"
        "        json.loads('{')\n"
        "    except ValueError:\n"
        "        raise KeyError('inner')\n"
        "def run():\n"
        "    try:\n"
        "        inner()\n"
        "    except KeyError as error:\n"
        "        raise RuntimeError('outer') from error\n"
    )
    text = user_frames(raised_by(source, tmp_path), tmp_path)
    assert "JSONDecodeError" not in text
    assert text.index("KeyError: 'inner'") < text.index("RuntimeError: outer")
    assert [line for line in text.splitlines() if line.startswith("  File")] == [
        f'  File "{tmp_path}/app.py", line 9, in run',
        f'  File "{tmp_path}/app.py", line 6, in inner',
        f'  File "{tmp_path}/app.py", line 11, in run',
    ]


def test_the_members_of_a_group_are_shortened_too(tmp_path: Path) -> None:
    source = (
        "import asyncio, json\n"
        "async def fail(text):\n"
        "    json.loads(text)\n"
        "async def both():\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(fail('{'))\n"
        "        group.create_task(fail('['))\n"
        "def run():\n"
        "    asyncio.run(both())\n"
    )
    text = user_frames(raised_by(source, tmp_path), tmp_path)
    assert text.count(f'File "{tmp_path}/app.py", line 3, in fail') == 2
    assert text.count("JSONDecodeError") == 2
    assert text.count("File ") == text.count(f'File "{tmp_path}/app.py"')


def test_the_last_frame_stands_for_a_traceback_without_the_user(tmp_path: Path) -> None:
    def fail() -> Any:
        raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere") as caught:
        fail()
    text = user_frames(caught.value, tmp_path)
    assert text.count("File ") == 1
    assert text.endswith('raise ValueError("elsewhere")\nValueError: elsewhere')


@pytest.mark.parametrize(
    ("place", "belongs"),
    [
        ("app.py", True),
        ("prompts/deep/one.txt", True),
        ("../other/app.py", False),
        (".venv/lib/x.py", False),
        ("venv/x.py", False),
        ("lib/site-packages/x.py", False),
        (".rag_assets/store.duckdb", False),
        ("pkg/__pycache__/app.pyc", False),
        (".git/HEAD", False),
    ],
)
def test_what_belongs_to_a_project(tmp_path: Path, place: str, belongs: bool) -> None:
    assert is_project_file((tmp_path / place).resolve(), tmp_path) is belongs


def test_a_project_inside_an_installed_package_has_files(tmp_path: Path) -> None:
    root = tmp_path / "site-packages" / "demo"
    assert is_project_file(root / "app.py", root)
