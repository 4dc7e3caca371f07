"""`deniable aggregate`."""

import asyncio
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import click
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
)

from deniable.aggregator.maintenance.adoption import check_adoption
from deniable.aggregator.metrics.privacy_metrics import PrivacyMetrics
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.fetching.freed_memory import keep_freed_memory
from deniable.aggregator.web.comparison_api import Comparer
from deniable.aggregator.worker import WorkerError, run_worker
from deniable.analysis.comparison import check_comparable, compare_joined
from deniable.cluster.connection.outage import number_of_brokers
from deniable.cluster.existing_topics.of_aiokafka import create_no_topics_here
from deniable.cluster.topics.findings import unknown_codec
from deniable.config.file import load
from deniable.config.settings.allowance import UNLIMITED, Allowance
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import config_option, metrics_listen_option, servers_option
from deniable.deploy.cli.signals import handle, leave_at_once, stop_deadline
from deniable.deploy.cluster.deployment import deployment_of
from deniable.deploy.cluster.topics import setup as topic_setup
from deniable.deploy.services.aggregate.log_watch import LogWatch
from deniable.deploy.services.aggregate.otlp_export import OtlpExport, endpoint_of, interval_seconds
from deniable.deploy.services.kafka_wait import once_kafka_answers
from deniable.deploy.services.open_files import allow_open_files
from deniable.deploy.services.reload import Reload, reload_option
from deniable.estimators.accounting.accountant import loss_of_reports
from deniable.estimators.accounting.renyi import zcdp_rho
from deniable.producers.budget.exposure import exposure

DEFAULT_WEB_PORT = 8321
STOP_SECONDS = 15.0
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9-]{1,63})*")
NOT_ALLOWED = (GroupAuthorizationFailedError, TopicAuthorizationFailedError)

WATCH_SECONDS = 15.0


class PrivacyWatch(threading.Thread):
    """Computes the gauges in a daemon thread, which never delays the end of the process.

    Parameters
    ----------
    allowances : of the collection file.
    metrics : to update.
    """

    def __init__(self, allowances: Iterable[Allowance], metrics: PrivacyMetrics) -> None:
        super().__init__(name="privacy", daemon=True)
        self._allowances = tuple(allowances)
        self._metrics = metrics

    def run(self) -> None:
        """Show what one report costs; then, every 15 s, what a client may have spent by now."""
        self.show_costs()
        while True:
            self.show_used(time.time())
            time.sleep(WATCH_SECONDS)

    def show_costs(self) -> None:
        """Show rho, lifetime epsilon and budget of every collection."""
        for allowance in self._allowances:
            name, mechanism = allowance.collection.name, allowance.collection.mechanism
            self._metrics.show_rho(name, zcdp_rho(loss_of_reports(mechanism, 1, memoized=False)))
            self._metrics.show_lifetime(name, allowance.epsilon_inf("any"))
            if allowance.budget is not None:
                unlimited = allowance.unspent_limit == UNLIMITED
                self._metrics.show_budget(name, allowance.budget.epsilon, unlimited)

    def show_used(self, now: float) -> None:
        """Show what one client may have spent by `now`, unix seconds, for collections with a budget."""
        for allowance in self._allowances:
            if allowance.budget is not None:
                used = exposure(allowance, allowance.budget, now)
                self._metrics.show_used(allowance.collection.name, *used)


