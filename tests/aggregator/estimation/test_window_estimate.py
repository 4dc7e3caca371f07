"""Estimate records from counts: values that JSON cannot hold, omitted values, and large domains."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.window_estimate import VALUES_PER_RECORD, record_of, records_of
from deniable.aggregator.records.estimate import Other, decode_estimate, encode_estimate
from deniable.aggregator.records.estimate_parts import Parts
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import CHANNEL, FRUIT, PLACE, T0
from tests.support.estimators.simulation import generator, rappor_counts

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
    assert result.other is not None
    assert record.other.frequency == result.other[0]
    # Of two cohorts the rest is withheld.
    assert (record.other.std_error, record.other.low, record.other.high) == (None, 0, 1)
    figures = {"likelihood_gap", "chi_square_ratio", "chi_square_limit", "unexplained_bits", "fit_p_value"}
    assert record.diagnostics.keys() == figures
    assert (record.unreliable, record.unexplained_bits) == ([False] * 3, [])
    assert len(record.misfit_error) == 3


def test_record_names_what_unlisted_strings_hide() -> None:
    """Half of the reports hold a string that is not listed, and each of its bits is far above the others."""
    mechanism = Rappor.from_probabilities(64, 2, 4, 0.25, 0.35, 0.65)
    listed = tuple(f"name {number}" for number in range(20))
    collection = Collection("search", mechanism, candidates=listed)
    held = np.array([*[25_000] * 20, 500_000])
    counts, sizes = rappor_counts(generator(1), held, [*listed, "unlisted"], mechanism)
    window = WindowCounts(counts, sizes, 10, 0)
    result = window_estimate.estimate(collection, window)
    record = record_of(collection, T0, window, result, final=False)
    raised = np.flatnonzero(bloom_design(["unlisted"], mechanism).toarray())
    assert {each.cohort * 64 + each.bit for each in record.unexplained_bits} >= set(raised.tolist())
    assert record.diagnostics["chi_square_ratio"] > record.diagnostics["chi_square_limit"]
    assert record.diagnostics["unexplained_bits"] == len(record.unexplained_bits)
    hidden = [error is None for error in record.std_error]
    assert record.unreliable == hidden


@pytest.mark.slow
def test_local_hashing_names_candidates_and_the_rest() -> None:
    """3,000 candidates, one held by 40 % of the reports, 60 % in unlisted strings: the largest are shown.

    Chance: `other` of all within 6 standard errors; that of a cut list is corrected for selection.
    """
    mechanism = LocalHash.from_epsilon(2.0)
    names = tuple(f"name {number}" for number in range(3000))
    collection = Collection("search", mechanism, candidates=names)
    functions = hash_functions_of(mechanism, collection.fingerprint)
    rng, reports = np.random.default_rng(1), 200_000
    held = [names[1234], *(f"unlisted {number}" for number in range(5))]
    value = rng.choice(6, p=[0.4, *[0.12] * 5], size=reports)
    drawn = rng.integers(mechanism.hash_functions, size=reports)
    true = functions.buckets(functions.words(held)[value], drawn)
    lies = (true + rng.integers(1, 7, size=reports)) % 7
    shown = drawn * 7 + np.where(rng.random(reports) < mechanism.hit, true, lies)
    window = window_of([np.bincount(shown, minlength=collection.width).tolist()], [reports])
    result = window_estimate.estimate(collection, window)
    record = record_of(collection, T0, window, result, final=True)
    assert (record.mechanism, record.estimator, record.omitted) == ("local-hash", "inv", 1000)
    assert result.supports is not None
    left_out = np.delete(result.supports, [names.index(name) for name in record.values])
    assert left_out.max() <= min(result.supports[names.index(name)] for name in record.values)
    place = record.values.index(names[1234])
    assert record.low[place] < 0.4 < record.high[place]
    assert [name for name, is_held in zip(record.values, record.significant, strict=True) if is_held] == [
        names[1234]
    ]
    assert result.other is not None
    assert abs(result.other[0] - 0.6) < 6 * result.other[1]
    assert record.other is not None
    assert record.other.std_error is not None
    assert abs(record.other.frequency - 0.6) < 6 * record.other.std_error
    assert record.diagnostics.keys() == {
        "concentration",
        "collision_error",
        "unlisted_texts",
        "unlisted_share",
        "fit_p_value",
    }
    assert record.diagnostics["concentration"] == pytest.approx(0.4**2 + 5 * 0.12**2, rel=0.1)


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
    assert fields["other"] == {"frequency": 0.4, "std_error": None, "low": 0.0, "high": 1.0}
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


def test_interval_of_omitted_k_hot_buckets_may_exceed_1() -> None:
    """Each client is in four of 4,000 buckets. 2,000 are left out, which hold 1.5 of the 4 on average."""
    mechanism = HotRappor.from_probabilities(4000, 4, 0.25, 0.35, 0.65)
    hot = Collection("hot", mechanism, values=tuple(map(str, range(4000))))
    held = np.zeros(mechanism.width)
    held[:4000] = 4 * np.linspace(1.5, 0.5, 4000) / 4000
    ones = (mechanism.p_star + (mechanism.q_star - mechanism.p_star) * held) * 10**12
    window = window_of([np.rint(ones).astype(np.int64).tolist()], [10**12])
    other = record_of(hot, T0, window, window_estimate.estimate(hot, window), final=False).other
    assert other is not None
    assert other.low is not None
    assert other.high is not None
    assert other.frequency == pytest.approx(1.5, abs=0.01)
    assert 1 < other.low < other.frequency < other.high < 4


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
    assert record.other is not None
    assert (record.other.frequency, record.other.std_error) == (0.35, 0.04)
    assert (record.other.low, record.other.high) == pytest.approx((0.35 - 0.0784, 0.35 + 0.0784), abs=1e-5)
    alone = record_of(PLACE, T0, window, result_of([0.1, 0.2, 0.3], 0.05), final=False)
    assert alone.other is None


def test_parts_contain_every_value_once() -> None:
    collection, window = wide(9_000, mixed(9_000))
    result = window_estimate.estimate(collection, window)
    parts = records_of(collection, T0, window, result, final=True)
    usual = record_of(collection, T0, window, result, final=True)
    assert [(part.part, part.parts) for part in parts] == [(1, 3), (2, 3), (3, 3)]
    assert msgspec.structs.replace(parts[0], parts=1) == usual
    values = [int(value) for part in parts for value in part.values]
    assert sorted(values) == list(range(9_000))
    assert [part.omitted for part in parts] == [7_000, 7_000 - len(parts[1].values), 0]
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
    assert (record.values, record.omitted, record.other) == ([], 3, Other(1.0, 0.0, 1.0, 1.0))
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


NUMBER = Collection("delay", SquareWave.from_epsilon(-60.0, 180.0, 16, 2.0))


def test_number_has_cells_mean_and_quantiles() -> None:
    rates = NUMBER.mechanism.channel @ np.full(16, 1 / 16)
    window = window_of([np.rint(rates * 1e6).astype(np.int64).tolist()], [10**6])
    record = record_of(NUMBER, T0, window, window_estimate.estimate(NUMBER, window), final=True)
    assert (record.mechanism, record.estimator) == ("number", "ems")
    assert record.values == [str(edge) for edge in range(-60, 180, 15)]
    assert (record.omitted, record.other, record.parts) == (0, None, 1)
    assert record.mean is not None
    assert record.mean.low <= record.mean.value <= record.mean.high
    assert record.mean.value == pytest.approx(60, abs=0.1)
    assert {
        each.level: round(each.value) for each in record.quantiles if each.level in (0.25, 0.5, 0.75)
    } == {
        0.25: 0,
        0.5: 60,
        0.75: 120,
    }
    assert decode_estimate(encode_estimate(record)) == record


FIELDS = Field("carrier", ("AA", "B6"), True), Field("origin", ("EWR", "JFK"), False)
ROUTE = Collection("route", PairKRR.from_epsilons(3, 2, 2.0, 2.0), pair_labels(*FIELDS), fields=FIELDS)


def counts_of_pairs(mechanism: OneHotPair | PairKRR, truth: npt.NDArray[np.float64]) -> list[int]:
    """Expected counts of a million reports."""
    if isinstance(mechanism, PairKRR):
        rates = mechanism.channel @ truth.ravel()
    else:
        rates = np.full(mechanism.bits, mechanism.p_star)
        rates[: truth.size] += (mechanism.q_star - mechanism.p_star) * truth.ravel()
    return [round(1e6 * rate) for rate in rates.tolist()]


@pytest.mark.parametrize(
    "mechanism", [PairKRR.from_epsilons(3, 2, 2.0, 2.0), OneHotPair.from_epsilon(3, 2, 2.0)]
)
def test_pair_has_joint_table_margins_conditional_shares_and_a_test(mechanism: OneHotPair | PairKRR) -> None:
    truth = np.array([[0.4, 0.1], [0.1, 0.3], [0.1, 0.0]])
    collection = replace(ROUTE, mechanism=mechanism)
    window = window_of([counts_of_pairs(mechanism, truth)], [1_000_000])
    record = record_of(collection, T0, window, window_estimate.estimate(collection, window), final=True)
    assert (record.mechanism, record.estimator) == (mechanism.name, "mle")
    assert record.values == list(ROUTE.values)
    assert record.frequency == pytest.approx(truth.ravel().tolist(), abs=1e-4)
    assert (record.omitted, record.parts) == (0, 1)
    pair = record.pair
    assert pair is not None
    assert (pair.first, pair.second) == ([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1])
    assert [(each.name, each.values) for each in pair.margins] == [
        ("carrier", ["AA", "B6", "(other)"]), ("origin", ["EWR", "JFK"]),
    ]  # fmt: skip
    assert pair.margins[0].frequency == pytest.approx([0.5, 0.4, 0.1], abs=1e-4)
    assert pair.margins[1].frequency == pytest.approx([0.6, 0.4], abs=1e-4)
    assert pair.given_first.frequency == pytest.approx([0.8, 0.2, 0.25, 0.75, 1, 0], abs=1e-3)
    assert pair.given_second.frequency == pytest.approx([2 / 3, 1 / 4, 1 / 6, 3 / 4, 1 / 6, 0], abs=1e-3)
    assert pair.independence.rejected
    assert pair.independence.degrees == 2
    assert decode_estimate(encode_estimate(record)) == record


@pytest.mark.parametrize(
    ("of_carrier", "of_origin", "is_told"),
    [(True, False, True), (False, True, True), (False, False, True), (True, True, False)],
)
def test_reports_of_no_pair_are_other_if_a_field_refuses_values(
    of_carrier: bool, of_origin: bool, is_told: bool
) -> None:
    carrier, origin = Field("carrier", ("AA", "B6"), of_carrier), Field("origin", ("EWR", "JFK"), of_origin)
    rows, columns = len(carrier.labels), len(origin.labels)
    mechanism = OneHotPair.from_epsilon(rows, columns, 2.0)
    collection = Collection("route", mechanism, pair_labels(carrier, origin), fields=(carrier, origin))
    truth = np.full((rows, columns), 0.8 / (rows * columns))
    window = window_of([counts_of_pairs(mechanism, truth)], [1_000_000])
    record = record_of(collection, T0, window, window_estimate.estimate(collection, window), final=True)
    assert (record.other is not None) == is_told
    if record.other is not None:
        assert record.other.frequency == pytest.approx(0.2, abs=1e-4)
        assert record.other.low is not None
        assert record.other.high is not None
        assert record.other.std_error is not None
        half = 1.96 * record.other.std_error
        assert record.other.high - record.other.low == pytest.approx(2 * half, rel=1e-3)
        assert record.pair is not None
        for margin in record.pair.margins:
            assert sum(margin.frequency) + record.other.frequency == pytest.approx(1, abs=1e-4)
    assert decode_estimate(encode_estimate(record)) == record


def test_reports_of_no_pair_of_k_rr_are_not_known() -> None:
    window = window_of([counts_of_pairs(ROUTE.mechanism, np.full((3, 2), 1 / 6))], [1_000_000])
    record = record_of(ROUTE, T0, window, window_estimate.estimate(ROUTE, window), final=True)
    assert record.other is None


def test_pairs_with_very_long_texts_are_omitted_without_an_estimate_of_them() -> None:
    fields = tuple(Field(name, tuple(f"{i}{name * 2000}" for i in range(30)), False) for name in "ab")
    collection = Collection(
        "long", PairKRR.from_epsilons(30, 30, 2.0, 2.0), pair_labels(*fields), fields=fields
    )
    window = window_of([[100] * 900], [90_000])
    result = window_estimate.estimate(collection, window)
    record = record_of(collection, T0, window, result, final=True)
    assert len(encode_estimate(record)) < 1_000_000
    assert record.omitted > 0
    assert record.other is None
    assert record.pair is not None
    assert len(record.pair.first) == len(record.values) == len(record.pair.given_first.low)
    whole = Parts()
    found = [
        whole.add(each) for each in window_estimate.records_of(collection, T0, window, result, final=True)
    ]
    assert found[:-1] == [None] * (len(found) - 1)
    assert found[-1] is not None
    assert found[-1].pair is not None
    assert len(found[-1].pair.second) == len(found[-1].pair.given_second.high) == 900


def test_record_of_an_earlier_version_has_no_mean() -> None:
    record = record_of(FRUIT, T0, FRUITS, window_estimate.estimate(FRUIT, FRUITS), final=False)
    fields = json.loads(encode_estimate(record))
    del fields["mean"], fields["quantiles"], fields["pair"]
    assert decode_estimate(json.dumps(fields).encode()) == record
