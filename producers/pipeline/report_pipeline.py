"""The way of reports from a producer's callers to the store: straight, or first to be charged elsewhere."""

from collections.abc import Mapping

from deniable.producers.concurrency.clock import Clock
from deniable.producers.concurrency.fork_hooks import Pause
from deniable.producers.config import ProducerConfig
from deniable.producers.metrics.counters import ReportTotals
from deniable.producers.pipeline.charging_thread import ChargingThread
from deniable.producers.pipeline.queueing.queue_thread import Queued, Reports
from deniable.producers.pipeline.queueing.submission import FlushRequest
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.pipeline.storing_thread import StoringThread
from deniable.producers.randomization.randomness import Words
from deniable.producers.transport.agreement import Disagreement
from deniable.protocol.secrets.secret import Secret


class ReportPipeline:
    """The threads of one producer. Thread-safe; belongs to the process that created it.

    Parameters
    ----------
    config : of the producer. With a `budget_store`, reports of clients pass a thread that charges these;
        without, the storing thread does, and there is no other.
    secret : with which the store was created.
    words : source of pack ids, shuffling and ticks.
    clock : unix and steady seconds.
    totals : counts the outcomes of reports.
    randomization : of single reports.
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
        self._storing = StoringThread(config, secret, words, clock, totals, randomization)
        self._charging: ChargingThread | None = None
        if config.budget_store is not None:
            self._charging = ChargingThread(
                config, config.budget_store, secret, words, clock, totals, self._storing, randomization
            )

    def open(self) -> None:
        """Open the stores before `start`.

        Raises
        ------
        StoreError if one cannot be opened, except that a budget store may be away; SecretError if one was
        created with another secret.
        """
        self._storing.open()
        if self._charging is not None:
            try:
                self._charging.open()
            except BaseException:
                self._storing.abandon()
                raise

    def start(self) -> None:
        """Start the threads unless they run. Raises DeliveryError if one cannot be started."""
        self._storing.start()
        if self._charging is not None:
            self._charging.start()

    def abandon(self) -> None:
        """Release everything after `start` failed."""
        if self._charging is not None:
            self._charging.close()
        self._storing.abandon()

    @property
    def is_begun(self) -> bool:
        """Whether it was started."""
        return self._storing.is_begun

    @property
    def away(self) -> str | None:
        """Why the budget store cannot be used; None if it can, or there is none."""
        return None if self._charging is None else self._charging.away

    @property
    def trouble(self) -> str | None:
        """Why reports are not charged or stored, or packs not acknowledged; None while all is well."""
        return (self._charging and self._charging.trouble) or self._storing.trouble

    @property
    def store_trouble(self) -> str:
        """Why reports are dropped instead of stored; empty while all is well."""
        return self._storing.store_trouble

    @property
    def differing(self) -> Mapping[str, Disagreement]:
        """Collections that workers count with other parameters."""
        return self._storing.agreement.differing

    def put(self, item: Queued, seconds: float) -> bool:
        """Queue an item; False if there is no room within `seconds`.

        Raises
        ------
        DeliveryError if a thread died; ClosedError after `close`.
        """
        goes_first = isinstance(item, FlushRequest) or item.has_clients
        if self._charging is not None and goes_first:
            return self._charging.put(item, seconds)
        return self._storing.put(item, seconds)

    def drop(self, submission: Reports, why: str) -> None:
        """Drop a submission that was not queued. Any thread may call it."""
        self._storing.drop(submission, why)

    def check(self) -> None:
        """Raise DeliveryError if a thread died."""
        if self._charging is not None:
            self._charging.check()
        self._storing.check()

    def pauses(self) -> list[Pause]:
        """Ask the threads to pause, with nothing open that a forked child must not have."""
        return [each.pause() for each in (self._charging, self._storing) if each is not None]

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
            self._storing.close()
