"""A final estimate and its counts are published in one transaction; small windows publish counts only."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.aggregator.estimation import estimator as estimator_module
from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_values import Published
from deniable.aggregator.ledger.terms import terms_of
from deniable.aggregator.partition.checkpoint import compose, take
from deniable.aggregator.records.estimate import decode_estimate
from deniable.aggregator.records.final_window import FinalWindow, decode_page, join_pages
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.estimators.collection import Collection
from tests.support.aggregator.builders import (
    COLLECTIONS,
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    TOPICS,
    estimate_due,
    new_estimator,
    new_ledger,
)

ENOUGH, FEW = (5, 3, 2, 1), (1, 1, 0, 0)  # even two packs of FEW are too few
WINDOW = (FRUIT.fingerprint, T0)
NOTE = row_keys.encode_key(row_keys.PublishedKey(*WINDOW))


def count(
    estimator: Estimator,
    counts: tuple[int, ...] = ENOUGH,
    packs: int = 1,
    source: int = 0,
    cohort: int = 0,
    collection: Collection = FRUIT,
    start: int = T0,
) -> None:
    """Let a partition publish its counts of a window."""
    key = row_keys.encode_key(row_keys.CountKey(collection.fingerprint, start, cohort, 0))
    counters = row_values.CounterPage(sum(counts), packs, np.array(counts, np.int64))
    estimator.take(row_keys.with_source(key, source), row_values.encode_counters(counters))


def close(estimator: Estimator, whole_from: int = 0, start: int = T0) -> None:
    """Let every partition be closed beyond this window's grace."""
    for source in range(PARTITIONS):
        closed_ms = PLACE.closes_at(start) * 1000 + 1
        progress = row_values.LedgerProgress(1, closed_ms, closed_ms, whole_from)
        estimator.take(row_keys.with_source(b"P", source), row_values.encode_progress(progress))


def published(estimator: Estimator) -> list[Outgoing]:
    """Records of the next transaction after one turn of the periodic task."""
    estimate_due(estimator)
    ledger = new_ledger(TOPICS.counts_partition(FRUIT.fingerprint))
    compose(take(ledger), TOPICS)
    return compose(take(ledger, estimator), TOPICS)


def finals(records: list[Outgoing]) -> list[tuple[Collection, FinalWindow]]:
    """Final windows in the records, each of one page."""
    pages = [decode_page(r.key or b"", r.value or b"") for r in records if r.topic == TOPICS.windows]
    found = [(COLLECTIONS[page.fingerprint], page) for page in pages]
    return [(c, FinalWindow.of(c, page.window_start, join_pages([page], c))) for c, page in found]


def topics(records: list[Outgoing]) -> list[str]:
    return sorted({record.topic.removeprefix("test-") for record in records})


def test_final_estimate_and_counts_share_a_transaction() -> None:
    estimator = new_estimator()
    count(estimator, packs=3)
    count(estimator, (0, 1, 1, 9), packs=2, source=2)
    key = row_keys.encode_key(row_keys.RejectedKey(*WINDOW, "duplicate"))
    estimator.take(row_keys.with_source(key, 1), row_values.encode_rejected(7))
    close(estimator)
    records = published(estimator)
    assert topics(records) == ["estimates", "state", "windows"]
    [(_, final)] = finals(records)
    [estimate] = [decode_estimate(r.value or b"") for r in records if r.topic == TOPICS.estimates]
    assert final.counts.counts.tolist() == [[5, 4, 3, 10]]
    assert final.counts.cohort_sizes.tolist() == [22]
    assert (final.counts.packs, final.counts.rejected) == (5, 7)
    assert (estimate.final, estimate.reports, estimate.revision) == (True, 22, 5)
    page = next(record for record in records if record.topic == TOPICS.windows)
    assert page.partition == TOPICS.counts_partition(FRUIT.fingerprint)
    assert [record.key for record in records].count(NOTE) == 1


def test_counts_of_every_cohort_are_published() -> None:
    estimator = new_estimator()
    for cohort in range(PLACE.cohorts):
        count(estimator, tuple(range(cohort, cohort + 16)), cohort=cohort, collection=PLACE)
    close(estimator)
    [(collection, final)] = finals(published(estimator))
    assert collection is PLACE
    assert final.counts.counts.tolist() == [list(range(c, c + 16)) for c in range(3)]


def test_provisional_estimate_is_published_alone() -> None:
    estimator = new_estimator()
    count(estimator)
    assert topics(published(estimator)) == ["estimates", "state"]


