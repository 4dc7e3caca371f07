"""A run of `deniable produce`: from the input to the broker's last acknowledgement."""

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import click

from deniable.deploy.cli.signals import handle, leave_at_once
from deniable.deploy.produce.input.batches import InputBatch, InputBatches
from deniable.deploy.produce.input.inputs import Inputs
from deniable.deploy.produce.input.source import LineError
from deniable.deploy.produce.input.values import Value
from deniable.deploy.produce.timing import DEFAULT, RunTiming
from deniable.deploy.produce.unknown.unknown_reports import UnknownReports
from deniable.deploy.produce.unknown.unknown_values import UnknownValues
from deniable.deploy.produce.view import ProduceView, WaitView, spent_notice, summary
from deniable.deploy.services.metrics_server import probes_at, served
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.queueing.submission import SeenReports
from deniable.producers.producer import Producer
from deniable.producers.responders.validation import Clients, Times
from deniable.producers.storage.input_progress import InputProgress
from deniable.protocol.words import number_of

WAITING = "waiting up to {:.0f} s until {} has all; Ctrl-C ends at once"
KEPT = ", and the next deniable produce with this folder sends what is kept"
INTERRUPTED = "interrupted: the same command resumes where this run ended"
INTERRUPTED_PIPE = (
    "interrupted: stdin and pipes cannot be resumed; what was read of it in the last second may be lost"
)


class InputProducer(Producer):
    """A producer that stores reports together with the place in the input that they came from."""

    def report_lines(
        self,
        collection: str,
        values: list[Value],
        clients: Clients,
        at: Times = None,
        *,
        progress: tuple[str, InputProgress] | None,
        seen: SeenReports | None = None,
    ) -> Receipt:
        """Like `report`, but all these reports are stored or dropped together.

        Parameters
        ----------
        collection, values, clients, at : as for `report`.
        progress : path of an input and how far it was read: stored if and only if these reports are not
            dropped. None stores no place.
        seen : is called with the reports once they are stored, without those refused: see `Submission`.
        """
        return self._report(collection, values, clients, at, progress, seen)


def run_produce(
    config: ProducerConfig,
    inputs: Inputs,
    feed: InputBatches,
    *,
    metrics_port: int | None,
    unknown: UnknownValues,
    reports: UnknownReports,
    metrics_listen: tuple[str, int] | None = None,
    timing: RunTiming = DEFAULT,
) -> None:
    """Send each line of the input as one report, and print on stderr what became of the reports.

    A run interrupted by an error or a signal prints that too, unless nothing was sent, and is resumed by the
    next.

    Parameters
    ----------
    config : of a producer of one collection.
    inputs, feed : what to read, and how.
    metrics_port : loopback port for the producer's metrics, 0 for a free one; None to serve none.
    metrics_listen : address and port that serve them to other machines, too.
    unknown : says in coarse words, at a terminal, how many values the collection does not list.
    reports : decides by the run's reports whether an unattended one ends.
    timing : of the run's waits.

    Raises
    ------
    FeedError if the input cannot be used; MostlyUnlistedError as `reports` decides; DeliveryError if Kafka or
    the edge did not take all; SecretError and StoreError if the producer's folder cannot be used.
    """
    began, producer, waits = time.monotonic(), InputProducer(config), WaitView(timing)
    patience, is_whole, is_to_mend, is_interrupted = timing.stop, False, False, False
    (collection,) = (allowance.collection.name for allowance in config.allowances)
    notice = waiting_notice(timing.wait, config)
    run = ProduceRun(producer, collection, feed, inputs, waits, unknown, reports, timing, notice)
    try:
        with served(metrics_port, producer), probes_at(metrics_listen, producer):
            run.send()
            patience = 0.0
            run.drain()
        is_whole = True
    except LineError:
        is_to_mend = True
        raise
    except (KeyboardInterrupt, SystemExit):
        is_interrupted = True
        raise
    finally:
        with one_more_interrupt_ends():
            if patience and producer.counters().is_budget_store_away:
                click.echo(uncharged_notice(producer.reasons_not_ready(), inputs.key), err=True)
                patience = timing.uncharged
            close(producer, patience, waits, config)
            if is_to_mend or feed.is_within_quote:
                inputs.expect_mending()
        counters = producer.counters()
        used = counters.packs or counters.stored or counters.refused or counters.backlog.packs
        if is_whole or used or feed.skipped:
            seconds = time.monotonic() - began
            where, keeps = config.destination, config.console is None
            line = summary(counters, feed.skipped, seconds, where, collection, keeps=keeps)
            click.echo(line, err=True)
        if notice := spent_notice(counters, config.allowances[0].budget, time.time()):
            click.echo(notice, err=True)
        if sentence := unknown.summary():
            click.echo(sentence, err=True)
        if is_interrupted and config.console is None:
            click.echo(INTERRUPTED if inputs.key else INTERRUPTED_PIPE, err=True)
    inputs.forget_progress()
    reports.decide(is_end=True)


