"""From the payload of a pack to counters, vectorised."""

import numpy as np
import numpy.typing as npt

from producers import wire

PackedWords = npt.NDArray[np.unsignedinteger]

#: From this many bytes on, adding rows as binary numbers before spreading their bits is faster.
_MIN_ADDED_BYTES = 2**16
_GROUP = 7 * 8  # 7 rows to an adder; a multiple of 8 keeps each of its inputs whole 64-bit words
_BYTE_MAX = 255
_SPARSE = 16  # from this many buckets per report on, touching only the reported ones is faster


def is_countable(pack: wire.Pack) -> bool:
    """Whether every report has a counter: k-RR reports must be below k; rows of bits always fit."""
    return pack.mechanism == wire.RAPPOR_NUMBER or int(wire.buckets(pack).max()) < pack.width


def add_pack(counts: npt.NDArray[np.int64], pack: wire.Pack) -> None:
    """Count one pack: reports per bucket (k-RR, longitudinal too), or reports with each bit set (RAPPOR).

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
    if rows.nbytes < _MIN_ADDED_BYTES:
        return _spread(rows)
    added = len(rows) // _GROUP * _GROUP
    counts = _spread(rows[added:])
    for digit, sums in enumerate(_add_seven(rows[:added])):
        counts += count_bits(sums) << digit
    return counts


def _add_seven(rows: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], ...]:
    """Sums of seven rows each, bit by bit: their binary digits, lowest first, uint8 (n / 7, width / 8)."""
    a, b, c, d, e, f, g = rows.reshape(7, -1).view(np.uint64)
    low_1, high_1 = _full_adder(a, b, c)
    low_2, high_2 = _full_adder(d, e, f)
    ones, high_3 = _full_adder(low_1, low_2, g)
    twos, fours = _full_adder(high_1, high_2, high_3)
    first, second, third = (each.view(np.uint8).reshape(-1, rows.shape[1]) for each in (ones, twos, fours))
    return first, second, third


def _full_adder(a: PackedWords, b: PackedWords, c: PackedWords) -> tuple[PackedWords, PackedWords]:
    """Sum and carry of three bits, in each bit of the words."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


def _spread(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Count with one byte per bit: adds 8 at once, and at most 255 rows, so that none overflows."""
    spread = np.unpackbits(rows.reshape(-1), bitorder="little").view(np.uint64).reshape(-1, rows.shape[1])
    sums = np.add.reduceat(spread, np.arange(0, len(rows), _BYTE_MAX), axis=0)
    counts: npt.NDArray[np.int64] = sums.view(np.uint8).sum(axis=0, dtype=np.int64)
    return counts
