"""The thread that charges clients in PostgreSQL, before their reports are queued for storing.

Rules:
1. A report is passed on after the transaction that charged its client is committed, so a crash can only make
   spending exceed what was sent.
2. If it is unknown whether a transaction was committed, its reports are charged again.
"""

import logging
from collections.abc import Callable, Sequence

from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.budget.limits import UnknownLimitError
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.postgres.connection import AwayError
from deniable.producers.budget.spending import Spending
from deniable.producers.concurrency.clock import Clock
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import ClosedError, DeliveryError
from deniable.producers.metrics.counters import ReportTotals
from deniable.producers.pipeline.admission import charged, timely
from deniable.producers.pipeline.queueing.queue_thread import Item, QueueThread, Reports
from deniable.producers.pipeline.queueing.submission import FlushRequest, Submission
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.randomization.randomness import Words
from deniable.producers.storage.store import StoreError
from deniable.protocol.secrets.secret import Secret, SecretError

TICK_SECONDS = 1.0

_log = logging.getLogger(__name__)


class ChargingThread(QueueThread):
    """Charges clients, then passes their reports on. Thread-safe; belongs to the process that created it.

    Parameters
    ----------
    config : of the producer.
    database : with the budgets.
    secret : of all producers that use the database.
    words : source of pauses between attempts.
    clock : unix and steady seconds.
    totals : counts the outcomes of reports.
    store : takes the charged reports, like `QueueThread.put`.
    drop : drops those that are not charged, like `QueueThread.drop`.
    randomization : of single reports.

    Attributes
    ----------
    away : why the database cannot be used; None while it can.
    """

    def __init__(
        self,
        config: ProducerConfig,
        database: BudgetDatabase,
        secret: Secret,
        words: Words,
        clock: Clock,
        totals: ReportTotals,
        store: Callable[[Item, float], bool],
        drop: Callable[[Reports, str], None],
        randomization: Randomization,
    ) -> None:
        super().__init__("charging", clock, randomization.joined)
        self.away: str | None = None
        self._config = config
        self._database = database
        self._collections = {each.collection.name: each.collection for each in config.allowances}
        self._secret = secret
        self._words = words
        self._totals = totals
        self._store = store
        self._drop = drop
        self._budgets: PostgresBudgets | None = None
        self._spending: Spending | None = None
        self._failures = 0
        self._retry_at = 0.0

    def open(self) -> None:
        """Connect before `start`; if the database is away, go on without.

        Raises
        ------
        StoreError, SecretError if it can be reached and must not be used.
        """
        try:
            self._opened()
        except AwayError as error:
            self._fail(error)
        except BaseException:
            self.suspend()
            raise

    @property
    def trouble(self) -> str | None:
        """Why reports of clients are not charged; None while all is well."""
        return self.death or self.away

    def close(self) -> None:
        """Charge what is queued and pass it on, refuse everything else, disconnect.

        Raises
        ------
        DeliveryError if that takes longer than `timing.end` seconds.
        """
        if self.is_begun:
            self.end(self._config.timing.end)
        else:
            self.suspend()

    def handle(self, items: Sequence[Item], *, ticking: bool, last: bool) -> None:
        """Charge submissions, those of each collection in one transaction, and pass everything on."""
        self.serve_pauses()
        by_collection: dict[str, list[Submission]] = {}
        for item in items:
            if isinstance(item, Submission):
                by_collection.setdefault(item.collection, []).append(item)
        for submissions in by_collection.values():
            for each in self._charged(submissions):
                self._pass_on(each)
        for item in items:
            if isinstance(item, FlushRequest):
                self._pass_on(item)
        if ticking and self._spending is not None:
            self._totals.spent(self._spending.used(self._clock.unix()))
            for warning in self._spending.warnings():
                _log.error("%s", warning)

    def tick_seconds(self) -> float:
        """Seconds between two updates of the largest spending."""
        return TICK_SECONDS

    def suspend(self) -> None:
        """Disconnect until the database is needed again."""
        if self._budgets is not None:
            self._budgets.close()
            self._budgets = None

    def release(self, error: str) -> None:
        """Disconnect: the thread ends."""
        self.suspend()

    def drop(self, submission: Reports, why: str) -> None:
        """Count a submission as dropped and settle it. Any thread may call it."""
        self._drop(submission, why)

    def _charged(self, submissions: Sequence[Submission]) -> list[Submission]:
        """Charge submissions to one collection; return them, or nothing if they were dropped."""
        until = float("inf")
        while True:
            self.serve_pauses()
            was_open = self._budgets is not None
            try:
                if not self._may_try():
                    raise AwayError(self.away or "")
                return self._charge(submissions)
            except UnknownLimitError as unknown:
                with self.computing():
                    unknown.find()
                continue
            except (StoreError, SecretError) as error:
                # The server may only have restarted: a new connection decides.
                if was_open:
                    self.suspend()
                    continue
                if self._may_try():
                    self._fail(error)
                failure = str(error)
            if self.is_ending:
                until = min(until, self._clock.steady() + self._config.timing.busy)
            if self._database.when_away == "drop" or self._clock.steady() >= until:
                for each in submissions:
                    self.drop(each, failure)
                return []
            self.rest(min(self._retry_at, until) - self._clock.steady())

    def _charge(self, submissions: Sequence[Submission]) -> list[Submission]:
        budgets, spending = self._opened()
        now = self._clock.unix()
        with budgets.transaction():
            done = charged(timely(submissions, self._collections, now), spending, now)
        self.away, self._failures = None, 0
        self._totals.away(is_away=False)
        return done

    def _opened(self) -> tuple[PostgresBudgets, Spending]:
        if self._budgets is None or self._spending is None:
            budgets = PostgresBudgets(self._database, self._secret)
            try:
                if self._spending is None:
                    self._spending = Spending(budgets, self._config.allowances, self._clock.unix())
                else:
                    self._spending.reopen(budgets, self._clock.unix())
            except BaseException:
                budgets.close()
                raise
            self._budgets = budgets
        return self._budgets, self._spending

    def _may_try(self) -> bool:
        return self._clock.steady() >= self._retry_at

    def _fail(self, error: StoreError | SecretError) -> None:
        """Note a failure, and when to try again."""
        self.suspend()
        waits = self._config.timing.retry
        wait = waits[min(self._failures, len(waits) - 1)]
        # Many producers lose the same server at once: let them come back one after the other.
        self._retry_at = self._clock.steady() + wait * (
            0.5 + 0.5 * float(self._words.words64((1,))[0]) / 2**64
        )
        self._failures += 1
        if self.away != str(error):
            waiting = "wait" if self._database.when_away == "wait" else "are dropped"
            _log.error("reports of clients %s: %s", waiting, error)
        self.away = str(error)
        self._totals.away(is_away=True)

    def _pass_on(self, item: Item) -> None:
        try:
            if not self._store(item, float("inf")):
                raise ClosedError
        except (ClosedError, DeliveryError) as error:
            if isinstance(item, Submission):
                self.drop(item, str(error))
            else:
                item.settle(str(error))
