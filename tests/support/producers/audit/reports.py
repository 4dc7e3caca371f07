"""Audit of whole reports, singly and in pairs: k-RR, short RAPPOR, and many reports together.

Every batch mixes all inputs at random. A bound from such a mixture also holds for epsilon, because the ratio
of two mixtures is at most the largest ratio of their components.
"""

import numpy as np

from tests.support.producers.audit.bounds import OUTPUTS, Bounds, joint_bound, single_bounds
from tests.support.producers.sources import RepeatableWords

BATCH = 2**13
#: Distances of two reports of a batch that are counted together; at each, every report is in one pair.
DISTANCES = [2**power for power in range(13)]
#: Pairs of reports are counted too for up to this many states of input and outcome.
JOINT_STATES = 100
TRUTH_SEED = 1000


def report_bounds(randomize, inputs, outcomes, error, outputs=OUTPUTS):
    """Bounds from outcomes of single reports and of pairs of reports.

    Pairs are reports of a batch at DISTANCES, from neighbours to the same place in its two halves, and the
    same place in two batches.

    Parameters
    ----------
    randomize : inputs of a batch, int64 (n,) in [0, inputs), to outcomes, integers (n,) in [0, outcomes).
    error : probability that a bound exceeds the epsilon of a correct randomizer.
    outputs : reports of each input, on average.
    """
    states = inputs * outcomes
    single = np.zeros(states, np.int64)
    joint = np.zeros((1 + len(DISTANCES), states**2 if states <= JOINT_STATES else 0), np.int64)
    last = None
    for batch in _batches(randomize, inputs, outcomes, outputs):
        single += np.bincount(batch, minlength=states)
        if joint.size:
            if last is not None:
                _add_pairs(joint[0], last, batch)
            for hits, distance in zip(joint[1:], DISTANCES, strict=True):
                _add_pairs(hits, *np.swapaxes(batch.reshape(-1, 2, distance), 0, 1))
            last = batch if last is None else None
    events = single.size + joint.size
    each = error / (2 * events)
    shown = single_bounds(single.reshape(1, inputs, outcomes), each)
    pairs = joint.reshape(-1, inputs, outcomes, inputs, outcomes) if joint.size else joint[:0]
    most = max([shown.max(), *(joint_bound(hits[..., np.newaxis], each) for hits in pairs)])
    return Bounds(float(most), float(shown.min()), events)


def _batches(randomize, inputs, outcomes, outputs):
    """Input and outcome of each report as one number, int64 (BATCH,), batch by batch."""
    words = RepeatableWords(TRUTH_SEED)
    for _ in range(-(-inputs * outputs // BATCH)):
        truth = (words.words64(BATCH // 4).view(np.uint16) % np.uint16(inputs)).astype(np.int64)
        yield truth * outcomes + randomize(truth)


def _add_pairs(hits, first, second):
    states = round(len(hits) ** 0.5)
    hits += np.bincount((first * states + second).ravel(), minlength=len(hits))
