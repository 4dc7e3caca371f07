"""Epsilon measured from outputs alone: 2 million of each input, at confidence 1 - 1e-6.

An event that has probability P under the input v and Q under w has ln(P/Q) <= epsilon. Clopper-Pearson bounds
P from below and Q from above, each at half the error that the pair may make, so that a test fails a right
randomizer with probability below 1e-6. The events are the likeliest telling ones, so that the bound comes
near to epsilon: where a randomizer is bolder than it declares, the same audit fails it. Words repeat in
every run.
"""

import math

import numpy as np
import pytest
from scipy.special import betaincinv
from sources import RepeatableWords

from estimators.bloom import bloom_positions
from estimators.collection import Collection
from estimators.krr import KRR
from estimators.longitudinal import LongitudinalKRR
from estimators.rappor import Rappor
from estimators.rappor_hot import HotRappor
from producers.memory import Memory
from producers.randomizers import instantaneous, permanent, randomize_krr
from producers.responder import responder_of
from producers.secret import Secret

OUTPUTS = 2_000_000
CHUNK = 2**13
ERROR = 1e-6
ATTAINED = 0.9
SECRET = Secret(bytes(range(32)))


def at_least(hits, outputs, error):
    return float(betaincinv(hits, outputs - hits + 1, error)) if hits else 0.0


def at_most(hits, outputs, error):
    return float(betaincinv(hits + 1, outputs - hits, 1 - error)) if hits < outputs else 1.0


def bound(hits_v, hits_w, outputs, pairs):
    """Lower bound on epsilon from how often an event came of v and of w, one of so many pairs."""
    error = ERROR / pairs / 2
    least = at_least(hits_v, outputs, error)
    return math.log(least / at_most(hits_w, outputs, error)) if least else -math.inf


def chunk_sizes(outputs):
    return [min(CHUNK, outputs - start) for start in range(0, outputs, CHUNK)]


def passes(bounds, epsilon):
    """True when no pair shows more than epsilon, and every pair nearly as much."""
    assert bounds, "nothing was audited"
    return max(bounds) <= epsilon and min(bounds) >= ATTAINED * epsilon


# k-RR: the event is the report v; the pairs are every value and the next


def krr_bounds(randomize, k, outputs=OUTPUTS):
    """Bounds of k pairs that cover every value; `randomize` makes reports of int64 values."""
    hits = np.zeros((k, k), np.int64)
    for value in range(k):
        for size in chunk_sizes(outputs):
            hits[value] += np.bincount(randomize(np.full(size, value)), minlength=k)
    return [bound(hits[v, v], hits[(v + 1) % k, v], outputs, k) for v in range(k)]


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (10, 4.0), (16, math.log(3)), (100, 1.0)])
def test_krr(k, epsilon):
    mechanism, words = KRR.from_epsilon(k, epsilon), RepeatableWords(k)
    assert passes(krr_bounds(lambda values: randomize_krr(values, mechanism, words), k), epsilon)


def test_longitudinal_krr_of_distinct_clients():
    """Each client reports once: its permanent response and one instantaneous one, through the responder."""
    mechanism, clients = LongitudinalKRR.from_epsilons(4, 2.5, 1.5), iter(range(10**9))
    responder = responder_of(Collection("c", mechanism), SECRET, RepeatableWords(1))

    def randomize(values):
        owners = [str(next(clients)) for _ in values]
        return responder.prepare(values, owners).respond(slice(None))[1].ravel()

    assert passes(krr_bounds(randomize, 4), 1.5)


def krr_that_never_lies_of_one_value(values, mechanism, words):
    reports = randomize_krr(values, mechanism, words)
    return np.where(values == 2, 2, reports)


def krr_of_epsilon_1_1(values, mechanism, words):
    return randomize_krr(values, KRR.from_epsilon(mechanism.k, 1.1), words)


@pytest.mark.parametrize("broken", [krr_that_never_lies_of_one_value, krr_of_epsilon_1_1])
def test_the_krr_audit_fails(broken):
    mechanism, words = KRR.from_epsilon(4, 1.0), RepeatableWords(2)
    assert max(krr_bounds(lambda values: broken(values, mechanism, words), 4)) > 1.0


# RAPPOR: 2h bits differ; the event is that all show the one value and none the other


def row_of(bits, ones):
    return np.packbits(np.isin(np.arange(bits), ones), bitorder="little")


def hits_of(rows, telling, silent):
    """Rows with a 1 in each telling bit and a 0 in each silent one."""
    bits = 8 * rows.shape[1]
    mask, pattern = row_of(bits, [*telling, *silent]), row_of(bits, telling)
    columns = np.flatnonzero(mask)
    return int((rows[:, columns] & mask[columns] == pattern[columns]).all(axis=1).sum())


def pairs_of(mechanism):
    """Pairs of inputs, as the bits that they set, that cover every bit."""
    ones = mechanism.ones
    starts = range(0, mechanism.bits, 2 * ones)
    return [(range(start, start + ones), range(start + ones, start + 2 * ones)) for start in starts]


