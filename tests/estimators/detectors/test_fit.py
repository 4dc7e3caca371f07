"""The test of fit: it accepts honest counts of any values, and rejects impossible ones of every mechanism."""

import numpy as np

from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import FIT, LIMIT, BitNoise, contradicts, with_fit
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.krr import estimate
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave

TWO = KRR.from_epsilon(2, 1.0986)


FOUND = estimate(np.array([3, 1]), TWO)


def fit_of(counts, repeats=1.0):
    counts = np.array(counts)
    return with_fit(FOUND, counts[None], counts.sum(keepdims=True), TWO, repeats)


def test_fewer_reports_than_lies_contradict_the_parameters():
    """Of 100,000 reports at P(lie) = 1/4, half that many of a value are impossible whoever holds it."""
    assert contradicts(fit_of([87_500, 12_500]).diagnostics)
    assert not contradicts(fit_of([75_000, 25_000]).diagnostics)
    assert not contradicts(fit_of([50_000, 50_000]).diagnostics)


def test_false_alarms_are_rarer_than_the_p_value():
    """Everyone holds one value: the hardest honest case. Of 400 windows, .05 is 20, and 5.4 sigma 24."""
    rng = np.random.default_rng(5)
    ones = rng.binomial(1000, TWO.p, 400)
    p_values = [fit_of([n, 1000 - n]).diagnostics[FIT] for n in ones.tolist()]
    assert sum(each <= 0.05 for each in p_values) <= 44


def test_permanent_noise_of_returning_clients_is_counted_once():
    """3.9 standard deviations of 1,000 clients become 39 if each of their 100 equal reports counts."""
    counts = [80_300, 19_700]
    assert fit_of(counts).diagnostics[FIT] < LIMIT
    assert fit_of(counts, repeats=100).diagnostics[FIT] > LIMIT


def p_value_of(counts, reports, mechanism):
    found = with_fit(FOUND, np.array([counts]), np.array([reports]), mechanism)
    return found.diagnostics[FIT]


def test_margins_of_a_pair_are_tested():
    """Of 100,000 pairs, 16 % show the first row, and lies alone 27 %, though each cell is possible."""
    pair = PairKRR(KRR.from_epsilon(2, 1.0), KRR.from_epsilon(2, 1.0))
    assert pair.first.q > 0.2
    assert p_value_of([8_000, 8_000, 42_000, 42_000], 100_000, pair) < LIMIT
    honest = 100_000 * np.outer([pair.first.p, pair.first.q], [pair.second.p, pair.second.q]).ravel()
    assert p_value_of(np.rint(honest).astype(np.int64), 100_000, pair) == 1


def test_more_bits_than_clients_have_contradict_the_parameters():
    """Each of three bits is possible, if nearly all clients had it; each client has one."""
    one_hot = HotRappor.from_probabilities(3, 1, 0.0, 0.25, 0.75)
    noise = BitNoise(one_hot.q_star, one_hot.p_star, 1, 3)
    for mechanism in (one_hot, noise):
        assert p_value_of([6_500, 6_500, 6_500, 2_500, 2_500, 2_500, 2_500, 2_500], 10_000, mechanism) < LIMIT
        assert p_value_of([7_500, 2_500, 2_500, 7_400, 7_400, 7_400, 7_400, 7_400], 10_000, mechanism) == 1


def test_totals_of_honest_bits_are_no_contradiction():
    """All clients have the same bits. Of 2,000 windows none is below 1e-6: a false alarm in .002 of seeds."""
    rng = np.random.default_rng(8)
    one_hot = HotRappor.from_probabilities(3, 1, 0.5, 0.25, 0.75)
    rates = [one_hot.q_star, one_hot.p_star, one_hot.p_star]
    p_values = [p_value_of(rng.binomial(1000, rates), 1000, one_hot) for _ in range(2000)]
    assert min(p_values) > LIMIT
    assert np.mean(np.array(p_values) < 0.05) < 0.05


def test_a_number_has_the_rates_of_its_cells():
    mechanism = SquareWave.from_epsilon(0, 1, 64, 2)
    hit, miss = mechanism.counter_rates
    assert (mechanism.channel.max(), mechanism.channel.min()) == (hit, miss)


def test_a_share_of_nothing_is_not_significant():
    """Whatever a test of its counts says: of an estimate and a lower end of 0 nothing was found."""
    zero, half = np.zeros(2), np.array([0.0, 0.5])
    found = Estimate("mle", 10, half, zero + 1, zero, zero + 1, np.array([True, True]))
    assert found.significant.tolist() == [False, True]


def test_a_collection_of_numbers_is_labelled_by_rows():
    collection = Collection("ages", SquareWave.from_epsilon(0, 120, 240, 1))
    assert collection.labels() == ("0", "15", "30", "45", "60", "75", "90", "105")
    assert collection.entries == 8
