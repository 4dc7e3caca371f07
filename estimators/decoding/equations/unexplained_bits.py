"""Bits that strings outside the candidates raise, found by a fit that gives up on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array
from scipy.special import ndtr

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.design import weighted_gram
from deniable.estimators.decoding.equations.least_squares import BitEquations, Solution, solve
from deniable.estimators.decoding.equations.misfit import ratio_limit
from deniable.estimators.frequency.significance import benjamini_hochberg, normal_tail

#: False-discovery rate among unexplained bits.
FALSE_BITS = 0.01
#: With fewer degrees of freedom, residuals say too little about which bits are raised.
LEAST_FREEDOM = 32
# Most steps of the robust fit, the change of weights at which it ends, and rounds of leaving bits out.
_STEPS, _SETTLED, _ROUNDS = 60, 0.01, 2
# The knee: a residual of this many robust standard deviations has a quarter of the weight.
_KNEE = 3.0
# Ridge of the robust fit, of the diagonal and of its mean: columns without rows have no other curvature.
_RIDGE, _LEAST_RIDGE = 1e-9, 1e-12
_LEAST_SPREAD = 1e-2  # lower bound on 1 - leverage
_SEEN = 4.0  # standard deviations of a bit from which on a raise is seen
# Median of the absolute value of a standard normal.
_MEDIAN = 0.6745
# Unexplained bits are at most this share of the degrees of freedom.
_MOST_UNEXPLAINED = 0.75


@dataclass(frozen=True, eq=False)
class UnexplainedBits:
    """Bits that unlisted strings raise, and how well a fit to all bits fits.

    Parameters
    ----------
    left_out : bool array (rows,), True for an unexplained bit.
    chi_square_ratio : weighted squared residuals of all bits per degree of freedom: expected 1, more if
        strings outside the candidates do not spread evenly; 1 without any degree of freedom.
    limit : chi-square ratio that a complete list exceeds with probability 1e-6.
    """

    left_out: NDArray[np.bool_]
    chi_square_ratio: float
    limit: float

    @property
    def is_incomplete(self) -> bool:
        """Whether the bits show that the list lacks strings."""
        return self.chi_square_ratio > self.limit or bool(self.left_out.any())


def find_unexplained(design: csc_array, rows: BitEquations) -> UnexplainedBits:
    """Find the bits that are set more often than the columns can explain.

    A frequent string that is no candidate raises the same one or two bits of each cohort in every window.
    Least squares would spread this over the candidates that share the bits. Two steps find the bits:

    1. A robust fit. In each step a bit's weight falls the further it lies above the fit, in units of a spread
       taken from the bits below the fit: unlisted strings can only raise bits. With little noise the spread
       falls for tens of steps, until the raised bits stand alone: in a roll-up of billions of reports these
       are all found, and estimates are as exact as with a complete list.
    2. Rounds of a plain fit to the other bits. A bit is unexplained if its residual is too large for the
       spread of these, by Benjamini-Hochberg at 1 % over all bits: with a complete list, some bit is
       called unexplained in at most 1 % of windows.

    Strings too rare to stand out in single bits are left to `misfit`. A list whose residuals are as small as
    noise takes only one plain fit.

    Parameters
    ----------
    design : csc_array (rows, n), X.
    rows : BitEquations.

    Returns
    -------
    UnexplainedBits; none with fewer than 32 degrees of freedom.

    Source: Gannaz, Statistics and Computing 17 (2007), and She, Owen, J. Am. Stat. Assoc. 106 (2011), for
    outliers as a sparse shift, and weights that fall to 0; Geman, McClure (1987) for the form of the weights.
    """
    left_out = np.zeros(len(rows.weight), bool)
    solution = solve(design, rows)
    raised = _raised(design, rows, left_out, solution)
    ratio, limit = solution.chi_square_ratio, ratio_limit(solution.freedom)
    if solution.freedom < LEAST_FREEDOM or (ratio <= limit and not raised.any()):
        return UnexplainedBits(left_out, ratio, limit)
    most = int(_MOST_UNEXPLAINED * solution.freedom)
    left_out = _largest(_robust_distance(design, rows, solution), most)
    for _ in range(_ROUNDS):
        kept = rows.without(left_out)
        raised = _raised(design, rows, left_out, solve(design, kept), most)
        if (raised == left_out).all():
            break
        left_out = raised
    return UnexplainedBits(left_out, ratio, limit)


def hidden_deviation(
    rows: BitEquations, left_out: NDArray[np.bool_], residual: FloatArray, influence: FloatArray
) -> FloatArray:
    """Return the root mean square shift of each column by bits that unlisted strings raise unseen.

    A bit of a frequent candidate has more noise, since clients choose cohorts at random, so it may hide a
    raise that is plain in other bits. A string adds its share to each of its bits: raises are taken for the
    median residual of the bits left out, and for as frequent among all bits as among those that would show
    them. A raise is seen from 4 standard deviations of its bit on.

    Parameters
    ----------
    rows : BitEquations; weight 0 for bits left out.
    left_out : bool array (rows,), True for bits that unlisted strings raise plainly.
    residual : float64 array (rows,), observed - X theta.
    influence : float64 array (rows, n): times the row's weight, what an observed share adds to a column.

    Returns
    -------
    float64 array (n,), fractions; 0 if no bit is left out.
    """
    if not left_out.any():
        return np.zeros(influence.shape[1])
    raised = max(0.0, float(np.median(residual[left_out])))
    unseen = np.where(rows.weight > 0, ndtr(_SEEN - raised * np.sqrt(rows.weight / rows.excess)), 0.0)
    shown = float((1 - unseen).sum())
    density = min(1.0, int(left_out.sum()) / max(shown, 1.0))
    squares = rows.weight**2 * density * unseen * raised**2
    deviation: FloatArray = np.sqrt(squares @ influence**2)
    return deviation


def _robust_distance(design: csc_array, rows: BitEquations, solution: Solution) -> FloatArray:
    """Return how far each row lies above the robust fit, in knees of the weight, float64 (rows,)."""
    root = np.sqrt(rows.weight / rows.excess)
    residual, trust = solution.residual, np.ones(len(root))
    columns = design.shape[1]
    for _ in range(_STEPS):
        distance = root * residual
        below = -distance[distance < 0]
        freedom = max(1 - columns / max(float(trust.sum()), columns + 1.0), 0.1)
        spread = max(1.0, float(np.median(below)) / (_MEDIAN * np.sqrt(freedom)))
        above: FloatArray = np.maximum(distance, 0) / (_KNEE * spread)
        before, trust = trust, 1 / (1 + above**2) ** 2
        if np.abs(trust - before).max() < _SETTLED:
            break
        weight = rows.weight * trust
        hessian = weighted_gram(design, weight)
        curvature = np.diag(hessian)
        hessian[np.diag_indices(columns)] += _RIDGE * curvature + _LEAST_RIDGE * curvature.mean()
        theta = cho_solve(cho_factor(hessian, overwrite_a=True), design.T @ (weight * rows.observed))
        residual = rows.observed - design @ theta
    return above


def _largest(above: FloatArray, most: int) -> NDArray[np.bool_]:
    """Return True for rows beyond the knee, but at most `most` of them."""
    if (above > 1).sum() <= most:
        beyond: NDArray[np.bool_] = above > 1
        return beyond
    chosen = np.zeros(len(above), bool)
    chosen[np.argsort(-above, kind="stable")[:most]] = True
    return chosen


def _raised(
    design: csc_array,
    rows: BitEquations,
    left_out: NDArray[np.bool_],
    solution: Solution,
    most: int | None = None,
) -> NDArray[np.bool_]:
    """Return True for rows above the fit of the rows not left out, by a test at 1 % over all rows.

    The variance of a residual is that of the row times 1 - leverage, or 1 + leverage where it was left out.
    """
    leverage = rows.weight * design.multiply(design @ solution.inverse).sum(axis=1)
    share = np.where(left_out, 1 + leverage, np.maximum(1 - leverage, _LEAST_SPREAD))
    spread = np.sqrt(share * rows.excess * max(1.0, solution.chi_square_ratio))
    distance = np.sqrt(rows.weight) * solution.residual / spread
    found = benjamini_hochberg(normal_tail(distance), FALSE_BITS) & (rows.weight > 0)
    if most is not None and found.sum() > most:
        found = _largest(np.where(found, 2 + np.maximum(distance, 0), 0.0), most)
    return found
