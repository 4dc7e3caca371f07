"""The clocks of a producer."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Two clocks.

    Parameters
    ----------
    steady : seconds of a clock that never goes back.
    unix : unix seconds.
    """

    steady: Callable[[], float] = time.monotonic
    unix: Callable[[], float] = time.time
