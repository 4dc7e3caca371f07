"""From the payload of a pack to counters, vectorised."""

import numpy as np
import numpy.typing as npt

from deniable.protocol import wire

PackedWords = npt.NDArray[np.unsignedinteger]

#: From this many bytes on, adding rows as binary numbers before spreading their bits is faster.
_MIN_ADDED_BYTES = 2**16
_GROUP = 7 * 8  # 7 rows to an adder; a multiple of 8 keeps each of its inputs whole 64-bit words
_BYTE_MAX = 255
_STACK_BYTES = 2**18  # of packs that are counted at once
_MIN_GROUP_BYTES = 2**13  # of rows, from which on a group is counted on its own
_SPREAD_BYTES = 2**15  # of rows that are spread at once; eight times as many when spread
_SPARSE = 16  # from this many buckets per report on, touching only the reported ones is faster


def is_countable(pack: wire.Pack) -> bool:
    """Whether every report has a counter: buckets must be below the width; rows of bits always fit."""
    return pack.mechanism == wire.RAPPOR_NUMBER or int(wire.buckets(pack).max()) < pack.width


def add_pack(counts: npt.NDArray[np.int64], pack: wire.Pack) -> None:
    """Count one pack: reports per bucket (k-RR, local hashing), or reports with each bit set (RAPPOR).

    Parameters
    ----------
    counts : int64 (width,), added to.
    pack : countable.
    """
    if pack.mechanism == wire.RAPPOR_NUMBER:
        counts += count_bits(wire.bit_rows(pack))
    elif pack.reports * _SPARSE < pack.width:
        np.add.at(counts, wire.buckets(pack), 1)
    else:
        counts += np.bincount(wire.buckets(pack), minlength=pack.width)


def count_bits(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """How often each bit is set: positional popcount.

    Parameters
    ----------
    rows : uint8 (n, width / 8), bit 0 lowest.

    Returns
    -------
    int64 (width,).
    """
    counts: npt.NDArray[np.int64] = _count_stack(rows[np.newaxis])[0]
    return counts


def count_bits_of_packs(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """`count_bits` of several packs of equally many rows: uint8 (m, n, width / 8) to int64 (m, width)."""
    step = max(1, _STACK_BYTES * len(rows) // max(1, rows.nbytes))  # packs that a cache holds
    parts = [_count_stack(rows[first : first + step]) for first in range(0, len(rows), step)]
    return np.concatenate(parts)


def _count_stack(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    if rows.nbytes < _MIN_ADDED_BYTES or rows.shape[1] < _GROUP:
        return _spread(rows)
    added = rows.shape[1] // _GROUP * _GROUP
    counts = _spread(rows[:, added:])
    for digit, sums in enumerate(_add_seven(rows[:, :added])):
        counts += _count_stack(sums) << digit
    return counts


def count_bits_of_groups(rows: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often each bit is set, for consecutive groups of rows.

    Parameters
    ----------
    rows : see `count_bits`.
    bounds : int64 (g + 1,), rising from 0 to n: the first row of each group, then n.

    Returns
    -------
    int64 (g, width).
    """
    groups = len(bounds) - 1
    if rows.nbytes >= groups * _MIN_GROUP_BYTES:
        places = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        return np.array([count_bits(rows[first:end]) for first, end in places])
    counts = np.empty((groups, rows.shape[1] * 8), np.int64)
    step = max(1, groups * _SPREAD_BYTES // max(1, rows.nbytes))  # groups whose spread rows stay in a cache
    for group in range(0, groups, step):
        part = bounds[group : group + step + 1]
        counts[group : group + step] = _spread_groups(rows[part[0] : part[-1]], part - part[0])
    return counts


def _spread_groups(rows: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`_spread` of each group."""
    pieces = -(-np.diff(bounds) // _BYTE_MAX)  # of a group, with at most 255 rows each
    before = pieces.cumsum() - pieces
    number = np.arange(int(pieces.sum())) - before.repeat(pieces)
    sums = _spread_sums(rows, bounds[:-1].repeat(pieces) + number * _BYTE_MAX)
    if len(sums) == len(pieces):
        return sums.astype(np.int64)
    counts: npt.NDArray[np.int64] = np.add.reduceat(sums.astype(np.int64), before, axis=0)
    return counts


def _add_seven(rows: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], ...]:
    """Sums of seven rows each, bit by bit: their binary digits, lowest first, uint8 (m, n / 7, width / 8)."""
    words = np.ascontiguousarray(rows).reshape(len(rows), 7, -1).view(np.uint64)
    a, b, c, d, e, f, g = words.swapaxes(0, 1)
    low_1, high_1 = _full_adder(a, b, c)
    low_2, high_2 = _full_adder(d, e, f)
    ones, high_3 = _full_adder(low_1, low_2, g)
    twos, fours = _full_adder(high_1, high_2, high_3)
    shape = (len(rows), -1, rows.shape[2])
    first, second, third = (each.view(np.uint8).reshape(shape) for each in (ones, twos, fours))
    return first, second, third


def _full_adder(a: PackedWords, b: PackedWords, c: PackedWords) -> tuple[PackedWords, PackedWords]:
    """Sum and carry of three bits, in each bit of the words."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


def _spread(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Count with one byte per bit: adds 8 at once, and at most 255 rows, so that none overflows."""
    packs, number, size = rows.shape
    if not number:
        return np.zeros((packs, size * 8), np.int64)
    spread = np.unpackbits(rows.reshape(-1), bitorder="little").view(np.uint64).reshape(rows.shape)
    sums = np.add.reduceat(spread, np.arange(0, number, _BYTE_MAX), axis=1).view(np.uint8)
    counts: npt.NDArray[np.int64] = sums.sum(axis=1, dtype=np.int64)
    return counts


def _spread_sums(rows: npt.NDArray[np.uint8], firsts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Sums of the rows from each of `firsts` to the next, at most 255 rows, uint8 (len(firsts), width)."""
    spread = np.unpackbits(rows.reshape(-1), bitorder="little").view(np.uint64).reshape(-1, rows.shape[1])
    return np.add.reduceat(spread, firsts, axis=0).view(np.uint8)
