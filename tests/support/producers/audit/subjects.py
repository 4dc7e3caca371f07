"""The audited functions: from numbers of inputs, or rows of true bits, to reports."""

from itertools import count, islice

import numpy as np

from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_positions
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.producers.randomization.randomizers import (
    at_most,
    instantaneous,
    permanent,
    randomize_krr,
    randomize_pair,
    randomize_square_wave,
)
from deniable.producers.responders.factory import responder_of
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.sources import RepeatableWords

SECRET = Secret(bytes(range(32)))
REPEATS = 7


def krr(mechanism, words, values=None):
    """Reports of inputs, or of the values with these indices."""
    values = np.arange(mechanism.k) if values is None else np.array(values)
    return lambda inputs: randomize_krr(values[inputs], mechanism, words)


def pair(mechanism, words):
    """Reports of true pairs, numbered by rows."""
    return lambda cells: randomize_pair(*np.divmod(cells, mechanism.second.k), mechanism, words)


def square_wave(mechanism, words):
    """Reports of true cells."""
    return lambda cells: randomize_square_wave(cells, mechanism, words)


def two_steps(mechanism, words):
    """Reports of rows of true bits."""
    return lambda rows: instantaneous(permanent(rows, mechanism, words), mechanism, words)


def remembered_steps(mechanism, words, memory):
    """Memoized reports of rows of 128 true bits, each of a different client."""
    clients = count()

    def randomize(rows):
        kept = memory.words(memory.digest(_next(clients, len(rows))), lambda: [rows.view(np.uint64)], words)
        return instantaneous(permanent(rows, mechanism, kept), mechanism, words)

    return randomize


def short_rows(mechanism, rows, words):
    """Reports, as numbers below 256, of inputs that stand for rows of 8 bits."""
    rows = np.array(rows, np.uint8)[:, np.newaxis]

    def randomize(inputs):
        true = at_most(rows[inputs], mechanism.ones, words) if mechanism.ones > 1 else rows[inputs]
        return two_steps(mechanism, words)(true)[:, 0]

    return randomize


def answers(collection, values):
    """Cohorts and reports in wire format; inputs are indices of values, each of a different client."""
    responder, clients = responder_of(collection, SECRET, RepeatableWords(1)), count()

    def randomize(inputs):
        owners = _next(clients, len(inputs)) if collection.memoize else None
        return responder.prepare([values[each] for each in inputs.tolist()], owners).respond(slice(None))

    return randomize


def two_answers(collection, first, second):
    """As `answers`, but neighbours of a batch are two values of one client, from two lists of values."""
    responder, clients = responder_of(collection, SECRET, RepeatableWords(1)), count()

    def randomize(inputs):
        owners = np.repeat(_next(clients, len(inputs) // 2), 2).tolist()
        values = [(first, second)[place % 2][each] for place, each in enumerate(inputs.tolist())]
        return responder.prepare(values, owners).respond(slice(None))

    return randomize


def reports_of(randomize):
    """Reports without their cohorts."""
    return lambda inputs: randomize(inputs)[1]


def texts_of_all_bits(mechanism):
    """Texts that each set one bit per hash, and together every bit exactly once."""
    texts, left = [], set(range(mechanism.bits))
    for text in map(str, count()):
        bits = set(bloom_positions(text, 0, mechanism))
        if len(bits) == mechanism.hashes and bits <= left:
            texts.append(text)
            left -= bits
        if not left:
            return texts


def bits_of(randomize, bits):
    """Some bits of each row, as a number."""
    places = 1 << np.arange(len(bits))
    return lambda inputs: np.unpackbits(randomize(inputs), axis=1, bitorder="little")[:, bits] @ places


def whole(randomize):
    """Cohort and report where that is a byte long, as a number."""

    def shown(inputs):
        cohorts, reports = randomize(inputs)
        return 256 * cohorts.astype(np.int64) + reports[:, 0]

    return shown


def level_and_report(randomize, width):
    """Level and report, of `width` of them on each level, as a number; reports are a byte long."""

    def shown(inputs):
        levels, reports = randomize(inputs)
        return width * levels.astype(np.int64) + reports[:, 0]

    return shown


def majority_of_bits(mechanism, rows, words, memory):
    """Return the majority of REPEATS reports of a client in each bit; inputs denote rows of 8 bits."""
    rows, clients = np.array(rows, np.uint8)[:, np.newaxis], count()

    def randomize(inputs):
        owners, true = memory.digest(_next(clients, len(inputs))), rows[inputs]
        shown = np.zeros((len(inputs), 8), np.uint8)
        for _ in range(REPEATS):
            kept = memory.words(owners, lambda: [_blocks(inputs)], words)
            report = instantaneous(permanent(true, mechanism, kept), mechanism, words)
            shown += np.unpackbits(report, axis=1, bitorder="little")
        return np.packbits(shown > REPEATS // 2, axis=1, bitorder="little")

    return randomize


def commonest_bucket(mechanism, values, words, memory):
    """The bucket of longitudinal k-RR that most of REPEATS reports of a client show."""
    values, clients = np.array(values), count()

    def randomize(inputs):
        owners, places = memory.digest(_next(clients, len(inputs))), np.arange(len(inputs))
        shown = np.zeros((len(inputs), mechanism.k), np.uint8)
        for _ in range(REPEATS):
            kept = memory.words(owners, lambda: [_blocks(inputs)], words)
            response = randomize_krr(values[inputs], mechanism.permanent, kept).astype(np.int64)
            shown[places, randomize_krr(response, mechanism.instantaneous, words)] += 1
        return shown.argmax(axis=1)

    return randomize


def commonest_of_hashed(collection, texts, memory=None):
    """Which of two texts has the bucket that most of REPEATS reports of a client show; 2 if both or neither.

    Buckets are those under the client's function; `memory` replaces the responder's.
    """
    responder, clients = responder_of(collection, SECRET, RepeatableWords(1)), count()
    if memory is not None:
        responder._memory = memory
    mechanism = collection.mechanism
    functions, every = hash_functions_of(mechanism, collection.hash_key), np.arange(mechanism.hash_functions)
    buckets = np.stack([functions.buckets(word.repeat(len(every)), every) for word in functions.words(texts)])

    def randomize(inputs):
        owners, places = _next(clients, len(inputs)), np.arange(len(inputs))
        shown = np.zeros((len(inputs), mechanism.hash_buckets), np.uint8)
        batch = responder.prepare([texts[each] for each in inputs.tolist()], owners)
        for _ in range(REPEATS):
            function, bucket = np.divmod(batch.respond(slice(None))[1][:, 0], mechanism.hash_buckets)
            shown[places, bucket] += 1
        first, second = shown.argmax(axis=1) == buckets[:, function]
        return np.select([first & ~second, second & ~first], [0, 1], 2)

    return randomize


def _next(clients, size):
    return [str(client) for client in islice(clients, size)]


def _blocks(inputs):
    return inputs.astype(np.uint64).repeat(2).reshape(-1, 2)
