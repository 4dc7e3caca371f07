"""Freed memory stays with the process for the next fetch, instead of going back to the system.

A fetch of 2 MiB is copied, read and counted in arrays of 100 KiB and more. By default glibc returns such
memory to the system when it is freed, and gets it again for the next fetch: zeroing its pages, one fault for
each, took a quarter of a worker's processor time with packs of 1,000 reports.
"""

import ctypes

KEPT_BYTES = 32 * 2**20  # the most that glibc allows; larger arrays are returned at once, as before
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h


def keep_freed_memory() -> bool:
    """Keep up to KEPT_BYTES at the end of the heap; return False if this C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(
        mallopt(each, KEPT_BYTES) for each in (_TRIM_THRESHOLD, _MMAP_THRESHOLD)
    )
