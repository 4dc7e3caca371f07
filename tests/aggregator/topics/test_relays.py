"""When a ledger needs a relays' marker, and what it says."""

import asyncio
from dataclasses import replace

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata
from structlog.testing import capture_logs

from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.topics import relays as relays_module
from deniable.aggregator.topics.markers import Markers
from deniable.aggregator.topics.relays import AGAIN_SECONDS, LATE_SECONDS, SURE_SECONDS, Relays, _rhythms
from deniable.cluster.connection.outage import Outage
from deniable.protocol.marker import MARKER, RelaysSent, encode_relays
from deniable.protocol.uploads.relay_position import NO_SETTINGS, Position
from tests.support.aggregator.builders import (
    COLLECTIONS,
    NOWHERE,
    RELAYS_KEY,
    T0,
    TOPICS,
    new_ledger,
    waiting_ledger,
)

WAIT_SECONDS = 900
CLOSES_MS = (T0 + 10 + 5) * 1000  # of FRUIT's and PLACE's window at T0
SENT_MS = CLOSES_MS - 5000


def relays(sent_ms: int | None = None, wait_seconds: int = WAIT_SECONDS) -> Relays:
    found = Relays(Markers(NOWHERE, TOPICS, Outage(NOWHERE, "the test waits")), wait_seconds)
    if sent_ms is not None:
        found.is_known, found.sent_ms = True, sent_ms
    return found


def at(ledger: Ledger, append_ms: int, sent: RelaysSent | None = None) -> Ledger:
    record = encode_relays(RELAYS_KEY, sent) if sent else MARKER
    ledger.apply(ledger.position, append_ms, record)
    return ledger


def waiting(append_ms: int) -> Ledger:
    """A ledger that has come to this time; relays have sent all but the window at T0."""
    return at(at(waiting_ledger(), SENT_MS, RelaysSent(1, SENT_MS, 1000 * WAIT_SECONDS)), append_ms)


def test_nothing_is_said_of_relays_that_never_began() -> None:
    assert relays()._due(at(waiting_ledger(), CLOSES_MS + 1)) is None


def test_the_first_marker_makes_windows_wait() -> None:
    assert relays(17)._due(at(waiting_ledger(), T0 * 1000)) == RelaysSent(1, 17, 1000 * WAIT_SECONDS)


def test_a_ledger_without_a_stored_key_gets_none() -> None:
    assert relays(17)._due(at(new_ledger(), CLOSES_MS + 1)) is None


@pytest.mark.parametrize(
    ("append_ms", "sent_ms", "is_due"),
    [
        (CLOSES_MS, CLOSES_MS + 9, False),  # the window still takes packs
        (CLOSES_MS + 1, CLOSES_MS, False),  # relays may have more of it
        (CLOSES_MS + 1, CLOSES_MS + 1, True),
        (CLOSES_MS + 60_000, CLOSES_MS + 1, True),
    ],
)
def test_a_marker_is_due_when_it_closes_a_window(append_ms: int, sent_ms: int, is_due: bool) -> None:
    ledger = waiting(append_ms)
    due = relays(sent_ms)._due(ledger)
    assert due == (RelaysSent(2, sent_ms, 1000 * WAIT_SECONDS) if is_due else None)
    if due:
        at(ledger, append_ms, due)
        assert ledger.closed_until_ms > CLOSES_MS
        assert relays(sent_ms)._due(ledger) is None


def test_without_a_wait_windows_close_by_time_alone_again() -> None:
    ledger = waiting(CLOSES_MS + 1)
    due = relays(wait_seconds=0)._due(ledger)
    assert due == RelaysSent(2, 0, 0)
    assert at(ledger, CLOSES_MS + 1, due).closed_until_ms == CLOSES_MS + 1
    assert relays(wait_seconds=0)._due(ledger) is None


