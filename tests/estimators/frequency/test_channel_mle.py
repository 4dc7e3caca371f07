"""Maximum likelihood for any channel: published values, a certified gap, faster than plain EM."""

import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.frequency.channel_mle import channel_mle
from deniable.estimators.frequency.ibu import ibu_of_channel
from deniable.estimators.frequency.krr import mle
from deniable.estimators.mechanisms.krr import KRR
from tests.support.estimators.simulation import generator, krr_counts, zipf_counts
from tests.support.messages import PinMessages
from tests.support.paths import VECTORS

CASES = json.loads((VECTORS / "channel_mle.json").read_text())["cases"]


def gap_of(theta, counts, channel):
    """Upper bound on the gain of any distribution over theta, nats per report."""
    return np.log((counts / counts.sum() / (channel @ theta)) @ channel).max()


@pytest.mark.parametrize("case", CASES)
def test_published_maxima(case):
    found = channel_mle(np.array(case["counts"]), np.array(case["channel"]))
    np.testing.assert_allclose(found.frequency, case["mle"], atol=1e-6)
    assert found.log_likelihood == pytest.approx(case["log_likelihood"], rel=1e-9)
    assert 0 <= found.gap <= 1e-9


@pytest.mark.parametrize(
    ("k", "epsilon", "exponent"), [(2, 0.1, 1), (10, 1.0, 1.3), (100, 2.0, 2.5), (300, 1.0, 0.01)]
)
def test_equals_the_closed_form_on_the_channel_of_krr(k, epsilon, exponent):
    mechanism = KRR.from_epsilon(k, epsilon)
    counts = krr_counts(generator(k), zipf_counts(k, 100_000, exponent), mechanism)
    found = channel_mle(counts, mechanism.channel)
    np.testing.assert_allclose(found.frequency, mle(counts, mechanism), atol=1e-9)
    assert found.gap <= 1e-9


SHAPES = {
    "dense": lambda rng, size: rng.random(size),
    "steep": lambda rng, size: rng.dirichlet(np.full(size[0], 0.1), size[1]).T,
    "sparse": lambda rng, size: np.where(rng.random(size) < 0.3, rng.random(size), 0) + 1e-12,
    "nearly blind": lambda rng, size: 1 + 1e-3 * rng.random(size),
    "repeated values": lambda rng, size: np.repeat(rng.random((size[0], -(-size[1] // 2))), 2, axis=1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_gap_is_closed_for_any_channel_and_counts(shape):
    """With more or fewer reports than values, and counts that the channel explains or not."""
    for seed in range(12):
        rng = generator(seed)
        channel = SHAPES[shape](rng, rng.integers(2, 40, 2))
        channel /= channel.sum(axis=0)
        counts = rng.multinomial(int(10 ** rng.uniform(0, 6)), rng.dirichlet(np.full(len(channel), 0.3)))
        found = channel_mle(counts, channel)
        assert found.frequency.min() >= 0
        assert found.frequency.sum() == pytest.approx(1, abs=1e-12)
        assert found.gap == pytest.approx(max(0, gap_of(found.frequency, counts, channel)), abs=1e-13)
        assert found.gap <= 1e-9


@pytest.mark.slow
@given(st.integers(0, 1000))
def test_gap_bounds_what_any_other_distribution_gains(seed):
    """The certificate also holds away from the maximum, after a few steps of EM."""
    rng = generator(seed)
    channel = rng.dirichlet(np.ones(5), 4).T
    counts = rng.integers(0, 100, 5) + 1
    best = channel_mle(counts, channel)
    near = ibu_of_channel(counts, channel, iterations=5).frequency
    gain = (best.log_likelihood - counts @ np.log(channel @ near)) / counts.sum()
    assert -1e-12 <= gain <= gap_of(near, counts, channel) + 1e-12


@pytest.mark.nightly
def test_faster_than_plain_em():
    """40 values at epsilon 1: 10,000 steps of EM take about 60 times as long and leave a gap.

    With so few values BLAS uses one thread; with two, a busy second core would stall it.
    """
    mechanism = KRR.from_epsilon(40, 1.0)
    counts = krr_counts(generator(1), zipf_counts(40, 100_000, 1.3), mechanism)
    channel = mechanism.channel

    def timed(function):
        start = time.process_time()
        result = function(counts, channel)
        return time.process_time() - start, result.frequency

    newton_seconds, newton = min((timed(channel_mle) for _ in range(3)), key=lambda pair: pair[0])
    em_seconds, em = timed(ibu_of_channel)
    assert gap_of(newton, counts, channel) <= 1e-9 < gap_of(em, counts, channel)
    assert newton_seconds < em_seconds / 10


def test_equal_reports():
    found = channel_mle(np.array([0, 9, 0]), np.array(CASES[0]["channel"]))
    np.testing.assert_allclose(found.frequency, [0, 1, 0], atol=1e-12)


BLIND = np.array([[0.75, 0.25], [0.25, 0.75], [0.0, 0.0]])


@pytest.mark.parametrize("counts", [[1, 2], [1, -1, 2], [0, 0, 0]])
def test_bad_counts_are_rejected(counts):
    with pytest.raises(ValueError, match="counts"):
        channel_mle(np.array(counts), BLIND)


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages({"reports that no value leads to": lambda: channel_mle(np.array([1, 2, 3]), BLIND)})
