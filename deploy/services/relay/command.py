"""`deniable relay`."""

import asyncio
import logging
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import click

from deniable.cluster.existing_topics.of_aiokafka import create_no_topics_here
from deniable.cluster.permissions.roles import Role
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration, WrongUseError, load
from deniable.config.relay_secret import relay_secret
from deniable.config.sections import RelaySection
from deniable.config.settings.allowance import Allowance
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import (
    config_option,
    metrics_listen_option,
    metrics_port_option,
    servers_option,
)
from deniable.deploy.cli.signals import handle, leave_at_once, stop_deadline
from deniable.deploy.services.kafka_wait import once_kafka_answers
from deniable.deploy.services.metrics_server import probes_at, served
from deniable.deploy.services.reload import Reload, ReloadRefusedError, check_newer, reload_option
from deniable.estimators.accounting.shuffling.blanket import ShufflingRefusedError
from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.relay.control import Intake, RelaySettings
from deniable.relay.keys import RelayKeys
from deniable.relay.service.service import RelayConfig, RelayService

STOP_SECONDS = 10.0  # more than a relay takes, unless a library hangs


def relay_config(configuration: Configuration, keys: RelayKeys) -> RelayConfig:
    """Build a relay's configuration. Canaries are included: they check the way from producers over HTTP."""
    section, topics = configuration.relay or RelaySection(), configuration.topics
    settings = RelaySettings(
        revision=configuration.revision,
        partitions=topics.partitions,
        batch_reports=section.batch_reports,
        shuffle_reports=section.shuffle_reports,
        pack_reports=section.pack_reports,
        window_uploads=section.window_uploads,
        key_check=keys.check,
        collections=tuple(
            Intake(
                each.fingerprint,
                each.mechanism.wire_number,
                each.width,
                each.cohorts,
                each.window_seconds,
                each.grace_seconds - section.delivery_seconds,
            )
            for each in configuration.collections
        ),
    )
    return RelayConfig(
        cluster=configuration.cluster,
        uploads=topics.uploads,
        reports=topics.reports,
        rejected=topics.rejected_uploads,
        group=topics.relay_group,
        report_partitions=topics.partitions,
        settings=settings,
        idle_seconds=section.idle_seconds,
        rhythms=tuple((each.window_seconds, each.grace_seconds) for each in configuration.collections),
        names={each.fingerprint: each.name for each in configuration.collections},
        shuffles=_shuffles(configuration.allowances, section.forged_share),
    )


def _shuffles(allowances: Iterable[Allowance], forged_share: float) -> dict[int, HonestShuffle]:
    """Return what is known beforehand of shuffled reports, by fingerprint, where they have an epsilon."""
    found: dict[int, HonestShuffle] = {}
    for each in allowances:
        mechanism = each.collection.mechanism
        with suppress(ShufflingRefusedError):
            found[each.collection.fingerprint] = HonestShuffle.of(
                mechanism, each.delta, forged_share, each.memoized, each.reports_per_window
            )
    return found


@click.command()
@click.option(
    "--trial-revision",
    type=click.IntRange(min=1),
    hidden=True,
    help="Work with this revision if the file states a lower one. For deniable dev, which chooses it.",
)
@metrics_port_option
@metrics_listen_option
@reload_option
@config_option
@servers_option
def relay(
    trial_revision: int | None,
    metrics_port: int | None,
    metrics_listen: tuple[str, int] | None,
    reload_changes: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Shuffle and pack what devices upload until Ctrl-C. Run up to as many relays as there are partitions.

    The collection file needs a section `relay`; `relay: {}` takes all defaults. All relays of a deployment
    share one secret. A second Ctrl-C ends the relay at once; the next one sends again what was not committed.
    SIGHUP takes up a changed collection file of a higher revision.

    Example: deniable relay --metrics-listen 127.0.0.1:9102
    """
    loaded, keys = _read(config, bootstrap_servers)
    in_force = relay_config(loaded, keys).settings
    reload = Reload(config, partial(_check, config, bootstrap_servers, in_force), reload_changes)
    silence_clients()
    once_kafka_answers(
        partial(_require_topics, loaded),
        {"--metrics-port": ("127.0.0.1", metrics_port or 0), "--metrics-listen": metrics_listen},
    )
    create_no_topics_here()
    loaded = replace(loaded, revision=max(loaded.revision, trial_revision or 0))
    service = RelayService(relay_config(loaded, keys), keys)
    deadline = stop_deadline(STOP_SECONDS, "the relay")
    with served(metrics_port, service), probes_at(metrics_listen, service):
        reload.start()
        asyncio.run(_run(service, deadline, reload))
    reload.restart_if_due()


def _read(config: Path, bootstrap_servers: str | None) -> tuple[Configuration, RelayKeys]:
    loaded = load(config, bootstrap_servers)
    if loaded.relay is None:
        raise WrongUseError(
            f"{config}: there is no section relay; write relay: {{}} for all defaults, then run "
            "deniable topics "
            "create"
        )
    return loaded, RelayKeys(relay_secret(loaded))


def _require_topics(loaded: Configuration) -> None:
    topic_checks.require_uploads(loaded.cluster, loaded.topics, Role.RELAY, loaded.collections)


def _check(config: Path, bootstrap_servers: str | None, in_force: RelaySettings) -> int:
    """Check the file as a start does, and that it is newer if relays would do anything else; its revision."""
    loaded, keys = _read(config, bootstrap_servers)
    new = relay_config(loaded, keys).settings
    if new.key_check != in_force.key_check:
        raise ReloadRefusedError(
            "relay.secret_file holds another secret than this relay started with: restore that one"
        )
    check_newer((in_force.revision, in_force), (new.revision, new), "what relays take")
    _require_topics(loaded)
    return new.revision


async def _run(service: RelayService, deadline: threading.Timer, reload: Reload) -> None:
    loop = asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        if deadline.is_alive():
            reload.withdraw()
        else:
            deadline.start()
        # Tasks of aiokafka that end meanwhile leave errors that nobody asks for.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        handle(signal.SIGINT, leave_at_once)
        loop.call_soon_threadsafe(service.stop)

    for number in (signal.SIGINT, signal.SIGTERM):
        handle(number, end)
    try:
        await service.run()
    finally:
        deadline.cancel()
