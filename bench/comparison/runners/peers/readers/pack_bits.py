"""A pack as a user of another library would decode it: DESIGN section 4 with struct and NumPy alone."""

from struct import Struct

import numpy as np
from numpy.typing import NDArray

HEADER = Struct("<4sBBHQQII16sI")
Counts = NDArray[np.int64]


def decode(record: bytes) -> tuple[str, Counts]:
    """Window and cohort as text, and the number of reports with each bit set, lowest bit first.

    Checksum and pack id are ignored, so damaged and resent packs count.
    """
    _, _, _, cohort, _, window_start, reports, width, _, _ = HEADER.unpack_from(record)
    rows = np.frombuffer(record, np.uint8, offset=HEADER.size).reshape(reports, width // 8)
    # uint16 holds the reports of any pack of 128 bits, of which at most 62,496 fit into a record.
    bits = np.add.reduce(np.unpackbits(rows, axis=1, bitorder="little"), axis=0, dtype=np.uint16)
    return f"{window_start}/{cohort}", bits.astype(np.int64)


def cohort_of(key: str) -> str:
    """The cohort in a key returned by `decode`."""
    return key.partition("/")[2]
