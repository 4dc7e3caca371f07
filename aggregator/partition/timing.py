"""How long owners of partitions and their stores wait, and for what."""

from dataclasses import dataclass, replace

#: Partitions of a worker that are served at full speed. Each transaction costs it 5 to 10 ms.
FULL_SPEED_PARTITIONS = 16


@dataclass(frozen=True)
class PartitionTiming:
    """All in seconds, > 0, but `commit_rate`.

    Parameters
    ----------
    checkpoint : at least, between two checkpoints of new counts; a result of the estimator waits for nothing.
    longest_pause : at most, between two checkpoints, publications or turns of the estimator with news,
        however long one takes; and between two checkpoints while a partition catches up.
    tick : without news, between two looks whether counting stands still.
    look : between two questions for the log's end.
    publish : at least, between two publications of new counts.
    publish_behind : the same while a partition catches up: fewer rows for a report.
    behind : age of the last counted record, from which on a partition with more in its log catches up.
    stuck : without progress, with fetched records left to count: fetch again.
    stall : for one request to the consumer, which waits forever without a broker.
    retry : before the ledger is opened again after a failure.
    standstill : without progress, with records left in the log: not ready.
    unstored : without a checkpoint: not ready.
    cut : during which brokers say that the log ends before what was counted, or that a ledger lacks rows:
        then those are lost, since no broker that was replaced is believed to lead for so long.
    cancel : before a task that survives its cancellation is cancelled again.
    drain : for last checkpoints; the rest of the worker's stop is for leaving the group.
    open : without a new row while a ledger is read; a large one may take longer in all.
    commit : for a transaction, or the group's offset.
    commit_rate : records per second that extend `commit` for large transactions.
    coordinator : before the group's coordinator is asked again.
    close : for a producer to stop.
    """

    checkpoint: float = 0.25
    longest_pause: float = 2.0
    tick: float = 0.5
    look: float = 2.0
    publish: float = 0.25
    behind: float = 20.0
    publish_behind: float = 6.0
    stuck: float = 2.0
    stall: float = 20.0
    retry: float = 1.0
    standstill: float = 10.0
    unstored: float = 10.0
    cut: float = 60.0
    cancel: float = 5.0
    drain: float = 5.0
    open: float = 60.0
    commit: float = 15.0
    commit_rate: float = 2000.0
    coordinator: float = 0.2
    close: float = 3.0

    def paced(self, checkpoint_seconds: float) -> "PartitionTiming":
        """Return a timing with other shortest pauses: counts and estimates come so much sooner or later."""
        longest = max(self.longest_pause, checkpoint_seconds)
        return replace(self, checkpoint=checkpoint_seconds, publish=checkpoint_seconds, longest_pause=longest)

    def shared_by(self, partitions: int) -> "PartitionTiming":
        """Return longer pauses for a worker of many partitions: else their transactions need all its time."""
        times = max(1.0, partitions / FULL_SPEED_PARTITIONS)
        names = ["checkpoint", "longest_pause", "tick", "look", "publish", "publish_behind"]
        names += ["behind", "unstored", "standstill"]  # which must stay longer than those
        return replace(self, **{name: times * getattr(self, name) for name in names})


DEFAULT = PartitionTiming()
