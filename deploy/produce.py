"""A run of `deniable produce`: from an input through a producer to the broker's last acknowledgement."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click
import structlog
from prometheus_client import CollectorRegistry, start_http_server

from deploy.feed import Batch, Feed
from deploy.input_errors import FeedError
from deploy.inputs import Inputs
from deploy.produce_view import ProduceView, summary
from producers.connection import DeliveryError
from producers.counters import Receipt
from producers.producer import Producer
from producers.producer_config import ProducerConfig

WAIT_SECONDS = 60.0  # for the store, for room in the outbox, and for one more acknowledgement at the end
STOP_SECONDS = 10.0  # for acknowledgements, of a run that is cut short

_log = structlog.get_logger(__name__)


def run_produce(
    config: ProducerConfig, inputs: Inputs, feed: Feed, *, metrics_port: int | None, tell_unknown: bool
) -> None:
    """Send each line of the input as one report, and say on stderr what became of them.

    A run that is cut short, by an error or by a signal, says so too unless nothing was sent, and is resumed
    by the next.

    Parameters
    ----------
    config : of a producer of one collection.
    inputs, feed : what to read, and how.
    metrics_port : where to serve the producer's metrics on loopback, 0 for any; None for nowhere.
    tell_unknown : whether to log how many values the collection does not know: a true count.

    Raises
    ------
    FeedError when the input cannot be used; DeliveryError when Kafka did not take all; SecretError and
    StoreError when the producer's folder cannot be used.
    """
    began, producer, is_whole = time.monotonic(), Producer(config), False
    (collection,) = (allowance.collection.name for allowance in config.allowances)
    run = Run(producer, collection, feed, inputs)
    try:
        with served(metrics_port, producer.registry):
            run.send()
        run.drain()
        is_whole = True
    finally:
        with suppress(DeliveryError):  # what is not acknowledged is in the summary
            producer.close(STOP_SECONDS)
        counters = producer.counters()
        if is_whole or counters.packs or counters.stored:
            click.echo(summary(counters, feed.skipped, time.monotonic() - began), err=True)
        if tell_unknown:
            _log.info("values that the collection does not know", count=producer.unknown()[collection])
    inputs.forget_progress()


class Run:
    """Takes batches from the input to the producer."""

    def __init__(self, producer: Producer, collection: str, feed: Feed, inputs: Inputs) -> None:
        self._producer = producer
        self._collection = collection
        self._feed = feed
        self._inputs = inputs

    def send(self) -> None:
        """Read and report all there is.

        Raises
        ------
        FeedError when the input cannot be used; DeliveryError when reports can neither leave nor be kept.
        """
        began, view = time.monotonic(), ProduceView()
        with view.shown():
            for source, place in self._inputs:
                for batch in self._feed.batches(source, place):
                    self._send(batch)
                    view.update(self._feed.used, time.monotonic() - began, *self._inputs.position())
        if self._feed.skipped and not self._feed.used and not self._inputs.is_resumed:
            field = self._feed.value_field
            raise FeedError(f"no line of the input can be used; is '{field}' the right field?")

    def drain(self) -> None:
        """Wait until all is acknowledged, as long as something is within WAIT_SECONDS.

        Raises
        ------
        DeliveryError if nothing was.
        """
        while True:
            packs = self._producer.counters().packs
            try:
                return self._producer.flush(WAIT_SECONDS)
            except DeliveryError:
                if self._producer.counters().packs == packs:
                    raise

    def _send(self, batch: Batch) -> None:
        """Report a batch; where there is no room for it, once more when there should be.

        Reports that were dropped have not been charged, let alone sent, and their lines can be taken again.
        """
        receipt = self._report(batch)
        if receipt.dropped == len(batch.values):
            with suppress(DeliveryError):  # raised for what was dropped at the least
                self._producer.flush(WAIT_SECONDS)
            receipt = self._report(batch)
        if receipt.dropped:
            raise DeliveryError(f"{receipt.dropped} lines could not be kept: {receipt.why_dropped}")
        if receipt.pending:
            raise DeliveryError(f"the store did not take {receipt.pending} lines within {WAIT_SECONDS} s")

    def _report(self, batch: Batch) -> Receipt:
        progress = None if batch.progress is None else (self._inputs.key, batch.progress)
        return self._producer.report(self._collection, batch.values, batch.clients, progress=progress)


@contextmanager
def served(port: int | None, registry: CollectorRegistry) -> Iterator[None]:
    """Serve metrics on loopback, 0 for a free port, and say on stdout where; None serves nothing."""
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, "127.0.0.1", registry)
    except OSError as error:
        raise click.ClickException(
            f"port {port} cannot be used: {error.strerror}; give another --metrics-port (0: a free one)"
        ) from None
    click.echo(f"metrics: http://127.0.0.1:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
