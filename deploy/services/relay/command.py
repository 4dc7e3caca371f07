"""`deniable relay`."""

import asyncio
import logging
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from types import FrameType

import click

from deniable.cluster.existing_topics.of_aiokafka import create_no_topics_here
from deniable.cluster.permissions.roles import Role
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import WrongUseError, load
from deniable.config.relay_secret import relay_secret
from deniable.deploy.cli.logs import silence
from deniable.deploy.cli.options import (
    config_option,
    metrics_listen_option,
    metrics_port_option,
    servers_option,
)
from deniable.deploy.cli.signals import handle, leave_at_once
from deniable.deploy.services.kafka_wait import once_kafka_answers
from deniable.deploy.services.metrics_server import probes_at, served
from deniable.deploy.services.relay.relay_config import relay_config
from deniable.relay.keys import RelayKeys
from deniable.relay.service.service import RelayService

STOP_SECONDS = 10.0  # more than a relay takes, unless a library hangs


@click.command()
@click.option(
    "--trial-revision",
    type=click.IntRange(min=1),
    hidden=True,
    help="Work with this revision if the file states a lower one. For deniable dev, which chooses it.",
)
@metrics_port_option
@metrics_listen_option
@config_option
@servers_option
def relay(
    trial_revision: int | None,
    metrics_port: int | None,
    metrics_listen: tuple[str, int] | None,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Shuffle and pack what devices upload until Ctrl-C. Run up to as many relays as there are partitions.

    The collection file needs a section `relay`; `relay: {}` takes all defaults. All relays of a deployment
    share one secret. A second Ctrl-C ends the relay at once; the next one sends again what was not committed.

    Example: deniable relay --metrics-listen 127.0.0.1:9102
    """
    loaded = load(config, bootstrap_servers)
    if loaded.relay is None:
        raise WrongUseError(
            f"{config}: there is no section relay; write relay: {{}} for all defaults, then run "
            "deniable topics "
            "create"
        )
    keys = RelayKeys(relay_secret(loaded))
    for library in ("kafka", "aiokafka"):
        silence(library)
    needs = (loaded.cluster, loaded.topics, Role.RELAY, loaded.collections)
    once_kafka_answers(lambda: topic_checks.require_uploads(*needs))
    create_no_topics_here()
    loaded = replace(loaded, revision=max(loaded.revision, trial_revision or 0))
    service = RelayService(relay_config(loaded, keys), keys)
    deadline = threading.Timer(STOP_SECONDS, os._exit, args=(1,))
    deadline.daemon = True
    with served(metrics_port, service), probes_at(metrics_listen, service):
        asyncio.run(_run(service, deadline))


async def _run(service: RelayService, deadline: threading.Timer) -> None:
    loop = asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        if not deadline.is_alive():
            deadline.start()
        # Tasks of aiokafka that end meanwhile leave errors that nobody asks for.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        handle(signal.SIGINT, leave_at_once)
        loop.call_soon_threadsafe(service.stop)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handle(number, end)
    try:
        await service.run()
    finally:
        deadline.cancel()
