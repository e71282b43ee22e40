"""The command line: `rag-assets`, or `python -m rag_assets.cli`."""

from __future__ import annotations

import click

from rag_assets.cli.check import check
from rag_assets.cli.compare import compare
from rag_assets.cli.diagnose import diagnose
from rag_assets.cli.export import export
from rag_assets.cli.gate import gate
from rag_assets.cli.group import Program
from rag_assets.cli.import_ import import_
from rag_assets.cli.init import init
from rag_assets.cli.inspect import inspect
from rag_assets.cli.labels import labels
from rag_assets.cli.plan import plan
from rag_assets.cli.run import run
from rag_assets.cli.runs import runs
from rag_assets.cli.ui import ui

_VERSION = click.version_option(
    package_name="rag-assets", prog_name="rag-assets", message="%(prog)s %(version)s"
)

main: Program = _VERSION(
    Program(
        "rag-assets",
        help="Find out which stage of a RAG system failed, and decide a release on intervals.",
        commands=[
            init,
            import_,
            check,
            run,
            runs,
            inspect,
            diagnose,
            gate,
            compare,
            plan,
            export,
            labels,
            ui,
        ],
    )
)
