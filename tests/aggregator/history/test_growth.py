"""Growing from joined windows: their sum, whether enough reported, and the record for programs."""

import msgspec
import numpy as np
import pytest

from bench.estimators.growth.prefix_reports import tree_counts
from deniable.aggregator.history.growth import grow_windows, growth_record
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import coverage_of
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree, shown_text

MECHANISM = PrefixTree.from_epsilon((2, 4, 5), 4.0, 400)
TREE = Collection("tree", MECHANISM, alphabet="abcdefgh", window_seconds=60, minimum_reports=1000)
TEXTS = [b"abc", b"abcdefgh", b"cafe"]
CLIENTS = np.array([10_000, 8_000, 6_000])


def joined(windows: int = 4) -> Joined:
    """The same number of clients in each window, each another client."""
    rng = np.random.default_rng(1)
    counts = sum(tree_counts(rng, TEXTS, CLIENTS, MECHANISM, TREE.hash_key) for _ in range(windows))
    total = WindowCounts(np.asarray(counts), np.asarray(counts).sum(axis=1), 7, 0)
    return Joined(total, {60 * number: 24_000 for number in range(windows)}, [], {}, 0)


def test_texts_of_the_sum_of_windows_are_found() -> None:
    found = grow_windows(TREE, joined(), TREE.alphabet, 0.05)
    assert found is not None
    assert found.texts == [b"abc", b"abcde", b"cafe"]
    assert found.is_whole.tolist() == [True, False, True]
    assert found.frequency == pytest.approx([10 / 24, 8 / 24, 6 / 24], abs=0.02)


def test_another_alphabet_finds_only_its_texts() -> None:
    found = grow_windows(TREE, joined(), "cafe", 0.05)
    assert found is not None
    assert found.texts == [b"cafe"]
    assert found.unexplained[0] == pytest.approx(0.75, abs=0.03)


def test_errors_count_the_sample_of_returning_clients_in_every_window() -> None:
    many, few = joined(), joined()
    few.reports.clear()
    few.reports[0] = 4 * 24_000
    found, once = (grow_windows(TREE, each, TREE.alphabet, 0.05) for each in (many, few))
    assert found is not None
    assert once is not None
    assert (found.std_error > 1.2 * once.std_error).all()


def test_few_reports_are_not_searched() -> None:
    windows = joined(1)
    reluctant = Collection("tree", MECHANISM, window_seconds=60, minimum_reports=24_001)
    assert grow_windows(reluctant, windows, "abc", 0.05) is None


def test_record_holds_what_was_found() -> None:
    windows = joined()
    coverage = coverage_of(TREE, Period(0, 300), windows)
    found = grow_windows(TREE, windows, TREE.alphabet, 0.05)
    record = msgspec.json.decode(msgspec.json.encode(growth_record(TREE, coverage, windows, 0.05, found)))
    assert (record["collection"], record["reports"], record["rate"]) == ("tree", 96_000, 0.05)
    assert record["coverage"]["windows"] == 4
    assert record["found"]["texts"] == ["abc", "abcde", "cafe"]
    assert record["found"]["whole"] == [True, False, True]
    assert sum(record["found"]["level_reports"]) == 96_000
    assert growth_record(TREE, coverage, windows, 0.05, None).found is None


def test_a_cut_character_is_shown_by_its_bytes() -> None:
    assert shown_text("日本".encode()[:5]) == "日\\xe6\\x9c"
