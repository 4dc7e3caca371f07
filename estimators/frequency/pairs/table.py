"""The channel of a pair of fields, its inverse, and the inverse's exact errors, all O(K1 K2)."""

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR


def reported(table: FloatArray, mechanism: PairKRR) -> FloatArray:
    """Return the probability of every reported pair: A table B', A and B the symmetric matrices of the k-RRs.

    Parameters
    ----------
    table : float64 array (K1, K2), share of each true pair. Since A and B are symmetric, this is the
        transposed channel too.
    mechanism : PairKRR.

    Returns
    -------
    float64 array (K1, K2).
    """
    first, second = mechanism.fields
    rows: FloatArray = first.contrast * table + first.q * table.sum(axis=0)
    rates: FloatArray = second.contrast * rows + second.q * rows.sum(axis=1, keepdims=True)
    return rates


def inverted(shares: FloatArray, mechanism: PairKRR) -> FloatArray:
    """Return the unbiased estimate of every true pair's share: the inverse of `reported`.

    Entries may be negative; they sum to 1, and rows and columns to what linear inversion of one field alone
    gives.

    Parameters
    ----------
    shares : float64 array (K1, K2), of reported pairs, summing to 1.
    mechanism : PairKRR.

    Returns
    -------
    float64 array (K1, K2).
    """
    first, second = mechanism.fields
    rows: FloatArray = (shares - first.q * shares.sum(axis=0)) / first.contrast
    table: FloatArray = (rows - second.q * rows.sum(axis=1, keepdims=True)) / second.contrast
    return table


def std_error(table: FloatArray, reports: int, mechanism: PairKRR) -> FloatArray:
    """Return the standard error of every entry of `inverted`, for fixed true pairs, over the noise alone.

    A report adds u(i) v(j) to entry (i, j), where u(i) = (1 if i is reported, else 0) - q over p - q, and v
    alike. The two are independent given the true pair (a, b): E u(i) is 1 if i = a, else 0, and E u(i)^2 is h
    if i = a, else m, see `_squares`. So the variance of a report is h h' - 1 for the pair itself, h m' and
    m h' for pairs that share one of its values, and m m' for all others.

    Parameters
    ----------
    table : float64 array (K1, K2), shares of true pairs, estimated or known.
    reports : N, >= 1.
    mechanism : PairKRR.

    Returns
    -------
    float64 array (K1, K2), fractions of all reports, > 0.
    """
    inside = np.clip(table, 0, 1)
    rows = np.clip(table.sum(axis=1, keepdims=True), inside, 1)
    columns = np.clip(table.sum(axis=0, keepdims=True), inside, 1)
    error: FloatArray = np.sqrt(_variance(inside, rows, columns, mechanism) / reports)
    return error


def std_error_without(table: FloatArray, reports: int, mechanism: PairKRR) -> FloatArray:
    """Return the standard error of every entry of `inverted` if nobody has the pair, as `std_error`.

    Its row and its column keep their sums.
    """
    rows, columns = (np.clip(table.sum(axis=axis, keepdims=True), 0, 1) for axis in (1, 0))
    error: FloatArray = np.sqrt(_variance(np.zeros(table.shape), rows, columns, mechanism) / reports)
    return error


def expected_std_error(frequency: float, reports: int, mechanism: PairKRR) -> float:
    """Return the standard error of a pair of this share, if all other reports spread evenly over the values.

    Parameters
    ----------
    frequency : share of the pair, in [0, 1].
    reports : N, >= 1.
    mechanism : PairKRR.

    Returns
    -------
    Fraction of all reports, > 0.
    """
    inside = np.array(frequency)
    rows, columns = (inside + (1 - inside) / k for k in mechanism.shape)
    return float(np.sqrt(_variance(inside, rows, columns, mechanism) / reports))


def variance_within_rows(table: FloatArray, ratio: FloatArray, mechanism: PairKRR) -> FloatArray:
    """Return N times the variance of x(i, j) - r(i, j) x(i), x the inverted table, x(i) the sum of its row.

    A report adds u(i) (v(j) - r). E (v(j) - r)^2 is h' - 2 r + r^2 if j = b, else m' + r^2, and E v(j) - r is
    1 - r or -r.

    Parameters
    ----------
    table : float64 array (K1, K2), shares of true pairs, >= 0, summing to 1.
    ratio : float64 array (K1, K2), r, in [0, 1].
    mechanism : PairKRR.

    Returns
    -------
    float64 array (K1, K2), > 0.
    """
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    (hit, miss), (other_hit, other_miss) = map(_squares, mechanism.fields)
    matches, others = other_hit - 2 * ratio + ratio**2, other_miss + ratio**2
    squares: FloatArray = hit * (table * matches + (rows - table) * others)
    squares += miss * ((columns - table) * matches + (1 - rows - columns + table) * others)
    means: FloatArray = table * (1 - ratio) ** 2 + (rows - table) * ratio**2
    return squares - means


def _variance(inside: FloatArray, rows: FloatArray, columns: FloatArray, mechanism: PairKRR) -> FloatArray:
    """Variance of one report, from the shares of the pair, of its first value and of its second one."""
    (hit, miss), (other_hit, other_miss) = map(_squares, mechanism.fields)
    rest = np.clip(1 - rows - columns + inside, 0, 1)
    variance: FloatArray = inside * (hit * other_hit - 1) + (rows - inside) * hit * other_miss
    return variance + (columns - inside) * miss * other_hit + rest * miss * other_miss


def _squares(field: KRR) -> tuple[float, float]:
    """Return E u(i)^2 if i is the truth, and if it is another value: 1 or 0, and the variance of u(i)."""
    square = field.contrast**2
    return 1 + field.p * (1 - field.p) / square, field.q * (1 - field.q) / square
