"""Collisions under the shared functions of local hashing: how large they are, and those that are known."""

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.mechanisms.hashing.function_pool import FunctionPool
from estimators.mechanisms.hashing.hash_functions import HashFunctions


def concentration(counts: NDArray[np.int64], mechanism: FunctionPool) -> float:
    """Estimate sum f^2 over all values, listed or not: the probability that two reports have the same value.

    Two reports agree in function and bucket with probability (1/g + (p - q)^2 (1 - 1/g) sum f^2) / C. The
    share of agreeing pairs, inverted, is unbiased over functions and noise. Its own error changes a standard
    error little: sqrt(2 g / C) / (g - 1) of a rare value's noise variance, 1 % with 65,536 counters.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket.
    mechanism : of the reports, local hashing with or without permanent responses.

    Returns
    -------
    Clipped to [0, 1]; 1 for a single report.
    """
    held = counts.astype(np.float64)  # squares of large counts exceed int64
    reports = float(held.sum())
    if reports < 2:
        return 1.0
    pairs = float(held @ (held - 1)) / (reports * (reports - 1)) * mechanism.hash_functions
    slope = mechanism.response.contrast**2 * (1 - mechanism.miss)
    return float(np.clip((pairs - mechanism.miss) / slope, 0, 1))


def fit_together(supports: FloatArray, hashed: NDArray[np.uint8], mechanism: FunctionPool) -> FloatArray:
    """Invert the supports of a few candidates together, which collide in known functions.

    Where v and u collide in a share r of the functions, u adds f_u (r - 1/g) / (1 - 1/g) to the inversion of
    v alone. The candidates' frequencies solve that linear system.

    Parameters
    ----------
    supports : float64 array (m,), inversion of each candidate alone, fractions of all reports.
    hashed : uint8 array (m, C), bucket of each candidate under each function; different candidates.
    mechanism : of the reports, local hashing with or without permanent responses.

    Returns
    -------
    float64 array (m,), fractions of all reports.
    """
    equal = np.array([np.count_nonzero(hashed == each, axis=1) for each in hashed])
    excess = (equal / mechanism.hash_functions - mechanism.miss) / (1 - mechanism.miss)
    return np.asarray(np.linalg.lstsq(excess, supports)[0], np.float64)


def without(
    counts: NDArray[np.int64], frequency: FloatArray, hashed: NDArray[np.uint8], mechanism: FunctionPool
) -> FloatArray:
    """Take the expected reports of candidates out of the counts, and spread as many evenly instead.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket.
    frequency : float64 array (m,), of the candidates, fractions of all reports.
    hashed : uint8 array (m, C), bucket of each candidate under each function.
    mechanism : of the reports, local hashing with or without permanent responses.

    Returns
    -------
    float64 array (C g,), with the same sum.
    """
    rest = counts.astype(np.float64)
    starts = np.arange(mechanism.hash_functions) * mechanism.hash_buckets
    of_function = float(rest.sum()) * mechanism.response.contrast / mechanism.hash_functions
    for share, buckets in zip(frequency.tolist(), hashed, strict=True):
        rest[starts + buckets] -= share * of_function
    rest += float(frequency.sum()) * of_function / mechanism.hash_buckets
    return rest


def buckets_of(words: NDArray[np.uint64], functions: HashFunctions) -> NDArray[np.uint8]:
    """Return the bucket of each word under each function, uint8 array (n, C)."""
    numbers = np.arange(functions.mechanism.hash_functions)
    hashed = [functions.buckets(np.repeat(word, len(numbers)), numbers) for word in words]
    return np.array(hashed, np.uint8)
