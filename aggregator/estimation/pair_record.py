"""The part of an estimate's record that only pairs of fields have."""

from math import isfinite

import numpy as np
import numpy.typing as npt

from deniable.aggregator.records.estimate import ConditionalShares, IndependenceTest, PairMargin, PairRecord
from deniable.estimators.collection import Collection, Field
from deniable.estimators.frequency.estimate import Estimate, Shares


def pair_record(collection: Collection, result: Estimate, shown: npt.NDArray[np.intp]) -> PairRecord | None:
    """Return margins, conditional shares and the test of independence; None if it is no pair.

    Parameters
    ----------
    collection : of the estimate.
    result : of all its values.
    shown : places of the pairs of values in the record, in its order.
    """
    if result.pair is None:
        return None
    first, second = collection.fields
    places, others = np.divmod(shown, len(second.labels))
    test = result.pair.independence
    return PairRecord(
        first=places.tolist(),
        second=others.tolist(),
        margins=[
            _margin(field, margin) for field, margin in zip((first, second), result.pair.margins, strict=True)
        ],
        given_first=_conditional(result.pair.given_first, shown),
        given_second=_conditional(result.pair.given_second, shown),
        independence=IndependenceTest(test.statistic, test.degrees, test.p_value, test.is_rejected),
    )


def _margin(field: Field, margin: Estimate) -> PairMargin:
    return PairMargin(
        name=field.name,
        values=list(field.labels),
        frequency=margin.frequency.tolist(),
        std_error=margin.std_error.tolist(),
        low=margin.low.tolist(),
        high=margin.high.tolist(),
        significant=margin.significant.tolist(),
    )


def _conditional(shares: Shares, shown: npt.NDArray[np.intp]) -> ConditionalShares:
    return ConditionalShares(
        frequency=shares.frequency[shown].tolist(),
        std_error=[error if isfinite(error) else None for error in shares.std_error[shown].tolist()],
        low=shares.low[shown].tolist(),
        high=shares.high[shown].tolist(),
    )
