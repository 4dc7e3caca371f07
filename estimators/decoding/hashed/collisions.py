"""Collisions under the shared functions of local hashing: how large they are, and those that are known."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrik

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions

# Of the shifts of thousands of candidates, in standard deviations, hardly one is larger.
_LARGEST_SHIFT = 5.0
_ROUNDING = 1e-12
_OF_ALL_BUT = 1 - 1e-6
_QUANTILE_80 = 0.8416212335729143  # normal quantile of 0.8


def error_of_fixed(noise: float, collisions: float) -> float:
    """Return the part of a standard error that collisions need for intervals of fixed values.

    Functions never change, so a fixed candidate is shifted by collisions alike in every window: with `noise`
    and `collisions` added in quadrature, an interval covers 95 % on average over candidates, but one that is
    shifted far is missed in nearly every window if collisions are most of the error. So an interval reaches
    further than 5 standard deviations of the shift by 0.84 of the noise, and so covers that shift in 80 %:

        1.96 sqrt(noise² + result²) = max(1.96 sqrt(noise² + collisions²), 5 collisions + 0.84 noise).

    Shifts of 3 standard deviations, which one candidate in 370 has, are covered in 90 % at least. The second
    term is the larger one where collisions are more than 0.22 of the noise; below it nothing is widened.

    Parameters
    ----------
    noise : standard error of functions and responses of a value that nobody has, a fraction, >= 0.
    collisions : standard deviation of the shift over candidates, a fraction, >= 0.

    Returns
    -------
    A fraction, from `collisions` to 2.9 times that.
    """
    reach = (_LARGEST_SHIFT * collisions + _QUANTILE_80 * noise) / QUANTILE_975
    return float(np.sqrt(max(collisions**2, reach**2 - noise**2)))


def collisions_in(fixed: float, noise: float) -> float:
    """Return the collisions with which `error_of_fixed` gives this error beside the noise, both fractions."""
    reach = QUANTILE_975 * np.hypot(fixed, noise) - _QUANTILE_80 * noise
    return float(min(fixed, reach / _LARGEST_SHIFT))


def collision_jump(collisions: float, reports: int, functions: HashFunctions) -> float:
    """Return the most reports by which a chunk that two values share moves the supports of one of them.

    With S² = sum f² of the values that were not taken out, none of them has more than S. Each of the chunks
    in which one agrees with the candidate adds N contrast S / (chunks (1 - 1/K)) at most, see `fit_together`.

    Parameters
    ----------
    collisions : standard deviation of the shift over candidates, a fraction, >= 0.
    reports : N, >= 1.
    functions : of the reports.
    """
    mechanism, block = functions.mechanism, functions.block
    largest = collisions / np.sqrt(mechanism.collision_variance)
    chunks = len(functions.multipliers) * block.chunks
    return float(reports * mechanism.contrast * largest / (chunks * (1 - 1 / block.chunk_symbols)))


def largest_shift(collisions: float, reports: int, functions: HashFunctions) -> float:
    """Return the supports that collisions add to one candidate in a million, beyond their mean.

    The chunks that a candidate shares with one other value are about a Poisson number, which is far from
    normal where functions are few; each adds a `collision_jump`.

    Parameters
    ----------
    collisions, reports, functions : as of `collision_jump`.
    """
    block = functions.block
    expected = len(functions.multipliers) * block.chunks / block.chunk_symbols
    shared = np.ceil(pdtrik(_OF_ALL_BUT, expected)) - expected
    return float(max(shared, 0.0) * collision_jump(collisions, reports, functions))


def noise_of(frequency: FloatArray, known: FloatArray, reports: int, mechanism: FunctionPool) -> FloatArray:
    """Return the standard errors of functions and responses, beside known collisions.

    A report of u supports v with P = m + c e: m = 1/g, c = hit - m, and e the excess of their collisions over
    chance, see `fit_together`; 1 for v itself. Its variance is P (1 - P) = m (1 - m) + (1 - 2 m) c e - c² e².
    Summed with the shares f_u, e gives f_v + k, where k is what collisions add to the inversion of v alone,
    and e² gives f_v and some f_u / (C (g - 1)), which are left out. So a report's c² Var is

        m (1 - m) + (1 - 2 m) c (f_v + k) - c² f_v,

    by (1 - 2 m) c k more than with functions of its own: a value that collides often with a frequent one has
    more noise. All P are in [q, p] of the response, so the mean of P (1 - P) is at least the lesser end's.

    Parameters
    ----------
    frequency : float64 array (n,), f_v, clipped to [0, 1].
    known : float64 array (n,), k, fractions of all reports.
    reports : N, >= 1.
    mechanism : of the reports, local hashing with or without permanent responses.

    Returns
    -------
    float64 array (n,), fractions of all reports, > 0.
    """
    miss, contrast, response = mechanism.miss, mechanism.contrast, mechanism.response
    inside = np.clip(frequency, 0, 1)
    variance = miss * (1 - miss) + (1 - 2 * miss) * contrast * (inside + known) - contrast**2 * inside
    least = min(response.p * (1 - response.p), response.q * (1 - response.q))
    return np.sqrt(np.maximum(variance, least) / reports) / contrast


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
    reports = int(counts.sum())
    return float(np.clip(concentration_left(sum_of_squares(counts), reports, mechanism), 0, 1))


def sum_of_squares(counts: NDArray[np.int64]) -> float:
    """Add up the squares of counts, alike with any number of threads, unlike a product of vectors."""
    return float(np.square(counts.astype(np.float64)).sum())


def concentration_left(squares: float, reports: int, mechanism: FunctionPool) -> float:
    """Estimate sum f^2 over the values that were not taken out of the counts, see `without` and above.

    What is left is measured in what is left: the difference of two sums of all values would have the error of
    the larger one, from collisions of the values that were taken out. Taking a value out with noise s, fitted
    to the same counts, leaves s^2 that the estimate lacks twice.

    Parameters
    ----------
    squares : sum of the squares of what is left in each counter, see `without`.
    reports : N, the sum of the counts.
    mechanism : of the reports, local hashing with or without permanent responses.

    Returns
    -------
    At most 1, below 0 by chance; 1 for a single report.
    """
    if reports < 2:
        return 1.0
    pairs = (squares - reports) / (float(reports) * (reports - 1)) * mechanism.hash_functions
    slope = mechanism.response.contrast**2 * (1 - mechanism.miss)
    return (pairs - mechanism.miss) / slope


def fit_together(supports: FloatArray, chunks: NDArray[np.uint8], functions: HashFunctions) -> FloatArray:
    """Invert the supports of a few candidates together, which collide in known functions.

    Where v and u collide in a share r of the functions, u adds f_u (r - 1/g) / (1 - 1/g) to the inversion of
    v alone. The candidates' frequencies solve that linear system. Since two values of a chunk collide in the
    same number of its functions whatever they are, that factor is (e - 1/K) / (1 - 1/K), where v and u agree
    in a share e of their chunks of K possible values.

    Parameters
    ----------
    supports : float64 array (m,), inversion of each candidate alone, fractions of all reports.
    chunks : uint8 array (m, chunks), of each candidate, see `chunks_of`; different candidates.
    functions : of the reports.

    Returns
    -------
    float64 array (m,), fractions of all reports.
    """
    equal = np.empty((len(chunks), len(chunks)))
    for place, each in enumerate(chunks):
        equal[place, place:] = equal[place:, place] = np.count_nonzero(chunks[place:] == each, axis=1)
    by_chance = 1 / functions.block.chunk_symbols
    excess = (equal / chunks.shape[1] - by_chance) / (1 - by_chance)
    excess[np.diag_indices_from(excess)] += _ROUNDING  # two values may agree in all of very few chunks
    return np.asarray(np.linalg.solve(excess, supports), np.float64)


def without(
    sums: FloatArray,
    squares: float,
    reports: int,
    frequency: FloatArray,
    chunks: NDArray[np.uint8],
    functions: HashFunctions,
) -> tuple[FloatArray, float]:
    """Take the expected reports of candidates out of the counts, and spread as many evenly instead.

    Let M be the members of a chunk and h the frequency that each of its values has, less its mean. The
    reports that are taken out of the chunk's counters c are a M h, with a = N (p - 1/g) / C. Two values
    differ in d = `block.distinct` functions whatever they are, so M'M h = d h: the sums M'c lose a d h, and
    the squares 2 a h'M'c - a^2 d h'h. No counter has to be known.

    Parameters
    ----------
    sums : float64 array (chunks, values of a chunk), see `chunk_sums`.
    squares : of the counts, see `sum_of_squares`.
    reports : N, the sum of the counts.
    frequency : float64 array (m,), of the candidates, fractions of all reports.
    chunks : uint8 array (m, chunks), of each candidate, see `chunks_of`.
    functions : of the reports.

    Returns
    -------
    The sums, of the same shape, and the squares of what is left in the counters.
    """
    mechanism, block = functions.mechanism, functions.block
    held = np.zeros(sums.shape)
    for share, values in zip(frequency.tolist(), chunks, strict=True):
        held[np.arange(len(held)), values] += share
    held -= held.sum(axis=1, keepdims=True) / block.chunk_symbols
    of_function = reports * mechanism.response.contrast / mechanism.hash_functions
    taken = of_function * block.distinct * np.square(held).sum() - 2 * (sums * held).sum()
    return sums - of_function * block.distinct * held, squares + of_function * float(taken)
