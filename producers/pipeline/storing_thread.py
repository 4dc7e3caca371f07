"""The thread that stores and sends what callers submit, after another one has charged clients elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from deniable.config.settings.edge_address import EdgeAddress
from deniable.estimators.collection import Collection
from deniable.producers.budget.limits import UnknownLimitError
from deniable.producers.concurrency.clock import Clock
from deniable.producers.concurrency.fork_hooks import Pause
from deniable.producers.config import ProducerConfig
from deniable.producers.metrics.counters import ReportTotals
from deniable.producers.pipeline.charging_thread import ChargingThread
from deniable.producers.pipeline.dispatcher import Dispatch
from deniable.producers.pipeline.open_store import StoreHandle
from deniable.producers.pipeline.queueing.queue_thread import Item, Queued, QueueThread, Reports
from deniable.producers.pipeline.queueing.submission import FlushRequest, Submission
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.pipeline.stored_packs import Destination, ToEdge, ToKafka
from deniable.producers.pipeline.transactions import StoreTransactions
from deniable.producers.randomization.randomness import Words
from deniable.producers.storage.store import BusyError
from deniable.producers.transport.agreement import Agreement
from deniable.producers.transport.reachability import explained
from deniable.producers.transport.sender import Delivery
from deniable.protocol.secrets.secret import Secret

if TYPE_CHECKING:
    from deniable.producers.transport.connection import Connection
    from deniable.producers.transport.console import ConsoleDelivery
    from deniable.producers.transport.edge.agreement import EdgeAgreement
    from deniable.producers.transport.edge.delivery import EdgeDelivery


def connect(*where: Any) -> "Connection":
    """Connect to Kafka; see `transport.connection`, which the delivery thread imports."""
    from deniable.producers.transport import connection

    return connection.connect(*where)


class StoringThread(QueueThread):
    """Runs store transactions from `start` to `close`. Thread-safe; belongs to the process that created it.

    Parameters
    ----------
    config : of the producer. With a `budget_store`, reports of clients pass a thread that charges these;
        without, this one does, and there is no other.
    secret : with which the store was created.
    words : source of pack ids, shuffling and ticks.
    clock : unix and steady seconds.
    totals : counts the outcomes of reports.
    randomization : of single reports.

    Attributes
    ----------
    agreement : of the collections with the workers' parameters.
    """

    def __init__(
        self,
        config: ProducerConfig,
        secret: Secret,
        words: Words,
        clock: Clock,
        totals: ReportTotals,
        randomization: Randomization,
    ) -> None:
        super().__init__("storing", clock, randomization.joined)
        self._pack_seconds = config.pack_seconds
        self._timing = config.timing
        self._words = words
        collections = {each.collection.fingerprint: each.collection for each in config.allowances}
        self.agreement: Agreement | EdgeAgreement
        self._delivery: Delivery | EdgeDelivery | ConsoleDelivery
        destination: Destination
        if config.console is not None:
            destination, self.agreement = ToKafka(1), Agreement((), None)
            self._delivery = self._to_console(config.console, collections)
        elif config.edge is None:
            destination, self.agreement, self._delivery = self._to_kafka(config, collections.values(), totals)
        else:
            destination, self.agreement, self._delivery = self._to_edge(
                config, config.edge, collections.values(), totals
            )
        others = {each.fingerprint: each for each in config.others}
        dispatch = Dispatch(self._delivery, destination, others | collections, totals)
        self._handle = StoreHandle(config, secret, clock)
        self._transactions = StoreTransactions(
            config, self._handle, words, clock, totals, dispatch, destination
        )
        self._charging: ChargingThread | None = None
        if config.budget_store is not None:
            ahead = (config, config.budget_store, secret, words, clock, totals)
            self._charging = ChargingThread(*ahead, super().put, self.drop, randomization)

    def _to_console(self, stream: TextIO, collections: Mapping[int, Collection]) -> "ConsoleDelivery":
        # Imported here, as is what an edge needs: most producers send to Kafka.
        from deniable.producers.transport.console import ConsoleDelivery

        return ConsoleDelivery(stream, collections, self.wake)

    def _to_kafka(
        self, config: ProducerConfig, collections: Iterable[Collection], totals: ReportTotals
    ) -> tuple[ToKafka, Agreement, Delivery]:
        where = (config.cluster, config.topic, config.partitions, config.connect_seconds)
        agreement = Agreement(collections, config.collections_topic, config.timing)
        delivery = Delivery(
            partial(connect, *where),
            config.topic,
            self.wake,
            totals.sendable,
            config.timing,
            agreement,
            partial(explained, config.cluster),
        )
        return ToKafka(config.partitions), agreement, delivery

    def _to_edge(
        self,
        config: ProducerConfig,
        edge: EdgeAddress,
        collections: Iterable[Collection],
        totals: ReportTotals,
    ) -> "tuple[ToEdge, EdgeAgreement, EdgeDelivery]":
        from deniable.producers.transport.edge.agreement import EdgeAgreement
        from deniable.producers.transport.edge.connection import EdgeConnection
        from deniable.producers.transport.edge.delivery import EdgeDelivery

        agreement = EdgeAgreement(collections, edge, config.timing)
        delivery = EdgeDelivery(
            partial(EdgeConnection, edge, config.connect_seconds, config.timing.stall),
            edge.url,
            self.wake,
            totals.sendable,
            config.timing,
            agreement,
            self._fraction,
        )
        return ToEdge(), agreement, delivery

    def open(self) -> None:
        """Open the stores before `start`. Otherwise the threads do, and drop reports while they cannot.

        Raises
        ------
        StoreError if one cannot be opened, except that a budget store may be away; SecretError if one was
        created with another secret.
        """
        self._open_outbox()
        if self._charging is not None:
            try:
                self._charging.open()
            except BaseException:
                self.abandon()
                raise

    def _open_outbox(self) -> None:
        until = self._clock.steady() + self._timing.busy
        try:
            while True:
                try:
                    self._handle.opened()
                    return
                except BusyError:
                    if self._clock.steady() >= until:
                        raise
        except BaseException:
            self._handle.close()
            raise

    def start(self) -> None:
        """Start the threads unless they run. Does not wait.

        Raises
        ------
        DeliveryError if a thread cannot be started; the next call tries again.
        """
        super().start()
        self._delivery.start()
        if self._charging is not None:
            self._charging.start()

    def abandon(self) -> None:
        """Release everything after `start` failed."""
        if self._charging is not None:
            self._charging.close()
        if self.is_begun:
            self.close()
        else:
            self._handle.close()

    @property
    def away(self) -> str | None:
        """Why the budget store cannot be used; None if it can, or there is none."""
        return None if self._charging is None else self._charging.away

    @property
    def trouble(self) -> str | None:
        """Why reports are not charged or stored, or packs not acknowledged; None while all is well."""
        of_charging = None if self._charging is None else self._charging.trouble
        return of_charging or self.death or (str(self._delivery.trouble) if self._delivery.trouble else None)

    @property
    def store_trouble(self) -> str:
        """Why reports are dropped instead of stored; empty while all is well."""
        return self._transactions.trouble

    def put(self, item: Queued, seconds: float) -> bool:
        """Queue an item, first to be charged if it has clients; see `QueueThread`."""
        if self._charging is not None and (isinstance(item, FlushRequest) or item.has_clients):
            return self._charging.put(item, seconds)
        return super().put(item, seconds)

    def check(self) -> None:
        """Raise DeliveryError if a thread died."""
        if self._charging is not None:
            self._charging.check()
        super().check()

    def pauses(self) -> list[Pause]:
        """Ask the threads to pause, with nothing open that a forked child must not have."""
        of_charging = [] if self._charging is None else [self._charging.pause()]
        return [*of_charging, self.pause()]

    def close(self) -> None:
        """Charge and store what is queued, refuse everything else, disconnect.

        Raises
        ------
        DeliveryError if a thread takes longer than `timing.end` seconds.
        """
        try:
            if self._charging is not None:
                self._charging.close()
        finally:
            self.end(self._timing.end)

    def drop(self, submission: Reports, why: str) -> None:
        """Drop a submission that was not queued. Any thread may call it."""
        self._transactions.drop(submission, why)

    def handle(self, items: Sequence[Item], *, ticking: bool, last: bool) -> None:
        """Run one transaction; repeat it until its limits are known and the store is free.

        On closing, another process may hold the store for `timing.busy` seconds at most.
        """
        if last:
            self._delivery.close()
        submissions = [item for item in items if isinstance(item, Submission)]
        flushes = [item for item in items if isinstance(item, FlushRequest)]
        until = float("inf")
        while True:
            self.serve_pauses()
            try:
                return self._transactions.run(submissions, flushes, ticking=ticking)
            except UnknownLimitError as unknown:
                with self.computing():
                    unknown.find()
            except BusyError as error:
                if self.is_ending:
                    until = min(until, self._clock.steady() + self._timing.busy)
                if self._clock.steady() >= until:
                    return self._transactions.lose(submissions, flushes, error)

    def tick_seconds(self) -> float:
        """Seconds to the next tick: uniform in [0.25, 0.75) of pack_seconds, so no fixed rhythm shows."""
        return self._pack_seconds * (0.25 + 0.5 * self._fraction())

    def _fraction(self) -> float:
        """Return a random number in [0, 1)."""
        return float(self._words.words64((1,))[0] >> np.uint64(11)) / 2**53

    def suspend(self) -> None:
        """Close the store until it is needed again."""
        self._handle.suspend()

    def release(self, error: str) -> None:
        """Disconnect and close the store, however the thread ended."""
        try:
            self._delivery.close()
            self._handle.close()
        finally:
            self._transactions.end(error)
