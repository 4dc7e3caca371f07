"""The test whether two fields are independent, from the table of reported pairs."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from deniable.estimators.frequency.estimate import Independence
from deniable.estimators.frequency.pairs.joined_values import joined_sums, joined_values


def independence_test(counts: NDArray[np.int64]) -> Independence:
    """Test with Pearson's chi-square whether the two fields are independent.

    The two parts of a report are randomized independently. So if the true fields are independent, the
    reported ones are too; and if the reported ones are, so are the true ones, because the channel can be
    inverted. The classical test of reported pairs is thus the test of true ones, and its false-alarm rate is
    the classical one: that of clients who are a random sample. Its power is that of randomized reports.

    A chi-square needs about 5 reports in each expected pair, so `joined_values` joins rare values first.

    Parameters
    ----------
    counts : int64 array (K1, K2), reports per reported pair, not all 0.

    Returns
    -------
    Independence, with the degrees of the joined values; with one value left, the statistic and its degrees
    are 0, and nothing is rejected.

    Source: Gaboardi, Rogers, "Local private hypothesis testing: chi-square tests" (ICML 2018), section 7.
    """
    table = joined_sums(counts, joined_values(counts)).astype(np.float64)
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    if degrees == 0:
        return Independence(0.0, 0, 1.0)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return Independence(statistic, degrees, float(chdtrc(degrees, statistic)))