def test_no_window_waits_longer_than_it_may() -> None:
    ledger = waiting(CLOSES_MS + 1000 * WAIT_SECONDS)
    assert ledger.closed_until_ms == CLOSES_MS
    assert at(ledger, CLOSES_MS + 1000 * WAIT_SECONDS + 1).closed_until_ms == CLOSES_MS + 1


def test_a_long_wait_is_one_line_at_its_begin_and_one_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found, late = relays(0), CLOSES_MS + int(1000 * LATE_SECONDS) + 1
    ledger = waiting(late - 1)
    monkeypatch.setattr(relays_module, "SURE_SECONDS", 0.0)
    with capture_logs() as logs:
        found._note_delay(ledger)
        assert logs == []
        for _ in range(2):
            found._note_delay(at(ledger, late))
        found._note_delay(at(ledger, late, RelaysSent(2, late, 1000 * WAIT_SECONDS)))
    assert [each["log_level"] for each in logs] == ["warning", "info"]


def test_the_first_records_after_an_outage_blame_no_relay() -> None:
    """They are late by the log's clock, and relays' markers come with them."""
    found, late = relays(0), CLOSES_MS + int(1000 * LATE_SECONDS) + 1
    with capture_logs() as logs:
        found._note_delay(waiting(late))
        found._late_since[0] -= SURE_SECONDS - 1
        found._note_delay(waiting(late))
        found.markers.outage.cause = "no broker answers"
        found._note_delay(waiting(late))
        assert found._late_since == {}
    assert logs == []


def test_a_long_wait_that_the_file_has_ended_is_no_line() -> None:
    found = relays(0, wait_seconds=0)
    found._note_delay(waiting(CLOSES_MS + int(1000 * LATE_SECONDS) + 1))
    assert found._late_since == {}


def test_what_all_relays_have_sent_is_what_the_slowest_has() -> None:
    """A partition without a commit has sent nothing; an answer without any commit is none."""
    found = relays()

    class Answer:
        def __init__(self, *sent: int | None) -> None:
            self.sent = sent

        async def list_consumer_group_offsets(self, group: str) -> dict[object, object]:
            assert group == TOPICS.relay_group
            return {
                TopicPartition(TOPICS.uploads, partition): OffsetAndMetadata(
                    0, Position(0, 0, 0, NO_SETTINGS, sent_ms).metadata()
                )
                for partition, sent_ms in enumerate(self.sent)
                if sent_ms is not None
            }

    for sent, expected in [((), (False, 0)), ((5, None, 3, 4), (True, 0)), ((5, 9, 3, 4), (True, 3))]:
        asyncio.run(found._ask(Answer(*sent)))  # type: ignore[arg-type]
        assert (found.is_known, found.sent_ms) == expected


def test_a_marker_that_came_back_is_followed_by_the_next_at_once() -> None:
    found, ledger = relays(SENT_MS), waiting(SENT_MS)

    async def work() -> None:
        following = asyncio.create_task(found.follow(ledger))
        for append_ms in (CLOSES_MS + 1, CLOSES_MS + 10_001):
            found.sent_ms = append_ms
            at(ledger, append_ms)
            async with asyncio.timeout(AGAIN_SECONDS - 1):
                _, marker = await found.markers._asked.get()
            ledger.apply(ledger.position, append_ms, marker)
        following.cancel()

    asyncio.run(work())


def test_ended_collections_and_former_graces_keep_no_window_waiting() -> None:
    ledger = waiting(CLOSES_MS)
    for terms in COLLECTIONS:
        ledger.retire(terms)
    assert _rhythms(ledger) == []
    ledger = waiting(CLOSES_MS)
    ledger.agree({each: replace(of, grace_seconds=9) for each, of in COLLECTIONS.items()}, 2)
    assert set(_rhythms(ledger)) == {(10, 5), (10, 9)}
    at(ledger, CLOSES_MS + 400_000, RelaysSent(3, CLOSES_MS + 400_000, 1000 * WAIT_SECONDS))
    assert set(_rhythms(ledger)) == {(10, 9)}
