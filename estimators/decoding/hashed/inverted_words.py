"""Inversion of the supports of hashed words, without the collisions with the most frequent of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.collisions import (
    concentration_left,
    error_of_fixed,
    fit_together,
    sum_of_squares,
    without,
)
from deniable.estimators.decoding.hashed.support import (
    chunk_sums,
    chunks_of,
    supported_candidates,
    supports_in,
)
from deniable.estimators.decoding.hashed.unlisted_texts import COMPARED, MOST_UNLISTED, largest_unlisted
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.frequency.intervals.bounded_steps import reach_beyond_normal
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions

#: Words whose collisions are taken out: the most frequent ones, this many standard errors above 0. Each round
#: reduces the errors, and so finds more of them, among those that the supports say are the largest.
MOST_FREQUENT, FREQUENT_ERRORS, ROUNDS, LARGEST = 128, 5.0, 24, 1 << 13
LEAST_DEGREES = 16  # C (g - 1) for each of them: the eigenvalues of their system are above 1/2


class InvertedWords(NamedTuple):
    """Estimates of n words.

    Parameters
    ----------
    frequency : float64 array (n,), fractions of all reports, unconstrained.
    collisions : standard error of what collisions remain, a fraction.
    unlisted : float64 array (u,), the frequencies of u unlisted values that were found.
    known : float64 array (n,), what collisions with frequent values had added to each word; taken out.
    """

    frequency: FloatArray
    collisions: float
    unlisted: FloatArray
    known: FloatArray


def invert_words(
    counts: NDArray[np.int64], words: NDArray[np.uint64], functions: HashFunctions, shared: float
) -> InvertedWords:
    """Estimate the frequency of each word, and the standard error of what collisions remain.

    Frequent words are estimated together and taken out, in rounds, since each leaves smaller errors and so
    more words that are clearly frequent; they are chosen anew in each. When these are out, values that nobody
    listed are taken out like them if they are plain in what is left (`largest_unlisted`). What is left of sum
    f^2 is measured in what is left (`concentration_left`).

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket, at least one.
    words : uint64 array (n,), of different values, n >= 1.
    functions : of the reports.
    shared : sum f^2 over all values, see `concentration`.

    Returns
    -------
    InvertedWords of shape (n,).
    """
    mechanism, reports = functions.mechanism, int(counts.sum())
    channel = Inversion.of_support(mechanism)
    noise = float(channel.std_error(np.zeros(1), reports)[0])
    sums, squares = chunk_sums(counts, functions), sum_of_squares(counts)
    inverted = channel.frequency(supports_in(sums, words, functions) / reports)
    most = most_taken_out(mechanism)
    largest = np.sort(np.argsort(-inverted, kind="stable")[:LARGEST])
    cleared, left, rest = inverted[largest], shared, sums
    frequent, together = np.empty(0, np.int64), np.empty(0)
    places, unlisted = np.arange(len(sums)), np.empty((0, len(sums)), np.uint8)
    chunks = unlisted
    for _ in range(ROUNDS):
        error = np.hypot(noise, np.sqrt(left * mechanism.collision_variance))
        chosen = np.argsort(-cleared, kind="stable")[:most]
        chosen = np.sort(chosen[cleared[chosen] > FREQUENT_ERRORS * error])
        if np.array_equal(chosen, frequent):
            taken = chunks[np.argsort(-together, kind="stable")[:COMPARED]]
            more = largest_unlisted(rest, words, functions, taken) if len(unlisted) < MOST_UNLISTED else None
            if more is None or len(frequent) == most:
                break
            unlisted = np.vstack([unlisted, more])
        frequent, listed = chosen, chunks_of(words[largest[chosen]], functions)
        chunks = np.concatenate([listed, unlisted])
        alone = channel.frequency(sums[places, unlisted].sum(axis=1) / reports)
        together = fit_together(np.append(inverted[largest[frequent]], alone), chunks, functions)
        rest, squared = without(sums, squares, reports, together, chunks, functions)
        cleared = channel.frequency(supports_in(rest, words[largest], functions) / reports)
        cleared[frequent] += together[: len(frequent)]
        fitted = 2 * float((channel.std_error(together, reports) ** 2).sum())
        left = float(np.clip(concentration_left(squared, reports, mechanism) + fitted, 0, shared))
    if len(words) > LARGEST:
        cleared = channel.frequency(supports_in(rest, words, functions) / reports)
        cleared[largest[frequent]] += together[: len(frequent)]
    collisions = float(np.sqrt(left * mechanism.collision_variance))
    return InvertedWords(cleared, collisions, together[len(frequent) :], inverted - cleared)


def most_taken_out(mechanism: FunctionPool) -> int:
    """Return the number of frequent words whose collisions are taken out, at most."""
    return min(MOST_FREQUENT, int(1 / mechanism.collision_variance) // LEAST_DEGREES)


def share_of_others(
    counts: NDArray[np.int64],
    words: NDArray[np.uint64],
    functions: HashFunctions,
    inverted: FloatArray,
    collisions: float,
) -> tuple[float, float]:
    """Estimate the share of all values that are none of the words: the rest, with the error of the sum.

    Let A be the number of words that a report supports. The sum of all n estimates is (mean of A - n/g) /
    (p - 1/g), so its noise variance is that of a mean of N reports. Where few responses are false, few
    reports decide that sum and its variance: one more support is added to the variance, and the noise is as
    far as `reach_beyond_normal` says.

    Collisions of different words with other values are uncorrelated, but what u adds to v, v adds to u. With
    the words that were not taken out, that is at most once more the collision variance of their squared sum,
    which is at most n times their sum f^2. Functions never change, so collisions shift the sum alike in every
    window, by more standard deviations for some lists than for others: the error is that of `error_of_fixed`.

    Parameters
    ----------
    counts, words, functions : as of `invert_words`.
    inverted, collisions : its first results.

    Returns
    -------
    The share, clipped to [0, 1], and its standard error.
    """
    mechanism = functions.mechanism
    reports, listed = int(counts.sum()), float(inverted.sum())
    supported = supported_candidates(words, functions)
    mean = float(counts @ supported) / reports
    variance = max(0.0, float(counts @ supported**2) / reports - mean**2) / reports / mechanism.contrast**2
    collided = len(inverted) * collisions**2
    collided += min(collided, float(np.clip(listed, 0, 1)) ** 2 * mechanism.collision_variance)
    step = np.array([1 / (reports * mechanism.contrast)])
    total = variance + step**2
    noise = float((np.sqrt(total) + reach_beyond_normal(total, step, QUANTILE_975) / QUANTILE_975)[0])
    error = float(np.hypot(noise, error_of_fixed(noise, np.sqrt(collided))))
    return float(np.clip(1 - listed, 0, 1)), error
