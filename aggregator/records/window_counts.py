"""The counts of one window."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class WindowCounts:
    """Counts of one window, all partitions together.

    Parameters
    ----------
    counts : int64 (cohorts, width), reports per bucket, or with each bit set.
    cohort_sizes : int64 (cohorts,), reports.
    packs, rejected : packs counted, packs rejected.
    """

    counts: npt.NDArray[np.int64]
    cohort_sizes: npt.NDArray[np.int64]
    packs: int
    rejected: int

    def __add__(self, other: "WindowCounts") -> "WindowCounts":
        """Counts of two windows of one collection together."""
        return WindowCounts(
            self.counts + other.counts,
            self.cohort_sizes + other.cohort_sizes,
            self.packs + other.packs,
            self.rejected + other.rejected,
        )

    @property
    def reports(self) -> int:
        """Reports counted."""
        return int(self.cohort_sizes.sum())
