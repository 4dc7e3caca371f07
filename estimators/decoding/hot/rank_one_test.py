"""The test whether two fields are independent, from the bits of pairs, whose noise is separate."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import Independence
from deniable.estimators.frequency.pairs.joined_values import joined_sums, joined_values
from deniable.estimators.mechanisms.traits import BitChannel

_REWEIGHTINGS = 3
_MOST_STEPS = 200
_LEAST_GAIN = 1e-6


def rank_one_test(ones: NDArray[np.int64], reports: int, channel: BitChannel) -> Independence:
    """Test with a chi-square whether the table of true pairs is a product of a column and a row.

    The normal approximation needs about 5 ones in each expected pair: rare values are joined first, by
    `joined_values` of the ones. A joined pair is the sum of m bits: x is their sum, and v that of theirs.

    With one bit for each pair, N times the covariance of the debiased shares of a random sample of clients is
    diag(v) - f f', where v = (m p* (1 - p*) + (1 - 2 p*) c f) / c² and c = q* - p*. If f is r(i) s(j), the
    smallest sum over all r and s of N (x - r s)² / v is chi-square with (K1 - 1) (K2 - 1) degrees, since f
    itself is a direction of the fit, so that - f f' does not matter. If noise hides r or s, the fit takes up
    more of the noise than r and s have degrees: the statistic is smaller, and the test rejects less often.

    Parameters
    ----------
    ones : int64 array (K1, K2), reports that show each pair's bit.
    reports : N, >= 1.
    channel : BitChannel of the reports.

    Returns
    -------
    Independence, whose false-alarm rate is at most the stated one, but for the normal approximation; its
    degrees are those of the joined values. With one value left, the statistic and its degrees are 0, and
    nothing is rejected.

    Source: Fuller, "Measurement error models" (Wiley 1987), section 4.1, for fits of a lower rank to means
    with known covariance; Gabriel, Zamir, "Lower rank approximation of matrices by least squares with any
    choice of weights" (Technometrics 21, 1979), for the alternating steps.
    """
    groups = joined_values(ones)
    counts, bits = joined_sums(ones, groups), joined_sums(np.ones_like(ones), groups)
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if degrees == 0:
        return Independence(0.0, 0, 1.0)
    contrast = channel.q_star - channel.p_star
    table = (counts / reports - bits * channel.p_star) / contrast
    noise = bits * channel.p_star * (1 - channel.p_star) / contrast**2
    slope = (1 - 2 * channel.p_star) / contrast
    left, sizes, right = np.linalg.svd(table, full_matrices=False)
    rows, columns = left[:, 0] * sizes[0], right[0]
    for _ in range(_REWEIGHTINGS):
        variance = noise + slope * np.clip(np.outer(rows, columns), 0, 1)
        rows, columns, statistic = _fitted(table, reports / variance, columns)
    return Independence(statistic, degrees, float(chdtrc(degrees, statistic)))


def _fitted(
    table: FloatArray, weights: FloatArray, columns: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Fit rows and columns in turn until the weighted sum of squares stays; return both and the sum."""
    least = np.inf
    for _ in range(_MOST_STEPS):
        rows = (weights * table) @ columns / (weights @ columns**2)
        columns = rows @ (weights * table) / (rows**2 @ weights)
        total = float((weights * (table - np.outer(rows, columns)) ** 2).sum())
        if least - total <= _LEAST_GAIN:
            break
        least = total
    return rows, columns, total
