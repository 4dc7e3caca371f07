"""CSV and JSON lines, whatever a user's file holds.

The first byte of an input says which layout and collection, the second how long the pieces are in which it is
read. Lines may be of LONGEST_LINE bytes: here of few, so that longer ones, which stop a run, are seen.
"""

from collections.abc import Iterator

from deniable.deploy.produce.input import batches as feed
from deniable.deploy.produce.input import csv_records
from deniable.deploy.produce.input import lines as input_lines
from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.source import FeedError
from deniable.deploy.produce.input.values import value_reader
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor

LONGEST_LINE = 64
COLLECTIONS = [
    Collection("text", KRR.from_epsilon(3, 2.0), ("a", "b", "c")),
    Collection("number", KRR.from_epsilon(3, 2.0)),
    Collection("several", HotRappor.from_probabilities(8, 2, 0.25, 0.35, 0.65), tuple("abcdefgh")),
    Collection("word", Rappor.from_probabilities(64, 2, 3, 0.25, 0.35, 0.65)),
]
CSV = b'v,c\na,"x"\n"b\nc",y\n,z\n12,"q""r"\n\xef\xbb\xbf"a,\nb,c\nc,d\n\nd,' + b"e" * 80 + b"\nf,g"
JSON_LINES = (
    b'{"v":"a","c":"x"}\n{"v":12,"c":"y"}\n{"v":["a","b"],"c":"z"}\n{"v":1e999,"c":"x"}\n\n[]\n'
    b'{"v":"\\ud800","c":"x"}\n{"v":{"v":[null,true]},"c":"x"}\n{"v":-1.5,"c":""}\n{"c":"x"'
)
SEEDS = [bytes([choice, 7]) + text for text in (CSV, JSON_LINES) for choice in range(16)]


class Pieces:
    """As a Source: pieces, now and then none yet."""

    def __init__(self, data: bytes, size: int, *, waits: bool) -> None:
        self._pieces = self._cut(data, size, waits=waits)

    def read(self) -> bytes | None:
        return next(self._pieces, b"")

    def _cut(self, data: bytes, size: int, *, waits: bool) -> Iterator[bytes | None]:
        for first in range(0, len(data), size):
            if waits:
                yield None
            yield data[first : first + size]


def check(data: bytes) -> None:
    """FeedError is all that comes of an input; all of it is taken; values do not depend on the pieces."""
    choice, size = (data[0], data[1] + 1) if len(data) > 1 else (0, 1)
    longest, shown = input_lines.LONGEST_LINE, feed.PRINTED_LINES
    input_lines.LONGEST_LINE = csv_records.LONGEST_LINE = LONGEST_LINE
    feed.PRINTED_LINES = 0
    try:
        whole = _read(data[2:], choice, 1 << 16, waits=False)
        assert _read(data[2:], choice, size, waits=bool(choice & 16)) == whole
    finally:
        input_lines.LONGEST_LINE = csv_records.LONGEST_LINE = longest
        feed.PRINTED_LINES = shown


def _read(data: bytes, choice: int, size: int, *, waits: bool) -> object:
    layout = "jsonl" if choice & 1 else "csv"
    collection = COLLECTIONS[choice >> 1 & 3]
    if layout == "csv" and collection.name == "several":
        return None  # refused before anything is read
    client = "c" if choice & 8 else None
    reading = InputBatches(layout, "v", client, value_reader(collection))
    place = Place()
    values, clients = [], []
    try:
        for batch in reading.batches(Pieces(data, size, waits=waits), place):
            assert batch.clients is None or len(batch.clients) == len(batch.values)
            values += batch.values
            clients += batch.clients or []
    except FeedError as error:
        return str(error)
    assert place.bytes_done == len(data)
    assert len(values) == reading.used
    return values, clients, reading.used, reading.skipped, place.lines
