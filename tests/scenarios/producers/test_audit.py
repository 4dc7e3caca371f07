"""Audits measure epsilon from outputs alone, and must fail broken randomizers.

Correct randomizers fail the suite with probability below 1e-6; its words repeat in every run. Broken ones are
audited with at most a tenth of the outputs.
"""

from functools import partial

import numpy as np
import pytest

from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.randomization.randomizers import instantaneous, permanent
from tests.support.producers.audit.bits import bit_pair_bounds, group_bounds, loss_of_one_bit
from tests.support.producers.audit.bounds import Bounds
from tests.support.producers.audit.broken import (
    Changed,
    Redrawn,
    SeedsWithoutClient,
    Twice,
    halves_share,
    lies_as_its_neighbour_does,
    lies_with_the_truth_among_the_lies,
    neighbours_share,
    never_lies_of_one_value,
    next_but_one_share,
    of_epsilon_1_1,
    one_bit_copies_its_neighbour,
    one_bit_never_randomized,
    ones_never_cleared,
    permanent_step_left_out,
    second_lane_repeats_the_first,
)
from tests.support.producers.audit.reports import report_bounds
from tests.support.producers.audit.subjects import (
    SECRET,
    bits_of,
    commonest_of_hashed,
    krr,
    majority_of_bits,
    two_steps,
)
from tests.support.producers.audit.suite import (
    ALL_128,
    AUDITS,
    NOISY_128,
    NOISY_4096,
    REPEATED,
    REPEATED_HASH,
    SETS,
    TWO_HOT,
    remembering,
)
from tests.support.producers.sources import RepeatableWords

pytestmark = [pytest.mark.slow, pytest.mark.all]

OUTPUTS = 200_000
ERROR = 1e-8
KRR_4 = KRR.from_epsilon(4, 1.0)
COPIES = (second_lane_repeats_the_first, one_bit_copies_its_neighbour, neighbours_share, next_but_one_share)
every_copy = pytest.mark.parametrize(
    "change", [COPIES[0], *(pytest.param(each, marks=pytest.mark.nightly) for each in COPIES[1:])]
)
#: Audits of few outputs, one of every function that looks at them but `group_bounds`.
SHORT = {
    "k-RR, k = 2",
    "longitudinal k-RR, two values of each client",
    "longitudinal local hashing, 7 reports of each client",
    "Bloom, 128 bits, memoized, all pairs of bits",
}
NOISY_16 = Rappor.from_probabilities(16, 2, 1, 0.5, 0.25, 0.75)


@pytest.mark.parametrize(
    "audit",
    [pytest.param(each, marks=[] if each.subject in SHORT else pytest.mark.nightly) for each in AUDITS],
    ids=lambda audit: audit.subject,
)
def test_audit(audit):
    assert audit.bounds().passes(audit.epsilon, audit.attainable)


def test_bounds_between_attainable_and_epsilon_pass():
    assert Bounds(most=1.0, least=0.9, events=1).passes(1.0)
    assert not Bounds(most=1.01, least=0.9, events=1).passes(1.0)
    assert not Bounds(most=1.0, least=0.89, events=1).passes(1.0)
    assert Bounds(most=1.0, least=0.89, events=1).passes(1.0, attainable=False)


# k-RR


@pytest.mark.parametrize(
    "broken",
    [
        never_lies_of_one_value,
        of_epsilon_1_1,
        lies_with_the_truth_among_the_lies,
        lies_as_its_neighbour_does,
    ],
)
def test_audit_fails_k_rr_that(broken):
    bounds = report_bounds(partial(broken, mechanism=KRR_4, words=RepeatableWords(1)), 4, 4, ERROR, OUTPUTS)
    assert bounds.most > 1.0


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(Changed(RepeatableWords(1), neighbours_share), id="neighbours of a batch"),
        pytest.param(Changed(RepeatableWords(1), next_but_one_share), id="next but one of a batch"),
        pytest.param(Changed(RepeatableWords(1), halves_share), id="halves of a batch"),
        pytest.param(Twice(RepeatableWords(1), draws=2), id="two batches"),
        pytest.param(Twice(RepeatableWords(1), draws=1), id="the choice to lie and the lie"),
    ],
)
def test_audit_fails_k_rr_with_words_shared_by(words):
    assert report_bounds(krr(KRR_4, words), 4, 4, ERROR, OUTPUTS).most > 1.0