def test_window_with_lost_records_publishes_no_counts() -> None:
    estimator = new_estimator()
    count(estimator)
    close(estimator, whole_from=T0 + 1)
    assert topics(published(estimator)) == ["estimates", "state"]


@pytest.mark.parametrize("counts", [ENOUGH, FEW], ids=["enough", "few"])
def test_counts_are_published_once_per_change(counts: tuple[int, ...]) -> None:
    estimator = new_estimator()
    count(estimator, counts)
    published(estimator)  # provisional, if there are enough
    close(estimator)
    assert [final.counts.packs for _, final in finals(published(estimator))] == [1]
    assert published(estimator) == []
    count(estimator, counts, packs=2, source=3)
    [(_, final)] = finals(published(estimator))
    assert (final.counts.packs, final.counts.reports) == (3, 2 * sum(counts))
    assert published(estimator) == []


def test_small_window_publishes_counts_and_note_only() -> None:
    assert sum(FEW) < FRUIT.minimum_reports
    estimator = new_estimator()
    count(estimator, FEW, packs=2)
    assert published(estimator) == []
    close(estimator)
    records = published(estimator)
    assert topics(records) == ["state", "windows"]
    [(_, final)] = finals(records)
    assert final.counts.counts.tolist() == [list(FEW)]
    home = TOPICS.counts_partition(FRUIT.fingerprint)
    assert Outgoing(TOPICS.state, home, NOTE, row_values.encode_published(Published(2, True))) in records
    estimator.show_published()
    sample = estimator.metrics.registry.get_sample_value
    assert sample("deniable_estimate_reports", {"collection": "fruit"}) is None


def test_next_owner_does_not_republish() -> None:
    estimator = new_estimator({WINDOW: Published(2, True)})
    count(estimator, FEW, packs=2)
    close(estimator)
    assert published(estimator) == []


def test_uncommitted_estimates_are_repeated() -> None:
    """The next owner knows only the stored state."""
    found = []
    for _ in range(2):
        estimator = new_estimator()
        count(estimator)
        close(estimator)
        found.append(published(estimator))
    assert found[0] == found[1] != []


def test_small_final_window_that_grows_gets_an_estimate() -> None:
    estimator = new_estimator()
    count(estimator, FEW)
    close(estimator)
    published(estimator)
    count(estimator, ENOUGH, source=1)
    assert topics(published(estimator)) == ["estimates", "state", "windows"]


def test_replaced_unpublished_counts_are_dropped() -> None:
    estimator = new_estimator()
    close(estimator)
    for packs in (1, 2):
        count(estimator, packs=packs)
        estimate_due(estimator)
    assert [final.counts.packs for _, final in finals(published(estimator))] == [2]


def test_loss_before_the_checkpoint_withholds_final_counts() -> None:
    """A loss is accepted between the estimate and the checkpoint, so only a provisional one is published."""
    estimator = new_estimator()
    count(estimator)
    close(estimator)
    estimate_due(estimator)
    close(estimator, whole_from=T0 + 1)
    count(estimator, packs=2)
    records = published(estimator)
    assert topics(records) == ["estimates", "state"]


def test_inconsistent_counts_are_not_published() -> None:
    estimator = new_estimator()
    count(estimator, (9,) * 17, collection=PLACE)
    close(estimator)
    assert published(estimator) == []


def test_records_waiting_for_a_checkpoint_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage many windows are final at once: they take several transactions, oldest first."""
    monkeypatch.setattr(estimator_module, "MOST_WAITING_BYTES", 2 * 4 * 8 - 1)
    estimator = new_estimator()
    starts = [T0 + 10 * i for i in range(-2, 3)]
    for start in reversed(starts):
        count(estimator, start=start)
    terms = row_values.encode_terms(terms_of(replace(FRUIT, retention_seconds=60)))
    key = row_keys.encode_key(row_keys.TermsKey(FRUIT.fingerprint))
    for source in range(PARTITIONS):
        estimator.take(row_keys.with_source(key, source), terms)
    close(estimator, start=starts[-1])
    left = [[final.window_start for _, final in finals(published(estimator))] for _ in range(4)]
    assert left == [starts[:2], starts[2:4], starts[4:], []]


def test_collections_that_share_a_partition_share_a_transaction() -> None:
    estimator = new_estimator()
    count(estimator)
    count(estimator, tuple(range(16)), collection=PLACE)
    close(estimator)
    assert {collection.name for collection, _ in finals(published(estimator))} == {"fruit", "place"}
