"""A worker refuses a foreign or incomplete ledger and states the remedy."""

from collections.abc import Callable

import pytest

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_keys import Stored
from deniable.aggregator.partition.failures import ends_early, holds_another
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.ledger_checks import (
    LedgerRefusedError,
    check_partition,
    decoded,
    published,
    restored,
)
from tests.support.aggregator.builders import (
    DEPLOYMENT,
    GENESIS,
    LOG,
    PARTITIONS,
    T0,
    new_ledger,
    progress_row,
    record_of,
)
from tests.support.messages import PinMessages

BEGUN: Stored = (row_keys.SingleKey.GENESIS, GENESIS[1])
AT_7: Stored = (row_keys.SingleKey.PROGRESS, progress_row(7, T0 * 1000))
NOTE: Stored = (
    row_keys.PublishedKey(7, T0),
    row_values.encode_published(row_values.Published(3, final=True)),
)


def genesis(topic_id: bytes = LOG.topic_id, partitions: int = PARTITIONS) -> Stored:
    return (row_keys.SingleKey.GENESIS, row_values.encode_genesis(row_values.Genesis(topic_id, partitions)))


def test_stored_rows_restore_ledger() -> None:
    ledger = new_ledger(2)
    ledger.apply(0, T0 * 1000, record_of(partition=2))
    drained = [
        (row_keys.decode_key(key), value) for key, value in ledger.drain().records() if value is not None
    ]
    progress = (row_keys.SingleKey.PROGRESS, progress_row(1, T0 * 1000))
    for committed in (None, 0, 1):
        found = restored(DEPLOYMENT, 2, dict([BEGUN, progress, *drained]), committed)
        assert dict(found.counts.rows()) == dict(ledger.counts.rows())
        assert (found.position, found.terms, found.revision) == (1, ledger.terms, 1)


def test_notes_are_read_and_another_partition_is_none() -> None:
    assert published(DEPLOYMENT, 2, {NOTE[0]: NOTE[1], BEGUN[0]: BEGUN[1]}) == {
        (7, T0): row_values.Published(3, True)
    }
    check_partition(DEPLOYMENT, PARTITIONS - 1)


def test_messages(pin_messages: PinMessages) -> None:
    def opening(*stored: Stored, committed: int | None = None) -> Callable[[], object]:
        return lambda: restored(DEPLOYMENT, 2, dict(stored), committed)

    pin_messages(
        {
            "a state that was never set up": opening(),
            "a state that was deleted": opening(committed=9),
            "a state that lost rows": opening(BEGUN, AT_7, committed=8),
            "a log that was recreated": opening(genesis(topic_id=bytes(16)), AT_7),
            "another number of partitions": opening(genesis(partitions=3), AT_7),
            "a beginning of a newer version": opening((BEGUN[0], b"\x02" + BEGUN[1][1:])),
            "progress of a newer version": opening(BEGUN, (AT_7[0], b"\x02" + AT_7[1][1:])),
            "a record of another program": lambda: decoded(DEPLOYMENT, 2, {b"k": b"not json"}),
            "a damaged note": lambda: published(DEPLOYMENT, 2, {NOTE[0]: NOTE[1][:-1]}),
            "a log shorter than the counts": lambda: str(ends_early(1, 9, 4)),
            "a log with another record": lambda: str(
                holds_another(1, LastRecord(8, 3, 1_700_000_000_000), LastRecord(8, 4, 1_700_000_009_000))
            ),
            "an added partition": lambda: check_partition(DEPLOYMENT, PARTITIONS),
        }
    )


def test_recreated_log_is_refused() -> None:
    """Its records would be counted again."""
    with pytest.raises(LedgerRefusedError):
        restored(DEPLOYMENT, 2, dict([genesis(topic_id=bytes(16)), AT_7]), None)
