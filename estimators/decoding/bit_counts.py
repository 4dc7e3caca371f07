"""Bit counts of one window, with their likelihood and their weighted linear equations in the frequencies."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.equations.least_squares import BitEquations
from deniable.estimators.decoding.likelihood import BitLikelihood
from deniable.estimators.mechanisms.traits import BitChannel

_LEAST_ONES = 1e-6  # of a candidate without bits, whose error is infinite


@dataclass(frozen=True, eq=False)
class BitCounts:
    """Reports counted by cohort and bit, and the channel of the reports.

    Parameters
    ----------
    ones : int64 array (cohorts, bits), reports that show a 1.
    cohort_sizes : int64 array (cohorts,), reports of each cohort (N_c); 0 is allowed.
    channel : BitChannel of the reports.
    overlap : factor on the variance of what clients keep between windows (permanent response and cohort),
        >= 1; 1 if no client reports twice (`rollup.client_overlap`).
    permanent_variance : variance of one report's debiased bit due to its permanent noise alone, >= 0; ignored
        if overlap is 1.

    Raises
    ------
    ValueError if shapes do not match, or counts are negative, exceed their cohort's size or hold no report.
    """

    ones: NDArray[np.int64]
    cohort_sizes: NDArray[np.int64]
    channel: BitChannel
    overlap: float = 1.0
    permanent_variance: float = 0.0

    def __post_init__(self) -> None:
        if self.cohort_sizes.shape != self.ones.shape[:1]:
            raise ValueError(
                f"cohort_sizes must have shape {self.ones.shape[:1]}, got {self.cohort_sizes.shape}"
            )
        if self.ones.min() < 0:
            raise ValueError(f"bit_counts must not be negative, got {self.ones.min()}")
        excess = int((self.ones - self.cohort_sizes[:, None]).max())
        if excess > 0:
            raise ValueError(f"bit_counts must not exceed their cohort's size, got {excess} more")
        if self.reports == 0:
            raise ValueError("cohort_sizes must hold at least 1 report, got 0")

    @property
    def reports(self) -> int:
        """Number of reports (N)."""
        return int(self.cohort_sizes.sum())

    def likelihood(self, design: csc_array, left_out: NDArray[np.bool_] | None = None) -> BitLikelihood:
        """Return the likelihood of the frequencies of n columns, without some bits.

        Parameters
        ----------
        design : csc_array (cohorts * bits, n), X.
        left_out : bool array (cohorts * bits,); None for none.
        """
        if left_out is None:
            left_out = np.zeros(self.ones.size, bool)
        ones = np.where(left_out, 0.0, self.ones.ravel())
        zeros = np.where(left_out, 0.0, (self.cohort_sizes[:, None] - self.ones).ravel())
        return BitLikelihood(design, ones, zeros, self.reports, self.channel)

    def step(self, design: csc_array) -> FloatArray:
        """Return by how many standard deviations one false one moves the estimate of an absent candidate.

        `overlap` reports of a client move it at once.

        Parameters
        ----------
        design : csc_array (cohorts * bits, n), 1 where a candidate sets the bit.

        Returns
        -------
        float64 array (n,), > 0; the step of `bounded_steps` at a variance of 1.
        """
        noise = self.channel.p_star * (1 - self.channel.p_star)
        ones: FloatArray = design.T @ (np.repeat(self.cohort_sizes, self.ones.shape[1]) * noise)
        return np.sqrt(self.overlap / np.maximum(ones, _LEAST_ONES))

    def rows(self, design: csc_array, theta: FloatArray) -> BitEquations:
        """Return one equation per bit of each cohort, weighted by its variance at frequencies theta.

        Parameters
        ----------
        design : csc_array (cohorts * bits, n), X.
        theta : float64 array (n,), frequencies, >= 0, sum <= 1.

        Source: "RAPPOR" (CCS 2014), section 4, for the debiased share of a bit; `rollup` for the overlap.
        """
        p_star, contrast = self.channel.p_star, self.channel.q_star - self.channel.p_star
        sizes = np.repeat(self.cohort_sizes, self.ones.shape[1])
        held = np.maximum(sizes, 1)
        truth = design @ theta
        rate = p_star + contrast * truth
        noise = (p_star * (1 - p_star) + truth * contrast * (1 - p_star - self.channel.q_star)) / contrast**2
        weight = sizes * contrast**2 / (rate * (1 - rate))
        repeated = (self.overlap - 1) * (self.permanent_variance + truth * (1 - truth)) / held
        return BitEquations(
            observed=(self.ones.ravel() / held - p_star) / contrast,
            weight=weight,
            noise=(noise + (self.overlap - 1) * self.permanent_variance) / held,
            excess=1 + float(np.mean(weight * repeated)),
        )
