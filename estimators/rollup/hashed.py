"""Roll-ups of local hashing and of prefix trees."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.collisions import (
    collision_jump,
    collisions_in,
    largest_shift,
    noise_of,
)
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.decoding.hashed.listed import decode_listed
from deniable.estimators.decoding.hashed.support_test import Spread, support_test
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import benjamini_hochberg, normal_tail
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.rollup.overlap import RollUp, client_overlap


def roll_up_hashed(
    counts: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: LocalHash | LongitudinalHash,
    hash_key: int,
) -> RollUp:
    """Estimate over several windows of local hashing; without permanent responses both estimates are equal.

    The hash functions are the same in every window, so the part of the error that comes from collisions stays
    what it is in one window. A returning client of longitudinal hashing keeps its function and the response
    of its bucket, so `shared` repeats the noise of both. Its reports agree more often than those of different
    clients, which both estimates take for collisions: their errors are too large rather than too small.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    candidates : n distinct strings, n >= 1.
    mechanism : of the reports.
    hash_key : of the collection.

    Returns
    -------
    RollUp with arrays of shape (n,).

    Raises
    ------
    ValueError as `decode_hashed`, or if window_reports holds no report.
    """
    overlap = client_overlap(window_reports)
    independent = decode_hashed(counts, candidates, mechanism, hash_key)
    if isinstance(mechanism, LocalHash):
        return RollUp(independent, independent, overlap)
    functions = hash_functions_of(mechanism, hash_key)
    return RollUp(independent, _shared_hashed(independent, mechanism, functions, overlap), overlap)


def _shared_hashed(
    independent: Estimate, mechanism: LongitudinalHash, functions: HashFunctions, overlap: float
) -> Estimate:
    """Add overlap - 1 times the variance of function and permanent response.

    It is `with_returning_clients` of local hashing. With the permanent response as the report, a client's
    support is that of LocalHash; in tails, a client moves the supports by `overlap` reports at once. The
    noise of `other` counts as permanent, wholly.
    """
    permanent = LocalHash(mechanism.hash_functions, mechanism.hash_buckets, mechanism.permanent_threshold)
    reports, fixed = independent.reports, independent.diagnostics["collision_error"]
    known = np.asarray(independent.known_collisions, np.float64)
    inverted = np.asarray(independent.unbiased, np.float64)

    def repeated(frequency: FloatArray) -> FloatArray:
        variance: FloatArray = (overlap - 1) * noise_of(frequency, known, reports, permanent) ** 2 + fixed**2
        return variance

    std_error = np.sqrt(noise_of(inverted, known, reports, mechanism) ** 2 + repeated(inverted))
    alone = float(Inversion.of_support(mechanism).std_error(np.zeros(1), reports)[0])
    collisions = collisions_in(fixed, alone)
    spread = Spread(
        repeated(np.zeros(len(known))),
        repeated(np.ones(len(known))),
        overlap,
        fixed**2,
        collision_jump(collisions, reports, functions),
        largest_shift(collisions, reports, functions),
    )
    test = support_test(inverted, known, reports, mechanism, spread)
    low, high, for_all = shown_intervals(test.interval, independent.frequency)
    other = independent.other
    if other is not None:
        other = (other[0], other[1] * math.sqrt(overlap))
    return replace(
        independent,
        std_error=std_error,
        low=low,
        high=high,
        significant=benjamini_hochberg(normal_tail(test.deviates_of_absent())),
        other=other,
        for_all=for_all,
    )


def roll_up_tree(
    counts: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: PrefixTree,
    hash_key: int,
) -> RollUp:
    """Estimate listed strings over several windows of a prefix tree, which has no permanent responses.

    Returning clients stay on their level, so the sample of clients on the last one is that of one window:
    `shared` counts its variance `overlap` times.

    Parameters
    ----------
    counts : int64 array (L, C g), reports by level and function * g + bucket, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    candidates : n distinct strings, n >= 0.
    mechanism : of the reports.
    hash_key : of the collection.

    Returns
    -------
    RollUp with arrays of shape (n,).

    Raises
    ------
    ValueError as `decode_listed`, or if window_reports holds no report.
    """
    overlap = client_overlap(window_reports)
    independent, shared = (
        decode_listed(counts, candidates, mechanism, hash_key, each) for each in (1.0, overlap)
    )
    return RollUp(independent, shared, overlap)
