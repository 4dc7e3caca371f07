"""From the payload of a pack to counters, vectorised."""

import numpy as np
import numpy.typing as npt

from producers import wire

_ROWS_PER_STEP = 65535  # the most rows whose sum of 0/1 bits a uint16 holds


def count_pack(pack: wire.Pack) -> npt.NDArray[np.int64] | None:
    """Count one pack: reports per bucket (k-RR, longitudinal too), or reports with each bit set (RAPPOR).

    Returns
    -------
    int64 array (width,), or None when a k-RR report lies outside 0..k-1.
    """
    if pack.mechanism == wire.RAPPOR_NUMBER:
        return _count_bits(wire.bit_rows(pack))
    return _count_buckets(wire.buckets(pack), pack.width)


def _count_buckets(buckets: npt.NDArray[np.unsignedinteger], k: int) -> npt.NDArray[np.int64] | None:
    if int(buckets.max()) >= k:
        return None
    return np.bincount(buckets, minlength=k)


def _count_bits(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    counts = np.zeros(rows.shape[1] * 8, dtype=np.int64)
    for first in range(0, len(rows), _ROWS_PER_STEP):
        bits = np.unpackbits(rows[first : first + _ROWS_PER_STEP], axis=1, bitorder="little")
        counts += np.add.reduce(bits, axis=0, dtype=np.uint16)
    return counts
