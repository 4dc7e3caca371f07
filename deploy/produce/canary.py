"""A run of `deniable canary`: send values drawn from a known distribution until a signal ends it."""

import time

import click
import numpy as np
from numpy.typing import NDArray

from deniable.deploy.produce.run import close, one_more_interrupt_ends
from deniable.deploy.produce.timing import DEFAULT, RunTiming
from deniable.deploy.produce.view import WaitView, summary
from deniable.deploy.services.metrics_server import probes_at, served
from deniable.estimators.canary import true_frequencies
from deniable.estimators.collection import Collection
from deniable.producers.config import ProducerConfig
from deniable.producers.producer import Producer
from deniable.producers.randomization.randomness import Keystream

STEP_SECONDS = 0.1


def run_canary(
    config: ProducerConfig,
    reports_per_window: int,
    *,
    metrics_port: int | None,
    metrics_listen: tuple[str, int] | None = None,
    timing: RunTiming = DEFAULT,
) -> None:
    """Send until a signal ends it, then print the outcomes of the reports on stderr.

    Parameters
    ----------
    config : of a producer of one collection, a canary.
    reports_per_window : sent at a steady rate.
    metrics_port : loopback port for the producer's metrics, 0 for a free one; None to serve none.
    metrics_listen : address and port that serve them to other machines, too.
    timing : of the run's waits.

    Raises
    ------
    SecretError and StoreError if the producer's folder cannot be used; DeliveryError if its thread died.
    """
    began, producer = time.monotonic(), Producer(config)
    (collection,) = (allowance.collection for allowance in config.allowances)
    try:
        with served(metrics_port, producer), probes_at(metrics_listen, producer):
            canary = Canary(producer, collection, reports_per_window)
            while True:
                canary.send_due()
                time.sleep(STEP_SECONDS)
    finally:
        with one_more_interrupt_ends():
            close(producer, timing.stop, WaitView(timing), config)
        seconds = time.monotonic() - began
        line = summary(producer.counters(), 0, seconds, config.destination, collection.name)
        click.echo(line, err=True)


def draw(words: NDArray[np.uint64], k: int) -> NDArray[np.intp]:
    """Draw values from `true_frequencies`, exact to 2^-52: the quantile of each uniform 64-bit word.

    Parameters
    ----------
    words : uint64 array (n,).
    k : number of values, in [2, 16].

    Returns
    -------
    intp array (n,), each in [0, k).
    """
    uniform = (words >> np.uint64(11)) * 2.0**-53  # exact, below 1
    return np.searchsorted(np.cumsum(true_frequencies(k))[:-1], uniform, side="right")


class Canary:
    """Reports independent draws at a steady rate, from construction on.

    Which reports a full outbox drops depends only on their time, so the others are still independent
    draws. No draw is repeated, so nothing needs to be kept between runs.

    Parameters
    ----------
    producer : of the collection and possibly others.
    collection : a canary.
    reports_per_window : >= 1.
    """

    def __init__(self, producer: Producer, collection: Collection, reports_per_window: int) -> None:
        self._producer = producer
        self._collection = collection
        self._reports_per_second = reports_per_window / collection.window_seconds
        self._words, self._labels = Keystream(), np.array(collection.labels())
        self._began = time.monotonic()
        self.sent = 0

    def send_due(self) -> None:
        """Report as many draws as are due since the last call."""
        due = int(self._reports_per_second * (time.monotonic() - self._began))
        if due > self.sent:
            places = draw(self._words.words64(due - self.sent), len(self._labels))
            values = places if self._collection.takes_integers else self._labels[places]
            self._producer.report(self._collection.name, values, None)
            self.sent = due
