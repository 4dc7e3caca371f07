"""The demo's way from devices: an edge, a relay, and a producer that reaches no Kafka."""

import time
import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from deniable.config.file import Configuration
from deniable.config.settings.edge_address import EdgeAddress
from deniable.deploy.broker.child_processes import Child, last_lines
from deniable.deploy.broker.ports import free_port
from deniable.deploy.demo.setup import START_SECONDS, DemoError, announced, start
from deniable.deploy.services.aggregate.ready import why_not_ready
from deniable.producers.config import ProducerConfig
from deniable.producers.opening.from_file import producer_config


@dataclass(frozen=True)
class DeviceServices:
    """An edge and a relay that run.

    Parameters
    ----------
    children : their processes, by log.
    edge : URL of the edge.
    try_page : URL of the page for visitors; None if it was not asked for.
    """

    children: dict[Path, Child]
    edge: str
    try_page: str | None


def start_services(configuration: Configuration, folder: Path, *, try_page: bool) -> DeviceServices:
    """Start a relay and an edge, and wait until the edge takes uploads, which the relay allows.

    Raises
    ------
    DemoError if one of them does not start.
    """
    relay_log, edge_log = folder / "relay.log", folder / "edge.log"
    relay = start(configuration, relay_log, "relay")
    listen = ("--listen", f"127.0.0.1:{free_port()}")
    edge = start(configuration, edge_log, "edge", *listen, *(["--try-page"] if try_page else []))
    uploads = announced(edge, edge_log, "uploads")
    page = announced(edge, edge_log, "try it") if try_page else None
    _wait_until_ready(urlsplit(uploads).netloc, relay, relay_log)
    return DeviceServices({relay_log: relay, edge_log: edge}, uploads.removesuffix("/v1/reports"), page)


def _wait_until_ready(edge: str, relay: Child, relay_log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while why := why_not_ready(edge):
        if relay.poll() is not None or time.monotonic() > deadline:
            raise DemoError(f"demo: failed\n{why}; the relay says:\n{last_lines(relay_log)}")
        time.sleep(0.1)


def opened_page(url: str) -> str:
    """Open the page for visitors in a browser, if there is one; return what to print of it."""
    if webbrowser.open(url):
        return f"what leaves your own device: {url}"
    return f"what leaves your own device: no browser can be opened here, so open it yourself: {url}"


def devices_config(configuration: Configuration, edge: str, block_milliseconds: float) -> ProducerConfig:
    """Return the configuration of a producer that delivers to this edge, with a folder of its own."""
    folder = configuration.path.parent / "devices"
    config = producer_config(configuration, data_dir=folder, block_milliseconds=block_milliseconds)
    return replace(config, edge=EdgeAddress(edge))
