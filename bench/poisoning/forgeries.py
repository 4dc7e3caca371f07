"""Windows with forged reports, for k-RR and RAPPOR, and the expected shift of an estimate.

A forger may send any bytes. `follows` runs the randomizer on a chosen value. For k-RR, `target` always
reports that value. For RAPPOR, `crude` sets only its bits; `careful` also draws the other bits, so a report
has as many ones as an honest one; `one-cohort` does so in cohort 0 alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import report_counts
from deniable.aggregator.ledger.counting.bit_counting import count_bits
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_rows
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.randomization.randomizers import instantaneous, permanent

KRR_FORGERS = ("target", "follows")
RAPPOR_FORGERS = ("crude", "careful", "one-cohort", "follows")


class SeededWords:
    """Words for the real randomizers, reproducible."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def words64(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """uint64 array of this shape."""
        return self.rng.integers(0, 2**64, shape, np.uint64)


@dataclass(frozen=True)
class RapporWindow:
    """Counts of a window, and the number of ones in each of its reports.

    Parameters
    ----------
    counts : int64 (cohorts, bits).
    cohort_sizes : int64 (cohorts,).
    honest, forged : popcounts, int64 (reports,).
    """

    counts: NDArray[np.int64]
    cohort_sizes: NDArray[np.int64]
    honest: NDArray[np.int64]
    forged: NDArray[np.int64]


def krr_window(
    rng: np.random.Generator, truth: NDArray[np.int64], forged: int, forger: str, target: int, mechanism: KRR
) -> NDArray[np.int64]:
    """Reports per bucket, int64 (k,), of this many honest clients per value and of forgers."""
    lies = np.zeros_like(truth)
    lies[target] = forged
    if forger == "follows":
        return report_counts(rng, truth + lies, mechanism)
    return report_counts(rng, truth, mechanism) + lies


def rappor_window(
    rng: np.random.Generator,
    words: list[str],
    truth: NDArray[np.int64],
    forged: int,
    forger: str,
    target: int,
    mechanism: Rappor,
) -> RapporWindow:
    """The same for RAPPOR, with each report by the producers' own randomizers; words are the values."""
    honest_cohorts, honest = _honest(rng, words, truth, mechanism)
    lies = np.zeros_like(truth)
    lies[target] = forged
    if forger == "follows":
        cohorts, rows = _honest(rng, words, lies, mechanism)
    else:
        chosen = 1 if forger == "one-cohort" else mechanism.cohorts
        cohorts = rng.integers(0, chosen, forged)
        bits = np.unpackbits(bloom_rows([words[target]] * forged, cohorts, mechanism), axis=1)
        if forger != "crude":
            bits |= rng.random(bits.shape, np.float32) < careful_density(mechanism)
        rows = np.packbits(bits, axis=1)
    all_cohorts, all_rows = np.concatenate([honest_cohorts, cohorts]), np.concatenate([honest, rows])
    counts = [count_bits(all_rows[all_cohorts == cohort]) for cohort in range(mechanism.cohorts)]
    sizes = np.bincount(all_cohorts, minlength=mechanism.cohorts)
    return RapporWindow(np.stack(counts), sizes, popcounts(honest), popcounts(rows))


def _honest(
    rng: np.random.Generator, words: list[str], truth: NDArray[np.int64], mechanism: Rappor
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Cohorts and reports of honest clients, each in a random cohort."""
    values = [word for word, clients in zip(words, truth.tolist(), strict=True) for _ in range(clients)]
    cohorts = rng.integers(0, mechanism.cohorts, len(values))
    source = SeededWords(rng)
    rows = permanent(bloom_rows(values, cohorts, mechanism), mechanism, source)
    return cohorts, instantaneous(rows, mechanism, source)


def popcounts(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Ones in each report, int64 (n,)."""
    ones: NDArray[np.int64] = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    return ones


def careful_density(mechanism: Rappor) -> float:
    """Share d of other bits to set, so that h + (bits - h) d = h q* + (bits - h) p*, as in honest reports."""
    h, bits = mechanism.hashes, mechanism.bits
    return mechanism.p_star - h * (1 - mechanism.q_star) / (bits - h)


def krr_bias(share: float, frequency: float, forger: str, mechanism: KRR) -> float:
    """Expected error of the target's unconstrained estimate, for this share of forged reports.

    Of N reports beta N are forged, and honest ones name the target with probability q + (p - q) theta. All
    forged ones do:

        ((1 - beta) (q + (p - q) theta) + beta - q) / (p - q) = theta + beta ((1 - q) / (p - q) - theta).
    """
    forged = 1.0 if forger == "follows" else (1 - mechanism.q) / mechanism.contrast
    return share * (forged - frequency)


def rappor_bias(share: float, frequency: float, forger: str, mechanism: Rappor) -> float:
    """The same for least squares on bits, which is linear: forged reports add their own solution.

    Debiased, they have (1 - p*)/(q* - p*) in the target's bits, and (d - p*)/(q* - p*) in the others,
    a share d of which they set. The sum of the target's column times the difference, (1 - d)/(q* - p*), and
    a constant column, which the background absorbs. nan for `one-cohort`, which is not such a sum.
    """
    density = {"crude": 0.0, "careful": careful_density(mechanism), "one-cohort": np.nan}
    contrast = mechanism.q_star - mechanism.p_star
    forged = 1.0 if forger == "follows" else (1 - density[forger]) / contrast
    return share * (forged - frequency)
