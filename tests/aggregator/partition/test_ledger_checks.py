"""A worker refuses a foreign or incomplete ledger and states the remedy."""

from collections.abc import Callable

import pytest

from aggregator.deployment import Deployment
from aggregator.ledger import row_keys, row_values
from aggregator.ledger.row_keys import Stored
from aggregator.partition.ledger_checks import (
    LedgerRefusedError,
    check_partition,
    decoded,
    log_was_cut,
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

BEGUN: Stored = (row_keys.SingleKey.GENESIS, GENESIS[1])
AT_7: Stored = (row_keys.SingleKey.PROGRESS, progress_row(7, T0 * 1000))
ANEW = (
    "To start again, set another kafka.topic_prefix; or delete all topics of this one and run deniable "
    "topics create"
)
AGAIN = (
    "To count again what test-reports still holds, stop all workers, delete the topic test-state, then run "
    "deniable topics create and deniable replay --rebuild"
)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(LedgerRefusedError) as caught:
        call()
    return str(caught.value)


def opening(*stored: Stored, committed: int | None = None, deployment: Deployment = DEPLOYMENT) -> str:
    return refused(lambda: restored(deployment, 2, dict(stored), committed))


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


def test_state_that_was_never_set_up_is_refused() -> None:
    assert opening() == "partition 2 of test-state is not set up. Run deniable topics create"


def test_deleted_state_is_refused() -> None:
    assert opening(committed=9) == (
        "partition 2 of test-state does not say which log it counts, and the group test-aggregator has "
        "counted up to offset 9: it was deleted, or a rebuild was interrupted. To count again what "
        "test-reports still holds, stop all workers, then run deniable replay --rebuild"
    )


def test_state_that_lost_rows_is_refused() -> None:
    assert opening(BEGUN, AT_7, committed=8) == (
        "partition 2 of test-state covers offsets below 7, and the group test-aggregator has counted up to "
        f"8: rows were lost. {AGAIN}"
    )


def test_recreated_log_is_refused() -> None:
    assert opening(genesis(topic_id=bytes(16)), AT_7) == (
        f"test-reports was deleted and recreated: test-state counts another log. {ANEW}"
    )


def test_another_number_of_partitions_is_refused() -> None:
    assert opening(genesis(partitions=3), AT_7) == (
        "test-state was set up with 3 partitions, not 4. Use 3 (kafka.partitions), or another "
        "kafka.topic_prefix"
    )


def test_rows_of_a_newer_version_are_refused() -> None:
    for key, value in [BEGUN, AT_7]:
        with pytest.raises(row_values.RowError) as caught:
            restored(DEPLOYMENT, 2, dict([BEGUN, (key, b"\x02" + value[1:])]), None)
        assert str(caught.value) == (
            "partition 2 of test-state: row version must be 1, got 2: run the deniable that wrote it, or a "
            f"newer one. It may be of another program. {AGAIN}"
        )


def test_record_of_another_program_is_refused() -> None:
    with pytest.raises(row_values.RowError) as caught:
        decoded(DEPLOYMENT, 2, {b"k": b"not json"})
    assert str(caught.value) == (
        "partition 2 of test-state: row key of unknown kind (1 bytes); a newer version may have written it. "
        f"It may be of another program. {AGAIN}"
    )


def test_damaged_note_is_reported_with_its_partition() -> None:
    key = row_keys.PublishedKey(7, T0)
    note = row_values.encode_published(row_values.Published(3, final=True))
    assert published(DEPLOYMENT, 2, {key: note, BEGUN[0]: BEGUN[1]}) == {
        (7, T0): row_values.Published(3, True)
    }
    with pytest.raises(
        row_values.RowError, match=r"^partition 2 of test-state: .*deniable replay --rebuild$"
    ):
        published(DEPLOYMENT, 2, {key: note[:-1]})


def test_added_partition_is_refused() -> None:
    check_partition(DEPLOYMENT, PARTITIONS - 1)
    assert refused(lambda: check_partition(DEPLOYMENT, PARTITIONS)) == (
        "test-reports has 5 partitions now, and test-state was set up with 4: partitions were added, and a "
        "pack must stay in the partition of its id. Set another kafka.topic_prefix for producers and "
        "workers, and run deniable topics create; what was published under this one stays"
    )


def test_log_shorter_than_the_counts_is_reported() -> None:
    assert str(log_was_cut(DEPLOYMENT.topics, 1, 9, 4)) == (
        "partition 1 of test-reports ends at offset 4, and was counted up to 9 already: the topic was "
        f"recreated, or has lost records. {ANEW}"
    )
