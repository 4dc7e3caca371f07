"""Checks on opening a ledger: its rows belong to this log, and none is missing.

Rule: no retry fixes a failed check; the worker ends with the remedy before it counts anything. But it reads
again for a minute what seems to miss rows, since that is what brokers said.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.row_keys import Key, Window
from deniable.aggregator.records.known_texts import KnownTexts, decode_known_texts
from deniable.estimators.errors import DeniableError
from deniable.protocol.topic_names import Topics

_ANEW = (
    "To start again, set another kafka.topic_prefix; or delete all topics of this one and run deniable "
    "topics create"
)


class LedgerRefusedError(DeniableError, RuntimeError):
    """A ledger must not be continued; the message gives the reason and the remedy.

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


class RowsMissingError(LedgerRefusedError):
    """A ledger seems to lack rows; final only once brokers have said so for `timing.cut`."""


def decoded(deployment: Deployment, partition: int, stored: Mapping[bytes, bytes]) -> dict[Key, bytes]:
    """Rows of a partition of `state` by key; RowError if it holds foreign records."""
    with naming_partition(deployment.topics, partition):
        return {row_keys.decode_key(key): value for key, value in stored.items()}


def published(
    deployment: Deployment, partition: int, found: Mapping[Key, bytes]
) -> dict[Window, row_values.Published]:
    """Publications by window, from a partition's rows; RowError if one cannot be read."""
    with naming_partition(deployment.topics, partition):
        return {
            key[:2]: row_values.decode_published(value)
            for key, value in found.items()
            if isinstance(key, row_keys.PublishedKey)
        }


def known_texts(deployment: Deployment, partition: int, found: Mapping[Key, bytes]) -> dict[int, KnownTexts]:
    """What growing knew, by fingerprint, from a partition's rows; RowError if a row cannot be read."""
    with naming_partition(deployment.topics, partition):
        return {
            key.fingerprint: decode_known_texts(value)
            for key, value in found.items()
            if isinstance(key, row_keys.KnownTextsKey)
        }


def restored(
    deployment: Deployment, partition: int, found: Mapping[Key, bytes], committed: int | None
) -> Ledger:
    """Restore a partition's ledger from its rows, after checking them.

    Parameters
    ----------
    deployment : of the worker.
    partition : of the ledger.
    found : all rows of its partition of `state`.
    committed : offset committed by the group, None if it has none.

    Raises
    ------
    LedgerRefusedError or RowError.
    """
    ledger = Ledger(partition, deployment.topics.partitions)
    with naming_partition(deployment.topics, partition):
        check_genesis(deployment, partition, found, committed)
        ledger.restore(found.items())
    if committed is not None and ledger.position < committed:
        raise RowsMissingError(
            f"partition {partition} of {deployment.topics.state} covers offsets below {ledger.position}, "
            f"and the group {deployment.topics.group} has counted up to {committed}: rows were lost",
            _rebuild(deployment.topics),
        )
    return ledger


def check_genesis(
    deployment: Deployment, partition: int, found: Mapping[row_keys.Key, bytes], committed: int | None
) -> None:
    """Check that rows of `state` belong to the current log.

    Raises
    ------
    LedgerRefusedError.
    """
    topics, value = deployment.topics, found.get(row_keys.SingleKey.GENESIS)
    if value is None and committed is not None:
        raise LedgerRefusedError(
            f"partition {partition} of {topics.state} does not say which log it counts, and the group "
            f"{topics.group} has counted up to offset {committed}: it was deleted, or a rebuild was "
            f"interrupted",
            _rebuild(topics),
        )
    if value is None:
        raise LedgerRefusedError(
            f"partition {partition} of {topics.state} is not set up", "Run deniable topics create"
        )
    genesis = row_values.decode_genesis(value)
    if genesis.partitions != topics.partitions:
        raise LedgerRefusedError(
            f"{topics.state} was set up with {genesis.partitions} partitions, not {topics.partitions}",
            f"Use {genesis.partitions} (kafka.partitions), or another kafka.topic_prefix",
        )
    if genesis.topic_id != deployment.log.topic_id:
        raise log_was_recreated(deployment.topics)


def check_partition(deployment: Deployment, partition: int) -> None:
    """Check that an assigned partition belongs to the deployment.

    Raises
    ------
    LedgerRefusedError.
    """
    if partition >= deployment.topics.partitions:
        raise partitions_were_added(deployment.topics, partition + 1, deployment.topics.partitions)


def partitions_were_added(topics: Topics, partitions: int, before: int) -> LedgerRefusedError:
    """Error for a `reports` topic whose number of partitions has changed."""
    return LedgerRefusedError(
        f"{topics.reports} has {partitions} partitions now, and {topics.state} was set up with {before}: "
        f"partitions were added, and a pack must stay in the partition of its id",
        "Set another kafka.topic_prefix for producers and workers, and run deniable topics create; what was "
        "published under this one stays",
    )


def log_was_recreated(topics: Topics) -> LedgerRefusedError:
    """Error for a `reports` topic that was deleted and created again."""
    return LedgerRefusedError(
        f"{topics.reports} was deleted and recreated: {topics.state} counts another log",
        _ANEW,
    )


@contextmanager
def naming_partition(topics: Topics, partition: int) -> Iterator[None]:
    """Add the partition and the remedy to a RowError."""
    try:
        yield
    except row_values.RowError as error:
        raise row_values.RowError(
            f"partition {partition} of {topics.state}: {error}. It may be of another program. "
            f"{_begin_again(topics)}"
        ) from error


def _rebuild(topics: Topics) -> str:
    return (
        f"To count again what {topics.reports} still holds, stop all workers, then run deniable replay "
        f"--rebuild"
    )


def _begin_again(topics: Topics) -> str:
    return (
        f"To count again what {topics.reports} still holds, stop all workers, delete the topic "
        f"{topics.state}, then run deniable topics create and deniable replay --rebuild"
    )
