"""The same counting in quixstreams: bits of a pack -> a topic by key -> sums in its state -> Kafka.

python -m bench.comparison.runners.peers.readers.quix_count SERVERS TOPIC PACKS FOLDER

The folder is new, and its name is the name of the consumer group.

Uses the library's exactly-once mode: sums, their changelog and offsets in one transaction per second.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from quixstreams import Application, State

from bench.comparison.runners.peers.readers.pack_bits import cohort_of, decode
from bench.comparison.runners.peers.readers.stretch import Stretch

COMMIT_SECONDS = 1.0
SILENCE_SECONDS = 20.0


def main(servers: str, topic: str, packs: str, folder: str) -> None:
    """Count a whole log, in one process, and print the counts."""
    stretch, totals = Stretch(int(packs)), dict[str, list[int]]()
    application = Application(
        servers,
        consumer_group=Path(folder).name,
        auto_offset_reset="earliest",
        commit_interval=COMMIT_SECONDS,
        processing_guarantee="exactly-once",
        state_dir=folder,
        loglevel="ERROR",
    )

    def bits(record: bytes) -> dict[str, Any]:
        key, counts = decode(record)
        return {"key": key, "counts": counts.tolist()}

    def add(value: dict[str, Any], state: State) -> dict[str, Any]:
        before = state.get("counts")
        counts = value["counts"] if before is None else np.add(before, value["counts"]).tolist()
        state.set("counts", counts)
        totals[cohort_of(value["key"])] = counts
        stretch.add()
        if stretch.packs == int(packs):
            application.stop()
        return {"key": value["key"], "counts": counts}

    frame = application.dataframe(application.topic(topic, value_deserializer="bytes"))
    sums = frame.apply(bits).group_by("key").apply(add, stateful=True)
    sums.to_topic(application.topic(f"{topic}-quix-counts"))
    application.run(timeout=SILENCE_SECONDS)
    stretch.print(counts=totals)


if __name__ == "__main__":
    main(*sys.argv[1:])
