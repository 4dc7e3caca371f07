"""Values of the rows of the topics `state` and `counts`: a version, then little-endian fields.

Rule 1: stored rows stay readable. A new version adds its decoders to DECODERS and keeps the former ones.
Rule 2: the release that adds a version still writes the one before; the next release writes it. So workers of
two consecutive releases read each other's rows, in a rolling upgrade as in a rollback.
"""

import struct
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.terms import Terms
from deniable.estimators.errors import DeniableError

ROW_VERSION = 1  # that is written
PAGE_COUNTERS = 65536  # at most 512 KiB of 64-bit counters: a row stays below Kafka's 1 MiB
ID_BYTES = 16
IDS_PER_ROW = 32768

_COUNT_HEAD = struct.Struct("<BBQQ")
_PROGRESS = struct.Struct("<Bqqqq")
_REJECTED = struct.Struct("<BQ")
_PUBLISHED = struct.Struct("<BQ?")
_AHEAD = struct.Struct("<Q")
_GENESIS = struct.Struct("<B16sH")
_REVISION = struct.Struct("<BQ")


class RowError(DeniableError, ValueError):
    """A row of `state` or `counts` that this version cannot read."""

    exit_status = 3


class CounterPage(NamedTuple):
    """Counts of one page: int64 (n,). Each page repeats the `reports` and `packs` of the whole tally."""

    reports: int
    packs: int
    counts: npt.NDArray[np.int64]


class Published(NamedTuple):
    """What was last published of a window: its estimate, or, with too few reports for one, its final counts.

    Parameters
    ----------
    revision, final : of that.
    ahead : by how much the revision exceeds the packs merged, >= 0. It is 0 unless a rebuild found other
        packs than were published: what replaces a result must have a higher revision.
    """

    revision: int
    final: bool
    ahead: int = 0

    @property
    def packs(self) -> int:
        """Packs merged."""
        return self.revision - self.ahead

    def followed_by(self, packs: int, *, final: bool) -> "Published":
        """What a result of these packs is published as: with a higher revision if the packs have changed."""
        revision = max(packs, self.revision + (packs != self.packs))
        return Published(revision, final, revision - packs)


class Genesis(NamedTuple):
    """Which log a ledger counts: the topic id of `reports` (16 bytes), and its number of partitions."""

    topic_id: bytes
    partitions: int


@dataclass(frozen=True)
class LedgerProgress:
    """How far a ledger has counted.

    Parameters
    ----------
    position : next offset of `reports` to count.
    watermark_ms : W, the highest append time counted so far, unix milliseconds.
    closed_until_ms : windows that close earlier are closed, unix milliseconds, at most W: less where windows
        wait for relays.
    whole_from : windows that start earlier may lack records deleted uncounted, unix seconds.
    """

    position: int = 0
    watermark_ms: int = 0
    closed_until_ms: int = 0
    whole_from: int = 0


def encode_counters(counters: CounterPage) -> bytes:
    """Counters in the narrowest unsigned integers that hold them."""
    size = narrowest(counters.counts)
    head = _COUNT_HEAD.pack(ROW_VERSION, size, counters.reports, counters.packs)
    return head + counters.counts.astype(f"<u{size}").tobytes()


def narrowest(counts: npt.NDArray[np.int64]) -> int:
    """Bytes of the narrowest unsigned integer that holds each of these counts."""
    highest = int(counts.max(initial=0))
    return 1 if highest < 1 << 8 else 2 if highest < 1 << 16 else 4 if highest < 1 << 32 else 8


def _counters_1(data: bytes) -> CounterPage:
    size, reports, packs = _unpack(_COUNT_HEAD, data[: _COUNT_HEAD.size])
    if max(reports, packs) >> 63 or size not in (1, 2, 4, 8) or (len(data) - _COUNT_HEAD.size) % size:
        raise RowError(f"counter row of {len(data)} bytes is damaged")
    counts = np.frombuffer(data, dtype=f"<u{size}", offset=_COUNT_HEAD.size).astype(np.int64)
    if counts.min(initial=0) < 0:  # beyond int64
        raise RowError(f"counter row of {len(data)} bytes is damaged: a counter is beyond 2^63 - 1")
    return CounterPage(reports, packs, counts)


def encode_progress(progress: LedgerProgress) -> bytes:
    """Bytes of a progress row."""
    return _PROGRESS.pack(ROW_VERSION, *astuple(progress))


def _progress_1(data: bytes) -> LedgerProgress:
    position, watermark_ms, closed_until_ms, whole_from = _unpack(_PROGRESS, data)
    # Workers before 0.2 wrote a later one than W, on one broker's word.
    progress = LedgerProgress(position, watermark_ms, min(watermark_ms, closed_until_ms), whole_from)
    if min(astuple(progress)) < 0:
        raise RowError(f"progress must be in [0, {2**63 - 1}], got {progress}")
    return progress


def encode_rejected(packs: int) -> bytes:
    """Bytes of a number of rejected packs."""
    return _REJECTED.pack(ROW_VERSION, packs)


