"""Starting point for the likelihood of Bloom RAPPOR: non-negative least squares in each cohort, averaged."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.design import one_block_per_cohort

_STEPS = 30


def first_guess(design: csc_array, truth_shares: FloatArray, cohort_sizes: NDArray[np.int64]) -> FloatArray:
    """Average over cohorts of the theta_c >= 0 that approximately solves shares = X_c theta_c.

    A cohort often has fewer bits than candidates, but few candidates fit its bits without negative
    frequencies; those that fit in most cohorts stand out in the average. All cohorts are solved at once, by
    30 accelerated projected gradient steps from 0, so candidates with the same bits get equal values.

    Parameters
    ----------
    design : csc_array (cohorts * bits, n), X.
    truth_shares : float64 array (cohorts * bits,), debiased share of reports whose true bit is 1, any reals.
    cohort_sizes : int64 array (cohorts,), reports of each cohort, the weights of the average; not all 0.

    Returns
    -------
    float64 array (n,), >= 0, scaled to a sum of at most 1.

    Source: Beck, Teboulle, SIAM J. Imaging Sciences 2 (2009), section 4 (FISTA).
    """
    cohorts = len(cohort_sizes)
    blocks = one_block_per_cohort(design, cohorts)
    transposed = blocks.T.tocsr()
    # The largest eigenvalue of X'X is at most the product of the largest row sum and column sum.
    step = 1 / max(float(blocks.sum(axis=1).max() * blocks.sum(axis=0).max()), 1.0)
    theta = ahead = np.zeros(blocks.shape[1])
    momentum = 1.0
    for _ in range(_STEPS):
        moved = np.maximum(ahead - step * (transposed @ (blocks @ ahead - truth_shares)), 0)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - theta)
        theta, momentum = moved, following
    average: FloatArray = cohort_sizes @ theta.reshape(cohorts, -1) / cohort_sizes.sum()
    return average / max(1.0, float(average.sum()))
