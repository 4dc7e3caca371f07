"""A window that expires without a final estimate is reported once; no other window is."""

import numpy as np
import pytest
from structlog.testing import capture_logs

from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_values import Published
from deniable.aggregator.partition.checkpoint import compose, take
from tests.support.aggregator.builders import (
    FRUIT,
    PARTITIONS,
    T0,
    TERMS,
    TOPICS,
    estimate_due,
    new_estimator,
    new_ledger,
    progress_row,
    record_of,
)

FRUITS = (FRUIT.fingerprint, T0)
CLOSES_MS = FRUIT.closes_at(T0) * 1000
DIES_MS = FRUIT.dies_at(T0) * 1000


def reading(published: Published | None = None) -> Estimator:
    """An estimator that has read the rows present when it started."""
    estimator = new_estimator({FRUITS: published} if published else {})
    estimator.caught_up = True
    return estimator


def count(estimator: Estimator, reports: int = 9, source: int = 0, page: int = 0) -> None:
    key = row_keys.encode_key(row_keys.CountKey(*FRUITS, 0, page))
    counters = row_values.CounterPage(
        reports, 1, np.array([reports, 0, 0, 0]) if page == 0 else np.zeros(0, np.int64)
    )
    estimator.take(row_keys.with_source(key, source), row_values.encode_counters(counters))


def close(estimator: Estimator) -> None:
    for source in range(PARTITIONS):
        estimator.take(row_keys.with_source(b"P", source), progress_row(1, CLOSES_MS + 1))


def die(estimator: Estimator, *sources: int, page: int = 0) -> None:
    key = row_keys.encode_key(row_keys.CountKey(*FRUITS, 0, page))
    for source in sources:
        estimator.take(row_keys.with_source(b"P", source), progress_row(2, DIES_MS + 1))
        estimator.take(row_keys.with_source(key, source), None)


def lost(estimator: Estimator) -> float | None:
    return estimator.metrics.registry.get_sample_value("deniable_windows_lost_total", {"collection": "fruit"})


def test_unestimated_window_is_lost_once() -> None:
    estimator = reading()
    count(estimator, source=0)
    count(estimator, source=3)
    with capture_logs() as lines:
        die(estimator, 0, 3)
        estimate_due(estimator)
        estimate_due(estimator)
    assert lost(estimator) == 1
    shown = [(line["log_level"], line["event"], line["collection"], line["windows"]) for line in lines]
    assert shown == [("warning", "windows died before their final estimate", "fruit", 1)]


def test_provisional_estimate_does_not_save_a_window() -> None:
    estimator = reading()
    count(estimator)
    estimate_due(estimator)
    die(estimator, 0)
    assert list(estimator.forgotten()) == [FRUITS]
    assert lost(estimator) == 1


def test_window_with_a_final_estimate_is_not_lost() -> None:
    estimator = reading()
    count(estimator)
    count(estimator, source=2)
    close(estimator)
    estimate_due(estimator)
    die(estimator, 0, 2)
    assert list(estimator.forgotten()) == [FRUITS]
    assert lost(estimator) == 0


def test_window_with_too_few_reports_is_not_lost() -> None:
    """It needs no estimate, even if it has several pages and sources."""
    estimator = reading()
    count(estimator, FRUIT.minimum_reports - 2)
    count(estimator, 0, page=1)
    count(estimator, 1, source=1)
    die(estimator, 1)
    for page in (0, 1):
        die(estimator, 0, page=page)
    assert lost(estimator) == 0


def test_deaths_before_opening_are_not_reported_again() -> None:
    estimator = new_estimator()
    count(estimator)
    die(estimator, 0)
    assert lost(estimator) == 0


@pytest.mark.parametrize(("final", "expected"), [(False, 1), (True, 0)])
def test_note_reveals_an_unread_window_that_expired(final: bool, expected: int) -> None:
    estimator = reading(Published(1, final))
    assert list(estimator.forgotten()) == []
    estimator.take(row_keys.with_source(b"P", 2), progress_row(2, DIES_MS + 1))
    assert list(estimator.forgotten()) == [FRUITS]
    assert lost(estimator) == 0  # the transaction that deletes it may fail and be retried
    estimator.show_published()
    assert lost(estimator) == expected


def test_windows_expiring_between_two_publications_are_lost() -> None:
    """Workers return after an outage longer than retention, and the log advances by hours at once."""
    estimator, ledger = reading(), new_ledger()
    starts = [T0, T0 + 10, T0 + 100, T0 + 200]
    for number, start in enumerate(starts):
        ledger.apply(number, start * 1000, record_of(window_start=start, number=number, reports=[0] * 9))
    for record in compose(take(ledger, estimator, publishes=True), TOPICS):
        if record.topic == TOPICS.counts and record.partition == TOPICS.counts_partition(FRUIT.fingerprint):
            estimator.take(record.key or b"", record.value)
    assert lost(estimator) == len(starts) - 1


def test_lost_window_is_remembered_until_deleted_everywhere() -> None:
    """Later deletions must not count it again, and a long-running worker must not remember all windows."""
    estimator = reading()
    count(estimator)
    for source in range(PARTITIONS):
        terms_row = row_keys.encode_key(row_keys.TermsKey(FRUIT.fingerprint))
        estimator.take(
            row_keys.with_source(terms_row, source), row_values.encode_terms(TERMS[FRUIT.fingerprint])
        )
    die(estimator, 0, 1)
    estimate_due(estimator)
    die(estimator, 2)
    assert lost(estimator) == 1
    assert estimator.lost.known == {FRUITS}
    die(estimator, 3)
    estimate_due(estimator)
    assert (lost(estimator), estimator.lost.known) == (1, set())