def uncharged_notice(reasons: Iterable[str], progress_key: str) -> str:
    """Say why clients cannot be charged, and what happens to their lines when the run is interrupted.

    Parameters
    ----------
    reasons : why the producer is not ready.
    progress_key : of the input's stored progress; empty if none is stored.
    """
    why = "; ".join(reasons) or "clients cannot be charged"
    lines = (
        "the same command reads them again"
        if progress_key
        else "they are lost, since this input has no place to resume at"
    )
    return f"{why}; lines that wait for it are not sent: {lines}"


def waiting_notice(seconds: float, config: ProducerConfig) -> str:
    """Say what a run waits for, and what becomes of the rest; the folder of a console ends with the run."""
    return WAITING.format(seconds, config.receiver) + (KEPT if config.console is None else "")


def close(producer: Producer, seconds: float, waits: WaitView, config: ProducerConfig) -> None:
    """Close the producer once its receiver has all, or after `seconds`; the rest stays in its folder."""
    with suppress(DeliveryError), waits.shown(waiting_notice(seconds, config)):
        if seconds:
            producer.flush(seconds)
    with suppress(DeliveryError):
        producer.close(0)


@contextmanager
def one_more_interrupt_ends() -> Iterator[None]:
    """Let another Ctrl-C end the process at once: the store survives a kill."""
    before = signal.getsignal(signal.SIGINT)
    handle(signal.SIGINT, leave_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class ProduceRun:
    """Passes batches from the input to the producer."""

    def __init__(
        self,
        producer: InputProducer,
        collection: str,
        feed: InputBatches,
        inputs: Inputs,
        waits: WaitView,
        unknown: UnknownValues,
        reports: UnknownReports,
        timing: RunTiming = DEFAULT,
        notice: str = "waiting for Kafka",
    ) -> None:
        self._notice = notice
        self._unknown = unknown
        self._reports = reports
        self._producer = producer
        self._collection = collection
        self._feed = feed
        self._inputs = inputs
        self._waits = waits
        self._timing = timing

    def send(self) -> None:
        """Read and report the whole input.

        Raises
        ------
        FeedError if the input cannot be used, or if strict, most of its first values are unknown;
        MostlyUnlistedError if an unattended run is to end; DeliveryError if reports can neither be sent nor
        kept.
        """
        began, view = time.monotonic(), ProduceView()
        with view.shown():
            for source, place in self._inputs:
                for batch in self._feed.batches(source, place):
                    self._unknown.note(batch.values)
                    self._send(batch)
                    self._reports.decide()
                    view.update(self._feed.used, time.monotonic() - began, *self._inputs.position())
        if not self._inputs.is_resumed:
            self._feed.check_used()

    def drain(self) -> None:
        """Wait until all is acknowledged, as long as an acknowledgement arrives every `timing.wait` seconds.

        Raises
        ------
        DeliveryError if none arrives.
        """
        with self._waits.shown(self._notice):
            while True:
                packs = self._producer.counters().packs
                try:
                    return self._producer.flush(self._timing.wait)
                except DeliveryError:
                    if self._producer.counters().packs == packs:
                        raise

    def _send(self, batch: InputBatch) -> None:
        """Report a batch; if there is no room for it, try once more when there should be.

        Dropped reports were neither charged nor sent, so their lines can be reported again.
        """
        receipt = self._report(batch)
        if receipt.dropped == len(batch.values):
            # Whatever happens next, report dropped lines by a DeliveryError.
            with self._waits.shown(f"no room: {self._notice}"), suppress(DeliveryError):
                self._producer.flush(self._timing.wait)
            receipt = self._report(batch)
        if receipt.dropped:
            lines = number_of(receipt.dropped, "line")
            if batch.progress is None:
                raise DeliveryError(f"{lines} could not be kept: {receipt.why_dropped}")
            raise DeliveryError(
                f"{lines} not taken yet: {receipt.why_dropped}; the same command resumes there"
            )
        if receipt.pending:
            lines = number_of(receipt.pending, "line")
            what = f"the store did not take {lines} within {self._timing.wait:g} s"
            raise DeliveryError("; ".join([what, *self._producer.reasons_not_ready()]))

    def _report(self, batch: InputBatch) -> Receipt:
        progress = None if batch.progress is None else (self._inputs.key, batch.progress)
        return self._producer.report_lines(
            self._collection,
            batch.values,
            batch.clients,
            batch.times,
            progress=progress,
            seen=self._reports.note,
        )
