"""Frequencies of listed strings from the last level of a prefix tree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.decoding.hashed.decode import decode_words
from deniable.estimators.frequency.estimate import Estimate, count_reports
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree, utf_8


def decode_listed(
    counts: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: PrefixTree,
    hash_key: int,
    overlap: float = 1.0,
    found: Sequence[bytes] = (),
) -> Estimate:
    """Estimate the frequency of each candidate, as `decode_hashed` does, from the reports of the last level.

    Its clients are a random part of all, so errors of frequencies among all clients have that part too.

    Parameters
    ----------
    counts : int64 array (L, C g), reports by level and function * g + bucket, not all 0.
    candidates : n strings, n >= 0, distinct in their first `lengths[-1]` bytes: longer ones are estimated
        together with all that begin alike.
    mechanism : of the reports.
    hash_key : of the collection.
    overlap : factor on the variance of the sample of clients, >= 1.
    found : m prefixes of the last level's length, or shorter whole texts, that other windows have found; none
        is the beginning of a candidate.

    Returns
    -------
    Estimate with arrays of shape (n + m,), the candidates first. Without a report on the last level,
    errors are inf. Its `reports` are those of the last level.

    Raises
    ------
    ValueError if counts are not of shape (L, C g), negative or all 0, or candidates begin alike.
    """
    shape = (mechanism.cohorts, mechanism.width)
    if counts.shape != shape:
        raise ValueError(f"counts must have shape {shape}, got {counts.shape}")
    count_reports(counts.ravel(), counts.size)
    last = mechanism.cohorts - 1
    prefixes = [*(mechanism.prefix(utf_8(each), last) for each in candidates), *found]
    if repeated := len(prefixes) - len(set(prefixes)):
        raise ValueError(
            f"candidates must be distinct in their first {mechanism.lengths[-1]} bytes,"
            f" got {repeated} repeated"
        )
    reports = int(counts[last].sum())
    if not prefixes or reports == 0:
        return _unknown(len(prefixes), reports)
    functions = hash_functions_of(mechanism.oracle, hash_key)
    others = 1 - reports / float(counts.sum())
    return decode_words(counts[last], mechanism.words(prefixes, last, functions), functions, others * overlap)


def _unknown(candidates: int, reports: int) -> Estimate:
    """Nothing is known of the candidates."""
    return Estimate(
        estimator="inv",
        reports=max(1, reports),
        frequency=np.zeros(candidates),
        std_error=np.full(candidates, np.inf),
        low=np.zeros(candidates),
        high=np.ones(candidates),
        significant=np.zeros(candidates, np.bool_),
        supports=np.zeros(candidates, np.int64),
    )
