"""Frequencies of candidate strings from the counts of local hashing, by linear inversion of their support."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.collisions import (
    collision_jump,
    concentration,
    error_of_fixed,
    largest_shift,
    noise_of,
)
from deniable.estimators.decoding.hashed.inverted_words import invert_words, share_of_others
from deniable.estimators.decoding.hashed.support_test import Spread, support_test
from deniable.estimators.frequency.estimate import Estimate, count_reports
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import benjamini_hochberg, normal_tail
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of


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
    their expected reports taken out before all others are; their noise is that of these functions
    (`noise_of`). So are a few texts that are no candidates, if they are plain in the counts
    (`largest_unlisted`). What is left of sum f^2, of listed values and of others, is
    measured in the counts (`concentration`), and enters all errors. If it is notable beside the noise, as
    with texts that are not listed, errors are larger than its standard deviation, so that intervals also
    cover the candidates that it shifts most (`error_of_fixed`).

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
    `collision_error`, the part of each standard error that more reports do not reduce, and
    `unlisted_texts` and `unlisted_share`: frequent values that are no candidates, and their share together.

    Raises
    ------
    ValueError if counts is not of shape (C g,), negative or all 0, or candidates are repeated or missing.

    Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX Security
    2017), section 4.4, for a new function of each report.
    """
    count_reports(counts, mechanism.width)
    repeated = len(candidates) - len(set(candidates))
    if repeated:
        raise ValueError(f"candidates must be distinct, got {repeated} repeated")
    if not candidates:
        raise ValueError("candidates must be at least 1, got 0")
    functions = hash_functions_of(mechanism, hash_key)
    return decode_words(counts, _words(tuple(candidates), functions), functions)


def decode_words(
    counts: NDArray[np.int64], words: NDArray[np.uint64], functions: HashFunctions, sampled: float = 0.0
) -> Estimate:
    """Estimate the frequencies of hashed values, see `decode_hashed`.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket, at least one.
    words : uint64 array (n,), of different values, n >= 1.
    functions : of the reports.
    sampled : variance f (1 - f) / N that errors have besides, in units of it: that of a sample of clients.

    Returns
    -------
    Estimate with arrays of shape (n,).
    """
    mechanism, reports = functions.mechanism, int(counts.sum())
    shared, channel = concentration(counts, mechanism), Inversion.of_support(mechanism)
    inverted, collisions, unlisted, known = invert_words(counts, words, functions, shared)
    noise = noise_of(inverted, known, reports, mechanism)
    fixed = error_of_fixed(float(channel.std_error(np.zeros(1), reports)[0]), collisions)
    std_error = np.hypot(np.hypot(noise, fixed), _sampling_error(inverted, reports, sampled))
    frequency = np.clip(inverted, 0, 1)
    rest = sampled * (1 - frequency) / reports
    moved = (each(collisions, reports, functions) for each in (collision_jump, largest_shift))
    spread = Spread(fixed**2, fixed**2 + rest, max(1.0, sampled), fixed**2, *moved)
    test = support_test(inverted, known, reports, mechanism, spread)
    low, high, for_all = shown_intervals(test.interval, frequency)
    other, error = share_of_others(counts, words, functions, inverted, collisions)
    return Estimate(
        estimator="inv",
        reports=reports,
        frequency=frequency,
        std_error=std_error,
        low=low,
        high=high,
        significant=benjamini_hochberg(normal_tail(test.deviates_of_absent())),
        supports=np.rint(reports * (mechanism.miss + mechanism.contrast * inverted)).astype(np.int64),
        other=(other, float(np.hypot(error, _sampling_error(np.array([other]), reports, sampled)[0]))),
        diagnostics={
            "concentration": shared,
            "collision_error": fixed,
            "unlisted_texts": float(len(unlisted)),
            "unlisted_share": float(unlisted.sum()),
        },
        unbiased=inverted,
        for_all=for_all,
        known_collisions=known,
    )


def _sampling_error(frequency: FloatArray, reports: int, sampled: float) -> FloatArray:
    inside = np.clip(frequency, 0, 1)
    found: FloatArray = np.sqrt(sampled * inside * (1 - inside) / reports)
    return found


@lru_cache(maxsize=8)
def _words(candidates: tuple[str, ...], functions: HashFunctions) -> NDArray[np.uint64]:
    """Hash candidates once for all windows; 8 bytes each."""
    return functions.words(candidates)
