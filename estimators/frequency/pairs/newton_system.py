"""Newton's equations of the joint table's likelihood, solved without a matrix of pairs by pairs."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.matrix.pair import PairKRR


@dataclass(frozen=True, eq=False)
class NewtonSystem:
    """The equations (A D A + Q) x = y, where A is the channel of a pair, and D and Q are diagonal.

    A is c I + U M U', where U' x are the sums of rows and columns of a table x, c = c1 c2 is the product of
    both contrasts, and M has the blocks b I + d 1 1' (rows; b = c1 q2, d = q1 q2) and a I (columns;
    a = q1 c2). With E = c² D + Q, s = M U' D A x and p = M U' x, the solution is

        x = (y - U s - c D U p) / E,

    and s and p solve the symmetric equations

        U' (1 / E) U s + (M^-1 + U' (c D / E) U) p = U' (y / E),
        (M^-1 + U' (c D / E) U) s - U' (D Q / E) U p = U' (c D y / E).

    For a table W of weights, U' W U has its row sums and column sums on the diagonal, and W and W' beside
    them. So no equation has two columns of the table, and s and p of each are eliminated by themselves: 2 K1
    equations are left, K1 <= K2. In all O(K1² K2) operations.

    Parameters
    ----------
    over_e, curved : 1 / E and c D / E, float64 arrays (K1, K2).
    inverse : float64 array (3, K2), inverses of the 2 x 2 blocks of each column: of s with s, s with p and p
        with p.
    eliminated : float64 array (2 K1, 2 K2), what rows have of columns, times that inverse.
    schur : float64 array (2 K1, 2 K1), the equations that are left.
    """

    over_e: FloatArray
    curved: FloatArray
    inverse: FloatArray
    eliminated: FloatArray
    schur: FloatArray

    @classmethod
    def of(cls, curvature: FloatArray, barrier: FloatArray, mechanism: PairKRR) -> Self:
        """Eliminate the columns.

        Parameters
        ----------
        curvature, barrier : D >= 0 and Q > 0, float64 arrays (K1, K2).
        mechanism : PairKRR of that shape.
        """
        first, second = mechanism.fields
        own = first.contrast * second.contrast
        over_e = 1 / (own**2 * curvature + barrier)
        curved = own * curvature * over_e
        bent = -curvature * barrier * over_e
        blocks = np.stack([over_e, curved, bent])
        of_s, of_both, of_p = blocks.sum(axis=1)
        of_both += 1 / (first.q * second.contrast)
        inverse = np.stack([of_p, -of_both, of_s]) / (of_s * of_p - of_both**2)
        coupling = np.block([[over_e, curved], [curved, bent]])
        eliminated = _of_columns(coupling, inverse)
        schur = _of_rows(blocks.sum(axis=2), mechanism) - eliminated @ coupling.T
        return cls(over_e, curved, inverse, eliminated, schur)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return x, float64 (K1, K2), for the right side y of the same shape."""
        k1, k2 = right.shape
        plain, curved = self.over_e * right, self.curved * right
        rows = np.concatenate([plain.sum(axis=1), curved.sum(axis=1)])
        columns = np.concatenate([plain.sum(axis=0), curved.sum(axis=0)])
        rows = np.linalg.solve(self.schur, rows - self.eliminated @ columns)
        columns = _of_columns(columns[None], self.inverse)[0] - rows @ self.eliminated
        s, p = (rows[at : at + k1, None] + columns[to : to + k2] for at, to in ((0, 0), (k1, k2)))
        found: FloatArray = self.over_e * (right - s) - self.curved * p
        return found


def _of_rows(sums: FloatArray, mechanism: PairKRR) -> FloatArray:
    """Equations of the rows among themselves, from the row sums (3, K1) of 1 / E, c D / E and -D Q / E."""
    first, second = mechanism.fields
    own, all_rows = first.contrast * second.q, first.q * second.q
    of_s, of_both, of_p = (np.diag(each) for each in sums)
    of_both = of_both + np.eye(first.k) / own - all_rows / (own * (own + first.k * all_rows))
    return np.block([[of_s, of_both], [of_both, of_p]])


def _of_columns(left: FloatArray, inverse: FloatArray) -> FloatArray:
    """Multiply a matrix (n, 2 K2) with the inverse of the columns' blocks."""
    s, p = np.split(left, 2, axis=1)
    of_s, of_both, of_p = inverse
    return np.concatenate([s * of_s + p * of_both, s * of_both + p * of_p], axis=1)
