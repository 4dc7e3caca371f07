"""The ledger against a plain dictionary, and across restarts at any point."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger import pack_ids, row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger, Refusal
from deniable.aggregator.partition.checkpoint import progress_of
from deniable.protocol import wire
from deniable.protocol.marker import MARKER, RelaysSent
from tests.support.aggregator.builders import (
    FRUIT,
    PLACE,
    T0,
    ids_of,
    new_ledger,
    pack_of,
    progress_row,
    record_of,
    tallies_of,
    waiting_ledger,
)
from tests.support.aggregator.ledger_model import Event, Model, check_equal
from tests.support.messages import PinMessages

STEPS_MS = [-5000, -1, 0, 1, 999, 1000, 4999, 5000, 5001, 10000, 20000]


@pytest.fixture(autouse=True, scope="module")
def small_rows() -> Iterator[None]:
    """Three counters and three ids per row, so a few packs fill several rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_values, "PAGE_COUNTERS", 3)
        patch.setattr(row_values, "IDS_PER_ROW", 3)
        patch.setattr(pack_ids, "MERGED_ROWS", 2)
        yield


@st.composite
def packs(draw: st.DrawFn, now: int) -> wire.Pack:
    """A pack of a window around now; the small ranges produce many duplicates."""
    collection = draw(st.sampled_from([FRUIT, PLACE]))
    number = draw(st.integers(0, 3))
    window = collection.window_start(now) + 10 * draw(st.sampled_from([0, 0, 0, -1, -2, -4, 1, 31]))
    reports = [number, 1, 3, draw(st.sampled_from([2, 2, 2, 4]))]
    cohort = number % collection.cohorts
    return pack_of(collection, window, number, reports, cohort, draw(st.sampled_from([0, 0, 0, 0, 1])))


