"""Inversion of the supports of hashed words, without the collisions with the most frequent of them."""

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.decoding.hashed.collisions import buckets_of, fit_together, without
from estimators.decoding.hashed.support import count_supports, supported_candidates
from estimators.frequency.inversion import Inversion
from estimators.mechanisms.hashing.hash_functions import HashFunctions

#: Words whose collisions are taken out: the most frequent ones, this many standard errors above 0.
MOST_FREQUENT, FREQUENT_ERRORS = 64, 5.0
LEAST_DEGREES = 16  # C (g - 1) for each of them: the eigenvalues of their system are above 1/2


def invert_words(
    counts: NDArray[np.int64], words: NDArray[np.uint64], functions: HashFunctions, shared: float
) -> tuple[FloatArray, float]:
    """Estimate the frequency of each word, and the standard error of what collisions remain.

    The squares of the frequent words leave sum f^2 as far as they are known: an estimate x with error s has
    E x^2 = f^2 + s^2, and what is taken out is wrong by s, so f^2 - s^2 leaves it.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket, at least one.
    words : uint64 array (n,), of different values, n >= 1.
    functions : of the reports.
    shared : sum f^2 over all values, see `concentration`.

    Returns
    -------
    float64 array (n,), fractions of all reports, unconstrained; and the error of collisions, a fraction.
    """
    mechanism, reports, channel = (
        functions.mechanism,
        int(counts.sum()),
        Inversion.of_support(functions.mechanism),
    )
    inverted = channel.frequency(count_supports(counts, words, functions) / reports)
    error = float(
        np.hypot(channel.std_error(np.zeros(1), reports)[0], np.sqrt(shared * mechanism.collision_variance))
    )
    most = min(MOST_FREQUENT, int(1 / mechanism.collision_variance) // LEAST_DEGREES)
    largest = np.argsort(-inverted, kind="stable")[:most]
    frequent = largest[inverted[largest] > FREQUENT_ERRORS * error]
    if len(frequent):
        hashed = buckets_of(words[frequent], functions)
        together = fit_together(inverted[frequent], hashed, mechanism)
        rest = without(counts, together, hashed, mechanism)
        inverted = channel.frequency(count_supports(rest, words, functions) / reports)
        inverted[frequent] += together
        known = together**2 - 2 * channel.std_error(together, reports) ** 2
        shared = max(0.0, shared - float(np.maximum(known, 0).sum()))
    return inverted, float(np.sqrt(shared * mechanism.collision_variance))


def share_of_others(
    counts: NDArray[np.int64],
    words: NDArray[np.uint64],
    functions: HashFunctions,
    inverted: FloatArray,
    collisions: float,
) -> tuple[float, float]:
    """Estimate the share of all values that are none of the words: the rest, with the error of the sum.

    Let A be the number of words that a report supports. The sum of all n estimates is (mean of A - n/g) /
    (p - 1/g), so its noise variance is that of a mean of N reports. Collisions of different words with other
    values are uncorrelated, but what u adds to v, v adds to u: at most once more the collision variance of
    the words' squared sum.

    Parameters
    ----------
    counts, words, functions : as of `invert_words`.
    inverted, collisions : its results.

    Returns
    -------
    The share, clipped to [0, 1], and its standard error.
    """
    mechanism = functions.mechanism
    reports, listed = int(counts.sum()), float(inverted.sum())
    supported = supported_candidates(words, functions)
    mean = float(counts @ supported) / reports
    variance = max(0.0, float(counts @ supported**2) / reports - mean**2) / reports / mechanism.contrast**2
    mutual = float(np.clip(listed, 0, 1)) ** 2 * mechanism.collision_variance
    error = float(np.sqrt(variance + len(inverted) * collisions**2 + mutual))
    return float(np.clip(1 - listed, 0, 1)), error
