"""The same counting in bytewax: Kafka -> bits of a pack -> sums by window and cohort -> Kafka, each second.

python -m bench.comparison.runners.peers.readers.bytewax_count SERVERS TOPIC PACKS FOLDER

State is recovered from snapshots taken each second, which are consistent with the offsets; output written to
Kafka since the last snapshot is written again.
"""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from bytewax import operators as op
from bytewax._bytewax import cli_main
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulLogic
from bytewax.recovery import RecoveryConfig, init_db_dir

from bench.comparison.runners.peers.readers.pack_bits import Counts, cohort_of, decode
from bench.comparison.runners.peers.readers.stretch import Stretch

EVERY = timedelta(seconds=1)


class Sum(StatefulLogic):  # type: ignore[misc] # bytewax is in another environment
    """Counts of one window and cohort; emitted a second after they change, and at the end."""

    def __init__(self, counts: Counts | None, stretch: Stretch) -> None:
        self._counts = np.zeros(0, np.int64) if counts is None else counts
        self._stretch = stretch
        self._due: datetime | None = None

    def on_item(self, value: Counts) -> tuple[Iterable[Counts], bool]:
        """Add a pack."""
        self._counts = self._counts + value if self._counts.size else value
        self._due = self._due or datetime.now(UTC) + EVERY
        self._stretch.add()
        return (), StatefulLogic.RETAIN

    def on_notify(self) -> tuple[Iterable[Counts], bool]:
        """Emit the counts."""
        self._due = None
        return (self._counts,), StatefulLogic.RETAIN

    def on_eof(self) -> tuple[Iterable[Counts], bool]:
        """Emit the counts at the end of the log."""
        return (self._counts,), StatefulLogic.RETAIN

    def notify_at(self) -> datetime | None:
        """When the counts are emitted next."""
        return self._due

    def snapshot(self) -> Counts:
        """State from which a restart continues; an array that is never modified."""
        return self._counts


def flow_of(servers: str, topic: str, stretch: Stretch, totals: dict[str, list[int]]) -> Dataflow:
    """The dataflow; `totals` also keeps the last counts it wrote, by cohort."""

    def bits(message: KafkaSourceMessage) -> tuple[str, Counts]:
        return decode(message.value)

    def sum_of(counts: Counts | None) -> Sum:
        return Sum(counts, stretch)

    def written(item: tuple[str, Counts]) -> KafkaSinkMessage:
        key, counts = item
        totals[cohort_of(key)] = counts.tolist()
        return KafkaSinkMessage(key.encode(), counts.tobytes())

    flow = Dataflow("count")
    packs = op.input("packs", flow, KafkaSource([servers], [topic], tail=False))
    sums = op.stateful("sum", op.map("bits", packs, bits), sum_of)
    op.output("out", op.map("record", sums, written), KafkaSink([servers], f"{topic}-bytewax"))
    return flow


def main(servers: str, topic: str, packs: str, folder: str) -> None:
    """Count a whole log, in one worker, and print the counts."""
    stretch, totals = Stretch(int(packs)), dict[str, list[int]]()
    init_db_dir(Path(folder), 1)
    recovery = RecoveryConfig(folder)
    cli_main(flow_of(servers, topic, stretch, totals), epoch_interval=EVERY, recovery_config=recovery)
    stretch.print(counts=totals)


if __name__ == "__main__":
    main(*sys.argv[1:])
