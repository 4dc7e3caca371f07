"""Permanent responses: the same for ever, everybody's own, right in frequency; cohorts blind to values."""

from statistics import NormalDist

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from sources import RepeatableWords, ScriptedWords

from estimators.bloom import bloom_rows
from estimators.rappor import Rappor
from producers.memory import Memory, SeededWords, encode_field
from producers.randomizers import instantaneous
from producers.secret import Secret

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
SECRET = Secret(bytes(range(32)))
MEMORY = Memory(SECRET, "destination", BLOOM, memoize=True)


def fields(*clients):
    return [encode_field(client) for client in clients]


def response(memory, client, value, rows=None):
    rows = np.zeros((1, 16), np.uint8) if rows is None else rows
    return memory.permanent(rows, fields(client), [value], ScriptedWords())


def test_a_response_is_the_same_in_every_batch_and_process():
    """Pinned: another derivation would draw every client's permanent responses again."""
    alone = response(MEMORY, "ann", "JFK")
    clients, values = fields("bob", "ann", "ann"), ["JFK", "LGA", "JFK"]
    batch = MEMORY.permanent(np.zeros((3, 16), np.uint8), clients, values, ScriptedWords())
    assert np.array_equal(batch[2], alone[0])
    assert alone.tobytes().hex() == "02000056800a0012b340000060000008"
    assert MEMORY.cohorts(fields("ann", "bob", "cid"), 3, ScriptedWords()).tolist() == [4, 4, 5]


def test_a_response_depends_on_everything_that_it_is_derived_from():
    other = Rappor.from_probabilities(128, 2, 8, 0.26, 0.35, 0.65)
    responses = [
        response(MEMORY, "ann", "JFK"),
        response(MEMORY, "bob", "JFK"),
        response(MEMORY, "ann", "LGA"),
        response(Memory(SECRET, "origin", BLOOM, memoize=True), "ann", "JFK"),
        response(Memory(SECRET, "destination", other, memoize=True), "ann", "JFK"),
        response(Memory(Secret(bytes(32)), "destination", BLOOM, memoize=True), "ann", "JFK"),
    ]
    assert len({each.tobytes() for each in responses}) == len(responses)


def test_a_response_outlives_a_change_of_p_and_q():
    """Else a new p would let the next average be taken over a second permanent response."""
    later = Memory(SECRET, "destination", Rappor.from_probabilities(128, 2, 8, 0.25, 0.3, 0.7), memoize=True)
    assert np.array_equal(response(later, "ann", "JFK"), response(MEMORY, "ann", "JFK"))


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_fields_in_a_row_are_injective(left, right):
    assert (b"".join(map(encode_field, left)) == b"".join(map(encode_field, right))) == (left == right)


def test_what_runs_together_is_still_told_apart():
    assert not np.array_equal(response(MEMORY, "ab", "c"), response(MEMORY, "a", "bc"))
    assert encode_field("\udc80") != encode_field("\udc81")


@pytest.mark.parametrize("words", [1, 4, 8, 128])
def test_seeded_words_are_aes_of_seed_xor_counter(words):
    seeds = RepeatableWords(1).words64(6).reshape(3, 2)
    encryptor = Cipher(algorithms.AES(bytes(16)), modes.ECB()).encryptor()  # noqa: S305 (the definition)
    expected = []
    for seed in seeds:
        number = int.from_bytes(seed.tobytes(), "little")
        blocks = [encryptor.update((number ^ j).to_bytes(16, "little")) for j in range(-(-words // 4))]
        expected.append(b"".join(blocks)[: 4 * words])
    source = SeededWords(bytes(16), seeds)
    drawn = [*source.words32((2, words)), *source.words32((1, words))]
    assert [each.tobytes() for each in drawn] == expected


def test_responses_of_many_clients_have_the_right_frequencies():
    """128 bits, 20,000 clients, false alarm 1e-6: catches a flip probability that is off by 0.02."""
    clients = fields(*map(str, range(20_000)))
    noise = MEMORY.permanent(np.zeros((20_000, 16), np.uint8), clients, ["JFK"] * 20_000, ScriptedWords())
    ones = np.unpackbits(noise, axis=1).sum(axis=0)
    z = (ones - 20_000 * BLOOM.f / 2) / np.sqrt(20_000 * BLOOM.f / 2 * (1 - BLOOM.f / 2))
    assert np.abs(z).max() < NormalDist().inv_cdf(1 - 1e-6 / 256)


def averaged(memory, reports):
    """What an observer makes of many reports of one client and value: the likelier bits."""
    clients, values = fields("ann") * reports, ["JFK"] * reports
    source = RepeatableWords(5)
    cohorts = memory.cohorts(clients, reports, source)
    rows = bloom_rows(values, cohorts, BLOOM)
    sent = instantaneous(memory.permanent(rows, clients, values, source), BLOOM, source)
    return rows[0], np.unpackbits(sent, axis=1, bitorder="little").mean(axis=0) > 0.5


def test_averaging_shows_the_permanent_response_and_no_more():
    """10,000 reports: the average of a bit is 30 standard deviations from 0.5, so chance decides nothing."""
    truth, seen = averaged(MEMORY, 10_000)
    kept = response(MEMORY, "ann", "JFK", truth[np.newaxis])
    assert np.array_equal(np.packbits(seen, bitorder="little"), kept[0])
    assert not np.array_equal(kept[0], truth)


def test_the_averaging_attack_is_a_strong_one():
    """Where the response is drawn anew for each report, the same attack finds the value's own bits."""
    truth, seen = averaged(Memory(SECRET, "destination", BLOOM, memoize=False), 10_000)
    assert np.array_equal(np.packbits(seen, bitorder="little"), truth)


def test_without_memory_or_client_the_noise_is_fresh():
    rows, words = np.zeros((1, 16), np.uint8), RepeatableWords(1)
    forgetful = Memory(SECRET, "destination", BLOOM, memoize=False)
    draws = [MEMORY.permanent(rows, None, ["JFK"], words) for _ in range(2)]
    draws += [forgetful.permanent(rows, fields("ann"), ["JFK"], words) for _ in range(2)]
    assert len({draw.tobytes() for draw in draws}) == 4


def test_fresh_cohorts_come_from_the_words():
    words = ScriptedWords([0, 2**61 - 1, 2**61, 2**64 - 1])
    assert MEMORY.cohorts(None, 4, words).tolist() == [0, 0, 1, 7]


def test_cohorts_of_clients_are_uniform():
    """8 cohorts, 40,000 clients, false alarm 1e-6: catches a cohort that is 13 % too rare."""
    counts = np.bincount(
        MEMORY.cohorts(fields(*map(str, range(40_000))), 40_000, ScriptedWords()), minlength=8
    )
    z = (counts - 5000) / np.sqrt(40_000 / 8 * 7 / 8)
    assert len(counts) == 8
    assert np.abs(z).max() < NormalDist().inv_cdf(1 - 1e-6 / 16)


def test_a_client_has_unrelated_cohorts_in_two_collections():
    clients = fields(*map(str, range(4000)))
    other = Memory(SECRET, "origin", BLOOM, memoize=True)
    same = MEMORY.cohorts(clients, 4000, ScriptedWords()) == other.cohorts(clients, 4000, ScriptedWords())
    assert abs(same.mean() - 1 / 8) < 5 * np.sqrt(1 / 8 * 7 / 8 / 4000)
