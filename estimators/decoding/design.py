"""The design matrix of Bloom RAPPOR: the bits that each candidate sets in each cohort, sparse and cached."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b, md5

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.rappor import BYTE_HASHED_BITS, Rappor

_DIGEST_BYTES = 16


def bloom_design(candidates: Sequence[str], mechanism: Rappor) -> csc_array:
    """Build the matrix with 1 where a candidate sets a bit of a cohort, else 0; callers must not change it.

    It takes 12 bytes per 1: 160 MB for 100,000 candidates, 64 cohorts and 2 hashes. The last four designs are
    cached, because every window of a collection uses the same one.

    Parameters
    ----------
    candidates : n strings.
    mechanism : Rappor.

    Returns
    -------
    float64 csc_array (cohorts * bits, n), row cohort * bits + bit.

    Source: google/rappor, client/python/rappor.py, get_bloom_bits; the same hash as `bloom_positions`.
    """
    return _kept_design(_Inputs(_fingerprint(candidates, mechanism), tuple(candidates), mechanism))


def even_column(rows: int, share: float) -> csc_array:
    """Build the background column: strings outside the candidates set each bit with the same probability.

    Parameters
    ----------
    rows : number of rows.
    share : probability that a bit is set, in (0, 1].

    Returns
    -------
    float64 csc_array (rows, 1).
    """
    return csc_array(np.full((rows, 1), share))


def weighted_gram(design: csc_array, weight: FloatArray) -> FloatArray:
    """Return X' diag(weight) X.

    Parameters
    ----------
    design : csc_array (rows, n), X.
    weight : float64 array (rows,).

    Returns
    -------
    float64 array (n, n).
    """
    columns = (design.data * weight[design.indices], design.indices, design.indptr)
    weighted = csr_array(columns, shape=design.shape[::-1])  # X' diag(weight)
    product: FloatArray = (weighted @ design.tocsr()).toarray()
    return product


def one_block_per_cohort(design: csc_array, cohorts: int) -> csr_array:
    """Return the block-diagonal matrix of the X_c, where X_c are the rows of a cohort.

    Parameters
    ----------
    design : csc_array (cohorts * bits, n).
    cohorts : number of cohorts.

    Returns
    -------
    float64 csr_array (cohorts * bits, cohorts * n).
    """
    by_row = design.tocsr()
    rows, columns = by_row.shape
    block = np.repeat(np.arange(rows, dtype=np.int32) // (rows // cohorts), np.diff(by_row.indptr))
    indices = by_row.indices + block * columns
    return csr_array((by_row.data, indices, by_row.indptr), shape=(rows, cohorts * columns))


@dataclass(frozen=True)
class _Inputs:
    """Cache key of a design; equal when the fingerprints are."""

    fingerprint: bytes
    candidates: tuple[str, ...] = field(compare=False)
    mechanism: Rappor = field(compare=False)


def _fingerprint(candidates: Sequence[str], mechanism: Rappor) -> bytes:
    """BLAKE2b-128 of the hash parameters and of the length-prefixed candidates."""
    digest = blake2b(repr((mechanism.bits, mechanism.hashes, mechanism.cohorts)).encode(), digest_size=16)
    for word in candidates:
        encoded = word.encode()
        digest.update(len(encoded).to_bytes(4, "little") + encoded)
    return digest.digest()


@lru_cache(maxsize=4)
def _kept_design(inputs: _Inputs) -> csc_array:
    positions = _positions(inputs.candidates, inputs.mechanism)
    return design_of_positions(positions, inputs.mechanism.cohorts * inputs.mechanism.bits)


def _positions(candidates: tuple[str, ...], mechanism: Rappor) -> NDArray[np.int32]:
    """Return the rows that each candidate sets, int32 (n, cohorts * hashes); a row may appear twice."""
    encoded = [word.encode() for word in candidates]
    positions = np.empty((len(candidates), mechanism.cohorts, mechanism.hashes), np.int32)
    for cohort in range(mechanism.cohorts):
        prefix = cohort.to_bytes(4, "big")
        digests = b"".join(md5(prefix + word, usedforsecurity=False).digest() for word in encoded)
        table = np.frombuffer(digests, np.uint8).reshape(len(candidates), _DIGEST_BYTES)
        numbers = table if mechanism.bits <= BYTE_HASHED_BITS else table.view(">u2")
        bits = numbers[:, : mechanism.hashes].astype(np.int32) % mechanism.bits
        positions[:, cohort] = cohort * mechanism.bits + bits
    return positions.reshape(len(candidates), -1)


def design_of_positions(positions: NDArray[np.int32], rows: int) -> csc_array:
    """Build the matrix whose column v is 1 in rows positions[v].

    Parameters
    ----------
    positions : int32 array (n, m), each in [0, rows); a row that appears twice counts once.
    rows : number of rows.

    Returns
    -------
    float64 csc_array (rows, n).
    """
    ordered = np.sort(positions, axis=1)
    distinct = np.ones(ordered.shape, bool)
    distinct[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ends = np.cumsum(distinct.sum(axis=1))
    indices = ordered[distinct]
    return csc_array(
        (np.ones(len(indices)), indices, np.append(0, ends).astype(np.int32)), shape=(rows, len(positions))
    )
