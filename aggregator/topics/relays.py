"""Waits for relays: appends what they have sent to `reports`, where it decides which windows are closed.

Rule 1: what relays say is what they commit, after Kafka has all their packs: only they may. A marker that is
appended after that lies behind those packs in every partition.
Rule 2: only the partition's owner appends relays' markers, since it alone has the key. A former owner may do
so too, and says what was true.
"""

import asyncio
import time
from itertools import zip_longest

import structlog
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError

from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.terms import EVERY_COLLECTION
from deniable.aggregator.topics.markers import ERRORS, Markers
from deniable.protocol.marker import RelaysSent, closes_between, encode_relays
from deniable.protocol.uploads.relay_position import Position

LOOK_SECONDS = 0.25  # while a window waits
IDLE_SECONDS = 10.0  # while none does
RETRY_SECONDS = 1.0
AGAIN_SECONDS = 5.0  # after a marker that has not come back
LATE_SECONDS = 60.0  # of waiting by the log's clock, after which that is worth a line
SURE_SECONDS = 20.0  # by ours: after an outage, or in an old part of the log, relays' markers are yet to come
REQUEST_MILLISECONDS = 10_000

log = structlog.get_logger()


class Relays:
    """How far relays have sent, and the markers that say so.

    Parameters
    ----------
    markers : of the worker; they name the cluster and the topics.
    wait_seconds : how long windows wait for relays after their grace, at most; 0 if they do not.
    """

    def __init__(self, markers: Markers, wait_seconds: int) -> None:
        self.markers = markers
        self.wait_ms = wait_seconds * 1000
        self.is_known = False  # whether a relay has ever begun
        self.sent_ms = 0  # by all relays, append time in unix milliseconds
        self._needed = asyncio.Event()
        self._late_since: dict[int, float] = {}  # by partition with windows that have waited for LATE_SECONDS
        self._late: set[int] = set()  # those of which that is sure
        self._is_refused = False

    async def run(self) -> None:
        """Ask how far relays have sent, until cancelled: often while a window waits for them."""
        if not self.wait_ms:
            return
        while True:
            admin = AIOKafkaAdminClient(
                **self.markers.cluster.client_settings(), request_timeout_ms=REQUEST_MILLISECONDS
            )
            try:
                await admin.start()
                while True:
                    await self._ask(admin)
                    await self._rest()
            except ERRORS as error:
                self._note_refusal(error)
                await asyncio.sleep(RETRY_SECONDS)
            finally:
                await admin.close()

    async def follow(self, ledger: Ledger) -> None:
        """Append the markers that this ledger needs, until cancelled."""
        appended_at, number = 0.0, 0
        try:
            while True:
                now = time.monotonic()
                if number <= ledger.closing.number or now - appended_at > AGAIN_SECONDS:
                    sent = self._due(ledger)
                    if sent is not None:
                        appended_at, number = now, sent.number
                        self.markers.append(ledger.partition, encode_relays(ledger.closing.key, sent))
                self._note_delay(ledger)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._late_since.pop(ledger.partition, None)
            self._late.discard(ledger.partition)

    def _due(self, ledger: Ledger) -> RelaysSent | None:
        """What the next marker says; None if none is due."""
        held, watermark_ms = ledger.closing, ledger.watermark_ms
        if not held.key:
            return None
        following = RelaysSent(held.number + 1, self.sent_ms, self.wait_ms)
        if held.wait_ms != self.wait_ms and (self.is_known or not self.wait_ms):
            return following
        rhythms = _rhythms(ledger)
        if not closes_between(rhythms, ledger.closed_until_ms, watermark_ms):
            return None
        self._needed.set()
        would_close_ms = min(watermark_ms, self.sent_ms)
        return following if closes_between(rhythms, ledger.closed_until_ms, would_close_ms) else None

    async def _ask(self, admin: AIOKafkaAdminClient) -> None:
        topics = self.markers.topics
        committed = await admin.list_consumer_group_offsets(topics.relay_group)
        sent = {
            source.partition: _sent_ms(held.offset, held.metadata)
            for source, held in committed.items()
            if source.topic == topics.uploads
        }
        self._is_refused = False
        if any(sent.values()):  # an answer without any is that of a coordinator that is loading
            self.is_known = True
            self.sent_ms = min(sent.get(partition, 0) for partition in range(topics.partitions))

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(IDLE_SECONDS if self.is_known else RETRY_SECONDS):
                await self._needed.wait()
            await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            pass
        self._needed.clear()

    def _note_delay(self, ledger: Ledger) -> None:
        """An outage of relays is one line at its begin, one at its end."""
        waits_since_ms = ledger.watermark_ms - int(LATE_SECONDS * 1000)
        waits = bool(self.wait_ms and ledger.closing.wait_ms) and not self.markers.outage.cause
        if waits and closes_between(_rhythms(ledger), ledger.closed_until_ms, waits_since_ms):
            since = self._late_since.setdefault(ledger.partition, time.monotonic())
            is_late = time.monotonic() - since >= SURE_SECONDS
        else:
            self._late_since.pop(ledger.partition, None)
            is_late = False
        if is_late == (ledger.partition in self._late):
            return
        was_late = bool(self._late)
        (self._late.add if is_late else self._late.discard)(ledger.partition)
        if is_late and not was_late:
            log.warning(
                "windows wait for relays to send what devices uploaded, and are not final",
                topic=self.markers.topics.uploads,
                longest_wait_seconds=self.wait_ms // 1000,
                remedy="see whether relays run and are ready",
            )
        elif not self._late:
            log.info("no window waits for relays any more", topic=self.markers.topics.uploads)

    def _note_refusal(self, error: BaseException) -> None:
        """Kafka's absence has its own lines; a missing right has none."""
        if isinstance(error, GroupAuthorizationFailedError) and not self._is_refused:
            self._is_refused = True
            log.warning(
                "it cannot be seen what relays have sent: windows do not wait for them",
                group=self.markers.topics.relay_group,
                remedy="run deniable topics create --acls",
            )


def _sent_ms(offset: int, metadata: str | None) -> int:
    try:
        return Position.of(offset, metadata or "").sent_ms
    except ValueError:
        return 0  # of another version


def _rhythms(ledger: Ledger) -> list[tuple[int, int]]:
    """`window_seconds` and `grace_seconds` of windows that may be open, of collections that are counted."""
    return [
        (terms.window_seconds, span.grace_seconds)
        for fingerprint, terms in ledger.terms.items()
        if fingerprint != EVERY_COLLECTION and terms.until is None
        for span, following in zip_longest(terms.spans, terms.spans[1:])
        if following is None or (following.from_window + span.grace_seconds) * 1000 > ledger.closed_until_ms
    ]