# RAPPOR


@pytest.mark.parametrize("broken", [ones_never_cleared, one_bit_never_randomized, permanent_step_left_out])
def test_audit_fails_rappor_where(broken):
    bounds = group_bounds(partial(broken, mechanism=NOISY_16, words=RepeatableWords(1)), 16, ERROR, OUTPUTS)
    assert bounds.most > NOISY_16.epsilon_one


def test_audit_fails_rappor_with_shared_words():
    """Each step draws two words here."""
    bounds = group_bounds(two_steps(NOISY_16, Twice(RepeatableWords(1), draws=2)), 16, ERROR, OUTPUTS)
    assert bounds.most > NOISY_16.epsilon_one


@pytest.mark.parametrize("step", ["permanent", "instantaneous"])
@every_copy
def test_audit_fails_copied_noise_of_one_step(change, step):
    words, copied = RepeatableWords(1), Changed(RepeatableWords(2), change)
    first, second = (copied, words) if step == "permanent" else (words, copied)

    def randomize(rows):
        return instantaneous(permanent(rows, NOISY_128, first), NOISY_128, second)

    assert bit_pair_bounds(randomize, 128, *ALL_128, ERROR).most > loss_of_one_bit(NOISY_128)


@every_copy
def test_only_pairs_reveal_copied_noise(change):
    """Each group of four bits by itself is distributed correctly."""
    randomize = two_steps(NOISY_128, Changed(RepeatableWords(1), change))
    assert group_bounds(randomize, 128, ERROR, OUTPUTS).most <= NOISY_128.epsilon_one
    assert bit_pair_bounds(randomize, 128, *ALL_128, ERROR).most > loss_of_one_bit(NOISY_128)


@pytest.mark.parametrize(
    "change",
    [
        one_bit_copies_its_neighbour,
        *(pytest.param(COPIES[each], marks=pytest.mark.nightly) for each in (0, 3)),
    ],
)
def test_audit_of_4096_bits_fails_copied_noise(change):
    randomize = two_steps(NOISY_4096, Changed(RepeatableWords(1), change))
    bounds = bit_pair_bounds(randomize, 4096, [1, 64], {2: [0]}, ERROR, 2**13)
    assert bounds.most > loss_of_one_bit(NOISY_4096)


def test_audit_fails_an_unreduced_set():
    rows = np.array(SETS, np.uint8)[:, np.newaxis]
    noise = two_steps(TWO_HOT, RepeatableWords(1))
    bounds = report_bounds(lambda inputs: noise(rows[inputs])[:, 0], 3, 256, ERROR, OUTPUTS)
    assert bounds.most > TWO_HOT.epsilon_one


# memory


@pytest.mark.parametrize("broken", [Redrawn, SeedsWithoutClient])
def test_audit_fails_memory(broken):
    """Redrawn responses average to the truth; seeds without the client repeat another client's noise."""
    memory = broken(SECRET, "c", ("audit",), memoize=True)
    subject = bits_of(majority_of_bits(REPEATED, [1 << 2, 1 << 5], RepeatableWords(1), memory), [2, 5])
    assert report_bounds(subject, 2, 4, ERROR, OUTPUTS).most > REPEATED.epsilon_inf


@pytest.mark.parametrize("broken", [Redrawn, SeedsWithoutClient])
def test_audit_fails_memory_of_hashed_values(broken):
    """As above. Copied noise shows in the pairs of reports."""
    memory = broken(SECRET, "c", ("audit",), memoize=True)
    subject = commonest_of_hashed(remembering(REPEATED_HASH), ["JFK", "LGA"], memory)
    assert report_bounds(subject, 2, 3, ERROR, OUTPUTS // 10).most > REPEATED_HASH.epsilon_inf
