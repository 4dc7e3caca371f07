"""The error that strings outside the candidates cause, and candidates that it makes unreliable.

Hash functions never change, so unlisted strings shift a candidate's estimate alike in every window. Misfit is
a part of the error of its own: sampling error falls with the number of reports, misfit does not.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.special import chdtri  # of scipy.special: scipy.stats takes half a second to load

from deniable.estimators.arrays import FloatArray

#: Probability that at least one candidate is called unreliable in a window of a complete list.
FALSE_FLAG = 0.01
#: Probability that the chi-square ratio of a complete list exceeds `ratio_limit`.
FALSE_ALARM = 1e-6
#: Explained rows that a candidate of an incomplete list needs.
LEAST_ROWS = 3
# Weight of the overall chi-square ratio against that of a column's own rows, as a number of rows.
_PRIOR_ROWS = 16
#: Misfit in an error, in standard deviations of shifts over candidates, and the probability that it is that
#: for a complete list, and where all raised bits are left out: see `misfit_weight`.
FIXED_STRINGS, FALSE_WEIGHT, FALSE_WEIGHT_LEFT = 4.0, 1e-3, 0.1


def moderate(own: FloatArray, support: NDArray[np.integer], overall: float) -> FloatArray:
    """Return variance inflation factors: each column's own chi-square ratio, shrunk towards the overall one.

    A frequent unknown string raises a few bits by far, and a candidate that shares one of them looks
    frequent. The chi-square ratio of the candidate's own rows reveals it. They are few, so the overall ratio
    is averaged in with the weight of 16 rows. No factor is below the overall ratio, or below 1.

    Parameters
    ----------
    own : float64 array (n,), chi-square ratio of the rows that a column sets.
    support : integer array (n,), number of these rows.
    overall : chi-square ratio of all rows, >= 0.

    Returns
    -------
    float64 array (n,), factors on the variances.

    Source: McCullagh, Nelder, "Generalized Linear Models" (1989), section 4.5, for the inflation; Smyth,
    Stat. Appl. Genet. Mol. Biol. 3 (2004), for moderating a variance by prior degrees of freedom.
    """
    least = max(1.0, overall)
    factor: FloatArray = np.maximum(least, (_PRIOR_ROWS * least + support * own) / (_PRIOR_ROWS + support))
    return factor


def shift_deviation(variance: FloatArray, inflation: FloatArray) -> FloatArray:
    """Return m, the standard deviation over candidates of what unlisted strings shift an estimate by.

    Parameters
    ----------
    variance : float64 array (n,), variances without misfit.
    inflation : float64 array (n,), factors on them.
    """
    deviation: FloatArray = np.sqrt(variance * np.maximum(inflation - 1, 0))
    return deviation


def misfit_weight(ratio: float, freedom: int, *, is_incomplete: bool = False) -> float:
    """Return how many m of `shift_deviation` are the misfit in an error, to be added in quadrature: 1 or 4.

    A fixed candidate's shift is always the same, and of thousands some are shifted by 6 m: shifts have
    heavier tails than a normal, for a few strings cause them. With 4 m, a 95 % interval covers a shift of
    5.9 m in at least 90 % of windows, and one of 7 m in 80 %, whatever the sampling error s:

        1.96 sqrt(s² + 4² m²) >= max(5.9 m + 1.282 s, 7 m + 0.842 s)   for every s >= 0.

    Where the residuals may be noise alone, m is small beside s, and its weight is 1. Of an incomplete list
    they are less likely to be.

    Parameters
    ----------
    ratio : chi-square ratio of the rows of the fit.
    freedom : its degrees of freedom.
    is_incomplete : whether the list is known to lack strings.
    """
    false_weight = FALSE_WEIGHT_LEFT if is_incomplete else FALSE_WEIGHT
    return FIXED_STRINGS if ratio > chdtri(max(1, freedom), false_weight) / max(1, freedom) else 1.0


def mostly_unexplained(
    design: csc_array, is_explained: NDArray[np.bool_], is_incomplete: bool
) -> NDArray[np.bool_]:
    """Return True for a column whose rows leave too little to estimate it from.

    1. Most of its rows are unexplained: the others may be, too, but less visibly.
    2. The list is incomplete, and at most two of its rows are explained: one unlisted string may raise both.

    Parameters
    ----------
    design : csc_array (rows, n), columns of zeros and ones.
    is_explained : bool array (rows,), False for rows that unlisted strings raise.
    is_incomplete : whether the list is known to lack strings.

    Returns
    -------
    bool array (n,).
    """
    support = design.T @ is_explained.astype(np.float64)
    most = np.maximum(np.diff(design.indptr) / 2, LEAST_ROWS if is_incomplete else 0)
    few: NDArray[np.bool_] = support < most
    return few


def badly_fitting(
    design: csc_array, is_explained: NDArray[np.bool_], squares: FloatArray, overall: float
) -> NDArray[np.bool_]:
    """Return True for a column whose rows fit far worse than all do: misfit of its own, of unknown size.

    The sum of squares of its explained rows, over the overall ratio, exceeds what that of any column exceeds
    with probability 0.01 if the list is complete.

    Parameters
    ----------
    design : csc_array (rows, n), columns of zeros and ones.
    is_explained : bool array (rows,), False for rows that unlisted strings raise.
    squares : float64 array (rows,), squared residuals over their expected values without misfit.
    overall : chi-square ratio of all explained rows, >= 0.

    Returns
    -------
    bool array (n,).
    """
    support = design.T @ is_explained.astype(np.float64)
    own = design.T @ np.where(is_explained, squares, 0.0)
    limit = chdtri(np.maximum(support, 1), FALSE_FLAG / design.shape[1]) * max(1.0, overall)
    bad: NDArray[np.bool_] = own > limit
    return bad


def ratio_limit(freedom: int) -> float:
    """Return the chi-square ratio that a complete list exceeds with probability 1e-6.

    Parameters
    ----------
    freedom : degrees of freedom; at least 1 counts.
    """
    return float(chdtri(max(1, freedom), FALSE_ALARM)) / max(1, freedom)