def relays_sent(now_ms: int) -> st.SearchStrategy[RelaysSent]:
    """What relays' markers say: copies, ones out of order, and relays that are behind or stand still."""
    sent_ms = st.sampled_from([0, now_ms - 20_000, now_ms - 5000, now_ms, now_ms + 1])
    return st.builds(RelaysSent, st.integers(1, 6), sent_ms, st.sampled_from([0, 5000, 60_000]))


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    events, now_ms = [], T0 * 1000
    for step in draw(st.lists(st.sampled_from(STEPS_MS), max_size=25)):
        now_ms += step
        pack = draw(st.none() | packs(now_ms // 1000) | packs(now_ms // 1000))
        other = draw(st.sampled_from([MARKER, b"no pack", MARKER + b"\0", MARKER[:-1]]))
        relays = draw(st.none() | relays_sent(now_ms)) if pack is None else None
        events.append(Event(now_ms, pack, other, relays))
    return events


@pytest.mark.slow
@given(logs())
def test_ledger_equals_a_plain_dictionary_after_every_record(log: list[Event]) -> None:
    ledger, model = waiting_ledger(), Model()
    for offset, event in enumerate(log):
        ledger.apply(offset, event.append_ms, event.record)
        model.apply(event)
        check_equal(ledger, model)
        assert ledger.position == offset + 1


class Stores:
    """Rows that one ledger's drained changes leave in `state` and `counts`."""

    def __init__(self) -> None:
        self.state: dict[bytes, bytes] = {}
        self.counts: dict[bytes, bytes] = {}

    def take(self, ledger: Ledger, publish: bool = True) -> None:
        changes = ledger.drain()
        for dead in changes.dead:
            self.counts.pop(row_keys.encode_key(dead), None)
        drained = changes.records()
        assert len({key for key, _ in drained}) == len(drained)
        for key, value in drained:
            if key[:1] == b"I":
                before = self.state.get(key)
                assert before is None or value is None or value.startswith(before), "ids were overwritten"
                assert value is not None or before is not None, "ids were never stored"
            _put(self.state, key, value)
        for changed, value in ledger.drain_unpublished().rows() if publish else []:
            _put(self.counts, row_keys.encode_key(changed), value)
        self.state[b"P"] = row_values.encode_progress(progress_of(ledger))
        assert (ledger.drain().records(), ledger.has_dead()) == ([], False)
        assert not publish or ledger.drain_unpublished().records() == []

    def restored(self) -> Ledger:
        """From the rows in any order: here, the newest first."""
        return waiting_ledger([(row_keys.decode_key(key), self.state[key]) for key in reversed(self.state)])


def _put(store: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    if value is None:
        store.pop(key, None)
    else:
        store[key] = value


def all_of(ledger: Ledger) -> tuple[object, ...]:
    times = ledger.watermark_ms, ledger.closed_until_ms, ledger.closing
    return ledger.position, times, tallies_of(ledger), ledger.counts.rejected, ids_of(ledger)


@pytest.mark.slow
@given(logs(), st.data())
def test_restart_at_any_point_changes_nothing(log: list[Event], data: st.DataObject) -> None:
    """Repeatedly discarding and restoring a ledger does not change its result."""
    steady, restarted = waiting_ledger(), waiting_ledger()
    steady_stores, stores = Stores(), Stores()
    for offset, event in enumerate(log):
        for ledger in (steady, restarted):
            ledger.apply(offset, event.append_ms, event.record)
        match data.draw(st.sampled_from(["go on", "go on", "store", "restart"])):
            case "store":
                stores.take(restarted)
            case "restart":
                stores.take(restarted, publish=data.draw(st.booleans()))
                restarted = stores.restored()
        assert all_of(restarted) == all_of(steady)
    stores.take(restarted)
    steady_stores.take(steady)
    assert all_of(stores.restored()) == all_of(steady_stores.restored()) == all_of(steady)
    assert stores.counts == steady_stores.counts
    published = {key: value for key, value in stores.counts.items() if key[:1] != b"T"}
    assert published == {row_keys.encode_key(key): value for key, value in steady.counts.rows()}


@pytest.mark.slow
@given(logs())
def test_unstored_packs_are_counted_again(log: list[Event]) -> None:
    """Rule 3: after a failed store, the ledger is discarded and continues from the stored position."""
    ledger, stores, half = waiting_ledger(), Stores(), len(log) // 2
    for offset, event in enumerate(log):
        if offset == half:
            stores.take(ledger)
        ledger.apply(offset, event.append_ms, event.record)
    again = stores.restored()
    for offset in range(again.position, len(log)):
        again.apply(offset, log[offset].append_ms, log[offset].record)
    assert all_of(again) == all_of(ledger)


def test_many_ids_of_one_checkpoint_fill_several_rows() -> None:
    """Their keys differ from each other and from those of the previous checkpoint."""
    ledger, stores = new_ledger(), Stores()
    for number in range(14):
        ledger.apply(number, T0 * 1000, record_of(number=number))
        if number in (6, 13):
            stores.take(ledger)
    rows_of_ids = [
        len(value) // row_values.ID_BYTES for key, value in stores.state.items() if key[:1] == b"I"
    ]
    assert sorted(rows_of_ids) == [1, 1, 3, 3, 3, 3]
    assert ids_of(stores.restored()) == ids_of(ledger)


def test_rejections_are_drained_once_with_offsets() -> None:
    ledger = new_ledger()
    for offset, record in [(4, record_of()), (5, record_of()), (8, b"no pack")]:
        ledger.apply(offset, T0 * 1000, record)
    assert ledger.drain_refusals() == [Refusal(5, "duplicate"), Refusal(8, "malformed")]
    assert ledger.drain_refusals() == []


def test_ids_expire_with_grace_and_counts_with_retention() -> None:
    ledger = new_ledger()
    window = (FRUIT.fingerprint, T0)
    for offset, record in enumerate([record_of(), record_of()]):
        ledger.apply(offset, T0 * 1000, record)
    ledger.drain()
    for at_ms, kept in [(15_000, ["C", "C", "I", "R"]), (15_001, ["C", "C", "R"]), (35_001, [])]:
        ledger.apply(ledger.position, T0 * 1000 + at_ms, MARKER)
        alive = [row_keys.encode_key(key)[:1].decode() for key, _ in ledger.counts.rows()]
        assert sorted(alive + ["I"] * (window in ledger.ids.by_window)) == kept
    gone = [row_keys.decode_key(key) for key, value in ledger.drain().records() if value is None]
    assert [type(key).__name__ for key in gone] == ["IdsKey", "CountKey", "CountKey", "RejectedKey"]
    assert {key[:2] for key in gone if not isinstance(key, row_keys.SingleKey)} == {window}


@pytest.mark.all
def test_memory_stays_flat_over_2000_windows() -> None:
    """A leak of one id of 16 bytes per window would already take 80 kB."""
    ledger = new_ledger()
    tracemalloc.start()
    try:
        sizes = []
        for window in range(2000):
            start = T0 + 10 * window
            good = record_of(window_start=start, number=window)
            late = record_of(window_start=start - 600, number=window)
            for record in (good, good, late, record_of(window_start=start, reports=[4]), b"no pack"):
                ledger.apply(ledger.position, start * 1000, record)
            ledger.drain()
            ledger.drain_unpublished()
            ledger.drain_refusals()
            if window % 500 == 499:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(sizes) - min(sizes) < 20_000, sizes


def test_messages(pin_messages: PinMessages) -> None:

    ledger, stores = new_ledger(), Stores()
    ledger.apply(0, T0 * 1000, record_of())
    stores.take(ledger)
    alone = [(row_keys.decode_key(key), value) for key, value in stores.state.items() if key[:1] != b"T"]
    page = row_values.CounterPage(1, 1, np.zeros(FRUIT.width - 1, dtype=np.int64))
    short = (row_keys.CountKey(FRUIT.fingerprint, T0, 0, 0), row_values.encode_counters(page))
    newer = (row_keys.SingleKey.PROGRESS, b"\x02" + progress_row()[1:])
    pin_messages(
        {
            "rows without terms": lambda: Ledger(3, 4).restore(alone),
            "a row of a newer version": lambda: new_ledger().restore([newer]),
            "a row with too few counters": lambda: new_ledger().restore([short]),
        }
    )
