"""`deniable aggregate`."""

import asyncio
import logging
import os
import signal
import threading
from functools import partial
from pathlib import Path

import click
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError

from aggregator.metrics.worker_metrics import WorkerMetrics
from aggregator.worker import WorkerError, run_worker
from deploy.aggregate.log_watch import LogWatch
from deploy.aggregate.privacy_watch import PrivacyWatch
from deploy.cli.options import config_option, metrics_listen_option, servers_option
from deploy.cli.signals import handle, leave_at_once
from deploy.cluster.deployment import deployment_of
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import load

DEFAULT_WEB_PORT = 8321
STOP_SECONDS = 15.0
NOT_ALLOWED = (GroupAuthorizationFailedError, TopicAuthorizationFailedError)


@click.command()
@click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_WEB_PORT,
    show_default=True,
    help="Port of the page and of /metrics on loopback; 0: a free one, printed.",
)
@metrics_listen_option
@config_option
@servers_option
def aggregate(
    web_port: int, metrics_listen: tuple[str, int] | None, config: Path, bootstrap_servers: str | None
) -> None:
    """Count reports and publish estimates, until Ctrl-C. Run as many as there are partitions.

    A second Ctrl-C ends it at once; what was not stored is counted again by the next worker.

    Example: deniable aggregate --web-port 0
    """
    loaded = load(config, bootstrap_servers)
    deployment = deployment_of(loaded)
    threading.excepthook = _tell_failure
    watch = LogWatch(deployment)
    watch.start()
    metrics = WorkerMetrics(deployment.collections)
    PrivacyWatch(loaded.allowances, metrics.privacy).start()
    deadline = threading.Timer(STOP_SECONDS, os._exit, args=(1,))
    deadline.daemon = True
    try:
        asyncio.run(
            run_worker(
                deployment,
                metrics,
                web_port,
                _announce,
                watch.check,
                partial(_end_in_time, deadline),
                metrics_listen,
            )
        )
    except WorkerError as error:
        deadline.cancel()  # asyncio has ended in time, and Kafka is asked once more
        if isinstance(error.__cause__, NOT_ALLOWED):
            topic_setup.require(loaded.cluster, loaded.topics)  # raises what the next start would
        raise


def _announce(port: int) -> None:
    click.echo(f"page: http://127.0.0.1:{port}/")
    click.echo(f"metrics: http://127.0.0.1:{port}/metrics")


def _tell_failure(failure: threading.ExceptHookArgs) -> None:
    """As always, but for Faust's own thread, which ends by cancellation when no broker answers."""
    if not issubclass(failure.exc_type, asyncio.CancelledError):
        threading.__excepthook__(failure)


def _end_in_time(deadline: threading.Timer) -> None:
    """End the process even if its stop hangs, as Faust's does without a broker; ledgers bear a kill -9.

    What clients leave unfinished then would be told as errors of asyncio.
    """
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    deadline.start()
    asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
    handle(signal.SIGINT, leave_at_once)
