"""Click commands with grouped options and examples, and the group that ends them all alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

import click

from rag_assets.cli.errors import Invocation, exit_code_of

F = TypeVar("F", bound=Callable[..., Any])


class SectionOption(click.Option):
    """An option with the heading that it stands under in `--help`."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class ExampleCommand(click.Command):
    """A command whose `--help` groups its options and ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section, `--help` last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = getattr(parameter, "section", "Options")
                sections.setdefault(section, []).append(record)
        sections["Options"] = sections.pop("Options", [])
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _write_examples(formatter, self.examples)


def _write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class ExampleGroup(ExampleCommand, click.Group):
    """A command with commands of its own, which stand below its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of their declaration."""
        return list(self.commands)


class Program(click.Group):
    """The group of all commands: every way to end it has its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are first used, which is that of their declaration."""
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first example of each command."""
        commands = (self.commands[name] for name in self.list_commands(ctx))
        examples = (one.examples for one in commands if isinstance(one, ExampleCommand))
        _write_examples(formatter, [first for first, *_ in examples])

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, **extra: Any
    ) -> Any:
        """Run the command line and exit.

        Args:
            args: the arguments; None for those of the process.
            extra: as for click.
        """
        invocation = Invocation(list(sys.argv[1:] if args is None else args))
        extra |= {"prog_name": "rag-assets", "obj": invocation, "standalone_mode": False}
        # A stream that was closed before we came swallows what is written to it.
        sys.stdout = sys.stdout or StringIO()
        sys.stderr = sys.stderr or StringIO()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # What the encoding of the terminal lacks is escaped and does not end the command.
                stream.reconfigure(errors="backslashreplace")
        command = partial(super().main, invocation.arguments, **extra)
        sys.exit(exit_code_of(command, invocation))


def option(*names: str, section: str, **settings: Any) -> Callable[[F], F]:
    """An option under a heading of `--help`."""
    return click.option(*names, cls=SectionOption, section=section, **settings)


def config_option(function: F) -> F:
    """`--config`, the same for every command."""
    return option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        section="Project",
        help="The config file (default: rag_assets.yaml here or in a folder above).",
    )(function)


def policy_option(default: str) -> Callable[[F], F]:
    """`--policy`, for commands that read a policy; `default` says which one without it."""
    return option(
        "--policy",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        section="Project",
        help=f"The policy file (default: {default}).",
    )


def json_option(function: F) -> F:
    """`--json`, the same for every command that has it."""
    return option(
        "--json", "as_json", is_flag=True, section="Output", help="JSON for programs, uncut."
    )(function)
