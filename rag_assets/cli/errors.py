"""How every command ends: exit codes, and what an error says.

0    nothing blocks
1    a rule FAILed
2    the input is wrong or a contract is broken
3    blocked without a FAIL
4    an internal error
130  interrupted
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import click

from rag_assets.cli.output import note, show_json
from rag_assets.contracts.errors import InputError, Problem, RagAssetsError
from rag_assets.evaluation.places import find_config, state_folder

INPUT_ERROR = 2
INTERNAL_ERROR = 4
INTERRUPTED = 130


@dataclass
class Invocation:
    """One call of the program.

    Attributes:
        arguments: the command line.
        config: the config file in use, once a command has found it.
    """

    arguments: Sequence[str]
    config: Path | None = None

    def locate(self, named: Path | None) -> Path:
        """Find the config file; a line on stderr says so when it is in a parent folder.

        Raises:
            InputError: there is none.
        """
        here = Path.cwd()
        self.config = find_config(named, here)
        if named is None and self.config.parent != here.resolve():
            note(f"Using {self.config}.")
        return self.config


def exit_code_of(command: Callable[[], Any], invocation: Invocation) -> int:
    """Call a command, tell what went wrong, and return the exit code.

    Args:
        command: returns an exit code, or None for 0.
        invocation: how it was called.
    """
    try:
        return command() or 0
    except click.ClickException as error:
        told = StringIO()
        error.show(told)
        note(told.getvalue().rstrip())
        return _ended(invocation, INPUT_ERROR, [_problem(error.format_message())])
    except (click.Abort, KeyboardInterrupt):
        note("Interrupted.")
        return INTERRUPTED
    except InputError as error:
        note(error.render())
        return _ended(invocation, error.exit_code, error.problems)
    except RagAssetsError as error:
        if error.exit_code != INPUT_ERROR:
            return _internal(invocation, error)
        note(str(error))
        return _ended(invocation, error.exit_code, [_problem(str(error))])
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EBADF):
            return _internal(invocation, error)
        note(f"The output cannot be written: {error.strerror}.")
        return INPUT_ERROR
    except Exception as error:
        return _internal(invocation, error)


def error_event(exit_code: int, problems: Sequence[Problem]) -> dict[str, Any]:
    """The JSON document of an error."""
    return {
        "event": "error",
        "exit_code": exit_code,
        "problems": [
            {"file": one.file, "line": one.line, "key": one.key, "message": one.message}
            for one in problems
        ],
    }


def _problem(message: str) -> Problem:
    return Problem("", 0, "", message)


def _ended(invocation: Invocation, exit_code: int, problems: Sequence[Problem]) -> int:
    if "--json" in invocation.arguments:
        show_json(error_event(exit_code, problems))
    return exit_code


def _internal(invocation: Invocation, error: BaseException) -> int:
    """Write the traceback to a file, and say what to do with it."""
    import platform
    import traceback
    from importlib.metadata import version

    message = f"{type(error).__name__}: {error}"
    program = f"rag-assets {version('rag-assets')}"
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    command = " ".join(["rag-assets", *invocation.arguments])
    details = "".join(traceback.format_exception(error))
    place = _write_traceback(f"{program}, {system}\n{command}\n\n{details}", invocation.config)
    note(
        f"Internal error: {message}\n"
        "This is a fault of rag-assets. Please report it with these lines and the file below.\n"
        f"  {program}, {system}\n"
        f"  {command}\n"
        f"  traceback: {place}"
    )
    return _ended(invocation, INTERNAL_ERROR, [_problem(message)])


def _write_traceback(text: str, config: Path | None) -> Path:
    """Put a traceback into the project's state folder, or into a temporary file without one."""
    from datetime import UTC, datetime
    from tempfile import gettempdir

    name = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%f}.txt"
    if config is None:
        path = Path(gettempdir()) / f"rag-assets-{name}"
    else:
        path = state_folder(config.parent) / "errors" / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        if config is None:
            raise
        return _write_traceback(text, None)
    return path
