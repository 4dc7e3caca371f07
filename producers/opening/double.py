"""A producer for tests of applications: it keeps what was recorded, without disk, Kafka and threads."""

import copy
import logging
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.allowance import Allowance
from deniable.producers.concurrency.clock import Clock
from deniable.producers.errors import ClosedError, DeliveryError, newly_dropped
from deniable.producers.metrics.counters import Backlog, Counters, Receipt
from deniable.producers.pipeline.queueing.submission import Submission
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.responders.single_value import unix_seconds, value_rule
from deniable.producers.responders.validation import (
    ABSENT,
    Clients,
    EventTime,
    EventValue,
    Times,
    Values,
    client_text,
    one_given,
    unix_times,
)
from deniable.producers.transport.console import shown_pack
from deniable.protocol.secrets import aes
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import MAX_WINDOW_START, PACK_ID_BYTES, Pack

_log = logging.getLogger(__name__)


class Event(NamedTuple):
    """A true value, as the application gave it.

    Parameters
    ----------
    collection : its name.
    value : one value, or all values of one call to `report`.
    client : None if each value is from a different client; of several values, their clients.
    at : time, or times, as given; None for now.
    """

    collection: str
    value: object
    client: object = None
    at: object = None


class SeededWords:
    """A source of words that anybody can repeat: for tests alone.

    Parameters
    ----------
    seed : any integer.
    """

    def __init__(self, seed: int) -> None:
        self._stream = aes.counter(_of_seed(seed, "words", aes.KEY_BYTES))

    def words64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """uint64 of this shape."""
        words = np.zeros(shape, "<u8")
        stream = words.reshape(-1).view(np.uint8).data
        self._stream.update_into(stream, stream)
        return words


class ProducerDouble:
    """Stands in for a `Producer` in tests. Not private: it keeps true values, and its noise can be repeated.

    Checks collections, values, clients and times as a `Producer` does, with the same errors. It stores, sends
    and charges nothing, so it refuses nothing.

    Parameters
    ----------
    allowances : one for each collection.
    seed : of the noise in `packs`.

    Attributes
    ----------
    events : what was recorded and reported, in order.
    packs : what would leave, a dict for each call and window, as `open_producer(…, console=True)` prints it;
        the same reports for the same seed and calls.
    """

    def __init__(self, allowances: Sequence[Allowance], seed: int = 0) -> None:
        _log.warning("this is a producer for tests: it keeps true values, and nothing about it is private")
        self.events: list[Event] = []
        self.packs: list[dict[str, object]] = []
        self._collections = {each.collection.name: each.collection for each in allowances}
        by_name = {each.collection.name: each for each in allowances}
        secret = Secret(_of_seed(seed, "secret", 32))
        self._randomization = Randomization(by_name, secret, SeededWords(seed), Clock())
        self._stored: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._dropped_here = self._dropped_reported = 0
        self._is_closed = False

    def opened(self) -> Self:
        """Return a double that is open, and keeps events, packs and totals together with this one."""
        another = copy.copy(self)
        another._dropped_here = another._dropped_reported = 0
        another._is_closed = False
        return another

    def __repr__(self) -> str:
        return f"ProducerDouble({', '.join(self._collections)}; for tests, not private)"

    def record(
        self, collection: str, value: EventValue, client: str | int | None = None, at: EventTime = None
    ) -> None:
        """Keep one event; as `Producer.record`."""
        if collection not in self._collections:
            raise self._randomization.unknown_collection()
        checked = value_rule(self._collections[collection]).checked(value)
        owner = None if client is None else client_text("client", client)
        seconds = 0.0 if at is None else unix_seconds(at)
        if self._is_closed or owner == "" or not 0 <= seconds <= MAX_WINDOW_START:
            self._dropped[collection] += 1
            self._dropped_here += 1
            if self._is_closed:
                _log.error("recorded events are dropped: an event was recorded after close")
            return
        self._keep(Event(collection, value, owner, at), [checked], owner, None if at is None else seconds)

    def report(
        self,
        collection: str,
        values: Values,
        clients: Clients = ABSENT,
        at: Times = None,
        *,
        client: Clients = ABSENT,
    ) -> Receipt:
        """Keep values; as `Producer.report`. All count as stored."""
        owners = one_given(clients, client)
        if self._is_closed:
            raise ClosedError
        return self._keep(Event(collection, values, owners, at), values, owners, unix_times(at))

    def _keep(self, event: Event, values: object, clients: Clients, at: Times) -> Receipt:
        parts = list(self._randomization.submissions(event.collection, values, clients, at))
        self.events.append(event)
        for each in parts:
            self._pack(each.made())
        receipt = Receipt(stored=sum(len(each.rows) for each in parts))
        self._stored[event.collection] += receipt.stored
        return receipt

    def _pack(self, made: Submission) -> None:
        collection = self._collections[made.collection]
        places = np.stack([made.windows, made.cohorts.astype(np.int64)], axis=1)
        for window, cohort in np.unique(places, axis=0).tolist():
            rows = made.rows[(made.windows == window) & (made.cohorts == cohort)]
            pack = Pack(
                collection.mechanism.wire_number,
                cohort,
                collection.fingerprint,
                window,
                len(rows),
                collection.mechanism.width,
                bytes(PACK_ID_BYTES),
                rows.tobytes(),
            )
            self.packs.append(shown_pack(pack, collection))

    def flush(self, timeout: float = 30.0) -> None:
        """Return at once; DeliveryError if reports were dropped since the last flush."""
        if self._is_closed:
            raise ClosedError
        self._report_dropped()

    async def aflush(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 (as in `Producer`)
        """As `flush`."""
        self.flush(timeout)

    def close(self, timeout: float = 30.0) -> None:
        """Refuse further reports, and drop further events; DeliveryError as `flush`."""
        if not self._is_closed:
            self._is_closed = True
            self._report_dropped()

    def _report_dropped(self) -> None:
        before, self._dropped_reported = self._dropped_reported, self._dropped_here
        for reason in newly_dropped(before, self._dropped_reported):
            raise DeliveryError(reason)

    async def aclose(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 (as in `Producer`)
        """As `close`."""
        self.close(timeout)

    def save(self, seconds: float) -> bool:
        """Return True at once."""
        return True

    def counters(self) -> Counters:
        """Return totals since it was opened: all is acknowledged, nothing waits."""
        names = self._collections
        stored = {name: self._stored[name] for name in names}
        return Counters(
            stored=stored,
            dropped={name: self._dropped[name] for name in names},
            refused={},
            acknowledged=stored,
            expired={},
            packs=len(self.packs),
            bytes=0,
            backlog=Backlog(),
        )

    def reasons_not_ready(self) -> list[str]:
        """Return none."""
        return []

    def unknown(self) -> dict[str, int]:
        """Return the number of unknown values by collection."""
        return self._randomization.unknown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _of_seed(seed: int, purpose: str, size: int) -> bytes:
    return blake2b(f"{purpose} {seed}".encode(), digest_size=size).digest()
