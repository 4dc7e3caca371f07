"""The randomizers: exact thresholds, then frequencies, then broken ones that the checks must catch.

Statistical checks: 256 bit frequencies (each of 128 bits, as 1 and as 0) or k buckets, each compared with its
binomial law at false-alarm rate 1e-6 in all (Bonferroni, normal quantile). With REPORTS = 40,000 a frequency
that is off by 0.023 is caught with probability 99.9 %: (6.0 + 3.1) standard deviations of at most 0.0025.
"""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.producers.randomization.randomizers import (
    at_most,
    bernoulli,
    instantaneous,
    permanent,
    randomize_hashed,
    randomize_krr,
    randomize_square_wave,
    randomize_subsets,
)
from tests.support.messages import PinMessages
from tests.support.producers.sources import RepeatableWords, ScriptedWords, spelled

REPORTS = 40_000
FALSE_ALARM = 1e-6
KRR_4 = KRR.from_epsilon(4, 1.0)
WAVE = SquareWave.from_epsilon(0.0, 1.0, 16, 1.0)
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
WORD = Rappor.from_probabilities(64, 1, 1, 0.3, 0.35, 0.65)


def z_of(observed, trials, probability):
    return (observed - trials * probability) / np.sqrt(trials * probability * (1 - probability))


def worst_allowed(comparisons):
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * comparisons))


def bits(rows):
    return np.unpackbits(rows, axis=1, bitorder="little")


# k-RR, word by word


def test_krr_keeps_the_truth_strictly_below_the_threshold():
    words = ScriptedWords([KRR_4.threshold - 1, KRR_4.threshold, 0, 2**64 - 1], [0, 0, 0, 0])
    assert randomize_krr(np.array([2, 2, 2, 2]), KRR_4, words).tolist() == [2, 0, 2, 0]
    assert words.is_used_up


@pytest.mark.parametrize("truth", range(4))
def test_krr_lies_split_the_words_evenly(truth):
    """With three other values: exact thirds of the second word."""
    third = 2**64 // 3
    second = [0, third, third + 1, 2 * third, 2 * third + 1, 2**64 - 1]
    words = ScriptedWords([2**64 - 1] * 6, second)
    others = [value for value in range(4) if value != truth]
    expected = [others[word * 3 >> 64] for word in second]
    assert randomize_krr(np.full(6, truth), KRR_4, words).tolist() == expected
    assert expected == [others[place] for place in (0, 0, 1, 1, 2, 2)]


@pytest.mark.parametrize(("k", "dtype"), [(2, "u1"), (256, "u1"), (257, "<u2"), (2**31, "<u4")])
def test_krr_of_extreme_k(k, dtype):
    mechanism = KRR.from_epsilon(k, 1.0)
    values = np.array([0, k - 1, 0, k - 1])
    words = ScriptedWords([0, 0, 2**64 - 1, 2**64 - 1], [0, 0, 2**64 - 1, 2**64 - 1])
    reports = randomize_krr(values, mechanism, words)
    assert reports.dtype == np.dtype(dtype)
    assert reports.tolist() == [0, k - 1, k - 1, k - 2]


@pytest.mark.parametrize("wrong", [-1, 4, 2**40])
def test_krr_refuses_invalid_buckets_without_showing_them(wrong):
    with pytest.raises(ValueError, match="bucket"):
        randomize_krr(np.array([0, wrong]), KRR_4, RepeatableWords(1))


def test_messages(pin_messages: PinMessages) -> None:
    wrong = np.array([0, 4])
    pin_messages({"a value is no bucket": lambda: randomize_krr(wrong, KRR_4, RepeatableWords(1))})


def test_local_hashing_word_by_word():
    """The first word draws the function, in equal parts; the others are those of k-RR on its bucket."""
    functions = HashFunctions(LocalHash.from_epsilon(1.0, 26), 3)
    part, word = 2**64 // 26, functions.words(["a"])
    drawn = [0, part, part + 1, 2**64 - 1]
    truth = functions.buckets(np.repeat(word, 4), np.array([0, 0, 1, 25]))
    keeps, lies = [0, 2**64 - 1, 2**64 - 1, 0], [0, 0, 2**64 - 1, 0]
    words = ScriptedWords(drawn, keeps, lies)
    reports = randomize_hashed(np.repeat(word, 4), functions, functions.mechanism.response, words)
    others = [min({0, 1, 2} - {int(truth[1])}), max({0, 1, 2} - {int(truth[2])})]
    assert reports.tolist() == [truth[0], others[0], 3 + others[1], 75 + truth[3]]
    assert (reports.dtype, words.is_used_up) == (np.dtype("u1"), True)


