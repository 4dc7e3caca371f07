"""Permanent responses are constant, differ by client and have the right frequency; cohorts ignore values."""

from statistics import NormalDist

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_rows
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.randomization.permanent_responses import Memory, RepeatedWords
from deniable.producers.randomization.randomizers import instantaneous, permanent
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.sources import RepeatableWords, ScriptedWords

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
SECRET = Secret(bytes(range(32)))
PARAMETERS = ("rappor", 128, 2, 8, BLOOM.flip_threshold)
MEMORY = Memory(SECRET, "destination", PARAMETERS, memoize=True)
FORGETFUL = Memory(SECRET, "destination", PARAMETERS, memoize=False)


def responses(memory, clients, values, rows=None, fresh=None):
    """Permanent responses of rows, by default all zeros, which show the noise alone."""
    rows = np.zeros((len(values), 16), np.uint8) if rows is None else rows
    owners = None if clients is None else memory.digest(clients)
    kept = memory.words(owners, lambda: [memory.digest(values)], fresh or ScriptedWords())
    return permanent(rows, BLOOM, kept)


def test_response_is_the_same_in_every_batch_and_process():
    """Pinned: another derivation would redraw every client's permanent responses."""
    alone = responses(MEMORY, ["ann"], ["JFK"])
    batch = responses(MEMORY, ["bob", "ann", "ann"], ["JFK", "LGA", "JFK"])
    assert np.array_equal(batch[2], alone[0])
    assert alone.tobytes().hex() == "c2800200440400001a80800000800040"
    owners = MEMORY.digest(["ann", "bob", "cid"])
    assert MEMORY.cohorts(owners, 3, 8, ScriptedWords()).tolist() == [7, 6, 4]
    assert MEMORY.turns(owners, 1000).tolist() == [741, 816, 217]


def test_response_depends_on_all_its_inputs():
    others = [
        responses(MEMORY, ["ann", "bob", "ann"], ["JFK", "JFK", "LGA"]),
        responses(Memory(SECRET, "origin", PARAMETERS, memoize=True), ["ann"], ["JFK"]),
        responses(Memory(SECRET, "destination", PARAMETERS[:-1], memoize=True), ["ann"], ["JFK"]),
        responses(Memory(Secret(bytes(32)), "destination", PARAMETERS, memoize=True), ["ann"], ["JFK"]),
        responses(MEMORY, ["JFK"], ["ann"]),
    ]
    assert len(np.unique(np.concatenate(others), axis=0)) == 7


def test_joined_texts_stay_distinct():
    clients, values = ["ab", "a", "ab\0", "\udc80", "\udc81"], ["c", "bc", "c", "c", "c"]
    assert len(np.unique(responses(MEMORY, clients, values), axis=0)) == 5


@pytest.mark.parametrize("words", [1, 2, 3, 64])
def test_repeated_words_are_aes_of_seed_xor_counter(words):
    """In two calls, which share no block."""
    seeds = RepeatableWords(1).words64((3, 2))
    aes = Cipher(algorithms.AES(bytes(16)), modes.ECB())  # noqa: S305 (the definition)
    source = RepeatedWords(bytes(16), seeds)
    first, second = source.words64((3, words)), source.words64(3)
    blocks = -(-words // 2)
    for row, seed in enumerate(seeds):
        number = int.from_bytes(seed.tobytes(), "little")
        stream = [aes.encryptor().update((number ^ j).to_bytes(16, "little")) for j in range(blocks + 1)]
        assert first[row].tobytes() == b"".join(stream[:blocks])[: 8 * words]
        assert second[row].tobytes() == stream[blocks][:8]


def test_repeated_words_of_no_rows():
    source = RepeatedWords(bytes(16), np.empty((0, 2), np.uint64))
    assert source.words64((0, 3)).shape == (0, 3)
    assert source.words64((0,)).shape == (0,)


def test_responses_of_many_clients_have_the_right_frequencies():
    """128 bits, 20,000 clients, false alarm 1e-6: catches a flip probability that is off by 0.02."""
    noise = responses(MEMORY, list(map(str, range(20_000))), ["JFK"] * 20_000)
    ones = np.unpackbits(noise, axis=1).sum(axis=0)
    z = (ones - 20_000 * BLOOM.f / 2) / np.sqrt(20_000 * BLOOM.f / 2 * (1 - BLOOM.f / 2))
    assert np.abs(z).max() < NormalDist().inv_cdf(1 - 1e-6 / 256)


def averaged(memory, reports):
    """An observer's guess from many reports of one client and value: the likelier bits."""
    clients, values, source = ["ann"] * reports, ["JFK"] * reports, RepeatableWords(5)
    cohorts = memory.cohorts(memory.digest(clients), reports, 8, source)
    rows = bloom_rows(values, cohorts, BLOOM)
    sent = instantaneous(responses(memory, clients, values, rows, source), BLOOM, source)
    return rows[0], np.unpackbits(sent, axis=1, bitorder="little").mean(axis=0) > 0.5


def test_averaging_reveals_only_the_permanent_response():
    """The average of a bit in 10,000 reports is 30 standard deviations from 0.5, so chance plays no role."""
    truth, seen = averaged(MEMORY, 10_000)
    kept = responses(MEMORY, ["ann"], ["JFK"], truth[np.newaxis])
    assert np.array_equal(np.packbits(seen, bitorder="little"), kept[0])
    assert not np.array_equal(kept[0], truth)


def test_averaging_attack_is_strong():
    """If the response is redrawn for each report, the same attack finds the true bits."""
    truth, seen = averaged(FORGETFUL, 10_000)
    assert np.array_equal(np.packbits(seen, bitorder="little"), truth)


def test_without_memory_or_client_words_are_fresh():
    """Then the value is not read."""
    fresh = RepeatableWords(1)
    assert MEMORY.words(None, list, fresh) is fresh
    assert FORGETFUL.words(FORGETFUL.digest(["ann"]), list, fresh) is fresh


def test_fresh_cohorts_come_from_the_words():
    words = ScriptedWords([0, 2**61 - 1, 2**61, 2**64 - 1])
    assert MEMORY.cohorts(None, 4, 8, words).tolist() == [0, 0, 1, 7]


def test_cohorts_of_clients_are_uniform():
    """8 cohorts, 40,000 clients, false alarm 1e-6: catches a cohort that is 13 % too rare."""
    owners = MEMORY.digest(list(map(str, range(40_000))))
    counts = np.bincount(MEMORY.cohorts(owners, 40_000, 8, ScriptedWords()), minlength=8)
    z = (counts - 5000) / np.sqrt(40_000 / 8 * 7 / 8)
    assert len(counts) == 8
    assert np.abs(z).max() < NormalDist().inv_cdf(1 - 1e-6 / 16)


def test_client_has_unrelated_cohorts_in_two_collections():
    owners = MEMORY.digest(list(map(str, range(4000))))
    other = Memory(SECRET, "origin", PARAMETERS, memoize=True)
    same = MEMORY.cohorts(owners, 4000, 8, ScriptedWords()) == other.cohorts(owners, 4000, 8, ScriptedWords())
    assert abs(same.mean() - 1 / 8) < 5 * np.sqrt(1 / 8 * 7 / 8 / 4000)


def test_cohort_does_not_depend_on_parameters():
    owners = MEMORY.digest(list(map(str, range(100))))
    later = Memory(SECRET, "destination", ("rappor", 64), memoize=False)
    assert np.array_equal(
        later.cohorts(owners, 100, 8, ScriptedWords()), MEMORY.cohorts(owners, 100, 8, ScriptedWords())
    )
