"""True counts for testing estimators, and the counts of their reports by mechanism."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.traits import SymmetricChannel

Counts = NDArray[np.int64]

LISTED, DECOYS = 105, 200
SINGLY = 16  # draws for each place of a multinomial, below which single ones take less time
CANDIDATES = [f"real-{i}" for i in range(LISTED)] + [f"decoy-{i}" for i in range(DECOYS)]
#: Candidates most of whose bits `covering_texts` set.
COVERED_UP = ("real-10", "decoy-0")


def zipf_shares(size: int, exponent: float) -> NDArray[np.float64]:
    """Shares proportional to rank^-exponent that sum to 1, float64 (size,)."""
    weights = np.arange(1, size + 1.0) ** -exponent
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def round_to_counts(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole counts, int64 (n,), that sum to total: shares rounded down, the remainder added to the first."""
    counts = np.floor(shares * total).astype(np.int64)
    counts[0] += total - counts.sum()
    return counts


def report_counts(
    rng: np.random.Generator, truth: NDArray[np.int64], mechanism: SymmetricChannel
) -> NDArray[np.int64]:
    """Reports per value, int64 (k,), when truth[v] clients hold v.

    k-RR reports the truth with probability p - q, and otherwise one of all k values uniformly. Hence one
    binomial per value and one multinomial simulate all clients.
    """
    kept = rng.binomial(truth, mechanism.contrast)
    uniform = np.full(mechanism.k, 1 / mechanism.k)
    return kept + rng.multinomial(int((truth - kept).sum()), uniform)


def channel_counts(truth: Counts, mechanism: SquareWave | PairKRR, rng: np.random.Generator) -> Counts:
    """Reports per cell or pair, int64 (width,), when truth[x] clients hold x."""
    columns = mechanism.channel / mechanism.channel.sum(axis=0)
    counts: Counts = rng.multinomial(truth.ravel(), columns.T).sum(axis=0, dtype=np.int64)
    return counts


def shown_bits(
    rng: np.random.Generator, truth: Counts, reports: int, mechanism: HotRappor | OneHotPair
) -> Counts:
    """Reports that show each bit, int64 (1, bits), when truth[b] clients set bit b, and none the others."""
    held_bits = np.zeros(mechanism.width, np.int64)
    held_bits[: len(truth)] = truth
    ones: Counts = rng.binomial(held_bits, mechanism.q_star)
    ones += rng.binomial(reports - held_bits, mechanism.p_star)
    return ones[np.newaxis]


def held_texts(reports: int, share: float, unlisted: int) -> Counts:
    """Clients with each listed and unlisted text, int64 (105 + unlisted,), both by Zipf's law."""
    rare = round(reports * share)
    listed = round_to_counts(zipf_shares(LISTED, 1.0), reports - rare)
    return np.append(listed, round_to_counts(zipf_shares(unlisted, 1.0), rare)) if unlisted else listed


def texts_of(unlisted: int) -> list[str]:
    """The texts of `held_texts`."""
    return CANDIDATES[:LISTED] + [f"stranger-{i}" for i in range(unlisted)]


def hashed_counts(
    held: Counts, texts: list[str], mechanism: FunctionPool, hash_key: int, rng: np.random.Generator
) -> Counts:
    """Reports per function and bucket, int64 (C g,), one report of each client."""
    functions = hash_functions_of.__wrapped__(mechanism, hash_key)  # a key is used once: not kept
    words = functions.words(texts).repeat(held)
    drawn = rng.integers(mechanism.hash_functions, size=len(words))
    bucket = functions.buckets(words, drawn)
    lie = rng.integers(mechanism.hash_buckets - 1, size=len(words))
    lie += lie >= bucket
    shown = np.where(rng.random(len(words)) < mechanism.response.p, bucket, lie)
    return np.bincount(drawn * mechanism.hash_buckets + shown, minlength=mechanism.width)


def fixed_counts(
    held: Counts, buckets: NDArray[np.uint8], mechanism: FunctionPool, rng: np.random.Generator
) -> Counts:
    """Reports as `hashed_counts` has them, drawn in time that does not grow with their number.

    Each report is kept with probability p - q, whatever its function is, and otherwise any of g buckets.
    `buckets`, uint8 (n, C), has the bucket of each text under each function.
    """
    functions, size = mechanism.hash_functions, mechanism.hash_buckets
    kept = rng.binomial(held, mechanism.response.contrast)
    counts = spread_evenly(int((held - kept).sum()), mechanism.width, rng)
    starts = np.arange(functions) * size
    for times, of_text in zip(kept.tolist(), buckets, strict=True):
        counts[starts + of_text] += spread_evenly(times, functions, rng)
    return counts


def spread_evenly(times: int, places: int, rng: np.random.Generator) -> Counts:
    """Draw one of the places as often, int64 (places,): a multinomial, drawn singly where that is faster."""
    if times < SINGLY * places:
        return np.bincount(rng.integers(places, size=times, dtype=np.int32), minlength=places)
    return rng.multinomial(times, np.full(places, 1 / places)).astype(np.int64)


def buckets_of(words: NDArray[np.uint64], functions: HashFunctions) -> NDArray[np.uint8]:
    """Return the bucket of each word under each function, uint8 array (n, C)."""
    by_symbol = np.ascontiguousarray(functions.block.table.T)
    found, mixed = [], np.empty(len(words), np.uint64)
    for block in range(len(functions.multipliers)):
        found.append(by_symbol[functions.symbols(words, block, mixed)])
    return np.concatenate(found, axis=1)


def bit_counts(
    held: Counts, texts: list[str], mechanism: Rappor, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Reports that show each bit, int64 (cohorts, bits), and reports per cohort, int64 (cohorts,)."""
    clients = rng.multinomial(held, np.full(mechanism.cohorts, 1 / mechanism.cohorts))
    sizes = clients.sum(axis=0)
    design = bloom_design(texts, mechanism).toarray().reshape(mechanism.cohorts, mechanism.bits, -1)
    ones = np.einsum("cbv,vc->cb", design, clients).astype(np.int64)
    shown = rng.binomial(ones, mechanism.q_star) + rng.binomial(sizes[:, None] - ones, mechanism.p_star)
    return shown, sizes


def bloom_mechanism(cohorts: int) -> Rappor:
    """128 bits and 2 hashes, f .25, p .35, q .65."""
    return Rappor.from_probabilities(128, 2, cohorts, 0.25, 0.35, 0.65)


def covering_texts(candidate: str, mechanism: Rappor) -> list[str]:
    """Return texts that set more than half of a candidate's bits together, each at least two of them."""
    names = [f"{candidate}-like-{i}" for i in range(5000)]
    filters = bloom_design([candidate, *names], mechanism).toarray().astype(np.bool_).T
    missing, chosen = filters[0], []
    for name, bits in zip(names, filters[1:], strict=True):
        if 2 * missing.sum() < filters[0].sum():
            break
        if (bits & missing).sum() >= 2:
            chosen.append(name)
            missing = missing & ~bits
    return chosen
