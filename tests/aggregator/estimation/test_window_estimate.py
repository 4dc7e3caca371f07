"""Estimate records from counts: values that JSON cannot hold, omitted values, and large domains."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from aggregator.estimation import window_estimate
from aggregator.estimation.window_estimate import VALUES_PER_RECORD, record_of, records_of
from aggregator.records.estimate import Other, decode_estimate, encode_estimate
from aggregator.records.window_counts import WindowCounts
from estimators.collection import Collection
from estimators.frequency.estimate import Estimate
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor_hot import HotRappor
from tests.support.aggregator.builders import CHANNEL, FRUIT, PLACE, T0

COLUMNS = ("values", "frequency", "count", "std_error", "low", "high", "significant")


def window_of(counts: list[list[int]], sizes: list[int]) -> WindowCounts:
    return WindowCounts(
        np.array(counts, dtype=np.int64), np.array(sizes, dtype=np.int64), packs=3, rejected=2
    )


FRUITS = window_of([[50, 20, 10, 20]], [100])


def test_frequencies_are_fractions_and_counts_are_reports() -> None:
    record = record_of(FRUIT, T0, FRUITS, window_estimate.estimate(FRUIT, FRUITS), final=False)
    assert record.other is not None
    assert sum(record.frequency) + record.other.frequency == pytest.approx(1)
    assert record.count == pytest.approx([100 * frequency for frequency in record.frequency])
    assert all(
        low <= f <= high for low, f, high in zip(record.low, record.frequency, record.high, strict=True)
    )


def test_without_other_all_buckets_are_values() -> None:
    plain = replace(FRUIT, values=(), other=False)
    record = record_of(plain, T0, FRUITS, window_estimate.estimate(plain, FRUITS), final=False)
    assert record.values == ["0", "1", "2", "3"]
    assert record.other is None
    assert sum(record.frequency) == pytest.approx(1)


def test_rappor_names_candidates_and_the_background() -> None:
    window = window_of([[40] * 16, [40] * 16, [45] * 16], [100, 100, 100])
    result = window_estimate.estimate(PLACE, window)
    record = record_of(PLACE, T0, window, result, final=False)
    assert (record.mechanism, record.values) == ("rappor", ["LAX", "SFO", "JFK"])
    assert record.epsilon == CHANNEL.epsilon_one
    assert record.other is not None
    assert (record.other.frequency, record.other.std_error) == result.other
    assert record.diagnostics.keys() == {"likelihood_gap", "chi_square_ratio"}


TWICE = LongitudinalKRR(KRR(3, 3 << 62), KRR(3, 1 << 63))
ONE_HOT = HotRappor.from_probabilities(3, 1, 0.25, 0.35, 0.65)
K_HOT = HotRappor.from_probabilities(3, 2, 0.25, 0.35, 0.65)


@pytest.mark.parametrize(
    ("mechanism", "name", "held"),
    [
        (KRR(3, 1 << 63), "k-rr", [0.7, 0.2, 0.1]),
        (TWICE, "k-rr-longitudinal", [0.7, 0.2, 0.1]),
        (ONE_HOT, "rappor-one-hot", [0.7, 0.2, 0.1]),
        (K_HOT, "rappor-k-hot", [0.9, 0.7, 0.4]),
    ],
    ids=str,
)
def test_expected_counts_return_the_true_distribution(
    mechanism: Mechanism, name: str, held: list[float]
) -> None:
    """For 10^12 reports, so rounding to integers is below 1e-11; padding bits contain only noise."""
    collection = Collection("cabin", mechanism, values=("first", "rest"), other=True)
    shares = np.zeros(collection.width)
    shares[:3] = held
    if isinstance(mechanism, HotRappor):
        rates = mechanism.p_star + (mechanism.q_star - mechanism.p_star) * shares
    else:
        rates = mechanism.channel @ shares
    window = window_of([np.rint(rates * 1e12).astype(np.int64).tolist()], [10**12])
    record = record_of(collection, T0, window, window_estimate.estimate(collection, window), final=True)
    assert (record.mechanism, record.estimator, record.values) == (name, "mle", ["first", "rest"])
    assert record.frequency == pytest.approx(held[:2], abs=1e-10)
    assert record.other is not None
    assert record.other.frequency == pytest.approx(held[2], abs=1e-10)
    assert record.epsilon == mechanism.epsilon
    assert record.omitted == 0


def result_of(frequency: list[float], std_error: float, other: tuple[float, float] | None = None) -> Estimate:
    shape = np.array(frequency)
    errors = np.full(len(shape), std_error)
    return Estimate("mle", 100, shape, errors, shape * 0, shape * 0 + 1, shape > 0, other)


def test_infinite_error_is_null() -> None:
    window = window_of([[40] * 16] * 3, [100] * 3)
    record = record_of(PLACE, T0, window, result_of([0.1, 0.2, 0.3], np.inf, (0.4, np.inf)), final=False)
    fields = json.loads(encode_estimate(record))
    assert fields["std_error"] == [None, None, None]
    assert fields["other"] == {"frequency": 0.4, "std_error": None}
    assert decode_estimate(encode_estimate(record)) == record


def wide(k: int, counts: list[int] | None = None, **changed: object) -> tuple[Collection, WindowCounts]:
    """k-RR over this many integers, each counted once by default."""
    collection = replace(FRUIT, mechanism=KRR.from_epsilon(k, 8.0), values=(), other=False, **changed)
    counts = counts or [1] * k
    return collection, window_of([counts], [sum(counts)])


def mixed(k: int) -> list[int]:
    """Counts from 1 to k, shuffled."""
    return [int(count) for count in np.random.default_rng(1).permutation(k) + 1]


def test_largest_values_of_a_large_domain_keep_their_order() -> None:
    counts = mixed(5000)
    collection, window = wide(5000, counts)
    result = window_estimate.estimate(collection, window)
    record = record_of(collection, T0, window, result, final=False)
    assert (record.omitted, record.part, record.parts) == (5000 - VALUES_PER_RECORD, 1, 1)
    assert {len(getattr(record, column)) for column in COLUMNS} == {VALUES_PER_RECORD}
    shown = [int(value) for value in record.values]
    assert min(counts[value] for value in shown) == 5000 - VALUES_PER_RECORD + 1
    assert shown == sorted(shown)
    assert record.frequency == [result.frequency[value] for value in shown]
    assert len(encode_estimate(record)) < 2**20


def test_other_estimates_omitted_values_of_a_large_domain() -> None:
    """2,000 values are significant, so noise selected none; the rest may include a bucket for others."""
    counts = [100_000 + 150 * place for place in range(2000)] + [50_000] * 1000
    for has_other in (False, True):
        collection, window = wide(3000, counts)
        collection = replace(collection, other=has_other)
        result = window_estimate.estimate(collection, window)
        record = record_of(collection, T0, window, result, final=False)
        assert record.omitted == 1000 - has_other
        assert record.other is not None
        assert record.other.std_error is not None
        left_out = result.frequency.sum() - sum(record.frequency)
        assert abs(record.other.frequency - left_out) < 3 * record.other.std_error


def test_other_estimates_omitted_one_hot_buckets() -> None:
    mechanism = HotRappor.from_probabilities(3000, 1, 0.25, 0.35, 0.65)
    hot = Collection("hot", mechanism, values=tuple(map(str, range(3000))))
    ones = (int(mechanism.p_star * 10**8) + np.arange(mechanism.width)[::-1] * 20).tolist()
    window = window_of([ones], [10**8])
    record = record_of(hot, T0, window, window_estimate.estimate(hot, window), final=False)
    assert (record.omitted, record.other is not None) == (1000, True)
    assert record.values[-1] == "1999"


def test_long_candidates_that_do_not_fit_are_in_other() -> None:
    long = replace(PLACE, candidates=tuple(letter * 400_000 for letter in "abc"))
    window = window_of([[40] * 16, [40] * 16, [45] * 16], [100, 100, 100])
    result = result_of([0.1, 0.2, 0.3], 0.05, (0.35, 0.04))
    record = record_of(long, T0, window, result, final=False)
    assert ([value[0] for value in record.values], record.omitted) == (["b", "c"], 1)
    assert record.other is not None
    assert (record.other.frequency, record.other.std_error) == pytest.approx((0.45, 0.09))


def test_other_is_the_background_if_candidates_fit() -> None:
    window = window_of([[40] * 16] * 3, [100] * 3)
    background = result_of([0.1, 0.2, 0.3], 0.05, (0.35, 0.04))
    record = record_of(PLACE, T0, window, background, final=False)
    assert record.other == Other(0.35, 0.04)
    alone = record_of(PLACE, T0, window, result_of([0.1, 0.2, 0.3], 0.05), final=False)
    assert alone.other is None


def test_parts_contain_every_value_once() -> None:
    collection, window = wide(12_000, mixed(12_000))
    result = window_estimate.estimate(collection, window)
    parts = records_of(collection, T0, window, result, final=True)
    usual = record_of(collection, T0, window, result, final=True)
    assert [(part.part, part.parts) for part in parts] == [(1, 3), (2, 3), (3, 3)]
    assert msgspec.structs.replace(parts[0], parts=1) == usual
    values = [int(value) for part in parts for value in part.values]
    assert sorted(values) == list(range(12_000))
    assert [part.omitted for part in parts] == [10_000, 10_000 - len(parts[1].values), 0]
    assert min(parts[0].frequency) >= max(parts[1].frequency)
    assert min(parts[1].frequency) >= max(parts[2].frequency)
    assert (parts[1].other is None, parts[2].other) == (False, None)
    assert max(len(encode_estimate(part)) for part in parts) < 2**20
    assert len({part.key for part in parts}) == 3
    assert {part.first_key for part in parts} == {usual.key}


def test_small_domain_is_one_part() -> None:
    result = window_estimate.estimate(FRUIT, FRUITS)
    whole = record_of(FRUIT, T0, FRUITS, result, final=True)
    assert records_of(FRUIT, T0, FRUITS, result, final=True) == [whole]


def test_value_too_long_for_a_record_is_omitted() -> None:
    long = replace(FRUIT, values=("apple", "x" * window_estimate.VALUE_BYTES, "kiwi"))
    result = window_estimate.estimate(long, FRUITS)
    (record,) = records_of(long, T0, FRUITS, result, final=True)
    assert (record.values, record.omitted) == (["apple", "kiwi"], 1)
    nothing = replace(long, values=("x" * 10**6, "y" * 10**6, "z" * 10**6))
    (record,) = records_of(nothing, T0, FRUITS, result, final=True)
    assert (record.values, record.omitted, record.other) == ([], 3, Other(1.0, 0.0))
    assert record_of(nothing, T0, FRUITS, result, final=True) == record


def test_domain_that_just_fits_is_not_cut() -> None:
    collection, window = wide(VALUES_PER_RECORD)
    result = result_of([1 / VALUES_PER_RECORD] * VALUES_PER_RECORD, 0.1)
    assert record_of(collection, T0, window, result, final=False).omitted == 0


def test_record_of_long_values_stays_below_kafkas_limit() -> None:
    """Kafka would refuse a larger record, and the partition would stop."""
    values = tuple(f"{number:04}" + "\u00e4\n" * 400 for number in range(VALUES_PER_RECORD))
    long, window = wide(len(values), list(range(1, len(values) + 1)))
    long = replace(long, values=values)
    record = record_of(long, T0, window, window_estimate.estimate(long, window), final=True)
    assert 800_000 < len(encode_estimate(record)) < 1_000_000
    shown = len(record.values)
    assert record.omitted == len(values) - shown > 0
    assert record.values == list(values[-shown:])
