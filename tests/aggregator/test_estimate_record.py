"""The JSON record of an estimate: its fields, what JSON cannot hold, and large domains."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from builders import CHANNEL, FRUIT, PLACE, T0
from hypothesis import given
from hypothesis import strategies as st

from aggregator import estimate_record
from aggregator.estimate_record import VALUES_PER_RECORD, EstimateRecord, record_of
from aggregator.merge import WindowCounts
from estimators.collection import Collection
from estimators.estimate import Estimate
from estimators.krr import KRR
from estimators.longitudinal import LongitudinalKRR
from estimators.mechanism import Mechanism
from estimators.rappor_hot import HotRappor

FIELDS = {
    "version", "collection", "fingerprint", "window_start", "window_end", "revision", "final", "reports",
    "packs", "rejected", "mechanism", "estimator", "epsilon", "values", "frequency", "count", "std_error",
    "low", "high", "significant", "other", "diagnostics",
}  # fmt: skip
COLUMNS = ("values", "frequency", "count", "std_error", "low", "high", "significant")


def window_of(counts: list[list[int]], sizes: list[int]) -> WindowCounts:
    return WindowCounts(
        np.array(counts, dtype=np.int64), np.array(sizes, dtype=np.int64), packs=3, rejected=2
    )


FRUITS = window_of([[50, 20, 10, 20]], [100])


def fruit_record(*, final: bool = False, packs: int = 3) -> EstimateRecord:
    window = replace(FRUITS, packs=packs)
    return record_of(FRUIT, T0, window, estimate_record.estimate(FRUIT, window), final=final)


def test_the_record_has_the_fields_of_the_design() -> None:
    said = json.loads(estimate_record.encode(fruit_record(final=True)))
    assert said.keys() == FIELDS | {"omitted"}
    expected = {
        "version": 1, "collection": "fruit", "fingerprint": f"{FRUIT.fingerprint:016x}", "window_start": T0,
        "window_end": T0 + 10, "revision": 3, "final": True, "reports": 100, "packs": 3, "rejected": 2,
        "mechanism": "k-rr", "estimator": "mle", "epsilon": FRUIT.mechanism.epsilon, "omitted": 0,
        "values": ["apple", "fig", "kiwi"],
    }  # fmt: skip
    assert {key: said[key] for key in expected} == expected
    assert {len(said[column]) for column in COLUMNS} == {3}
    assert said["other"].keys() == {"frequency", "std_error"}


def test_frequencies_are_fractions_of_all_reports_and_counts_their_number() -> None:
    record = fruit_record()
    assert record.other is not None
    assert sum(record.frequency) + record.other.frequency == pytest.approx(1)
    assert record.count == pytest.approx([100 * frequency for frequency in record.frequency])
    assert all(
        low <= f <= high for low, f, high in zip(record.low, record.frequency, record.high, strict=True)
    )


def test_without_other_all_buckets_are_values() -> None:
    plain = replace(FRUIT, values=(), other=False)
    record = record_of(plain, T0, FRUITS, estimate_record.estimate(plain, FRUITS), final=False)
    assert record.values == ["0", "1", "2", "3"]
    assert record.other is None
    assert sum(record.frequency) == pytest.approx(1)


def test_rappor_names_candidates_and_the_background() -> None:
    window = window_of([[40] * 16, [40] * 16, [45] * 16], [100, 100, 100])
    result = estimate_record.estimate(PLACE, window)
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
def test_expected_counts_of_every_mechanism_give_back_what_was_held(
    mechanism: Mechanism, name: str, held: list[float]
) -> None:
    """Of 10^12 reports, so that rounding to whole ones is below 1e-11; padding bits hold noise alone."""
    collection = Collection("cabin", mechanism, values=("first", "rest"), other=True)
    shares = np.zeros(collection.width)
    shares[:3] = held
    if isinstance(mechanism, HotRappor):
        rates = mechanism.p_star + (mechanism.q_star - mechanism.p_star) * shares
    else:
        rates = mechanism.channel @ shares
    window = window_of([np.rint(rates * 1e12).astype(np.int64).tolist()], [10**12])
    record = record_of(collection, T0, window, estimate_record.estimate(collection, window), final=True)
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


def test_an_error_that_is_infinite_is_null() -> None:
    window = window_of([[40] * 16] * 3, [100] * 3)
    record = record_of(PLACE, T0, window, result_of([0.1, 0.2, 0.3], np.inf, (0.4, np.inf)), final=False)
    said = json.loads(estimate_record.encode(record))
    assert said["std_error"] == [None, None, None]
    assert said["other"] == {"frequency": 0.4, "std_error": None}
    assert estimate_record.decode(estimate_record.encode(record)) == record


def wide(k: int) -> tuple[Collection, WindowCounts]:
    collection = replace(FRUIT, mechanism=KRR.from_epsilon(k, 2.0), values=(), other=False)
    return collection, window_of([[1] * k], [k])


def test_of_a_large_domain_the_largest_values_are_kept_in_order() -> None:
    collection, window = wide(5000)
    frequency = np.random.default_rng(1).permutation(5000) / 5000
    record = record_of(collection, T0, window, result_of(frequency.tolist(), 0.1), final=False)
    assert record.omitted == 5000 - VALUES_PER_RECORD
    assert {len(getattr(record, column)) for column in COLUMNS} == {VALUES_PER_RECORD}
    assert min(record.frequency) == (5000 - VALUES_PER_RECORD) / 5000
    assert [int(value) for value in record.values] == sorted(int(value) for value in record.values)
    assert record.frequency == [frequency[int(value)] for value in record.values]
    assert len(estimate_record.encode(record)) < 2**20


def test_a_domain_that_just_fits_is_shown_whole() -> None:
    collection, window = wide(VALUES_PER_RECORD)
    result = result_of([1 / VALUES_PER_RECORD] * VALUES_PER_RECORD, 0.1)
    assert record_of(collection, T0, window, result, final=False).omitted == 0


def test_the_key_is_collection_and_window() -> None:
    assert fruit_record().key == b"fruit/%d" % T0


@pytest.mark.parametrize(
    ("newer", "older", "wins"),
    [((3, False), (2, True), True), ((2, True), (2, False), True), ((2, False), (2, True), False),
     ((1, True), (2, False), False), ((2, True), (2, True), True)],
)  # fmt: skip
def test_the_higher_revision_wins_and_at_equal_revision_the_final_one(
    newer: tuple[int, bool], older: tuple[int, bool], wins: bool
) -> None:
    one, other = (fruit_record(packs=packs, final=final) for packs, final in (newer, older))
    assert one.supersedes(other) == wins


def test_decode_after_encode_is_the_identity() -> None:
    record = fruit_record(final=True)
    assert estimate_record.decode(estimate_record.encode(record)) == record


GARBAGE = [
    b"",
    b"null",
    b"\xff",
    b"[]",
    b"{}",
    b'{"version":"1"}',
    b'{"collection":"\xff"}',
    b'{"x":' + b"[" * 10**5,
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_what_is_no_estimate_raises_decode_error_only(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        estimate_record.decode(data)


def test_a_record_of_another_version_is_refused() -> None:
    data = estimate_record.encode(fruit_record()).replace(b'"version":1', b'"version":2')
    with pytest.raises(msgspec.DecodeError, match=r"^version must be 1, got 2$"):
        estimate_record.decode(data)


def test_text_that_is_not_utf_8_is_told_without_it() -> None:
    with pytest.raises(msgspec.DecodeError, match=r"^text that is not UTF-8, or nested too deep$"):
        estimate_record.decode(b'{"collection":"\xff"}')


@given(st.data())
def test_a_damaged_record_raises_decode_error_only(data: st.DataObject) -> None:
    good = bytearray(estimate_record.encode(fruit_record()))
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        estimate_record.decode(bytes(good))
    except msgspec.DecodeError:
        return


def test_a_record_of_long_values_stays_below_kafkas_limit() -> None:
    """A record that Kafka refuses would stop its whole partition."""
    values = tuple(f"{number:04}" + "\u00e4\n" * 400 for number in range(VALUES_PER_RECORD))
    long = replace(FRUIT, mechanism=KRR.from_epsilon(len(values), 4.0), values=values, other=False)
    result = result_of([number / len(values) for number in range(len(values))], 0.1)
    record = record_of(long, T0, window_of([[1] * len(values)], [len(values)]), result, final=True)
    assert 800_000 < len(estimate_record.encode(record)) < 1_000_000
    shown = len(record.values)
    assert record.omitted == len(values) - shown > 0
    assert record.values == list(values[-shown:])
