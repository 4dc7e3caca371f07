"""Array types used in signatures, and arrays as JSON has them."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def finite_or_none(errors: FloatArray) -> list[float | None]:
    """Return errors as a list, in which None stands for one that is not known."""
    return [each if np.isfinite(each) else None for each in errors.tolist()]
