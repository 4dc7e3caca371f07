"""What must hold of the counts of reports before anything is estimated from them."""

import numpy as np
from numpy.typing import NDArray


def count_reports(counts: NDArray[np.int64], width: int) -> int:
    """Check counts, and return their sum (N).

    Parameters
    ----------
    counts : int64 array (width,), reports per reported value.
    width : number of values that a report can have.

    Returns
    -------
    N, >= 1.

    Raises
    ------
    ValueError if counts is not of shape (width,), negative or all 0.
    """
    if counts.shape != (width,):
        raise ValueError(f"counts must have shape ({width},), got {counts.shape}")
    if counts.min() < 0:
        raise ValueError(f"counts must not be negative, got {counts.min()}")
    reports = int(counts.sum())
    if reports == 0:
        raise ValueError("counts must hold at least 1 report, got 0")
    return reports