def test_frequencies_of_local_hashing_match_the_exact_channel():
    """All 78 reports of one value; a function or bucket that is off by 10 % of its share is caught.

    400,000 reports: 3,000 to 9,000 in a counter, standard deviations of 1.1 to 1.8 % (10 % is 5.5 + 3.1 of
    the largest, and Bonferroni over 78 counters at 1e-6 takes 5.9 of them for a deviation either way).
    """
    functions = HashFunctions(LocalHash.from_epsilon(1.0, 26), 3)
    values = np.repeat(functions.words(["a"]), 400_000)
    counts = np.bincount(
        randomize_hashed(values, functions, functions.mechanism.response, RepeatableWords(6)), minlength=78
    )
    share = np.full((26, 3), functions.mechanism.response.q / 26)
    share[np.arange(26), functions.buckets(values[:26], np.arange(26))] = functions.mechanism.hit / 26
    assert np.abs(z_of(counts, 400_000, share.reshape(-1))).max() < worst_allowed(78)


def test_krr_of_empty_batch():
    assert randomize_krr(np.array([], np.int64), KRR_4, ScriptedWords([], [])).tolist() == []


# Square Wave, word by word


def test_square_wave_is_near_strictly_below_the_threshold():
    words = ScriptedWords([WAVE.threshold - 1, WAVE.threshold, 0, 2**64 - 1], [0, 0, 2**64 - 1, 2**64 - 1])
    assert WAVE.half_width == 4
    assert randomize_square_wave(np.array([5, 5, 5, 5]), WAVE, words).tolist() == [5, 0, 13, 23]
    assert words.is_used_up


