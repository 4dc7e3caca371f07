"""Opening a ledger: whether its rows belong to this log, and are all there.

Rule: what is wrong here cannot be mended by trying again. The worker ends and says what to do, before it has
counted anything.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from aggregator.deployment import Deployment
from aggregator.ledger import row_keys, row_values
from aggregator.ledger.ledger import Ledger
from aggregator.ledger.row_keys import Key, Window
from aggregator.topics.names import Topics
from estimators.errors import DeniableError

_ANEW = (
    "To begin anew, set another kafka.topic_prefix; or delete all topics of this one and run deniable topics "
    "create"
)


class LedgerRefusedError(DeniableError, RuntimeError):
    """A ledger must not be used any more; the message says why and what to do.

    Parameters
    ----------
    what : is wrong, without a full stop.
    remedy : a sentence that begins with a capital, without a full stop.
    """

    exit_status = 3

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}. {remedy}")


def decoded(deployment: Deployment, partition: int, stored: Mapping[bytes, bytes]) -> dict[Key, bytes]:
    """Rows of a partition of `state`, by key; RowError when a record there is none of ours."""
    with place_told(deployment.topics, partition):
        return {row_keys.decode_key(key): value for key, value in stored.items()}


def published(
    deployment: Deployment, partition: int, found: Mapping[Key, bytes]
) -> dict[Window, row_values.Published]:
    """What was published of each window, from the rows of a partition; RowError when one cannot be read."""
    with place_told(deployment.topics, partition):
        return {
            key[:2]: row_values.decode_published(value)
            for key, value in found.items()
            if isinstance(key, row_keys.PublishedKey)
        }


def restored(
    deployment: Deployment, partition: int, found: Mapping[Key, bytes], committed: int | None
) -> Ledger:
    """The ledger of a partition, from its rows, if they are of this log and all there.

    Parameters
    ----------
    deployment : what the worker works on.
    partition : whose ledger.
    found : all rows of its partition of `state`.
    committed : offset that the group committed, None if it has none.

    Raises
    ------
    LedgerRefusedError or RowError.
    """
    ledger = Ledger(partition, deployment.topics.partitions)
    with place_told(deployment.topics, partition):
        check_genesis(deployment, partition, found, committed)
        ledger.restore(found.items())
    if committed is not None and ledger.position < committed:
        raise LedgerRefusedError(
            f"partition {partition} of {deployment.topics.state} tells of offsets below {ledger.position}, "
            f"and the group {deployment.topics.group} has counted up to {committed}: rows were lost",
            _begin_again(deployment.topics),
        )
    return ledger


def check_genesis(
    deployment: Deployment, partition: int, found: Mapping[row_keys.Key, bytes], committed: int | None
) -> None:
    """Check that rows of `state` belong to the log that is there now.

    Raises
    ------
    LedgerRefusedError.
    """
    topics, value = deployment.topics, found.get(row_keys.SingleKey.GENESIS)
    if value is None and committed is not None:
        raise LedgerRefusedError(
            f"partition {partition} of {topics.state} does not say which log it counts, and the group "
            f"{topics.group} has counted up to offset {committed}: it was deleted",
            f"To count again what {topics.reports} still holds, stop all workers, then run deniable replay "
            f"--rebuild",
        )
    if value is None:
        raise LedgerRefusedError(
            f"partition {partition} of {topics.state} is not set up", "Run deniable topics create"
        )
    genesis = row_values.decode_genesis(value)
    if genesis.partitions != topics.partitions:
        raise LedgerRefusedError(
            f"{topics.state} was begun with {genesis.partitions} partitions, not {topics.partitions}",
            f"Use {genesis.partitions} (kafka.partitions), or another kafka.topic_prefix",
        )
    if genesis.topic_id != deployment.log.topic_id:
        raise log_was_made_again(deployment.topics)


def check_partition(deployment: Deployment, partition: int) -> None:
    """Check that a partition that was assigned is one of the deployment's.

    Raises
    ------
    LedgerRefusedError.
    """
    if partition >= deployment.topics.partitions:
        raise partitions_were_added(deployment.topics, partition + 1, deployment.topics.partitions)


def partitions_were_added(topics: Topics, partitions: int, begun: int) -> LedgerRefusedError:
    """What to say when `reports` has another number of partitions than the ledgers were begun with."""
    return LedgerRefusedError(
        f"{topics.reports} has {partitions} partitions now, and {topics.state} was begun with {begun}: "
        f"partitions were added, and a pack must stay in the partition of its id",
        "Set another kafka.topic_prefix for producers and workers, and run deniable topics create; what was "
        "published under this one stays",
    )


def log_was_made_again(topics: Topics) -> LedgerRefusedError:
    """What to say when `reports` is another topic of the same name."""
    return LedgerRefusedError(
        f"{topics.reports} was deleted and made again since {topics.state} was begun, which counts another "
        f"log",
        _ANEW,
    )


def log_was_cut(topics: Topics, partition: int, position: int, end: int) -> LedgerRefusedError:
    """What to say when the log ends before what was counted already."""
    return LedgerRefusedError(
        f"partition {partition} of {topics.reports} ends at offset {end}, and was counted up to "
        f"{position} already: the topic was made again, or has lost records",
        _ANEW,
    )


@contextmanager
def place_told(topics: Topics, partition: int) -> Iterator[None]:
    """Say of a row that cannot be read where it lies, and what to do."""
    try:
        yield
    except row_values.RowError as error:
        raise row_values.RowError(
            f"partition {partition} of {topics.state}: {error}. It may be of another program. "
            f"{_begin_again(topics)}"
        ) from error


def _begin_again(topics: Topics) -> str:
    return (
        f"To count again what {topics.reports} still holds, stop all workers, delete the topic "
        f"{topics.state}, then run deniable topics create and deniable replay --rebuild"
    )
