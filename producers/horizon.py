"""Before what a client's windows are closed, since what it reported in them may have been forgotten.

Rules:
1. A charge at a time forgets, of the clients that it charges, windows that start before `earliest`: that time
   minus window and grace.
2. The horizon of terms is the largest `earliest` of any charge, under whatever terms, since these were first
   used. It never goes back. Terms of a new fingerprint have none: nothing that was counted under them was
   forgotten. Terms of a known fingerprint begin with its horizon: their windows are the same.
3. A client is charged in windows from max(earliest, min(horizon, its newest window)) on.

Why nothing is counted anew: let P be the largest `earliest` of the charges that accepted a report of a client
since the terms were first used. The window accepted starts at P or later, and what makes it forgotten comes
with one that starts later still: P is at most the newest window. By rule 2, P is at most the horizon. So what
rule 3 lets pass starts at P or later, and was not forgotten.
"""

import numpy as np

from producers.charging import Ints, Rows

_NONE = np.iinfo(np.int64).min


def horizons(rows: Rows, earliest: int, horizon: int) -> Ints:
    """Start of the earliest window that is open to each client, int64 (m,).

    Parameters
    ----------
    rows : Rows of m clients, as they are kept.
    earliest : unix seconds, from the clock, see rule 1.
    horizon : of the present terms, unix seconds, `earliest` included.
    """
    newest = np.full(len(rows.heads), _NONE)
    if horizon > earliest:
        np.maximum.at(newest, rows.owners, rows.windows["window_start"])
    opened: Ints = np.maximum(earliest, np.minimum(horizon, newest))
    return opened
