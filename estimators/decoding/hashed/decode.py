"""Frequencies of candidate strings from the counts of local hashing, by linear inversion of their support."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.decoding.hashed.collisions import buckets_of, concentration, fit_together, without
from estimators.decoding.hashed.support import count_supports, supported_candidates
from estimators.frequency.estimate import Estimate, count_reports
from estimators.frequency.intervals.for_all import shown_intervals
from estimators.frequency.intervals.unified import unified_interval
from estimators.frequency.inversion import Inversion
from estimators.frequency.significance import benjamini_hochberg, normal_tail
from estimators.mechanisms.hashing.function_pool import FunctionPool
from estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of

#: Candidates whose collisions are taken out: the most frequent ones, this many standard errors above 0.
MOST_FREQUENT, FREQUENT_ERRORS = 64, 5.0
LEAST_DEGREES = 16  # C (g - 1) for each of them: the eigenvalues of their system are above 1/2


def decode_hashed(
    counts: NDArray[np.int64], candidates: Sequence[str], mechanism: FunctionPool, hash_key: int
) -> Estimate:
    """Estimate the frequency of each candidate, with 95 % intervals and significance.

    A report supports a value if its function gives the value the reported bucket. With S supports of N
    reports, (S / N - 1/g) / (p - 1/g) is unbiased over functions, p being the response's. Two kinds of noise:

    1. Functions and responses, like k-RR with hit p and miss 1/g: for a rare value the variance is
       4 e^epsilon / (e^epsilon - 1)^2 / N at the best g.
    2. Collisions: another value shares the candidate's bucket in more or fewer than a g-th of the C
       functions, which adds f^2 / (C (g - 1)) for each. This does not shrink with N, and since the functions
       of a collection stay the same, a candidate errs alike in every window and in their sum.

    Collisions with the most frequent candidates are known: these are estimated together (`fit_together`), and
    their expected reports taken out before all others are. What is left of sum f^2, of listed values and of
    others, is measured in the counts (`concentration`), and enters all errors.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket.
    candidates : n distinct strings, n >= 1.
    mechanism : of the reports, local hashing with or without permanent responses.
    hash_key : of the collection, which keys the functions.

    Returns
    -------
    Estimate with arrays of shape (n,), fractions of all reports; frequencies are clipped to [0, 1]. `other`
    is the share of all strings that are no candidates. Diagnostics: `concentration`, sum f^2 of all values,
    and `collision_error`, the part of each standard error that more reports do not reduce.

    Raises
    ------
    ValueError if counts is not of shape (C g,), negative or all 0, or candidates are repeated or missing.

    Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX Security
    2017), section 4.4, for a new function of each report.
    """
    reports = count_reports(counts, mechanism.width)
    repeated = len(candidates) - len(set(candidates))
    if repeated:
        raise ValueError(f"candidates must be distinct, got {repeated} repeated")
    if not candidates:
        raise ValueError("candidates must be at least 1, got 0")
    functions = hash_functions_of(mechanism, hash_key)
    words = _words(tuple(candidates), functions)
    shared, channel = concentration(counts, mechanism), Inversion.of_support(mechanism)
    inverted, collisions = _inverted(counts, words, functions, shared)
    noise = channel.std_error(inverted, reports)
    std_error = np.hypot(noise, collisions)
    of_absent = np.hypot(channel.std_error(np.zeros(1), reports), collisions)
    frequency = np.clip(inverted, 0, 1)
    low, high, for_all = shown_intervals(
        lambda level: unified_interval(inverted, std_error, level=level), frequency
    )
    return Estimate(
        estimator="inv",
        reports=reports,
        frequency=frequency,
        std_error=std_error,
        low=low,
        high=high,
        significant=benjamini_hochberg(normal_tail(inverted / of_absent)),
        supports=np.rint(reports * (mechanism.miss + mechanism.contrast * inverted)).astype(np.int64),
        other=_other(counts, supported_candidates(words, functions), inverted, collisions, mechanism),
        diagnostics={"concentration": shared, "collision_error": collisions},
        unbiased=inverted,
        for_all=for_all,
    )


def _inverted(
    counts: NDArray[np.int64], words: NDArray[np.uint64], functions: HashFunctions, shared: float
) -> tuple[FloatArray, float]:
    """Return the unclipped estimates, float64 (n,), and the standard error of what collisions remain.

    The squares of the frequent candidates leave sum f^2 as far as they are known: an estimate x with error s
    has E x^2 = f^2 + s^2, and what is taken out is wrong by s, so f^2 - s^2 leaves it.
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


def _other(
    counts: NDArray[np.int64],
    supported: FloatArray,
    inverted: FloatArray,
    collisions: float,
    mechanism: FunctionPool,
) -> tuple[float, float]:
    """Estimate the share of all strings that are no candidates: the rest, with the error of the sum.

    Let A be the number of candidates that a report supports. The sum of all n estimates is (mean of A - n/g)
    / (p - 1/g), so its noise variance is that of a mean of N reports. Collisions of different candidates with
    other values are uncorrelated, but what u adds to v, v adds to u: at most once more the collision variance
    of the listed frequencies' squared sum.
    """
    reports, listed = int(counts.sum()), float(inverted.sum())
    mean = float(counts @ supported) / reports
    variance = max(0.0, float(counts @ supported**2) / reports - mean**2) / reports / mechanism.contrast**2
    mutual = float(np.clip(listed, 0, 1)) ** 2 * mechanism.collision_variance
    error = float(np.sqrt(variance + len(inverted) * collisions**2 + mutual))
    return float(np.clip(1 - listed, 0, 1)), error


@lru_cache(maxsize=8)
def _words(candidates: tuple[str, ...], functions: HashFunctions) -> NDArray[np.uint64]:
    """Hash candidates once for all windows; 8 bytes each."""
    return functions.words(candidates)
