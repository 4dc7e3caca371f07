"""Growing at final windows: what is looked at, what estimates list, and that a successor goes on alike."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bench.estimators.growth.prefix_reports import tree_counts
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.estimation.growing import GrowingTexts, first_needed
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.terms import terms_of
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.checkpoint import compose, take
from deniable.aggregator.records.estimate import decode_estimate
from deniable.aggregator.records.known_texts import FOUND_TEXTS, KnownTexts, decode_known_texts
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.protocol.topic_names import Topics
from tests.support.aggregator.builders import estimate_due
from tests.support.messages import PinMessages

MECHANISM = PrefixTree.from_epsilon((2, 4, 5), 4.0, 400)
TREE = Collection(
    "tree",
    MECHANISM,
    candidates=("cafe",),
    alphabet="abcdefgh日",
    window_seconds=60,
    minimum_reports=1000,
    growth=GrowthRule(windows=3, rate=0.05),
)
#: Clients of a window by text, many standard errors above 0 in three windows.
EARLY, LATE = {"abc": 9000, "cafe": 6000}, {"日日": 9000, "cafe": 6000}


@cache
def counts_of(start: int, *, late: bool = False, reports: int = 15_000) -> WindowCounts:
    rng, shares = np.random.default_rng(start + 1), LATE if late else EARLY
    clients = np.array([each * reports // 15_000 for each in shares.values()])
    texts = [each.encode() for each in shares]
    counts = tree_counts(rng, texts, clients, MECHANISM, TREE.hash_key)
    return WindowCounts(counts, counts.sum(axis=1), packs=3, rejected=0)


def advance(growing: GrowingTexts, start: int, *, late: bool = False) -> dict[str, int | None]:
    """Make the looks before a window, then its final estimate; return when each listed text was found."""
    while (look := growing.next_look(start)) is not None:
        growing.note(look, growing.look(look))
    counts = counts_of(start, late=late)
    growing.add(start, counts)
    return discovered(growing, start, counts)


def discovered(growing: GrowingTexts, start: int, counts: WindowCounts) -> dict[str, int | None]:
    listing = growing.listing(start)
    result = window_estimate.estimate(listing, counts)
    record = growing.dated(window_estimate.record_of(listing, start, counts, result, final=True))
    assert record.diagnostics[FOUND_TEXTS] == len(record.values) - 1
    return dict(zip(record.values, record.discovered_at, strict=True))


@pytest.mark.slow
def test_a_window_lists_what_windows_before_it_have_shown() -> None:
    growing = GrowingTexts(TREE, KnownTexts(), {})
    assert advance(growing, 0) == {"cafe": None}
    assert advance(growing, 60) == {"cafe": None, "abc": 60}
    assert advance(growing, 120, late=True) == {"cafe": None, "abc": 60}


def test_candidates_are_not_tested_so_the_rate_is_that_of_all_others() -> None:
    """True finds let others pass more easily: if they were then removed, all that is left might be false."""
    growing = GrowingTexts(TREE, KnownTexts(), {0: counts_of(0)})
    without = GrowingTexts(replace(TREE, candidates=()), KnownTexts(), {0: counts_of(0)})
    assert growing.look(0) == [b"abc"]
    assert without.look(0) == [b"abc", b"cafe"]


@pytest.mark.slow
def test_a_text_that_a_level_cuts_within_a_character_is_estimated() -> None:
    growing = GrowingTexts(TREE, KnownTexts(), {})
    for start in (0, 60, 120):
        advance(growing, start, late=True)
    growing.note(120, growing.look(120))
    listing, counts = growing.listing(180), counts_of(180, late=True)
    record = window_estimate.record_of(
        listing, 180, counts, window_estimate.estimate(listing, counts), final=True
    )
    assert record.values == ["cafe", "日\\xe6\\x97"]
    share, error = record.frequency[1], record.std_error[1]
    assert error is not None
    assert abs(share - 0.6) < 6 * error < 0.2  # a false alarm in 1e9; not found at all, it would be 0


@pytest.mark.slow
def test_a_text_leaves_when_no_look_of_its_span_finds_it() -> None:
    growing = GrowingTexts(TREE, KnownTexts(), {})
    advance(growing, 0)
    lists = [advance(growing, 60 * step, late=True) for step in range(1, 8)]
    # The look at the third window is the last one with a report of it: found at 180, listed before 360.
    assert ["abc" in each for each in lists] == [True, True, True, True, True, False, False]
    assert len(growing._windows) <= 4


@pytest.mark.slow
def test_a_successor_goes_on_as_if_nothing_had_happened() -> None:
    """Its final windows come from the topic, what is known from the row: every later list is the same."""
    one = GrowingTexts(TREE, KnownTexts(), {})
    for step in range(4):
        advance(one, 60 * step, late=step > 1)
    since = first_needed(TREE, one.known, now=300)
    windows = {60 * step: counts_of(60 * step, late=step > 1) for step in range(4) if 60 * step >= since}
    other = GrowingTexts(TREE, one.known, windows)
    lists = [[advance(each, 60 * step, late=True) for step in range(4, 8)] for each in (one, other)]
    assert lists[0] == lists[1]
    assert one.known == other.known


@pytest.mark.slow
def test_a_final_estimate_that_is_made_again_is_the_same() -> None:
    growing = GrowingTexts(TREE, KnownTexts(), {})
    first = [advance(growing, 60 * step) for step in range(3)]
    again = [discovered(growing, 60 * step, counts_of(60 * step)) for step in range(3)]
    assert again == first


def test_windows_from_before_growing_began_have_one_look() -> None:
    growing = GrowingTexts(TREE, KnownTexts(), {start: counts_of(start) for start in (0, 60, 120)})
    assert growing.next_look(180) == 120
    assert advance(growing, 180) == {"cafe": None, "abc": 180}
    assert growing.next_look(180) is None


def test_looks_that_could_list_nothing_are_left_out() -> None:
    known = KnownTexts(looked_at=60)
    growing = GrowingTexts(TREE, known, {start: counts_of(start) for start in (60, 600, 660)})
    assert growing.next_look(720) == 600


def test_few_reports_or_an_empty_level_find_nothing() -> None:
    few = counts_of(0, reports=900)
    assert GrowingTexts(TREE, KnownTexts(), {0: few}).look(0) == []
    one_level = counts_of(0).counts.copy()
    one_level[0] = 0
    empty = WindowCounts(one_level, one_level.sum(axis=1), 1, 0)
    assert GrowingTexts(TREE, KnownTexts(), {0: empty}).look(0) == []


def test_what_changes_is_drained_once() -> None:
    growing = GrowingTexts(TREE, KnownTexts(), {})
    assert growing.drain() is None
    growing.add(0, counts_of(0))
    growing.note(0, [b"abc"])
    assert growing.drain() == growing.known
    assert growing.drain() is None


def test_each_look_has_its_part_of_the_rate() -> None:
    assert GrowthRule(windows=4, rate=0.06).rate_of_look == pytest.approx(0.015)


def test_what_a_look_finds_leaves_with_the_estimates_and_a_successor_reads_it() -> None:
    """Two final windows of an estimator: the second lists what the first has shown; a row stores it."""
    topics = Topics("test-", 1)
    home, metrics = {TREE.fingerprint: TREE}, WorkerMetrics({TREE.fingerprint: TREE})
    growing = {TREE.fingerprint: GrowingTexts(TREE, KnownTexts(), {})}
    estimator = Estimator(home, 1, {}, LostWindows(metrics), metrics, growing=growing)
    ledger = Ledger(0, 1)
    ledger.agree(home, 1)
    for start in (0, 60):
        for level, row in enumerate(counts_of(start).counts):
            key = row_keys.CountKey(TREE.fingerprint, start, level, 0)
            page = row_values.CounterPage(int(row.sum()), 1, row)
            of_source = row_keys.with_source(row_keys.encode_key(key), 0)
            estimator.take(of_source, row_values.encode_counters(page))
    terms = row_keys.with_source(row_keys.encode_key(row_keys.TermsKey(TREE.fingerprint)), 0)
    estimator.take(terms, row_values.encode_terms(terms_of(TREE)))
    closed_ms = TREE.closes_at(60) * 1000 + 1
    closed = row_values.LedgerProgress(1, closed_ms, closed_ms)
    estimator.take(row_keys.with_source(b"P", 0), row_values.encode_progress(closed))
    estimate_due(estimator)
    records = compose(take(ledger, estimator), topics)
    found = [decode_estimate(each.value or b"") for each in records if each.topic == topics.estimates]
    assert [(each.final, each.values) for each in found] == [(True, ["cafe"]), (True, ["cafe", "abc"])]
    assert [each.discovered_at for each in found] == [[None], [None, 60]]
    rows = {
        row_keys.decode_key(each.key or b""): each.value for each in records if each.topic == topics.state
    }
    stored = decode_known_texts(rows[row_keys.KnownTextsKey(TREE.fingerprint)] or b"")
    assert stored == growing[TREE.fingerprint].known
    assert {each.prefix: each.discovered_at for each in stored.texts} == {b"abc": 60}
    assert row_keys.TermsKey(TREE.fingerprint) in rows  # no key of another kind equals it
    assert compose(take(ledger, estimator), topics) == []


def test_messages(pin_messages: PinMessages) -> None:
    still = replace(TREE, growth=None)
    pin_messages(
        {
            "a tree without a rule": lambda: GrowingTexts(still, KnownTexts(), {}),
            "a tree without a rule, before anything is read": lambda: first_needed(still, KnownTexts(), 0),
        }
    )
