"""Audit of RAPPOR of any width, by random rows of true bits: every bit, and bits two at a time.

A row is a mixture over all other bits, which gives bounds as valid as those of rows that differ in the
audited bits alone: the ratio of two mixtures is at most that of the likeliest two.
"""

import math

import numpy as np
from audit import OUTPUTS, Bounds, joint_bound, single_bounds
from sources import RepeatableWords

TRUTH_SEED = 1001
BATCH_BYTES = 2**17
BATCH_ROWS = 2**13
JOINT_BATCH_ROWS = 2**11
#: Two hash functions: two values differ in up to four bits, so every four bits in a row are audited together.
HASHES = 2
FIRST = np.uint64(0x1111_1111_1111_1111)
SAMPLES = 2**15


def group_bounds(randomize, bits, error, outputs=OUTPUTS):
    """Bounds from each four bits in a row, whose truth is 1100 or 0011: all show the truth, or all the other.

    Parameters
    ----------
    randomize : true rows, uint8 (n, bits // 8), to reports of the same shape.
    error : that any of the bounds is above the epsilon of a right randomizer.
    outputs : reports of each truth of each group.
    """
    words, size = RepeatableWords(TRUTH_SEED), min(BATCH_ROWS, BATCH_BYTES * 8 // bits // 16 * 16)
    batches = -(-2 * outputs // size)
    counts = np.zeros(bits, np.int64)
    for _ in range(batches):
        first = words.words64(size * bits // 128) & FIRST
        # 0001 to 0011, 0000 to 1100; then the same rows with each group the other way.
        half = first | first << 1 | (first ^ FIRST) << 2 | (first ^ FIRST) << 3
        rows = np.concatenate([half, ~half])
        reports = np.ascontiguousarray(randomize(rows.view(np.uint8).reshape(size, bits // 8)))
        marks = _group_marks(rows, reports.reshape(-1).view(np.uint64)).view(np.uint8).reshape(size, -1)
        counts += np.add.reduce(np.unpackbits(marks, axis=1, bitorder="little"), dtype=np.uint16)
    hits = counts.reshape(-1, 2, 2)
    rest = batches * size // 2 - hits.sum(axis=2, keepdims=True)
    hits = np.concatenate([hits, rest], axis=2)
    shown = single_bounds(hits, error / (2 * hits.size))
    return Bounds(float(shown.max()), float(shown.min()), hits.size)


def _group_marks(rows, reports):
    """Four marks in the place of each four bits: 0011 shown as 0011, as 1100, 1100 shown as 0011, as 1100."""
    wrong = rows ^ reports
    lie = wrong & wrong >> 1
    lie &= lie >> 2
    lie &= FIRST
    right = ~wrong
    truth = right & right >> 1
    truth &= truth >> 2
    truth &= FIRST
    return truth & rows | (lie & rows) << 1 | (lie & ~rows) << 2 | (truth & ~rows) << 3


def loss_of_one_bit(mechanism):
    """Epsilon of two rows that differ in one bit."""
    p, q = mechanism.p_star, mechanism.q_star
    return math.log(max(q / p, (1 - p) / (1 - q)))


def bit_pair_bounds(randomize, bits, within, across, error, samples=SAMPLES):
    """Bounds from pairs of bits, one of which is told while the truth of the other is known.

    Parameters
    ----------
    randomize : as of `group_bounds`.
    within : distances, modulo `bits`, of two bits of one report.
    across : distances of two bits of a report and the next of its batch, 0 for the same place.
    error : that any of the bounds is above `loss_of_one_bit` of a right randomizer.
    samples : pairs of reports.
    """
    first, second = _pairs_of_reports(randomize, bits, samples)
    hits = [_joint_hits(first, first, distance) for distance in within]
    hits += [_joint_hits(first, second, distance) for distance in across]
    cells = np.concatenate(hits, axis=2).reshape(2, 2, 2, 2, -1)
    return Bounds(joint_bound(cells, error / (2 * cells.size)), -math.inf, cells.size)


def _pairs_of_reports(randomize, bits, samples):
    """States of every other report, and of those between them: each uint64 (4, bits, samples // 64)."""
    words = RepeatableWords(TRUTH_SEED)
    states = []
    for _ in range(2 * samples // JOINT_BATCH_ROWS):
        rows = words.words64(JOINT_BATCH_ROWS * bits // 64).view(np.uint8).reshape(-1, bits // 8)
        truth, shown = _by_bit(rows), _by_bit(randomize(rows))
        states.append([~truth & ~shown, ~truth & shown, truth & ~shown, truth & shown])
    return np.moveaxis(np.concatenate(states, axis=3), 1, 0)


def _by_bit(rows):
    """Rows, uint8 (n, bits // 8), as packed columns: uint64 (2, bits, n // 128), of even and odd rows."""
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    packed = [np.ascontiguousarray(np.packbits(bits[start::2], axis=0).T) for start in (0, 1)]
    return np.stack(packed).view(np.uint64)


def _joint_hits(first, second, distance):
    """How often bit i of the one was in each state while bit i + distance of the other was in each."""
    other = np.roll(second, -distance, axis=1)
    hits = [np.bitwise_count(one & two).sum(axis=1, dtype=np.int64) for one in first for two in other]
    return np.array(hits).reshape(4, 4, -1)
