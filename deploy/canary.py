"""A run of `deniable canary`: values drawn from a known distribution, through a producer, without an end."""

import time

import click
import numpy as np
from numpy.typing import NDArray

from deploy.produce import STOP_SECONDS, close, one_more_interrupt_ends, served
from deploy.produce_view import WaitView, summary
from estimators.canary import true_frequencies
from estimators.collection import Collection
from producers.producer import Producer
from producers.producer_config import ProducerConfig
from producers.randomness import Keystream

STEP_SECONDS = 0.1


def run_canary(config: ProducerConfig, reports_per_window: int, *, metrics_port: int | None) -> None:
    """Send until a signal ends it, then say on stderr what became of the reports.

    Parameters
    ----------
    config : of a producer of one collection, a canary.
    reports_per_window : how many, at a steady rate.
    metrics_port : where to serve the producer's metrics on loopback, 0 for any; None for nowhere.

    Raises
    ------
    SecretError and StoreError when the producer's folder cannot be used; DeliveryError when its thread died.
    """
    began, producer = time.monotonic(), Producer(config)
    (collection,) = (allowance.collection for allowance in config.allowances)
    try:
        with served(metrics_port, producer.registry):
            _send(producer, collection, reports_per_window / collection.window_seconds)
    finally:
        with one_more_interrupt_ends():
            close(producer, STOP_SECONDS, WaitView())
        click.echo(summary(producer.counters(), 0, time.monotonic() - began), err=True)


def draw(words: NDArray[np.uint64], k: int) -> NDArray[np.intp]:
    """Values from `true_frequencies`, to within 2^-52 each, one for each uniform 64-bit word: its quantile.

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


def _send(producer: Producer, collection: Collection, reports_per_second: float) -> None:
    """Report independent draws for ever.

    What is dropped, since the outbox is full, was chosen by its time alone: the rest are such draws all the
    same. So no draw is made twice, and nothing needs to be kept between runs.
    """
    words, labels = Keystream(), np.array(collection.labels())
    began, sent = time.monotonic(), 0
    while True:
        due = int(reports_per_second * (time.monotonic() - began))
        if due > sent:
            places = draw(words.words64(due - sent), len(labels))
            producer.report(collection.name, places if collection.takes_integers else labels[places], None)
            sent = due
        time.sleep(STEP_SECONDS)
