"""scikit-learn: non-negative Lasso of debiased bits on a sparse design, with and without cross-validation."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from sklearn.linear_model import Lasso, LassoCV

LIBRARY = "scikit-learn"


def fit(count: int, window: str, design: str, alpha: float) -> Callable[[], object]:
    """Fit a window with a given penalty. The design is prepared beforehand."""
    matrix, rates = _read(window, design)

    def run() -> object:
        for _ in range(count):
            found = Lasso(alpha=alpha, positive=True, fit_intercept=False).fit(matrix, rates)
        return {"shares": found.coef_.tolist()}

    return run


def cross_validate(count: int, window: str, design: str) -> Callable[[], object]:
    """Choose the penalty by cross-validation with its defaults, five folds and 100 penalties, and fit."""
    matrix, rates = _read(window, design)

    def run() -> object:
        for _ in range(count):
            found = LassoCV(positive=True, fit_intercept=False).fit(matrix, rates)
        return {"shares": found.coef_.tolist(), "alpha": float(found.alpha_)}

    return run


def _read(window: str, design: str) -> "tuple[csc_matrix, NDArray[np.float64]]":
    with np.load(design) as kept:
        entries = (np.ones(len(kept["indices"])), kept["indices"], kept["indptr"])
        matrix = csc_matrix(entries, shape=tuple(kept["shape"]))
    with np.load(window) as kept:
        rates = kept["rates"]
    return matrix, rates


JOBS = {"Lasso": fit, "LassoCV": cross_validate}
