"""`rag-assets ui`: the Dagster UI on this project's runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rag_assets.cli.errors import INTERNAL_ERROR, Invocation
from rag_assets.cli.group import ExampleCommand, config_option, option
from rag_assets.cli.output import note, show
from rag_assets.cli.servers import DEFAULT_PORT, ServerEndedError, Servers
from rag_assets.cli.watching import Watch
from rag_assets.contracts.errors import InputError
from rag_assets.evaluation.places import load_config, state_folder
from rag_assets.reports.layout import line

if TYPE_CHECKING:
    from rag_assets.cli.webserver import Webserver
    from rag_assets.contracts.config import Config

# Switched-on schedules and sensors are remembered under the name of their code location.
_LOCATION = "rag_assets"
_WORKSPACE = "load_from:\n  - grpc_server: {{location_name: {location}, socket: '{socket}'}}\n"
_STARTING_S = 0.1
_WATCHING_S = 2.0


@click.command(
    "ui",
    cls=ExampleCommand,
    examples=["rag-assets ui", "rag-assets ui --port 8080"],
)
@config_option
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="HOST",
    section="Server",
    help="The address to listen on. There is no login: whoever reaches it can start runs.",
)
@option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    section="Server",
    help=f"The port to listen on (default: {DEFAULT_PORT}, or a free one when it is taken).",
)
@click.pass_obj
def ui(invocation: Invocation, config: Path | None, host: str, port: int | None) -> int:
    """Serve the Dagster UI of this project, with its schedules and sensors, until Ctrl-C.

    Changed files of the project are loaded again by themselves. The nightly schedule and the
    sensor on index_version are off until you switch them on in the UI.
    """
    config_path = invocation.locate(config)
    settings = load_config(config_path)
    _let_signals_interrupt()
    # Every command imports this module, and only this one needs an HTTP client.
    from rag_assets.cli.webserver import Webserver, choose_port

    webserver = Webserver(host, choose_port(host, port), _LOCATION)
    watch = Watch(settings.path)
    note("Starting Dagster …")
    home = state_folder(settings.root) / "dagster"
    environment = {"DAGSTER_HOME": str(home), "RAG_ASSETS_PROJECT": str(config_path)}
    try:
        with (
            _instance(settings) as end_abandoned_runs,
            _only_one(home / "ui.lock", webserver.url),
            TemporaryDirectory(prefix="rag-assets-") as folder,
            Servers(environment, home / "ui.log") as servers,
        ):
            try:
                _start(servers, Path(folder), webserver)
                show([line(f"The Dagster UI of {settings.project}: {webserver.url}")])
                note(f"Ctrl-C ends it. What Dagster logs: {home / 'ui.log'}")
                _serve(servers, webserver, watch, end_abandoned_runs)
            except KeyboardInterrupt:
                note("Ending. Runs record what they have finished; Ctrl-C again does not wait.")
                raise
    except ServerEndedError as error:
        note(str(error))
        return INTERNAL_ERROR


def _serve(
    servers: Servers, webserver: Webserver, watch: Watch, end_abandoned_runs: Callable[[], None]
) -> NoReturn:
    def look() -> list[str]:
        end_abandoned_runs()
        return watch.changes()

    problem = webserver.load_error()
    if problem is not None:
        note(f"The project cannot be loaded. The UI shows its runs only.\n{problem}")
    while True:
        what = ", ".join(servers.wait_for(look, every_s=_WATCHING_S))
        try:
            problem = webserver.reload()
        except OSError:
            continue  # The webserver has ended, which the next look says.
        if problem is None:
            note(f"Loaded again: {what}.")
        else:
            note(f"The project cannot be loaded after a change of {what}.\n{problem}")


def _start(servers: Servers, folder: Path, webserver: Webserver) -> None:
    """Start the servers, and wait until the webserver answers."""
    # In a temporary folder, because the path of a socket may have about 100 characters only.
    socket, workspace = folder / "code.sock", folder / "workspace.yaml"
    workspace.write_text(_WORKSPACE.format(location=_LOCATION, socket=socket), encoding="utf-8")
    # Both others use one code server, so that the project is imported once.
    servers.start(
        "Dagster code server",
        "dagster",
        *("code-server", "start"),
        *("--module-name", "rag_assets.assets.location"),
        *("--location-name", _LOCATION),
        *("--socket", str(socket)),
        *("--log-level", "warning"),
    )
    servers.wait_for(socket.exists, every_s=_STARTING_S)
    servers.start(
        "Dagster webserver",
        "dagster_webserver",
        *("--host", webserver.host),
        *("--port", str(webserver.port)),
        *("--workspace", str(workspace)),
    )
    servers.start("Dagster daemon", "dagster._daemon", "run", "--workspace", str(workspace))
    servers.wait_for(webserver.is_up, every_s=_STARTING_S)


@contextmanager
def _instance(settings: Config) -> Iterator[Callable[[], None]]:
    """The project's instance, with its databases in place; yields what ends its abandoned runs.

    Servers that start at the same time would make the databases together, and break them.
    """
    from rag_assets.assets.abandoned import end_abandoned_runs
    from rag_assets.assets.instance import open_instance, release_sqlite

    with open_instance(settings) as instance:
        try:
            yield partial(end_abandoned_runs, instance)
        finally:
            release_sqlite()


@contextmanager
def _only_one(path: Path, url: str) -> Iterator[None]:
    """Hold a lock file for the block: one daemon starts the runs of an instance.

    Args:
        path: the file.
        url: where the holder can be found.

    Raises:
        InputError: another process holds it.
    """
    import fcntl

    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"The UI of this project runs already at {file.read()}. Open it there, or end it "
                "first."
            ) from None
        file.truncate()
        file.write(url)
        file.flush()
        yield


def _let_signals_interrupt() -> None:
    """Let every signal that asks for the end be a Ctrl-C, also where the shell has ignored it."""

    def interrupt(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
