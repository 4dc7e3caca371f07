"""The array types that signatures name."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
