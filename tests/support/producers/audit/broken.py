"""Broken word sources and randomizers, which the audit must fail."""

import numpy as np

from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.randomization.permanent_responses import Memory
from deniable.producers.randomization.randomizers import instantaneous, permanent, randomize_krr
from tests.support.producers.sources import ScriptedWords

# Word sources: they break randomizers whose code is unchanged.


class Changed:
    """Words after a change."""

    def __init__(self, words, change):
        self._words = words
        self._change = change

    def words64(self, shape):
        words = self._words.words64(shape).copy()
        self._change(words)
        return words


def neighbours_share(words):
    words[1::2] = words[::2]


def next_but_one_share(words):
    words[2::4], words[3::4] = words[::4], words[1::4]


def halves_share(words):
    words[len(words) // 2 :] = words[: len(words) // 2]


def second_lane_repeats_the_first(words):
    words[:, 1] = words[:, 0]


def one_bit_copies_its_neighbour(words):
    """Bit 4 has every binary digit of bit 3, in another group of four bits."""
    words[:, 0] &= ~np.uint64(1 << 4)
    words[:, 0] |= (words[:, 0] & np.uint64(1 << 3)) << np.uint64(1)


class Twice:
    """Words that repeat each run of draws once."""

    def __init__(self, words, draws):
        self._words = words
        self._draws = draws
        self._count = 0
        self._run = []

    def words64(self, shape):
        again = self._count // self._draws % 2
        self._count += 1
        if again:
            return self._run.pop(0)
        self._run.append(self._words.words64(shape))
        return self._run[-1]


# k-RR


def never_lies_of_one_value(values, mechanism, words):
    return np.where(values == 2, 2, randomize_krr(values, mechanism, words))


def of_epsilon_1_1(values, mechanism, words):
    return randomize_krr(values, KRR.from_epsilon(mechanism.k, 1.1), words)


def lies_with_the_truth_among_the_lies(values, mechanism, words):
    keep = words.words64(values.shape) < np.uint64(mechanism.threshold)
    return np.where(keep, values, words.words64(values.shape) % np.uint64(mechanism.k)).astype(np.int64)


def lies_as_its_neighbour_does(values, mechanism, words):
    choice, lie = words.words64(values.shape), words.words64(values.shape).copy()
    neighbours_share(lie)
    return randomize_krr(values, mechanism, ScriptedWords(choice, lie))


# RAPPOR


def ones_never_cleared(rows, mechanism, words):
    return rows | instantaneous(permanent(rows, mechanism, words), mechanism, words)


def one_bit_never_randomized(rows, mechanism, words):
    reports = instantaneous(permanent(rows, mechanism, words), mechanism, words)
    reports[:, 0] = reports[:, 0] & 0b1101_1111 | rows[:, 0] & 0b0010_0000
    return reports


def permanent_step_left_out(rows, mechanism, words):
    return instantaneous(rows, mechanism, words)


# memory


class SeedsWithoutClient(Memory):
    def words(self, clients, values, fresh):
        return super().words(np.zeros_like(clients), values, fresh)


class Redrawn(Memory):
    def words(self, clients, values, fresh):
        return fresh
