"""The suite of audits: the functions, and the epsilon that each must keep."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_positions
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.randomization.permanent_responses import Memory
from deniable.producers.randomization.randomness import Keystream
from tests.support.producers.audit.bits import bit_pair_bounds, group_bounds, loss_of_one_bit
from tests.support.producers.audit.bounds import Bounds
from tests.support.producers.audit.reports import report_bounds
from tests.support.producers.audit.subjects import (
    SECRET,
    answers,
    bits_of,
    commonest_bucket,
    commonest_of_hashed,
    krr,
    level_and_report,
    majority_of_bits,
    pair,
    remembered_steps,
    reports_of,
    short_rows,
    square_wave,
    texts_of_all_bits,
    two_answers,
    two_steps,
    whole,
)
from tests.support.producers.sources import RepeatableWords

#: Probability that any audit fails correct randomizers; each has an equal share of it.
FALSE_ALARM = 1e-6
#: Outputs of each input if only pairs give bounds.
FEW = 200_000

LONGITUDINAL = LongitudinalKRR.from_epsilons(4, 2.5, 1.5)
REPEATED_KRR = LongitudinalKRR.from_epsilons(4, 2.0, 1.9)
HASHED = LocalHash.from_epsilon(1.0, 26)
TREE = PrefixTree((1, 3), LocalHash.from_epsilon(1.0, 26))
LONGITUDINAL_HASH = LongitudinalHash.from_epsilons(2.5, 1.5, 26, 3)
REPEATED_HASH = LongitudinalHash.from_epsilons(2.0, 1.9, 26, 3)
ONE_HOT = HotRappor.from_probabilities(8, 1, 0.25, 0.25, 0.75)
PAIR_FIELDS = Field("a", ("x", "y"), False), Field("b", ("s", "t", "u", "v"), False)
PAIR_BITS = Collection("c", OneHotPair.from_epsilon(2, 4, 1.0), pair_labels(*PAIR_FIELDS), fields=PAIR_FIELDS)
TWO_HOT = HotRappor.from_probabilities(8, 2, 0.25, 0.25, 0.75)
SETS = [0b0000_0011, 0b1100_0000, 0b0011_1100]
BLOOM_8 = Rappor.from_probabilities(8, 2, 2, 0.25, 0.25, 0.75)
REPEATED = Rappor.from_probabilities(8, 1, 1, 0.5, 0.125, 0.875)
BLOOM_128 = Rappor.from_probabilities(128, 2, 1, 0.25, 0.35, 0.65)
#: Both steps are so noisy that shared noise of two bits shows in either.
NOISY_128 = Rappor.from_probabilities(128, 2, 1, 0.5, 0.25, 0.75)
NOISY_4096 = Rappor.from_probabilities(4096, 2, 1, 0.5, 0.25, 0.75)

#: Distances of two bits of a report, and of two reports and their bits: all pairs of a report and of
#: neighbours, then the same place, also in the other lane.
ALL_128 = (range(1, 65), {1: range(128), **{2**power: (0, 64) for power in range(1, 10)}})
#: Neighbours and the same place in lanes next to each other, next but one and half the width apart.
SOME_4096 = ((1, 64, 128, 2048), {2**power: (0,) for power in range(10)})


@dataclass(frozen=True)
class Audit:
    """One audit of the suite.

    Parameters
    ----------
    subject : what is audited.
    epsilon : that no bound may exceed.
    look : draws outputs and returns Bounds, given the probability that any is wrong.
    attainable : whether that number of outputs can show 0.9 of epsilon.
    """

    subject: str
    epsilon: float
    look: Callable[[float], Bounds]
    attainable: bool = True

    def bounds(self):
        return self.look(FALSE_ALARM / len(AUDITS))


def of_reports(subject, epsilon, randomize, inputs, outcomes):
    return Audit(subject, epsilon, partial(report_bounds, randomize, inputs, outcomes))


def of_wave(steps, epsilon, words):
    """The audit of Square Wave over all its cells."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, steps, epsilon)
    look = partial(report_bounds, square_wave(mechanism, words), steps, mechanism.width)
    return Audit(f"Square Wave, {steps} steps", epsilon, look)


def of_pair(k1, k2, epsilon, words):
    """The audit of k-RR of pairs over all its pairs."""
    mechanism = PairKRR.from_epsilons(k1, k2, epsilon / 2, epsilon / 2)
    look = partial(report_bounds, pair(mechanism, words), mechanism.width, mechanism.width)
    return Audit(f"k-RR of pairs, {k1} x {k2}", epsilon, look)


def of_krr(k, epsilon, words, note="", values=None):
    """k-RR of all values, or of these."""
    randomize = krr(KRR.from_epsilon(k, epsilon), words, values)
    look = partial(report_bounds, randomize, len(values or range(k)), k)
    return Audit(f"k-RR, k = {k}{note}", epsilon, look, attainable=k <= 100)


def of_two_values(subject, mechanism, randomize):
    """Clients that report two values: one (of two inputs and four outcomes) is inferred from the other."""
    look = partial(report_bounds, randomize, 2, 4, outputs=FEW)
    return Audit(f"{subject}, two values of each client", mechanism.epsilon_one, look, attainable=False)


def of_groups(mechanism, words):
    look = partial(group_bounds, two_steps(mechanism, words), mechanism.bits)
    return Audit(f"Bloom, {mechanism.bits} bits, every 4 bits", mechanism.epsilon_one, look)


def of_bit_pairs(subject, mechanism, randomize, distances):
    look = partial(bit_pair_bounds, randomize, mechanism.bits, *distances)
    return Audit(subject, loss_of_one_bit(mechanism), look, attainable=False)


