"""Builds the Faust app. We use its group, assignment, agents and life cycle; not its commits or tables."""

import asyncio
import time
from collections.abc import Sequence
from typing import cast

import faust
from faust.transport.drivers import aiokafka as driver
from faust.types import StreamT, TransportT
from faust.types.auth import CredentialsT

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.assignment import Assignment
from deniable.aggregator.partition.consumer import Consumer, ExactApp
from deniable.aggregator.partition.fetching.fair_fetching import HANDED_RUNS
from deniable.cluster.cluster import LEADERS_MILLISECONDS, Cluster
from deniable.cluster.connection.groups import WORKERS

BUFFERED_EVENTS = 2  # one event is a partition's share of a fetch: at most FETCH_BYTES, or one pack
COUNTING_SECONDS = 0.005  # of counting, before other tasks of the event loop run
COUNTED_RECORDS = 4096  # of a run that are counted at once: a few milliseconds, 50 if all are rejected
FETCH_BYTES = 2 * 2**20  # per partition; half of it slows packs of 160 kB by a third


class Transport(driver.Transport):
    """Faust's transport with our consumer."""

    Consumer = Consumer


def _credentials(cluster: Cluster) -> CredentialsT | None:
    """Our security settings as Faust's, which it turns back into aiokafka's."""
    settings = cluster.client_settings()
    match settings.get("security_protocol"):
        case "SASL_SSL" if "sasl_oauth_token_provider" in settings:
            return faust.OAuthCredentials(
                oauth_cb=settings["sasl_oauth_token_provider"], ssl_context=settings["ssl_context"]
            )
        case "SASL_SSL":
            return faust.SASLCredentials(
                username=settings["sasl_plain_username"],
                password=settings["sasl_plain_password"],
                ssl_context=settings["ssl_context"],
                mechanism=settings["sasl_mechanism"],
            )
        case "SSL":
            return faust.SSLCredentials(settings["ssl_context"])
    return None


def build_app(deployment: Deployment, owners: Assignment) -> ExactApp:
    """Build the app.

    Why these settings: no tables and `memory://`, since Faust's changelogs are not exact; no declared topics,
    since `topics create` does that; a short session, so that a dead worker's partitions move on in seconds;
    acks off, since Faust commits nothing and would keep a list of every offset; the leaders asked for often,
    since one that was replaced may answer on, and never says so.
    """
    topics = deployment.topics
    app = ExactApp(
        topics.group,
        broker=[f"kafka://{server}" for server in deployment.cluster.bootstrap_servers.split(",")],
        broker_credentials=_credentials(deployment.cluster),
        store="memory://",
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=topics.partitions,
        stream_wait_empty=False,
        stream_buffer_maxsize=BUFFERED_EVENTS,
        broker_session_timeout=WORKERS.session_seconds,
        broker_heartbeat_interval=WORKERS.heartbeat_seconds,
        broker_commit_interval=5,
        broker_max_poll_records=HANDED_RUNS,
        consumer_max_fetch_size=FETCH_BYTES,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=LEADERS_MILLISECONDS,
        web_enabled=False,
    )
    app.owners = owners
    app.topics_of_deployment = topics
    app.transport = cast(TransportT, Transport(app.conf.broker_consumer, app))
    reports = app.topic(
        topics.reports,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        acks=False,
    )

    @app.agent(reports, name="count")
    async def count(stream: StreamT[bytes]) -> None:
        async for event in stream.events():
            await _count(owners, event.message.partition, cast(Sequence[Run], event.value))

    return app


async def _count(owners: Assignment, partition: int, runs: Sequence[Run]) -> None:
    """Offer fetched runs in parts that are counted without delaying other tasks."""
    pause_at = time.monotonic() + COUNTING_SECONDS
    for run in runs:
        for first in range(0, len(run), COUNTED_RECORDS):
            owners.offer(partition, run.part(first, first + COUNTED_RECORDS))
            if time.monotonic() >= pause_at:
                await asyncio.sleep(0)
                pause_at = time.monotonic() + COUNTING_SECONDS