def rappor_bounds(randomize, bits, pairs, outputs=OUTPUTS):
    """Bounds of each pair, both ways; `randomize` makes reports of rows of true bits."""
    bounds = []
    for v, w in pairs:
        hits = np.zeros((2, 2), np.int64)
        for size in chunk_sizes(outputs):
            for place, true in enumerate((v, w)):
                reports = randomize(np.repeat(row_of(bits, true)[np.newaxis], size, axis=0))
                hits[place] += hits_of(reports, v, w), hits_of(reports, w, v)
        bounds.append(bound(hits[0, 0], hits[1, 0], outputs, 2 * len(pairs)))
        bounds.append(bound(hits[1, 1], hits[0, 1], outputs, 2 * len(pairs)))
    return bounds


def two_steps(mechanism, words):
    return lambda rows: instantaneous(permanent(rows, mechanism, words), mechanism, words)


@pytest.mark.parametrize(
    "mechanism",
    [
        Rappor.from_probabilities(128, 2, 1, 0.5, 0.5, 0.75),
        Rappor.from_probabilities(16, 2, 1, 0.25, 0.35, 0.65),
        HotRappor.from_probabilities(8, 1, 0.25, 0.35, 0.65),
        HotRappor.from_probabilities(24, 3, 0.5, 0.25, 0.75),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__}-{mechanism.bits}",
)
def test_rappor(mechanism):
    """Every bit of every kind; the wide one is the one that is sent most."""
    bounds = rappor_bounds(two_steps(mechanism, RepeatableWords(1)), mechanism.bits, pairs_of(mechanism))
    assert passes(bounds, mechanism.epsilon_one)


def ones_never_cleared(mechanism, words):
    return lambda rows: rows | two_steps(mechanism, words)(rows)


def one_bit_never_randomized(mechanism, words):
    only = row_of(mechanism.bits, [5])
    return lambda rows: (two_steps(mechanism, words)(rows) & ~only) | (rows & only)


def permanent_step_left_out(mechanism, words):
    return lambda rows: instantaneous(rows, mechanism, words)


@pytest.mark.parametrize("broken", [ones_never_cleared, one_bit_never_randomized, permanent_step_left_out])
def test_the_rappor_audit_fails(broken):
    mechanism = Rappor.from_probabilities(16, 2, 1, 0.25, 0.35, 0.65)
    bounds = rappor_bounds(broken(mechanism, RepeatableWords(2)), 16, pairs_of(mechanism), OUTPUTS // 10)
    assert max(bounds) > mechanism.epsilon_one


def test_a_memorised_bloom_collection_of_distinct_clients():
    """From texts to what is on the wire: two words that share no bit, and 2 million clients of each."""
    mechanism = Rappor.from_probabilities(128, 2, 1, 0.5, 0.5, 0.75)
    responder = responder_of(Collection("c", mechanism, memoize=True), SECRET, RepeatableWords(1))
    v, w = (bloom_positions(word, 0, mechanism) for word in ("JFK", "LGA"))
    assert len({*v, *w}) == 4
    hits = np.zeros((2, 2), np.int64)
    for place, word in enumerate(("JFK", "LGA")):
        for number, size in enumerate(chunk_sizes(OUTPUTS)):
            clients = [f"{number}-{each}" for each in range(size)]
            reports = responder.prepare([word] * size, clients).respond(slice(None))[1]
            hits[place] += hits_of(reports, v, w), hits_of(reports, w, v)
    bounds = [bound(hits[0, 0], hits[1, 0], OUTPUTS, 2), bound(hits[1, 1], hits[0, 1], OUTPUTS, 2)]
    assert passes(bounds, mechanism.epsilon_one)


# memory: an output is what the majority of 15 reports of one client shows, so epsilon_inf is what is attained


REPEATED = Rappor.from_probabilities(8, 1, 1, 0.5, 0.25, 0.75)
REPORTS = 15


def majority_bounds(memoize, outputs):
    memory = Memory(SECRET, "c", ("audit",), memoize)
    words, clients = RepeatableWords(3), iter(range(10**9))

    def majority(rows):
        owners = memory.digest([str(next(clients)) for _ in rows])
        values = rows.astype(np.uint64).repeat(2, axis=1)
        shown = np.zeros((len(rows), 8), np.uint8)
        for _ in range(REPORTS):
            response = permanent(rows, REPEATED, memory.words(owners, lambda: [values], words))
            report = instantaneous(response, REPEATED, words)
            shown += np.unpackbits(report, axis=1, bitorder="little")
        return np.packbits(shown > REPORTS // 2, axis=1, bitorder="little")

    return rappor_bounds(majority, 8, [([2], [5])], outputs)


def test_all_reports_of_a_client_together_show_no_more_than_its_permanent_response():
    assert passes(majority_bounds(memoize=True, outputs=OUTPUTS), REPEATED.epsilon_inf)


def test_the_audit_of_memory_fails_a_permanent_response_that_is_redrawn():
    assert max(majority_bounds(memoize=False, outputs=OUTPUTS // 10)) > REPEATED.epsilon_inf