def _rejected_1(data: bytes) -> int:
    (packs,) = _unpack(_REJECTED, data)
    return int(packs)


def encode_ids(ids: bytes) -> bytes:
    """Bytes of a row of ids, ID_BYTES each."""
    return bytes([ROW_VERSION]) + ids


def _ids_1(data: bytes) -> memoryview:
    if len(data) % ID_BYTES != 1:
        raise RowError(f"row of {len(data)} bytes is damaged, expected 1 and a multiple of {ID_BYTES}")
    return memoryview(data)[1:]


def encode_published(published: Published) -> bytes:
    """Bytes of a window's publication; `ahead` is left out if it is 0, as it nearly always is."""
    row = _PUBLISHED.pack(ROW_VERSION, published.revision, published.final)
    return row + (_AHEAD.pack(published.ahead) if published.ahead else b"")


def _published_1(data: bytes) -> Published:
    head, tail = data[: _PUBLISHED.size], data[_PUBLISHED.size :]
    revision, final = _unpack(_PUBLISHED, head if len(tail) in (0, _AHEAD.size) else data)
    ahead = _AHEAD.unpack(tail)[0] if tail else 0
    if ahead > revision:
        raise RowError(f"row of a publication is damaged: it merges {revision} - {ahead} packs")
    return Published(revision, bool(final), ahead)


def encode_genesis(genesis: Genesis) -> bytes:
    """Bytes of a genesis row."""
    return _GENESIS.pack(ROW_VERSION, *genesis)


def _genesis_1(data: bytes) -> Genesis:
    topic_id, partitions = _unpack(_GENESIS, data)
    return Genesis(topic_id, partitions)


def encode_revision(revision: int) -> bytes:
    """Bytes of the revision of a collection file."""
    return _REVISION.pack(ROW_VERSION, revision)


def _revision_1(data: bytes) -> int:
    (revision,) = _unpack(_REVISION, data)
    return int(revision)


def encode_terms(terms: Terms) -> bytes:
    """Bytes of terms: the version, then JSON."""
    return bytes([ROW_VERSION]) + msgspec.json.encode(terms)


def _terms_1(data: bytes) -> Terms:
    try:
        return msgspec.json.decode(data[1:], type=Terms)
    except msgspec.DecodeError as error:
        raise RowError(f"row of terms is damaged: {error}") from error
    except (UnicodeDecodeError, RecursionError) as error:  # msgspec does not convert these
        raise RowError("row of terms is damaged: not UTF-8, or nested too deep") from error


def _unpack(layout: struct.Struct, data: bytes) -> tuple[Any, ...]:
    """Fields of a row, without its version."""
    try:
        return layout.unpack(data)[1:]
    except struct.error as error:
        raise RowError(f"row of {len(data)} bytes is damaged, expected {layout.size}") from error


class Decoders(NamedTuple):
    """Decoders of one version's rows, by kind. Each takes the whole row; RowError if it is damaged."""

    counters: Callable[[bytes], CounterPage]
    progress: Callable[[bytes], LedgerProgress]
    rejected: Callable[[bytes], int]
    ids: Callable[[bytes], memoryview]
    published: Callable[[bytes], Published]
    genesis: Callable[[bytes], Genesis]
    revision: Callable[[bytes], int]
    terms: Callable[[bytes], Terms]


#: All versions that this deniable reads.
DECODERS = {
    1: Decoders(
        counters=_counters_1,
        progress=_progress_1,
        rejected=_rejected_1,
        ids=_ids_1,
        published=_published_1,
        genesis=_genesis_1,
        revision=_revision_1,
        terms=_terms_1,
    ),
}


def decode_counters(data: bytes) -> CounterPage:
    """Inverse of `encode_counters`; reads former versions too, as do all that follow."""
    return _decoders(data).counters(data)


def decode_progress(data: bytes) -> LedgerProgress:
    """Inverse of `encode_progress`; RowError also if an offset or a time is negative."""
    return _decoders(data).progress(data)


def decode_rejected(data: bytes) -> int:
    """Inverse of `encode_rejected`."""
    return _decoders(data).rejected(data)


def decode_ids(data: bytes) -> memoryview:
    """Inverse of `encode_ids`, without a copy."""
    return _decoders(data).ids(data)


def decode_published(data: bytes) -> Published:
    """Inverse of `encode_published`."""
    return _decoders(data).published(data)


def decode_genesis(data: bytes) -> Genesis:
    """Inverse of `encode_genesis`."""
    return _decoders(data).genesis(data)


def decode_revision(data: bytes) -> int:
    """Inverse of `encode_revision`."""
    return _decoders(data).revision(data)


def decode_terms(data: bytes) -> Terms:
    """Inverse of `encode_terms`."""
    return _decoders(data).terms(data)


def _decoders(data: bytes) -> Decoders:
    found = DECODERS.get(data[0]) if data else None
    if found is None:
        known = " or ".join(str(version) for version in sorted(DECODERS))
        got = data[0] if data else "none"
        raise RowError(
            f"row version must be {known}, got {got}: run the deniable that wrote it, or a newer one"
        )
    return found
