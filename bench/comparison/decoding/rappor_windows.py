"""Simulated RAPPOR windows with a known truth, in files that all decoders read."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bench.aggregator.candidates import HELD, REPORTS, window
from bench.estimators.populations import round_to_counts, zipf_shares
from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.mechanisms.rappor import Rappor

SEED = 1


@dataclass(frozen=True)
class Windows:
    """Windows of 1,000,000 reports; the first 100 candidates follow Zipf's law, the rest are decoys.

    Parameters
    ----------
    candidates : number of candidates, >= 100.
    mechanism : Rappor.
    probabilities : f, p and q that the mechanism is made of.
    folder : where the files are kept.
    """

    candidates: int
    mechanism: Rappor
    probabilities: Mapping[str, float]
    folder: Path

    @property
    def name(self) -> str:
        """Name in the results."""
        shown = ", ".join(f"{name} {value:g}" for name, value in self.probabilities.items())
        return f"{self.candidates:,} candidates, {self.mechanism.cohorts} cohorts, {shown}"

    @cached_property
    def words(self) -> list[str]:
        """The candidates."""
        return [f"word-{number}" for number in range(self.candidates)]

    @cached_property
    def truth(self) -> FloatArray:
        """Share of each candidate, float64 (candidates,), summing to 1."""
        truth = np.zeros(self.candidates)
        truth[:HELD] = round_to_counts(zipf_shares(HELD, 1.0), REPORTS) / REPORTS
        return truth

    @cached_property
    def design(self) -> str:
        """File with the bits that candidates set, as arrays of a sparse matrix by columns."""
        path = self.folder / f"design-{self._file}.npz"
        matrix = bloom_design(self.words, self.mechanism)
        np.savez(path, indices=matrix.indices, indptr=matrix.indptr, shape=np.array(matrix.shape))
        return str(path)

    def window(self, number: int) -> str:
        """File with a window's counts and the debiased shares of its bits, one per row of the design."""
        path = self.folder / f"window-{self._file}-{number}.npz"
        if not path.exists():
            ones, sizes = window(self.words[:HELD], self.mechanism, np.random.default_rng([SEED, number]))
            p_star, q_star = self.mechanism.p_star, self.mechanism.q_star
            rates = (ones / sizes[:, None] - p_star) / (q_star - p_star)
            np.savez(path, ones=ones, sizes=sizes, rates=rates.ravel())
        return str(path)

    @property
    def _file(self) -> str:
        return f"{self.candidates}-{self.mechanism.cohorts}-{self.mechanism.flip_threshold}"


def build(folder: Path, candidates: int, cohorts: int, probabilities: Mapping[str, float]) -> Windows:
    """Windows of 128 bits and 2 hashes.

    Parameters
    ----------
    folder, candidates : as of Windows.
    cohorts : number of cohorts, >= 1.
    probabilities : f, p and q.
    """
    mechanism = Rappor.from_probabilities(128, 2, cohorts, **probabilities)
    return Windows(candidates, mechanism, probabilities, folder)
