"""Windows by state: open, final, late, small."""

import asyncio
from collections.abc import Iterable

import numpy as np
import pytest

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.estimation.window_states import STATES, window_states
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.row_values import Published
from deniable.aggregator.records.estimate import SETTLE_SECONDS
from tests.support.aggregator.builders import (
    COLLECTIONS,
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    MemoryLog,
    estimate_due,
    new_estimator,
    progress_row,
    terms_rows,
)

FRUITS = (FRUIT.fingerprint, T0)
LATE = FRUIT.closes_at(T0) + SETTLE_SECONDS


def row(window: Window, reports: int, source: int = 0) -> tuple[bytes, bytes]:
    key = row_keys.encode_key(row_keys.CountKey(*window, 0, 0))
    counters = row_values.CounterPage(reports, 1, np.array([reports, 0, 0, 0]))
    return row_keys.with_source(key, source), row_values.encode_counters(counters)


def merged_of(*counts: tuple[bytes, bytes], sources: Iterable[int] = range(PARTITIONS)) -> MergedCounts:
    """Counts, and the terms from some sources."""
    merged = MergedCounts()
    for key, value in [*(each for source in sources for each in terms_rows(source)), *counts]:
        merged.apply(key, value)
    return merged


def fruits(merged: MergedCounts, now: float, finals: Iterable[Window] = ()) -> dict[str, int]:
    """States of FRUIT's windows."""
    found = window_states(merged, COLLECTIONS, PARTITIONS, lambda window: window in finals, now)
    assert found["place"] == dict.fromkeys(STATES, 0)
    return {state: windows for state, windows in found["fruit"].items() if windows}


@pytest.mark.parametrize(("now", "state"), [(LATE, "open"), (LATE + 0.5, "late")])
def test_window_is_late_when_its_final_estimate_is_overdue(now: float, state: str) -> None:
    assert fruits(merged_of(row(FRUITS, 6)), now) == {state: 1}


def test_window_with_few_reports_is_small_not_late() -> None:
    """The sum over all partitions decides, though each has few."""
    assert fruits(merged_of(row(FRUITS, 5)), LATE) == {"open": 1}
    assert fruits(merged_of(row(FRUITS, 5)), LATE + 1) == {"small": 1}
    assert fruits(merged_of(row(FRUITS, 5), row(FRUITS, 1, source=1)), LATE + 1) == {"late": 1}


def test_final_window_has_no_other_state() -> None:
    for now in (T0, LATE + 1):
        assert fruits(merged_of(row(FRUITS, 5)), now, [FRUITS]) == {"final": 1}


def test_window_is_open_until_all_partitions_report_their_terms() -> None:
    assert fruits(merged_of(row(FRUITS, 6), sources=[0, 1]), LATE + 1) == {"open": 1}


def test_windows_are_counted_by_collection() -> None:
    windows = [(FRUIT.fingerprint, T0 + 10 * i) for i in range(3)]
    merged = merged_of(*(row(window, 6) for window in [*windows, (1, T0)]))
    assert fruits(merged, LATE + 11, windows[:1]) == {"final": 1, "late": 1, "open": 1}


def test_estimator_updates_window_states_every_turn() -> None:
    log, estimator = MemoryLog(), new_estimator({FRUITS: Published(1, True)})
    for key, value in (row(FRUITS, 6), row((FRUIT.fingerprint, T0 + 10), 6)):
        log.append("counts", 0, value, key)

    async def run() -> None:
        running = asyncio.create_task(estimator.run(log.reader("", "counts", 0)))
        while not (estimator.caught_up or running.done()):  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0)
        running.cancel()

    asyncio.run(run())
    value = estimator.metrics.registry.get_sample_value
    shown = {state: value("deniable_windows", {"collection": "fruit", "state": state}) for state in STATES}
    assert shown == {"open": 0, "late": 1, "final": 1, "small": 0}
    assert value("deniable_windows", {"collection": PLACE.name, "state": "open"}) == 0


def test_undrained_final_estimate_is_not_final() -> None:
    estimator = new_estimator()
    estimator.take(*row(FRUITS, 6))
    progress = row_keys.encode_key(row_keys.SingleKey.PROGRESS)
    closed = progress_row(watermark_ms=FRUIT.closes_at(T0) * 1000 + 1)
    for source in range(PARTITIONS):
        estimator.take(row_keys.with_source(progress, source), closed)
    estimate_due(estimator)

    def final() -> float | None:
        estimator.show_windows(LATE + 1)
        labels = {"collection": "fruit", "state": "final"}
        return estimator.metrics.registry.get_sample_value("deniable_windows", labels)

    assert final() == 0
    assert [record.final for _, record in estimator.drain()] == [True]
    assert final() == 1
