"""The JSON Schema of estimates is current, and real records of every mechanism conform to it."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records import estimate_schema
from deniable.aggregator.records.estimate import (
    Bit,
    ConditionalShares,
    EstimateRecord,
    IndependenceTest,
    NumberDensity,
    NumberMean,
    NumberQuantile,
    Other,
    PairMargin,
    PairRecord,
    encode_estimate,
)
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism, OneStep
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import FRUIT, PLACE, T0, estimate_of
from tests.support.needed import missing


@pytest.fixture(scope="module")
def validator() -> Any:
    """Validates records against the committed file, after checking that the file is a schema."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        missing("jsonschema is not installed")
    schema = json.loads(estimate_schema.PATH.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_file_is_current() -> None:
    """To update it, PATH.write_text(text())."""
    assert estimate_schema.PATH.read_text(encoding="utf-8") == estimate_schema.text()


PARTS = {
    "other": Other,
    "mean": NumberMean,
    "quantiles": NumberQuantile,
    "pair": PairRecord,
    "margins": PairMargin,
    "given": ConditionalShares,
    "independence": IndependenceTest,
    "unexplained_bits": Bit,
    "density": NumberDensity,
}


def test_meanings_match_the_fields() -> None:
    fields = {field.name for field in msgspec.structs.fields(EstimateRecord)}
    parts = {
        f"{owner}.{field.name}" for owner, part in PARTS.items() for field in msgspec.structs.fields(part)
    }
    assert set(estimate_schema.MEANINGS) == fields | parts
    assert set(estimate_schema.PART_LIMITS) <= parts
    assert set(estimate_schema.LIMITS) | set(estimate_schema.ENTRY_LIMITS) <= fields


def records(mechanism: Mechanism, values: int, *, other: bool = False) -> list[EstimateRecord]:
    """All parts of a final estimate as published."""
    labels = () if isinstance(mechanism, SquareWave) else tuple(map(str, range(values)))
    if isinstance(mechanism, OneHotPair | PairKRR):
        fields = tuple(Field(f"f{k}", tuple(map(str, range(k))), False) for k in mechanism.shape)
        collection = Collection("seats", mechanism, pair_labels(*fields), fields=fields)
    elif isinstance(mechanism, LocalHash | LongitudinalHash | PrefixTree):
        collection = Collection("seats", mechanism, candidates=labels)
    else:
        collection = Collection("seats", mechanism, labels, other)
    counts = np.random.default_rng(1).integers(300, 500, (mechanism.cohorts, mechanism.width))
    of_buckets = isinstance(mechanism, OneStep | LongitudinalKRR | LongitudinalHash)
    reports = int(counts.sum()) if of_buckets else 1000
    sizes = np.full(mechanism.cohorts, reports // mechanism.cohorts)
    window = WindowCounts(counts, sizes, packs=3, rejected=1)
    result = window_estimate.estimate(collection, window)
    return window_estimate.records_of(collection, T0, window, result, final=True)


REAL = [
    *records(KRR.from_epsilon(4, 1.0), 3, other=True),
    *records(KRR.from_epsilon(9000, 1.0), 9000),
    *records(LongitudinalKRR.from_epsilons(4, 2.0, 1.0), 4),
    *records(LocalHash.from_epsilon(1.0, 260), 3000),
    *records(LongitudinalHash.from_epsilons(2.0, 1.0, 260), 300),
    *records(PrefixTree.from_epsilon((2, 5), 1.0, 260), 3000),
    *records(PrefixTree.from_epsilon((2, 5), 1.0, 260), 0),
    *records(HotRappor.from_probabilities(5, 1, 0.25, 0.35, 0.65), 5),
    *records(HotRappor.from_probabilities(3000, 3, 0.25, 0.35, 0.65), 3000),
    *records(PairKRR.from_epsilons(3, 4, 1.0, 1.0), 12),
    *records(PairKRR.from_epsilons(40, 50, 1.0, 1.0), 2000),
    *records(OneHotPair.from_epsilon(3, 4, 1.0), 12),
    *records(OneHotPair.from_epsilon(40, 50, 1.0), 2000),
    *records(SquareWave.from_epsilon(-1.0, 1.0, 64, 1.0), 64),
    estimate_of(FRUIT),
    estimate_of(PLACE),
]


@pytest.mark.all
def test_real_records_conform(validator: Any) -> None:
    assert {record.mechanism for record in REAL} == set(estimate_schema.LIMITS["mechanism"]["enum"])
    assert max(record.parts for record in REAL) > 1
    for record in REAL:
        validator.validate(json.loads(encode_estimate(record)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2},
        {"fingerprint": "xyz"},
        {"reports": -1},
        {"frequency": ["0.5"]},
        {"other": {"frequency": 0.5}},
        {"final": None},
        {"part": 0},
        {"collection": "A B"},
        {"mechanism": "foo"},
        {"window_start": 253_402_300_800},
        {"window_end": 0},
        {"epsilon": 0},
        {"frequency": [1.5]},
        {"count": [-1]},
        {"std_error": [-1]},
        {"low": [-0.5]},
        {"high": [2]},
        {"other": {"frequency": -0.5, "std_error": None}},
        {"other": {"frequency": 0.5, "std_error": -1}},
        {"other": {"frequency": 0.5, "std_error": 0.1, "low": -0.1, "high": 1.0}},
    ],
    ids=str,
)
def test_invalid_records_do_not_conform(validator: Any, changed: dict[str, object]) -> None:
    fields = json.loads(encode_estimate(estimate_of()))
    assert validator.is_valid(fields)
    assert not validator.is_valid(fields | changed)


def test_no_field_may_be_absent(validator: Any) -> None:
    """Decoding is more lenient: missing `part` and `parts` default to 1."""
    fields = json.loads(encode_estimate(estimate_of()))
    for absent in msgspec.structs.fields(EstimateRecord):
        assert not validator.is_valid({name: fields[name] for name in fields.keys() - {absent.name}}), absent


def test_null_errors_and_extreme_shares_conform(validator: Any) -> None:
    fields = json.loads(encode_estimate(estimate_of()))
    assert validator.is_valid(fields | {"std_error": [None], "frequency": [0, 1], "low": [0], "high": [1]})
    assert validator.is_valid(fields | {"other": {"frequency": 2.5, "std_error": None}})  # for k-hot
    assert validator.is_valid(fields | {"other": None})


def test_added_fields_conform(validator: Any) -> None:
    assert validator.is_valid(json.loads(encode_estimate(estimate_of())) | {"new": 1})
