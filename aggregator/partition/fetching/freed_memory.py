"""Freed memory stays with the process for the next fetch, instead of going back to the system.

A fetch of 2 MiB is copied, read and counted in arrays of 100 KiB and more. By default glibc returns such
memory to the system when it is freed, and gets it again for the next fetch: zeroing its pages, one fault for
each, took a quarter of a worker's processor time with packs of 1,000 reports.

By default glibc also gives each thread an arena of its own, so that none waits for another's allocations. But
no thread can use what another one's arena keeps: fetching and counting together kept 7 to 20 MiB more. Of a
worker's threads one runs Python at a time, and one arena for all costs no measurable time.
"""

import ctypes

KEPT_BYTES = 32 * 2**20  # the most that glibc allows; larger arrays are returned at once, as before
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h


def keep_freed_memory() -> bool:
    """Keep up to KEPT_BYTES at the end of the heap, for all threads started from now on.

    Returns False if this C library has no such setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    settings = {_TRIM_THRESHOLD: KEPT_BYTES, _MMAP_THRESHOLD: KEPT_BYTES, _ARENA_MAX: 1}
    return mallopt is not None and all(mallopt(*each) for each in settings.items())
