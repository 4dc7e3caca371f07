"""`deniable edge`."""

import asyncio
import gc
import signal
from functools import partial
from pathlib import Path

import click
import uvloop

from deniable.config.file import Configuration, WrongUseError, load
from deniable.config.sections import EdgeSection
from deniable.deploy.cli.listen_address import ListenAddress
from deniable.deploy.cli.logs import silence
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.cli.signals import leave_at_once
from deniable.deploy.services.reload import Reload, check_newer, reload_option
from deniable.edge.collection_list import CollectionList, collection_list
from deniable.edge.server import Edge, EdgeSettings
from deniable.edge.signing_key import SigningKey, open_signing_key

KEY_FILE = Path(".deniable") / "edge-key.pem"
GC_OBJECTS = 50_000  # made since the last collection of young ones
SIGNALS = (signal.SIGINT, signal.SIGTERM)

PACKAGES = Path(__file__).parents[3]
PAGE = PACKAGES / "edge" / "try_page"
CLIENT = PACKAGES / "producers" / "browser"
CLIENT_MODULES = ("deniable", "mechanisms")
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def try_files() -> dict[bytes, tuple[str, Path]]:
    """Return content type and file by path.

    /try is the page, /try/deniable.js the client for browsers, /try/mechanisms.js its further mechanisms.
    """
    found = {}
    for name in CLIENT_MODULES:
        if (file := CLIENT / f"{name}.min.js").is_file():
            found[f"/try/{name}.js".encode()] = (TYPES[file.suffix], file)
    for file in sorted(PAGE.glob("*")):
        if file.suffix in TYPES and file.is_file():
            found[f"/try/{file.name}".encode()] = (TYPES[file.suffix], file)
    if index := found.pop(f"/try/{INDEX}".encode(), None):
        found[b"/try"] = index
    return found


@click.command()
@click.option(
    "--listen",
    type=ListenAddress(),
    metavar="ADDRESS:PORT",
    help="Where devices, or the proxy in front, reach it.",
)
@click.option(
    "--try-page", is_flag=True, help="Serve /try, which shows visitors what would leave their device."
)
@click.option(
    "--show-key", is_flag=True, help="Print the public key that clients pin, in base64, and do nothing else."
)
@reload_option
@config_option
@servers_option
def edge(
    listen: tuple[str, int] | None,
    try_page: bool,
    show_key: bool,
    reload_changes: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Take uploads of devices over HTTP and write them to Kafka, until Ctrl-C. Run any number of edges.

    It stops in good order: what was sent is answered. A second Ctrl-C ends it at once; devices that got no
    answer send their uploads again. SIGHUP takes up a changed collection file of a higher revision.

    Example: deniable edge --listen 127.0.0.1:8330
    """
    loaded = load(config, bootstrap_servers)
    section = _section(loaded)
    if listen is None and not show_key:
        raise click.UsageError("Missing option '--listen', such as --listen 127.0.0.1:8330.")
    key = _key(loaded, section)
    if listen is None or show_key:
        click.echo(key.public_key)
        return
    settings = edge_settings(loaded, section, key)
    reload = Reload(config, partial(_check, config, bootstrap_servers, settings), reload_changes)
    if try_page:
        settings.try_files.update(try_files())
    host, port = listen
    silence("aiokafka")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(Edge(settings), host, port, reload))
    reload.restart_if_due()


def _check(config: Path, bootstrap_servers: str | None, in_force: EdgeSettings) -> int:
    """Check the file as a start does, and that it is newer if the list for devices differs; its revision."""
    loaded = load(config, bootstrap_servers)
    section = _section(loaded)
    new = edge_settings(loaded, section, _key(loaded, section))
    Edge(new)  # reads certificate and key
    former, listed = _list(in_force), _list(new)
    check_newer((in_force.revision, former), (new.revision, listed), "what devices are asked")
    return new.revision


def _list(settings: EdgeSettings) -> CollectionList:
    return collection_list(settings.revision, settings.allowances, settings.delivery_seconds, settings.key)


def _key(loaded: Configuration, section: EdgeSection) -> SigningKey:
    folder = loaded.path.parent
    return open_signing_key(folder / KEY_FILE, _within(folder, section.signing_key_file))


def edge_settings(loaded: Configuration, section: EdgeSection, key: SigningKey) -> EdgeSettings:
    """Return what the edge works with.

    Parameters
    ----------
    loaded : the file.
    section : its section `edge`.
    key : signs the list of collections.

    Raises
    ------
    CollectionFileError if user name or password for Kafka is missing.
    """
    folder = loaded.path.parent
    return EdgeSettings(
        cluster=loaded.cluster,
        topic=loaded.topics.uploads,
        partitions=loaded.kafka.partitions,
        revision=loaded.revision,
        allowances=loaded.allowances,
        delivery_seconds=loaded.delivery_seconds,
        key=key,
        allow_origins=tuple(section.allow_origins),
        uploads_per_minute=section.uploads_per_minute,
        trusted_proxies=section.trusted_proxies,
        max_age_seconds=section.max_age_seconds,
        certificate_file=_within(folder, section.certificate_file),
        key_file=_within(folder, section.key_file),
    )


def _section(loaded: Configuration) -> EdgeSection:
    if loaded.edge is None:
        raise WrongUseError(
            f"{loaded.path}: there is no section edge: add the line 'edge: {{}}', then run deniable topics "
            "create, which makes the topic uploads"
        )
    return loaded.edge


def _within(folder: Path, path: str | None) -> Path | None:
    return None if path is None else folder / path


async def _run(server: Edge, host: str, port: int, reload: Reload) -> None:
    """Serve until a signal."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def end(number: signal.Signals) -> None:
        if stopped.is_set():
            leave_at_once(number)
        stopped.set()

    await server.open(host, port)
    # Each request leaves no cycles, so rare collections are enough; what exists now stays.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_OBJECTS, *gc.get_threshold()[1:])
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, partial(end, number))
    scheme = "https" if server.settings.certificate_file else "http"
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"uploads: {scheme}://{shown}:{port}/v1/reports")
    click.echo(f"public key: {server.settings.key.public_key}")
    if server.settings.try_files:
        click.echo(f"try it: {scheme}://{shown}:{port}/try")
    reload.start()
    await server.serve(stopped)  # a defect might meet a stop in good order, too: none is tried then
    await server.stop()
