"""Lower bounds on epsilon from outputs: Clopper-Pearson intervals that hold for a whole suite at once.

If an event has probability P under input v and Q under w, then ln(P/Q) <= epsilon, or the randomizer is
broken. P is bounded from below and Q from above. Bonferroni: each interval may be wrong with its share of the
error, so all bounds hold together, whichever events are compared.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.special import betainccinv, betaincinv

#: Mean number of outputs of each input.
OUTPUTS = 2_000_000
ATTAINED = 0.9


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on epsilon.

    Parameters
    ----------
    most : of the most revealing event.
    least : of the input that is hardest to distinguish; -inf if only `most` was computed.
    events : pairs of an input and an event that were counted, each with an interval on either side.
    """

    most: float
    least: float
    events: int

    def passes(self, epsilon, attainable=True):
        """Assert that no event shows more than epsilon; if attainable, every input shows nearly as much."""
        return self.most <= epsilon and (not attainable or self.least >= ATTAINED * epsilon)


def at_least(hits, trials, error):
    """Lower end of the interval of a binomial probability, float64 of the shape of `hits`."""
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, error), 0.0)


def at_most(hits, trials, error):
    """Upper end of the interval of a binomial probability, float64 of the shape of `hits`."""
    return np.where(hits < trials, betainccinv(hits + 1, np.maximum(trials - hits, 1), error), 1.0)


def single_bounds(hits, error):
    """Bound of each input against all others by single events.

    Parameters
    ----------
    hits : int64 (groups, inputs, outcomes); outcomes are disjoint and exhaustive.
    error : of one interval.

    Returns
    -------
    float64 (groups, inputs), -inf where no event gives a bound.
    """
    trials = hits.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        low, high = np.log(at_least(hits, trials, error)), np.log(at_most(hits, trials, error))
    gaps = (low[:, :, np.newaxis] - high[:, np.newaxis]).max(axis=3)
    gaps[:, np.eye(hits.shape[1], dtype=bool)] = -np.inf
    return gaps.max(axis=2)


def joint_bound(hits, error):
    """Bound by joint events of two places: infer one place's input while the other's is known.

    Noise that two places share cancels out for an observer who knows the other's input.

    Parameters
    ----------
    hits : int64 (inputs, outcomes, inputs, outcomes, pairs), of the first place, then of the second.
    error : of one interval.
    """
    most = -np.inf
    for cells in (hits, hits.transpose(2, 3, 0, 1, 4)):
        trials = np.broadcast_to(cells.sum(axis=(1, 3), keepdims=True), cells.shape)
        for v, w in permutations(range(len(cells)), 2):
            most = max(most, _most_telling(cells[v], trials[v], cells[w], trials[w], error))
    return most


def _most_telling(hits_v, trials_v, hits_w, trials_w, error):
    """Bound by the event that looks most informative when counts are 7 standard deviations off.

    Square roots of counts deviate by about 1/2. An exact interval for each event would take 100 times longer.
    """
    low, high = np.maximum(np.sqrt(hits_v) - 3.5, 0), np.sqrt(hits_w + 1) + 3.5
    event = np.unravel_index(np.argmax((low / high) ** 2 * trials_w / np.maximum(trials_v, 1)), low.shape)
    with np.errstate(divide="ignore"):
        least = np.log(at_least(hits_v[event], trials_v[event], error))
    return float(least - np.log(at_most(hits_w[event], trials_w[event], error)))
