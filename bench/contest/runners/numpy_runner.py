"""numpy: the order of counts."""

from collections.abc import Callable

import numpy as np

LIBRARY = "numpy"


def argsort(count: int, path: str) -> Callable[[], object]:
    """Sort the indices by their counts, as numpy does by default."""
    counts = np.load(path)

    def run() -> None:
        for _ in range(count):
            np.argsort(counts)

    return run


JOBS = {"argsort": argsort}
