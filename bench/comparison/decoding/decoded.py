"""Quality of a RAPPOR decoding where the truth is known: held candidates and decoys."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Decoding:
    """Result of decoding n candidates.

    Parameters
    ----------
    shares : float64 array (n,), >= 0, estimated shares of all reports.
    reported : bool array (n,), candidates reported as present.
    """

    shares: FloatArray
    reported: NDArray[np.bool_]


class Scores(NamedTuple):
    """Scores of one window.

    Parameters
    ----------
    variation : total variation distance to the truth.
    held_reported, decoys_reported : candidates reported as present: truly present ones, and absent ones.
    held_above_zero, decoys_above_zero : candidates with a share above 0: truly present ones, and absent ones.
    """

    variation: float
    held_reported: float
    decoys_reported: float
    held_above_zero: float
    decoys_above_zero: float


def scores(decoding: Decoding, truth: FloatArray) -> Scores:
    """Compare a decoding with the truth.

    Parameters
    ----------
    decoding : of n candidates.
    truth : float64 array (n,), true shares, summing to 1; 0 for a decoy.
    """
    held, above = truth > 0, decoding.shares > 0
    return Scores(
        total_variation(decoding.shares, truth),
        held_reported=int((decoding.reported & held).sum()),
        decoys_reported=int((decoding.reported & ~held).sum()),
        held_above_zero=int((above & held).sum()),
        decoys_above_zero=int((above & ~held).sum()),
    )


def total_variation(shares: FloatArray, truth: FloatArray) -> float:
    """Half the L1 distance; a sum above 1 is scaled down to 1, and mass missing to 1 counts as another value.

    Parameters
    ----------
    shares : float64 array (n,), >= 0.
    truth : float64 array (n,), summing to 1.
    """
    scaled = shares / max(1.0, float(shares.sum()))
    return float(np.abs(scaled - truth).sum() + 1 - scaled.sum()) / 2


def held_above(shares: FloatArray, truth: FloatArray, decoys: int) -> int:
    """Held candidates above the lowest threshold that at most this many decoys exceed.

    The threshold requires knowing the truth, so it flatters all decoders, but equally.

    Parameters
    ----------
    shares : float64 array (n,), >= 0.
    truth : float64 array (n,), 0 for a decoy.
    decoys : how many may pass, >= 0.
    """
    falling = np.sort(shares[truth == 0])[::-1]
    threshold = float(falling[decoys]) if decoys < len(falling) else 0.0
    return int((shares[truth > 0] > max(threshold, 0.0)).sum())
