"""A final window's merged counts in the topic `windows`: pages, each a record, all in one transaction.

Of several results of a window, the last one in the log wins.

Little-endian. Key of a page: the letter W, fingerprint (8 bytes), window start (8), number of the page (4).
Value:

    0  1  version = 1        1  1  bytes of a counter        2  4  pages of the window
    6  8  packs             14  8  rejected                 22  4  window seconds        26  2  cohorts
    28 1  bytes of the name 29  name, UTF-8; on page 0 the reports of each cohort, 8 bytes each; counters

The counters of all pages, concatenated, are the window's counts, cohort by cohort; each page uses the
narrowest unsigned integers that hold its own.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.row_values import RowError, narrowest
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection

VERSION = 1
# At most 256 KiB of 64-bit counters, beside 512 KiB of cohort sizes: a page stays below Kafka's 1 MiB.
PAGE_COUNTERS = 32768

_KEY = struct.Struct("<cQqI")
_HEAD = struct.Struct("<BBIQQIHB")
_SIZE = np.dtype("<u8")


class FinalWindow(NamedTuple):
    """Counts of one final window, and what decoding needs besides the mechanism.

    Parameters
    ----------
    fingerprint, name, window_seconds : of the collection.
    window_start : unix seconds.
    counts : all partitions together; `rejected` is as of the final estimate: later packs are rejected after
        it.
    """

    fingerprint: int
    name: str
    window_start: int
    window_seconds: int
    counts: WindowCounts

    @classmethod
    def of(cls, collection: Collection, window_start: int, counts: WindowCounts) -> "FinalWindow":
        """Counts of a window of this collection."""
        return cls(collection.fingerprint, collection.name, window_start, collection.window_seconds, counts)


class Page(NamedTuple):
    """One record of the topic.

    Parameters
    ----------
    fingerprint, window_start, number : its key; `number` counts from 0.
    pages : number of pages of the window.
    packs, rejected, window_seconds, cohorts, name : of the window, repeated on each page.
    cohort_sizes : uint64 (cohorts,) on page 0, (0,) on others.
    counters : its part of the counts, any unsigned integers.
    """

    fingerprint: int
    window_start: int
    number: int
    pages: int
    packs: int
    rejected: int
    window_seconds: int
    cohorts: int
    name: str
    cohort_sizes: npt.NDArray[np.uint64]
    counters: npt.NDArray[np.unsignedinteger]

    def follows(self, former: "Page") -> bool:
        """Whether this page is the next one of the same window and revision."""
        mine = (self.fingerprint, self.window_start, self.packs, self.pages, self.number)
        return mine == (*former[:2], former.packs, former.pages, former.number + 1)


def encode_pages(window: FinalWindow) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each page, page 0 first."""
    counts, sizes = window.counts, window.counts.cohort_sizes
    name = window.name.encode()
    parts = range(0, max(counts.counts.size, 1), PAGE_COUNTERS)
    for number, first in enumerate(parts):
        part = counts.counts.reshape(-1)[first : first + PAGE_COUNTERS]
        size = narrowest(part)
        head = _HEAD.pack(
            VERSION,
            size,
            len(parts),
            counts.packs,
            counts.rejected,
            window.window_seconds,
            len(sizes),
            len(name),
        )
        size_bytes = b"" if number else sizes.astype(_SIZE).tobytes()
        key = _KEY.pack(b"W", window.fingerprint, window.window_start, number)
        yield key, b"".join((head, name, size_bytes, part.astype(f"<u{size}").tobytes()))


def decode_page(key: bytes, value: bytes) -> Page:
    """Read one record; RowError if it is not a page of this version."""
    try:
        kind, fingerprint, window_start, number = _KEY.unpack(key)
        version, size, pages, packs, rejected, seconds, cohorts, name_bytes = _HEAD.unpack_from(value)
        if (kind, version) != (b"W", VERSION) or size not in (1, 2, 4, 8) or not number < pages:
            raise RowError("it is no page of a window, or of another version")
        sizes_at = _HEAD.size + name_bytes
        name = value[_HEAD.size : sizes_at].decode()
        sizes = np.frombuffer(value, _SIZE, 0 if number else cohorts, sizes_at)
        counters = np.frombuffer(value, f"<u{size}", offset=sizes_at + sizes.nbytes)
    except (struct.error, ValueError) as error:  # RowError too: one message for all defects
        raise RowError(f"record of {len(value)} bytes is no page of a window of version {VERSION}") from error
    return Page(
        fingerprint, window_start, number, pages, packs, rejected, seconds, cohorts, name, sizes, counters
    )


class PageRun:
    """Collects the pages of one partition, in order, window by window."""

    def __init__(self) -> None:
        self._pages: list[Page] = []

    def take(self, page: Page) -> list[Page]:
        """Add the next page; return all pages of a window with its last page, else none."""
        if page.number == 0:
            self._pages = [page]
        elif self._pages and page.follows(self._pages[-1]):
            self._pages.append(page)
        else:
            self._pages = []  # retention has deleted its first pages
        return self._pages if len(self._pages) == page.pages else []


def join_pages(pages: Sequence[Page], collection: Collection) -> WindowCounts:
    """Counts of a window from all its pages in their order.

    Raises
    ------
    RowError if pages are missing, do not match, or belong to another collection.
    """
    first, shape = pages[0], (collection.cohorts, collection.width)
    sizes, counters = first.cohort_sizes, np.concatenate([page.counters.astype(np.uint64) for page in pages])
    whole = first.number == 0 and len(pages) == first.pages and all(b.follows(a) for a, b in pairwise(pages))
    found, expected = (first.fingerprint, first.cohorts), (collection.fingerprint, collection.cohorts)
    highest = max(first.packs, first.rejected, int(counters.max(initial=0)), int(sizes.max(initial=0)))
    if not whole or found != expected or len(counters) != shape[0] * shape[1] or highest >> 63:
        raise RowError(f"pages of a window do not go together, or are none of {collection.name}")
    return WindowCounts(
        counters.astype(np.int64).reshape(shape), sizes.astype(np.int64), first.packs, first.rejected
    )
