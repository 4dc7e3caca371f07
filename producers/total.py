"""A sum that threads and signal handlers add to."""

import numpy as np


class Total:
    """A sum, at first 0. Nothing that is added is lost, and nobody waits (see `producers.waiting`)."""

    def __init__(self) -> None:
        self._sum = np.zeros(1, np.int64)

    def add(self, number: int) -> None:
        """Add an integer; the sum must stay within int64."""
        # `+=` of an attribute is several steps of the interpreter. This is one: NumPy keeps the interpreter's
        # lock for so short an array.
        np.add(self._sum, number, out=self._sum)

    @property
    def value(self) -> int:
        """The sum."""
        return int(self._sum[0])