@pytest.mark.parametrize("truth", range(16))
def test_square_wave_splits_the_words_evenly_over_near_and_far_cells(truth):
    """The word in the middle of each share: near cells are truth … truth + 2b, far ones all others."""
    for is_near, cells in ((True, WAVE.near), (False, WAVE.far)):
        second = [(2 * number + 1) * 2**63 // cells for number in range(cells)]
        words = ScriptedWords([0 if is_near else 2**64 - 1] * cells, second)
        near = range(truth, truth + WAVE.near)
        expected = [cell for cell in range(WAVE.width) if (cell in near) == is_near]
        assert randomize_square_wave(np.full(cells, truth), WAVE, words).tolist() == expected


@pytest.mark.parametrize(
    ("steps", "epsilon", "dtype"), [(256, 16.0, "u1"), (256, 1.0, "<u2"), (4, 0.1, "u1")]
)
def test_square_wave_of_extreme_cells(steps, epsilon, dtype):
    mechanism = SquareWave.from_epsilon(0.0, 1.0, steps, epsilon)
    words = ScriptedWords([0, 0, 2**64 - 1, 2**64 - 1], [0, 2**64 - 1, 0, 2**64 - 1])
    reports = randomize_square_wave(np.array([0, steps - 1, steps - 1, 0]), mechanism, words)
    assert reports.dtype == np.dtype(dtype)
    assert reports.tolist() == [0, mechanism.width - 1, 0, mechanism.width - 1]


@pytest.mark.parametrize("wrong", [-1, 16])
def test_square_wave_refuses_invalid_cells_without_showing_them(wrong):
    with pytest.raises(ValueError, match="cell"):
        randomize_square_wave(np.array([0, wrong]), WAVE, RepeatableWords(1))


@pytest.mark.parametrize("truth", [0, 9, 15])
def test_square_wave_frequencies_are_the_channel(truth):
    reports = randomize_square_wave(np.full(REPORTS, truth), WAVE, RepeatableWords(6 + truth))
    observed = np.bincount(reports, minlength=WAVE.width)
    z = z_of(observed, REPORTS, WAVE.channel[:, truth])
    assert np.abs(z).max() < worst_allowed(3 * WAVE.width)


# RAPPOR, lane by lane


def row(*ones):
    return np.packbits(np.isin(np.arange(64), ones)[np.newaxis], axis=1, bitorder="little")


def lowest_place(*thresholds):
    return min((threshold & -threshold).bit_length() - 1 for threshold in thresholds)


def test_permanent_flips_strictly_below_the_threshold():
    """Lanes whose digits spell T-1 and T, under bits of both kinds; other lanes spell 2**32 - 1."""
    edge = WORD.flip_threshold
    numbers = [[edge - 1, edge, edge - 1, edge, 0] + [2**32 - 1] * 59]
    words = ScriptedWords(*spelled(numbers, lowest_place(edge)))
    assert np.array_equal(permanent(row(0, 1, 63), WORD, words), row(1, 2, 4, 63))
    assert words.is_used_up


def test_instantaneous_compares_each_bit_with_its_own_threshold():
    low, high = WORD.p_threshold, WORD.q_threshold
    numbers = [[low - 1, low, high - 1, high, low - 1, low, high - 1, high] + [2**32 - 1] * 56]
    words = ScriptedWords(*spelled(numbers, lowest_place(low, high)))
    assert np.array_equal(instantaneous(row(0, 1, 2, 3), WORD, words), row(0, 1, 2, 4))
    assert words.is_used_up


thresholds = st.integers(0, 2**32 - 1) | st.integers(0, 7).map(lambda digits: digits << 29)


@pytest.mark.slow
@given(thresholds, thresholds, st.lists(st.integers(0, 2**32 - 1), min_size=60, max_size=60))
def test_bit_is_one_iff_its_number_is_below_its_threshold(if_one, if_zero, numbers):
    """The definition, for any pair of thresholds, T-1 and T of each among the numbers."""
    edges = [max(if_one - 1, 0), if_one, max(if_zero - 1, 0), if_zero]
    numbers = np.array([edges + numbers, numbers + edges], np.uint64)
    rows = RepeatableWords(1).words64(2).view(np.uint8).reshape(2, 8)
    lowest = lowest_place(if_one, if_zero) if if_one and if_zero else lowest_place(if_one or if_zero)
    words = ScriptedWords(*spelled(numbers, lowest) if if_one or if_zero else ())
    expected = numbers < np.where(bits(rows), np.uint64(if_one), np.uint64(if_zero))
    assert np.array_equal(bits(bernoulli(rows, if_one, if_zero, words)), expected)
    assert words.is_used_up


@pytest.mark.parametrize(
    ("f", "p", "q", "draws"), [(0.5, 0.5, 0.75, (2, 2)), (0.25, 0.25, 0.75, (3, 2)), (0, 0.5, 0.75, (0, 2))]
)
def test_only_the_digits_above_the_lowest_one_are_drawn(f, p, q, draws):
    """A word for 64 bits and digit: f/2 = 0.25 and q = 0.75 have two binary digits, p = 0.5 has one."""
    mechanism = Rappor.from_probabilities(128, 2, 8, f, p, q)
    for step, count in zip((permanent, instantaneous), draws, strict=True):
        words = ScriptedWords(*[[[0, 0]] * 3] * count)
        step(np.zeros((3, 16), np.uint8), mechanism, words)
        assert words.is_used_up


def test_without_permanent_noise_the_permanent_response_is_the_truth():
    mechanism = Rappor.from_probabilities(64, 1, 1, 0, 0.35, 0.65)
    assert np.array_equal(permanent(row(3), mechanism, ScriptedWords()), row(3))


@pytest.mark.parametrize("size", [1, 2, 8, 9, 17, 512])
@pytest.mark.parametrize("step", [permanent, instantaneous])
def test_rows_of_any_length_are_noised_to_their_end(step, size):
    """With the rarest noise, a bit is always 0 or always 1 in 400 rows with probability below 1e-15."""
    mechanism = HotRappor.from_probabilities(8 * size, 1, 0.25, 0.35, 0.65)
    for filled, seed in ((0, 1), (255, 2)):
        rows = np.full((400, size), filled, np.uint8)
        shown = bits(step(rows, mechanism, RepeatableWords(seed)))
        assert shown.shape == (400, 8 * size)
        assert 0 < shown.mean(axis=0).min() <= shown.mean(axis=0).max() < 1
    assert step(rows[:0], mechanism, ScriptedWords(*[np.empty((0, -(-size // 8)))] * 32)).shape == (0, size)


def test_at_most_keeps_the_bits_with_the_smallest_words():
    words = np.arange(128)[::-1].reshape(2, 64)
    rows = np.concatenate([row(1, 5, 9, 62), row(7)])
    kept = at_most(rows, 2, ScriptedWords(words))
    assert np.array_equal(kept, np.concatenate([row(9, 62), row(7)]))


@pytest.mark.slow
def test_every_subset_is_equally_likely():
    """Ten subsets of 3 of 5 bits, 40,000 rows, false alarm 1e-6: catches one that is 14 % too rare."""
    kept = at_most(np.repeat(row(0, 7, 8, 30, 63), REPORTS, axis=0), 3, RepeatableWords(1))
    subsets, counts = np.unique(kept, axis=0, return_counts=True)
    assert len(subsets) == 10
    assert (bits(subsets).sum(axis=1) == 3).all()
    assert np.abs(z_of(counts, REPORTS, 0.1)).max() < worst_allowed(10)


# frequencies


def krr_is_right(randomize, mechanism, truth, seed):
    """Every bucket's frequency among REPORTS outputs for one true value."""
    reports = randomize(np.full(REPORTS, truth), mechanism, RepeatableWords(seed))
    expected = np.full(mechanism.k, mechanism.q)
    expected[truth] = mechanism.p
    z = z_of(np.bincount(reports, minlength=mechanism.k), REPORTS, expected)
    return bool(np.abs(z).max() < worst_allowed(mechanism.k))


@pytest.mark.parametrize("truth", [0, 1, 3])
def test_krr_frequencies(truth):
    """The truth has probability 0.475; an epsilon off by 0.1 moves it by 0.025 and is caught."""
    assert krr_is_right(randomize_krr, KRR_4, truth, seed=truth)


def krr_of_epsilon_1_1(values, mechanism, words):
    return randomize_krr(values, KRR.from_epsilon(mechanism.k, 1.1), words)


def krr_that_lies_with_the_truth_among_the_lies(values, mechanism, words):
    """A classical mistake: the lie is drawn from all k values."""
    keep = words.words64(len(values)) < np.uint64(mechanism.threshold)
    return np.where(keep, values, (words.words64(len(values)) % np.uint64(mechanism.k)).astype(np.int64))


def krr_that_forgets_the_last_value(values, mechanism, words):
    reports = randomize_krr(values, mechanism, words)
    return np.where(reports == mechanism.k - 1, 0, reports)


@pytest.mark.parametrize(
    "broken",
    [krr_of_epsilon_1_1, krr_that_lies_with_the_truth_among_the_lies, krr_that_forgets_the_last_value],
)
def test_krr_check_catches(broken):
    assert not krr_is_right(broken, KRR_4, 1, seed=1)


def rappor_is_right(step, if_one, if_zero, seed):
    """Every bit's frequency of 1 where it was 1 (second half of the rows) and where it was 0."""
    rows = np.zeros((2 * REPORTS, 16), np.uint8)
    rows[REPORTS:] = 255
    reported = bits(step(rows, BLOOM, RepeatableWords(seed)))
    zero, one = reported[:REPORTS].sum(axis=0), reported[REPORTS:].sum(axis=0)
    z = np.concatenate([z_of(zero, REPORTS, if_zero), z_of(one, REPORTS, if_one)])
    return bool(np.abs(z).max() < worst_allowed(len(z)))


def rappor(rows, mechanism, words):
    return instantaneous(permanent(rows, mechanism, words), mechanism, words)


def test_permanent_frequencies():
    assert rappor_is_right(permanent, 1 - BLOOM.f / 2, BLOOM.f / 2, seed=1)


def test_instantaneous_frequencies():
    assert rappor_is_right(instantaneous, BLOOM.q, BLOOM.p, seed=2)


def test_both_steps_together():
    assert rappor_is_right(rappor, BLOOM.q_star, BLOOM.p_star, seed=3)


def never_clears(rows, mechanism, words):
    return rows | instantaneous(rows, mechanism, words)


def one_bit_never_randomized(rows, mechanism, words):
    reports = instantaneous(rows, mechanism, words)
    reports[:, 5] = (reports[:, 5] & 0b11110111) | (rows[:, 5] & 0b1000)
    return reports


def one_bit_of_epsilon_too_high(rows, mechanism, words):
    reports = instantaneous(rows, mechanism, words)
    bolder = Rappor.from_probabilities(128, 2, 8, 0.25, 0.32, 0.68)
    reports[:, 15] = instantaneous(rows, bolder, words)[:, 15]
    return reports


@pytest.mark.parametrize("broken", [never_clears, one_bit_never_randomized, one_bit_of_epsilon_too_high])
def test_rappor_check_catches(broken):
    assert not rappor_is_right(broken, BLOOM.q, BLOOM.p, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("step", [permanent, instantaneous])
def test_bits_are_independent(step):
    """Correlations of all 8,128 pairs of bits at 1e-6 in all: one word used for two bits would give 1."""
    noise = bits(step(np.zeros((REPORTS, 16), np.uint8), BLOOM, RepeatableWords(7))).astype(float)
    correlation = np.corrcoef(noise, rowvar=False)[np.triu_indices(128, 1)]
    assert np.abs(correlation).max() * np.sqrt(REPORTS) < worst_allowed(len(correlation))


# Subset selection

SUBSETS = SubsetSelection.from_epsilon(10, 0.5)


def test_subset_has_the_truth_strictly_below_the_threshold_and_the_least_keys():
    """Of 10 values and 6 bits of noise; the truth is 2, sets have 4 values."""
    keys = np.array([[9, 3, 0, 1, 2, 5, 9, 9, 9, 9, *[2**64 - 1] * 6]] * 2, np.uint64)
    words = ScriptedWords([SUBSETS.threshold - 1, SUBSETS.threshold], keys)
    assert bits(randomize_subsets(np.array([2, 2]), SUBSETS, words)).tolist() == [
        [0, 1, 1, 1, 1, *[0] * 11],
        [0, 1, 0, 1, 1, 1, *[0] * 10],
    ]


def test_subset_of_equal_keys_is_drawn_again():
    tied = np.array([[5, 5, 0, 5, 5, 5, 5, 5, 5, 5, *[0] * 6]], np.uint64)
    other = np.array([[1, 2, 0, 3, 9, 9, 9, 9, 9, 9, *[2**64 - 1] * 6]], np.uint64)
    words = ScriptedWords([0], tied, other)
    assert bits(randomize_subsets(np.array([2]), SUBSETS, words)).tolist() == [[1, 1, 1, 1, *[0] * 12]]
    assert words.is_used_up


def subset_deviation(randomize):
    """Worst deviation, in standard ones, of how often a value is in a set, alone and with the next one."""
    rows = bits(randomize(np.full(REPORTS, 3), SUBSETS, RepeatableWords(11))).astype(np.int64)
    k, w, p = SUBSETS.buckets, SUBSETS.chosen, SUBSETS.q_star
    q = SUBSETS.p_star
    alone = z_of(rows.sum(axis=0), REPORTS, np.where(np.arange(16) == 3, p, q))
    both = p * (w - 1) * (w - 2) / ((k - 1) * (k - 2)) + (1 - p) * w * (w - 1) / ((k - 1) * (k - 2))
    pairs = z_of((rows[:, 4:9] * rows[:, 5:10]).sum(axis=0), REPORTS, both)
    assert (rows[:, :k].sum(axis=1) == w).all()
    return np.abs([*alone, *pairs]).max()


def test_subsets_have_their_probabilities():
    """21 frequencies at a false-alarm rate of 1e-6 in all; one that is off by .023 is caught with 99.9 %."""
    assert subset_deviation(randomize_subsets) < worst_allowed(21)


def test_check_of_subsets_finds_a_truth_that_is_in_too_often():
    def broken(values, mechanism, words):
        more = SubsetSelection(mechanism.buckets, mechanism.chosen, mechanism.threshold + 2**64 // 40)
        return randomize_subsets(values, more, words)

    assert subset_deviation(broken) > worst_allowed(21)