@click.command()
@click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_WEB_PORT,
    show_default=True,
    help="Port of the page and of /metrics on loopback; 0: a free one, printed.",
)
@click.option(
    "--page-host",
    "page_hosts",
    multiple=True,
    metavar="NAME",
    callback=lambda _context, _parameter, names: [_host(name) for name in names],
    help="Answer requests for this host name, too: that of a proxy on this machine, which must log people "
    "in. May be repeated.",
)
@click.option(
    "--otlp",
    metavar="URL",
    callback=endpoint_of,
    help="Also export metrics and estimates by OTLP over HTTP to this collector, such as "
    "http://127.0.0.1:4318, each minute; the variables OTEL_… apply. Needs the extra otlp.",
)
@click.option(
    "--trial-revision",
    type=click.IntRange(min=1),
    hidden=True,
    help="Count with this revision if the file states a lower one. For deniable dev, which chooses it.",
)
@metrics_listen_option
@reload_option
@config_option
@servers_option
def aggregate(
    web_port: int,
    page_hosts: list[str],
    otlp: str | None,
    trial_revision: int | None,
    metrics_listen: tuple[str, int] | None,
    reload_changes: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Count reports and publish estimates until Ctrl-C. Run up to as many workers as there are partitions.

    A second Ctrl-C ends the worker at once; the next worker counts again what was not stored yet. SIGHUP
    takes up a changed collection file, if the ledgers accept it.

    Example: deniable aggregate --web-port 0
    """
    loaded = load(config, bootstrap_servers)
    reload = Reload(config, partial(_check, config, bootstrap_servers, trial_revision), reload_changes)
    silence_clients()
    deployment = once_kafka_answers(
        partial(deployment_of, loaded),
        {"--web-port": ("127.0.0.1", web_port), "--metrics-listen": metrics_listen},
    )
    allow_open_files(loaded.topics.partitions, asyncio.run(number_of_brokers(loaded.cluster)))
    if trial_revision is not None:
        deployment = deployment._replace(revision=max(loaded.revision, trial_revision))
    keep_freed_memory()
    create_no_topics_here()
    threading.excepthook = _print_failure
    watch = LogWatch(deployment)
    watch.start()
    metrics = WorkerMetrics(deployment.collections)
    PrivacyWatch(loaded.allowances, metrics.privacy).start()
    if otlp is not None:
        OtlpExport(metrics.registry, otlp, interval_seconds(os.environ)).start()
    deadline = stop_deadline(STOP_SECONDS, "the worker")
    reload.start()
    try:
        asyncio.run(
            run_worker(
                deployment,
                metrics,
                web_port,
                _announce,
                watch.check,
                partial(_end_in_time, deadline, reload),
                metrics_listen,
                page_hosts,
                Comparer(check_comparable, compare_joined),
            )
        )
    except WorkerError as error:
        deadline.cancel()  # the worker stopped in time; checking the topics may take longer
        if isinstance(error.__cause__, NOT_ALLOWED):
            topic_setup.require(loaded.cluster, loaded.topics)  # raises the error that names what is missing
        if isinstance(error.__cause__, UnsupportedCodecError):
            raise WorkerError(str(unknown_codec(loaded.topics.reports))) from error
        raise
    reload.restart_if_due()


def _check(config: Path, bootstrap_servers: str | None, trial_revision: int | None) -> int:
    """Check the file as a start does, and the ledgers as their next owners do; return its revision."""
    loaded = load(config, bootstrap_servers)
    deployment = deployment_of(loaded)
    revision = max(loaded.revision, trial_revision or 0)
    asyncio.run(check_adoption(deployment._replace(revision=revision)))
    return revision


def _host(name: str) -> str:
    if not HOST_NAME.fullmatch(name):
        raise click.BadParameter(
            f"must be a host name without scheme and port, such as stats.example, got '{name}'"
        )
    return name


def _announce(port: int) -> None:
    click.echo(f"page: http://127.0.0.1:{port}/")
    click.echo(f"metrics: http://127.0.0.1:{port}/metrics")


def _print_failure(failure: threading.ExceptHookArgs) -> None:
    """Print a thread's error as usual, except that of Faust's thread when it is cancelled at the end."""
    if not issubclass(failure.exc_type, asyncio.CancelledError):
        threading.__excepthook__(failure)


def _end_in_time(deadline: threading.Timer, reload: Reload) -> None:
    """End the process even if stopping hangs, as Faust does without a broker; ledgers survive kill -9.

    asyncio would log unfinished tasks of the clients as errors.
    """
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    deadline.start()
    loop = asyncio.get_running_loop()
    loop.remove_signal_handler(signal.SIGINT)
    handle(signal.SIGINT, leave_at_once)
    loop.add_signal_handler(signal.SIGTERM, reload.withdraw)
