"""A replay compares `windows`: a difference of one in any counter is seen."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from deniable.aggregator.records.final_window import FinalWindow, decode_page, encode_pages, join_pages
from deniable.aggregator.records.window_counts import WindowCounts
from tests.aggregator.maintenance.test_replay import DEAD_MS, WINDOW, Workers, workers
from tests.support.aggregator.builders import FRUIT, PLACE, T0, TOPICS, pack_of

HOME = TOPICS.counts_partition(FRUIT.fingerprint)
CLOSED_MS = FRUIT.closes_at(T0) * 1000 + 1


def finished() -> Workers:
    run = workers()
    run.count()
    run.close(CLOSED_MS)
    return run


def final_fruit(run: Workers) -> FinalWindow:
    """The k-RR window as stored in `windows`."""
    pages = [decode_page(r.key or b"", r.value or b"") for r in run.log.partition(TOPICS.windows, HOME)]
    [page] = [page for page in pages if page[:2] == WINDOW]
    return FinalWindow.of(FRUIT, T0, join_pages([page], FRUIT))


def write(run: Workers, window: FinalWindow, append_ms: int = T0 * 1000) -> None:
    for key, value in encode_pages(window):
        run.log.append(TOPICS.windows, HOME, value, key, append_ms)


def test_exact_workers_do_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    found = finished().replay(monkeypatch)
    assert (found.difference, found.finals, found.final_counts) == (0, 2, 2)


ONE = np.array([[0, 0, 1, 0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda c: replace(c, counts=c.counts + ONE), 1),
        (lambda c: replace(c, counts=c.counts - ONE[:, ::-1] + ONE), 2),
        (lambda c: replace(c, cohort_sizes=c.cohort_sizes + 1), 1),
        (lambda c: replace(c, packs=c.packs + 1), 1),
        (lambda c: replace(c, packs=c.packs - 1), 1),
        (lambda c: replace(c, rejected=c.rejected + 1), 0),  # packs that arrived too late
    ],
)
def test_difference_is_seen(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[WindowCounts], WindowCounts], difference: int
) -> None:
    run = finished()
    final = final_fruit(run)
    write(run, final._replace(counts=change(final.counts)))
    found = run.replay(monkeypatch)
    assert (found.difference, found.final_counts) == (difference, 2)


def test_counts_unread_since_a_rebuild_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    run = finished()
    for partition in range(TOPICS.partitions):
        run.log.partition(TOPICS.counts, partition).clear()
    assert run.replay(monkeypatch).final_counts == 2


def test_foreign_and_unknown_records_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = finished()
    write(run, final_fruit(run)._replace(fingerprint=HOME))
    run.log.append(TOPICS.windows, HOME, b"{}", b"k", T0 * 1000)
    found = run.replay(monkeypatch)
    assert (found.difference, found.final_counts) == (0, 2)


def test_partially_deleted_windows_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    run = finished()
    final = final_fruit(run)
    write(run, final._replace(counts=replace(final.counts, counts=final.counts.counts + ONE)))
    for partition in (1, 2, 3):
        run.send(pack_of(window_start=T0 + 30, number=20, partition=partition), DEAD_MS)
    run.close(DEAD_MS)
    assert run.replay(monkeypatch).difference == 0


def test_provisional_window_has_no_final_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = workers()
    run.count()
    found = run.replay(monkeypatch)
    assert (found.difference, found.final_counts) == (0, 0)
    assert found.counts.packs((PLACE.fingerprint, T0)) > 0
