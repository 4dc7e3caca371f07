"""The unbiased shares of a roll-up and their errors, from which periods are compared and joined."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import FIT
from deniable.estimators.frequency.estimate import ScalarEstimate
from deniable.estimators.mechanisms.mechanism import pool_of
from deniable.estimators.rollup.overlap import RollUp


class PeriodShares(NamedTuple):
    """Shares of a period. Arrays float64 (n,), fractions of all reports.

    Parameters
    ----------
    share : unconstrained estimates, which are unbiased, so they may be negative or above 1; of numbers the
        smoothed ones.
    std_error : if every report comes from another client; inf where none can be stated.
    shared_error : also valid if the same clients report in every window.
    misfit : the part of both that is alike in every window: of RAPPOR of any text from strings outside the
        candidates, of longitudinal hashing from collisions; 0 for others.
    mean : of a number, in its units; None for other mechanisms.
    fit_p_value : of the test of fit, where clients may return.
    """

    share: FloatArray
    std_error: FloatArray
    shared_error: FloatArray
    misfit: FloatArray
    mean: ScalarEstimate | None
    fit_p_value: float

    def placed(self, labels: Sequence[str], names: Sequence[str]) -> "PeriodShares":
        """Return the shares of these names: NaN with infinite errors, and misfit 0, where there is none.

        Parameters
        ----------
        labels : of the shares, at least as many.
        names : wanted, in order.
        """
        index = {label: place for place, label in enumerate(labels)}
        places = np.array([index.get(name, len(self.share)) for name in names], np.intp)

        def at_names(column: FloatArray, empty: float) -> FloatArray:
            return np.append(column, empty)[places]

        return self._replace(
            share=at_names(self.share, np.nan),
            std_error=at_names(self.std_error, np.inf),
            shared_error=at_names(self.shared_error, np.inf),
            misfit=at_names(self.misfit, 0.0),
        )


def shares_of_roll_up(collection: Collection, result: RollUp) -> PeriodShares:
    """Return the shares of a roll-up of the collection; of plain k-RR with `other` its share is the last."""
    independent, shared = result.independent, result.shared
    share = independent.frequency if independent.unbiased is None else independent.unbiased
    misfit = np.zeros(len(share))
    errors = [independent.std_error, shared.std_error]
    if shared.misfit is not None:
        errors = [np.where(shared.misfit.unreliable, np.inf, each) for each in errors]
        misfit = shared.misfit.std_error
    elif collection.mechanism.keeps_permanent and pool_of(collection.mechanism):
        misfit += independent.diagnostics["collision_error"]
    fit = shared.diagnostics.get(FIT, 1.0)
    return PeriodShares(share, errors[0], errors[1], misfit, independent.mean, fit)
