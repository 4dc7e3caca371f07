"""Audit of RAPPOR of any width, by random rows of true bits: single bits and pairs of bits.

A row is a mixture over all other bits. Its bounds are as valid as those of rows that differ only in the
audited bits, because the ratio of two mixtures is at most the largest ratio of their components.
"""

import math

import numpy as np

from tests.support.producers.audit.bounds import OUTPUTS, Bounds, joint_bound, single_bounds
from tests.support.producers.sources import RepeatableWords

TRUTH_SEED = 1001
BATCH_BYTES = 2**17
BATCH_ROWS = 2**13
#: Batches whose bits are paired: one for each binary digit of a word.
JOINT_BATCHES = 64
CHUNK_ROWS = 64
#: Two hash functions: two values differ in up to four bits, so every four bits in a row are audited together.
HASHES = 2
FIRST = np.uint64(0x1111_1111_1111_1111)
SAMPLES = 2**15


def group_bounds(randomize, bits, error, outputs=OUTPUTS):
    """Bounds from each group of four bits, whose truth is 1100 or 0011 and which shows either.

    Parameters
    ----------
    randomize : true rows, uint8 (n, bits // 8), to reports of the same shape.
    error : probability that a bound exceeds the epsilon of a correct randomizer.
    outputs : reports of each truth of each group.
    """
    words, size = RepeatableWords(TRUTH_SEED), min(BATCH_ROWS, BATCH_BYTES * 8 // bits // 16 * 16)
    batches = -(-2 * outputs // size)
    counts = np.zeros(bits, np.int64)
    for _ in range(batches):
        first = words.words64(size * bits // 128) & FIRST
        # 0001 to 0011, 0000 to 1100; then the same rows with each group inverted.
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
    """Four marks for each four bits: 0011 shown as 0011, as 1100, 1100 shown as 0011, as 1100."""
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
    """Bounds from pairs of bits: infer one while the truth of the other is known.

    Parameters
    ----------
    randomize : true rows, uint8 (n, bits // 8), to reports of the same shape.
    within : distances, modulo `bits`, of two bits of one report.
    across : by distance of two reports of a batch, a power of two, distances of their bits, 0 for the same.
    error : probability that a bound exceeds `loss_of_one_bit` of a correct randomizer.
    samples : pairs of reports, a multiple of 32.
    """
    states = _states_of_bits(randomize, bits, 2 * samples // JOINT_BATCHES)
    first, _ = _pairs_of_reports(states, 1)
    hits = [_joint_hits(first, first, distance) for distance in within]
    for apart, distances in across.items():
        first, second = _pairs_of_reports(states, apart)
        hits += [_joint_hits(first, second, distance) for distance in distances]
    cells = np.concatenate(hits, axis=2).reshape(2, 2, 2, 2, -1)
    return Bounds(joint_bound(cells, error / (2 * cells.size)), -math.inf, cells.size)


def _states_of_bits(randomize, bits, size):
    """State of each bit, false or true and shown as either, in batches of `size`: uint64 (4, bits, size)."""
    words = RepeatableWords(TRUTH_SEED)
    rows = words.words64(JOINT_BATCHES * size * bits // 64).view(np.uint8).reshape(JOINT_BATCHES, size, -1)
    truth, shown = _by_bit(rows), _by_bit(np.stack([randomize(batch) for batch in rows]))
    return np.stack([~truth & ~shown, ~truth & shown, truth & ~shown, truth & shown])


def _by_bit(batches):
    """Rows, uint8 (JOINT_BATCHES, n, bits // 8), as columns: uint64 (bits, n), each batch a binary digit."""
    columns = np.empty((8 * batches.shape[2], batches.shape[1], 8), np.uint8)
    for start in range(0, batches.shape[1], CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        bits = np.unpackbits(batches[:, part], axis=2, bitorder="little")
        columns[:, part] = np.packbits(bits, axis=0).T
    return columns.view(np.uint64)[:, :, 0]


def _pairs_of_reports(states, apart):
    """States of reports and of those `apart` places later, each used once: uint64 (4, bits, n // 2) each."""
    pairs = states.reshape(*states.shape[:2], -1, 2, apart)
    return [pairs[:, :, :, each].reshape(*states.shape[:2], -1) for each in (0, 1)]


def _joint_hits(first, second, distance):
    """Joint counts of the states of bit i of one report and bit i + distance of the other."""
    other = np.roll(second, -distance, axis=1)
    hits = [np.bitwise_count(one & two).sum(axis=1, dtype=np.int64) for one in first for two in other]
    return np.array(hits).reshape(4, 4, -1)
