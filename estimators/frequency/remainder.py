"""What all buckets together hold that a list of the largest estimates leaves out."""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.frequency.estimate import Estimate
from estimators.frequency.inversion import Inversion
from estimators.mechanisms.channels import SymmetricChannel
from estimators.mechanisms.rappor_hot import HotRappor

# Half the width of the window in which buckets near the cut are counted, in standard deviations.
_BANDWIDTH = 1 / 8


def rest_of_symmetric(
    counts: NDArray[np.int64], entries: int, shown: NDArray[np.intp], mechanism: SymmetricChannel
) -> tuple[float, float]:
    """Estimate the share of the reports whose true value is none of those shown, k-RR.

    For a set of s buckets that the counts did not choose, the share of reports that show one of them inverts
    as one bucket's does, with P(report in | truth in) = 1 - (k - s) q and P(report in | truth out) = s q. But
    who is shown was chosen by these counts: see `_lifted`.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    entries : how many values could be shown, the first ones; k, or less by a bucket `other`.
    shown : places of those that are, fewer than entries: the largest counts, of equal ones the first.
    mechanism : k-RR, longitudinal or not, that made the reports.

    Returns
    -------
    Frequency in [0, 1] and its standard error, fractions of all reports.
    """
    reports, channel = int(counts.sum()), Inversion.of_symmetric(mechanism)
    variance = _variance(counts, reports, channel)
    lifted, doubt = _lifted(counts[:entries], variance[:entries], shown)
    left = mechanism.k - len(shown)
    missed, strayed = len(shown) * mechanism.q, left * mechanism.q
    inside = reports - float(counts[shown].sum()) + lifted
    frequency = float(np.clip((inside / reports - strayed) / channel.contrast, 0, 1))
    noise = frequency * missed * (1 - missed) + (1 - frequency) * strayed * (1 - strayed)
    return frequency, float(np.sqrt(reports * noise + doubt)) / (reports * channel.contrast)


def rest_of_bits(
    ones: NDArray[np.int64], reports: int, entries: int, shown: NDArray[np.intp], mechanism: HotRappor
) -> tuple[float, float]:
    """Estimate how many of the buckets not shown a report has on average, one-hot and k-hot RAPPOR.

    The noise of each bit is independent of the others', so the variances of a fixed set add up.

    Parameters
    ----------
    ones : int64 array (buckets,), reports that show each bit.
    reports : N, >= 1.
    entries, shown : as of `rest_of_symmetric`.
    mechanism : HotRappor that made the reports.

    Returns
    -------
    Frequency in [0, hot] and its standard error, fractions of all reports.
    """
    channel = Inversion.of_bit(mechanism)
    variance = _variance(ones, reports, channel)
    lifted, doubt = _lifted(ones[:entries], variance[:entries], shown)
    left = np.delete(np.arange(len(ones)), shown)
    inside = float(ones[left].sum()) + lifted
    frequency = (inside / reports - len(left) * channel.miss) / channel.contrast
    error = float(np.sqrt(variance[left].sum() + doubt)) / (reports * channel.contrast)
    return float(np.clip(frequency, 0, mechanism.hot)), error


def rest_of_candidates(estimate: Estimate, shown: NDArray[np.intp]) -> tuple[float, float]:
    """Add the candidates not shown to what no candidate explains, Bloom RAPPOR with a background.

    The background holds those that screening did not choose already, whose own estimate is 0. The error is a
    bound: the sum of the errors of what is added, as if they were all in step.

    Parameters
    ----------
    estimate : of all candidates, `other` given.
    shown : places of the candidates shown.

    Returns
    -------
    Frequency in [0, 1] and a bound on its standard error, fractions of all reports; the error is inf where
    that of a candidate is.

    Raises
    ------
    ValueError if the estimate has no background.
    """
    if estimate.other is None:
        raise ValueError("estimate must have a background: other must not be None")
    is_added = np.ones(len(estimate.frequency), bool)
    is_added[shown] = False
    if "chosen" in estimate.diagnostics:
        is_added &= estimate.frequency > 0
    frequency, error = estimate.other
    return (
        float(np.clip(frequency + estimate.frequency[is_added].sum(), 0, 1)),
        float(error + estimate.std_error[is_added].sum()),
    )


def _variance(counts: NDArray[np.int64], reports: int, channel: Inversion) -> FloatArray:
    """Variance of each count by its noise, the true values being fixed."""
    error = channel.std_error(channel.frequency(counts / reports), reports)
    variance: FloatArray = (error * reports * channel.contrast) ** 2
    return variance


def _lifted(counts: NDArray[np.int64], variance: FloatArray, shown: NDArray[np.intp]) -> tuple[float, float]:
    """Estimate how many reports the noise has lifted into what is shown, and the variance of that.

    Buckets are shown because they count c or more, noise included; so theirs is positive on average, and by
    as much the others' is too low. For a count n of mean m and Poisson noise, and likewise for normal noise
    of variance v,

        E[(n - m) [n >= c]] = m P(n = c - 1) = c P(n = c) = v P(n = c),

    so the sum of v over the buckets that count c estimates it without bias, whatever the true values are.
    Where counts are large few buckets count just c, and the number of those near c takes the place: of two
    windows, one twice as wide, weighed so that the curvature cancels. The bucket that sets the cut is not
    counted. Of equal counts those in front are shown; behind the last of these the cut is c + 1.

    Measured on k-RR, 50 to 200 runs each: the 95 % intervals that follow held the truth in 90 % to 100 % of
    them, with 20 to 2,000 shown of 100 to 1,000,000 values, 1e4 to 1e8 reports, epsilon 1 to 12, Zipf 0 to 1.
    Those of a set fixed beforehand held it in none where most values are rare: they miss by up to 120
    standard errors.

    Source: Robbins, Proc. 3rd Berkeley Symposium 1 (1956), for the identity of Poisson counts.
    """
    if len(shown) == 0:
        return 0.0, 0.0
    last = int(shown[np.lexsort((shown, -counts[shown]))[-1]])
    deviation = float(np.sqrt(variance[last]))
    distance = np.abs(counts - counts[last] - (np.arange(len(counts)) > last))
    width = int(_BANDWIDTH * deviation)
    narrow, wide = width * (width + 1), 2 * width * (2 * width + 1)  # curvature enters in these proportions
    weight = wide / (wide - narrow) if width else 1.0
    density = np.where(distance <= width, weight / (2 * width + 1), 0.0)
    density += np.where(distance <= 2 * width, (1 - weight) / (4 * width + 1), 0.0)
    near = density * variance
    near[last] = 0.0
    lifted = max(0.0, float(near.sum()))
    # Beyond the Poisson noise of `near`: the noise of what is shown spreads more the higher the cut lies.
    height = max(0.0, -NormalDist().inv_cdf(len(shown) / len(counts)))
    return lifted, float(near @ near) + lifted * deviation * height
