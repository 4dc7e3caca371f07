"""numpy alone, which ours uses: counts of reports."""

from collections.abc import Callable

import numpy as np

LIBRARY = "numpy"
PACK_REPORTS = 10_000


def bincount(count: int, k: int) -> Callable[[], object]:
    """Count reports of decoded packs, arrays of the bytes of each report."""
    dtype = np.min_scalar_type(k - 1)
    reports = np.random.default_rng(1).integers(k, size=count).astype(dtype)
    packs = [reports[start : start + PACK_REPORTS] for start in range(0, count, PACK_REPORTS)]

    def run() -> None:
        counts = np.zeros(k, np.int64)
        for pack in packs:
            counts += np.bincount(pack, minlength=k)

    return run


JOBS = {"bincount": bincount}
