"""End to end on a real broker: throughput from a full log to stored counts, for each size of packs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.comparison.streaming.speeds import SIZES, Size, missed, name_of
from bench.comparison.streaming.throughput import sustained
from bench.comparison.timing.peer_environment import install
from bench.sections import Section
from deniable.deploy.broker.broker import Broker

ABOUT = """\
A real Kafka broker, worker and reader share this machine. RAPPOR of 128 bits, 64 cohorts; a log of 4
equally long partitions is prefilled. Ours: the sum of the workers' speeds, each from its second commit
since all count to its last before one has nine tenths of its share, by the metrics of `deniable
aggregate`; others: from their first pack to nine tenths of the log. This excludes startup, and the log's
end, where fetches wait for exhausted partitions. All in turn, median of the runs. Our worker checks
CRC-32C, pack id, window and partition of every pack, stores counts, ids and position in one transaction,
and publishes estimates meanwhile. On two cores, two workers share what the broker and this process leave;
`held on one core` shows what changing cores costs a worker's two threads."""
OF_PEERS = """\
bytewax and quixstreams count the same bits by window and cohort in their own state, with numpy, and write
the counts to Kafka; their counts were checked. bytewax writes its output again after a crash, from its
last snapshot on. quixstreams has keyed state, so packs' counts pass through a second topic, as JSON."""


def end_to_end(size: Size) -> Section:
    """Measure all readers of a log of this size; BrokerError without a broker."""
    install()
    with TemporaryDirectory() as name, Broker() as broker:
        speeds = sustained(size, Path(name), broker)
    one = next((each.median for each in speeds if each.reader == name_of(1)), 0.0)
    about = ABOUT if size is SIZES[0] else "As above."
    if len(size.peers) > 1:
        about += f" {OF_PEERS}"
    return Section(about, [each.row(one) for each in speeds], missed=missed(size, speeds))


CASES: dict[str, Callable[[], Section]] = {
    f"packs of {size.reports:,}": partial(end_to_end, size) for size in SIZES
}