def memory():
    return Memory(SECRET, "c", ("audit",), memoize=True)


def remembering(mechanism, values=()):
    return Collection("c", mechanism, values, memoize=True)


def airports():
    """The four bits that two texts set."""
    texts = ("JFK", "LGA")
    bits = [bit for text in texts for bit in bloom_positions(text, 0, NOISY_128)]
    return bits_of(reports_of(answers(remembering(NOISY_128), texts)), bits)


def bits_2_and_5(randomize):
    """All bits that differ between inputs that set either."""
    return bits_of(randomize, [2, 5])


LONGITUDINAL_PAIRS = two_answers(remembering(REPEATED_KRR), (0, 1), (2, 3))
ONE_HOT_PAIRS = two_answers(remembering(ONE_HOT, tuple("abcdefgh")), "cf", "ah")
#: These texts set bits 2 or 5, and 6 or 1.
BLOOM_PAIRS = two_answers(remembering(REPEATED), ("EWR", "BOS"), ("LGA", "SFO"))
MAJORITY = majority_of_bits(REPEATED, [1 << 2, 1 << 5], RepeatableWords(4), memory())
COMMONEST = commonest_bucket(REPEATED_KRR, [0, 3], RepeatableWords(5), memory())
ONE_HOT_ROWS = short_rows(ONE_HOT, [1 << bit for bit in range(8)], RepeatableWords(6))
#: The last is a set of four, of which any two are reported.
TWO_HOT_ROWS = short_rows(TWO_HOT, SETS, RepeatableWords(7))
BLOOM_TEXTS = answers(Collection("c", BLOOM_8), texts_of_all_bits(BLOOM_8))

AUDITS = [
    of_krr(2, 1.0, RepeatableWords(1)),
    of_wave(16, 1.0, RepeatableWords(15)),
    of_pair(3, 4, 1.0, RepeatableWords(16)),
    # The word source of producers; only with it the audit differs from run to run.
    of_krr(4, 1.0, Keystream(), ", the real keystream"),
    of_krr(100, 1.0, RepeatableWords(2)),
    # Of 2 million reports 544 show a value that is true, 200 one that is not: too few for 0.9 of epsilon.
    of_krr(10_000, 1.0, RepeatableWords(3), values=[0, 4_999, 9_999]),
    of_reports(
        "longitudinal k-RR, a report of each client",
        LONGITUDINAL.epsilon_one,
        whole(answers(remembering(LONGITUDINAL), range(4))),
        4,
        4,
    ),
    of_reports("longitudinal k-RR, 7 reports of each client", REPEATED_KRR.epsilon_inf, COMMONEST, 2, 4),
    of_two_values("longitudinal k-RR", REPEATED_KRR, whole(LONGITUDINAL_PAIRS)),
    of_reports(
        "local hashing, 26 functions, 3 buckets",
        HASHED.epsilon,
        whole(answers(Collection("c", HASHED), ("JFK", "LGA", "EWR", ""))),
        4,
        78,
    ),
    of_reports(
        "prefix tree, 2 levels, 26 functions, 3 buckets",
        TREE.epsilon,
        level_and_report(answers(Collection("c", TREE), ("JFK", "LGA", "EWR", "")), 78),
        4,
        156,
    ),
    of_reports(
        "longitudinal local hashing, a report of each client",
        LONGITUDINAL_HASH.epsilon_one,
        whole(answers(remembering(LONGITUDINAL_HASH), ("JFK", "LGA", "EWR", ""))),
        4,
        78,
    ),
    Audit(
        "longitudinal local hashing, 7 reports of each client",
        REPEATED_HASH.epsilon_inf,
        partial(
            report_bounds, commonest_of_hashed(remembering(REPEATED_HASH), ["JFK", "LGA"]), 2, 3, outputs=FEW
        ),
    ),
    of_reports("one-hot, 8 bits", ONE_HOT.epsilon_one, ONE_HOT_ROWS, 8, 256),
    of_two_values("one-hot, 8 bits", ONE_HOT, bits_2_and_5(reports_of(ONE_HOT_PAIRS))),
    of_reports(
        "bits of pairs, 2 x 4",
        PAIR_BITS.mechanism.epsilon,
        whole(answers(PAIR_BITS, [(one, other) for one in "xy" for other in "stuv"])),
        8,
        256,
    ),
    of_reports("two-hot, 8 bits", TWO_HOT.epsilon_one, TWO_HOT_ROWS, 3, 256),
    of_reports("Bloom, 8 bits, 2 cohorts", BLOOM_8.epsilon_one, whole(BLOOM_TEXTS), 4, 512),
    of_reports("Bloom, 8 bits, 7 reports of each client", REPEATED.epsilon_inf, bits_2_and_5(MAJORITY), 2, 4),
    of_two_values("Bloom, 8 bits", REPEATED, bits_2_and_5(reports_of(BLOOM_PAIRS))),
    of_reports("Bloom, 128 bits, a report of each client", NOISY_128.epsilon_one, airports(), 2, 16),
    of_groups(BLOOM_128, RepeatableWords(8)),
    of_groups(NOISY_4096, RepeatableWords(9)),
    of_bit_pairs(
        "Bloom, 128 bits, all pairs of bits", NOISY_128, two_steps(NOISY_128, RepeatableWords(10)), ALL_128
    ),
    of_bit_pairs(
        "Bloom, 128 bits, memoized, all pairs of bits",
        NOISY_128,
        remembered_steps(NOISY_128, RepeatableWords(11), memory()),
        ALL_128,
    ),
    of_bit_pairs(
        "Bloom, 4096 bits, pairs of bits", NOISY_4096, two_steps(NOISY_4096, RepeatableWords(12)), SOME_4096
    ),
]
