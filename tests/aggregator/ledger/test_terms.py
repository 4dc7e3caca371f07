"""Terms: a window keeps its terms for life, and no collection file may change them unnoticed."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.acceptance import Rejection
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.terms import (
    EVERY_COLLECTION,
    Terms,
    WindowTerms,
    closing_terms,
    terms_at,
    terms_of,
    untouched_window,
)
from deniable.aggregator.ledger.terms_update import changed_terms, check_revision
from deniable.aggregator.ledger.window_ends import Closing
from deniable.aggregator.partition.checkpoint import progress_of
from deniable.estimators.collection import Collection
from deniable.protocol.wire import EARLY_SECONDS, Pack
from tests.support.aggregator.builders import (
    COLLECTIONS,
    FRUIT,
    PARTITIONS,
    PLACE,
    RELAYS_KEY,
    T0,
    new_ledger,
    record_of,
)
from tests.support.messages import PinMessages

FRUITS = FRUIT.fingerprint
ONLY_FRUIT = {FRUITS: FRUIT}


def with_file(**fields: int) -> dict[int, Collection]:
    return {FRUITS: replace(FRUIT, **fields)}


def reopened(ledger: Ledger, collections: dict[int, Collection], revision: int) -> Ledger:
    """The ledger as opened by the next worker with another file: same counts, terms and progress."""
    progress = row_values.encode_progress(progress_of(ledger))
    after = Ledger(0, PARTITIONS)
    after.restore(
        [
            *ledger.counts.rows(),
            *(
                (row_keys.TermsKey(name), row_values.encode_terms(terms))
                for name, terms in ledger.terms.items()
            ),
            (row_keys.SingleKey.REVISION, row_values.encode_revision(ledger.revision)),
            (row_keys.SingleKey.PROGRESS, progress),
        ]
    )
    after.agree(collections, revision)
    return after


def opened(collections: dict[int, Collection]) -> Ledger:
    ledger = Ledger(0, PARTITIONS)
    ledger.agree(collections, 1)
    return ledger


def test_first_terms_come_from_the_file() -> None:
    terms = opened(COLLECTIONS).terms
    assert terms == {name: terms_of(collection) for name, collection in COLLECTIONS.items()}
    assert terms[PLACE.fingerprint] == Terms("place", 2, 16, 3, 10, 0, (WindowTerms(0, 5, 20, 4_000_000),))
    for start in (T0, T0 + 10):
        assert terms[FRUITS].closes_at(start) == FRUIT.closes_at(start)
        assert terms[FRUITS].dies_at(start) == FRUIT.dies_at(start)


def test_irrelevant_changes_keep_the_terms() -> None:
    ledger = opened(ONLY_FRUIT)
    assert changed_terms(ledger.terms, with_file(minimum_reports=7), 5, T0 * 1000) == {}


@pytest.mark.parametrize("field", ["grace_seconds", "retention_seconds", "window_packs"])
def test_changed_terms_begin_with_an_untouched_window(field: str) -> None:
    ledger = opened(ONLY_FRUIT)
    ledger.apply(0, T0 * 1000 + 9999, record_of())
    after = reopened(ledger, with_file(**{field: 77}), 2).terms[FRUITS]
    start = T0 + EARLY_SECONDS + 10
    assert [span.from_window for span in after.spans] == [0, start]
    assert after.span(start - 10) == after.spans[0]
    assert getattr(after.span(start), field) == 77


@given(st.integers(0, 10**13), st.integers(1, 10**6))
def test_untouched_window_is_the_first_too_early(watermark_ms: int, window_seconds: int) -> None:
    start = untouched_window(watermark_ms, window_seconds)
    assert start % window_seconds == 0
    assert start * 1000 > watermark_ms + EARLY_SECONDS * 1000 - 1000
    assert (start - window_seconds) * 1000 <= watermark_ms + EARLY_SECONDS * 1000
    # the latest window acceptable at this append time starts before it
    assert start * 1000 > (watermark_ms // 1000 + EARLY_SECONDS) * 1000


def test_second_change_replaces_unused_terms() -> None:
    ledger = opened(ONLY_FRUIT)
    ledger.apply(0, T0 * 1000, record_of())
    ledger = reopened(ledger, with_file(grace_seconds=77), 2)
    ledger = reopened(ledger, with_file(grace_seconds=88), 3)
    assert [span.grace_seconds for span in ledger.terms[FRUITS].spans] == [5, 88]
    ledger = reopened(ledger, with_file(grace_seconds=5), 4)
    assert [span.grace_seconds for span in ledger.terms[FRUITS].spans] == [5, 5]


def test_longer_grace_does_not_count_a_forgotten_pack_again() -> None:
    """Its id is forgotten when grace ends. Even with a longer grace afterwards, its duplicate is too late."""
    ledger = opened(ONLY_FRUIT)
    ledger.apply(0, T0 * 1000, record_of())
    ledger.apply(1, FRUIT.closes_at(T0) * 1000 + 1, b"no pack")
    ledger = reopened(ledger, with_file(grace_seconds=3600), 2)
    twin = ledger.apply(2, FRUIT.closes_at(T0) * 1000 + 2, record_of())
    assert isinstance(twin, Rejection)
    assert twin.reason == "too_late"


def test_new_collection_counts_from_its_first_agreement() -> None:
    ledger = opened(ONLY_FRUIT)
    place = record_of(PLACE, reports=[1])
    assert isinstance(ledger.apply(0, T0 * 1000, place), Rejection)
    ledger = reopened(ledger, COLLECTIONS, 2)
    assert isinstance(ledger.apply(1, T0 * 1000, place), Pack)
    replayed = Ledger(0, PARTITIONS, ledger.terms)
    for offset in range(2):
        replayed.apply(offset, T0 * 1000, place)
    assert dict(replayed.counts.rows()) == dict(ledger.counts.rows())


def test_retired_collection_rejects_packs_forever() -> None:
    ledger = new_ledger()
    ledger.apply(0, T0 * 1000, record_of(number=1))
    ledger.retire(FRUITS)
    for revision, collections in [(1, COLLECTIONS), (2, {PLACE.fingerprint: PLACE}), (2, COLLECTIONS)]:
        ledger = reopened(ledger, collections, revision)
        outcome = ledger.apply(ledger.position, T0 * 1000, record_of(number=2))
        assert isinstance(outcome, Rejection)
        assert outcome.reason == "unknown_collection"
    assert ledger.counts.tallies[FRUITS, T0, 0].packs == 1
    replayed = Ledger(0, PARTITIONS, ledger.terms)
    for offset, number in enumerate([1, 2, 2, 2]):
        replayed.apply(offset, T0 * 1000, record_of(number=number))
    assert dict(replayed.counts.rows()) == dict(ledger.counts.rows())


def test_messages(pin_messages: PinMessages) -> None:
    """A retired collection's reports would be rejected; a worker with the previous file goes on."""
    retired = new_ledger()
    retired.retire(FRUITS)
    retired.agree(COLLECTIONS, 1)
    falling = (WindowTerms(10, 5, 20, 9), WindowTerms(10, 6, 20, 9))
    pin_messages(
        {
            "a file with a retired collection": lambda: retired.agree(COLLECTIONS, 2),
            "a file without a counted collection": lambda: reopened(new_ledger(), ONLY_FRUIT, 2),
            "an older file": lambda: check_revision(3, 2),
            "another file of the same revision": lambda: reopened(opened(ONLY_FRUIT), COLLECTIONS, 1),
            "no spans": partial(Terms, "fruit", 1, 4, 1, 10, 0, ()),
            "spans from the same window on": partial(Terms, "fruit", 1, 4, 1, 10, 0, falling),
        }
    )


@pytest.mark.parametrize(("start", "wait_ms"), [(0, 0), (7, 0), (8, 900)])
def test_a_count_that_begins_after_the_first_relays_marker_rejects_nothing_too_early(
    start: int, wait_ms: int
) -> None:
    """It does not know what that marker said: windows stay open as long as they may."""
    held = closing_terms(Closing(RELAYS_KEY, 5, 1_000_000, 900), 7)
    found = terms_at({FRUITS: terms_of(FRUIT), EVERY_COLLECTION: held}, start)
    assert found[FRUITS] == terms_of(FRUIT)
    assert found[EVERY_COLLECTION].closing == Closing(RELAYS_KEY, wait_ms=wait_ms)
    assert terms_at({FRUITS: terms_of(FRUIT)}, start) == {FRUITS: terms_of(FRUIT)}
