"""A collection's fingerprint names what a report means: all of it, and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimators.collection import Collection
from estimators.krr import KRR
from estimators.rappor import Rappor

CARRIER = Collection("carrier", KRR(3, 1 << 63), values=("AA", "B6"), other=True)
RAPPOR = Rappor(128, 2, 8, 1 << 29, 3 << 29, 5 << 29)
DESTINATION = Collection("destination", RAPPOR, candidates=("ATL", "BOS"), memoize=True)


def test_golden_fingerprints():
    """Pinned: a change of either would reject the reports of every producer in the field."""
    assert f"{CARRIER.fingerprint:016x}" == "0a1246dfa43c0386"
    assert f"{DESTINATION.fingerprint:016x}" == "0529dab085d5e8c0"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "carriers"},
        {"mechanism": KRR(3, (1 << 63) + 1)},
        {"mechanism": KRR(4, 1 << 63)},
        {"values": ("B6", "AA")},
        {"values": ("AA", "b6")},
        {"other": False},
        {"memoize": True},
        {"window_seconds": 61},
    ],
    ids=str,
)
def test_what_changes_the_meaning_changes_the_fingerprint(change):
    assert replace(CARRIER, **change).fingerprint != CARRIER.fingerprint


@pytest.mark.parametrize(
    "field", ["bits", "hashes", "cohorts", "flip_threshold", "p_threshold", "q_threshold"]
)
def test_each_parameter_of_rappor_changes_the_fingerprint(field):
    step = 8 if field == "bits" else 1
    changed = replace(RAPPOR, **{field: getattr(RAPPOR, field) + step})
    assert replace(DESTINATION, mechanism=changed).fingerprint != DESTINATION.fingerprint


@pytest.mark.parametrize(
    "change",
    [{"candidates": ("LAX",)}, {"grace_seconds": 0}, {"retention_seconds": 0}, {"minimum_reports": 1}],
    ids=str,
)
def test_what_changes_no_report_leaves_the_fingerprint(change):
    assert replace(DESTINATION, **change).fingerprint == DESTINATION.fingerprint


@given(st.floats(0, 4e9), st.integers(1, 86400), st.integers(0, 3600), st.integers(0, 3600))
def test_windows_tile_time(moment, window, grace, retention):
    collection = replace(CARRIER, window_seconds=window, grace_seconds=grace, retention_seconds=retention)
    start = collection.window_start(moment)
    assert start % window == 0
    assert start <= moment < collection.window_end(start) == start + window
    assert collection.closes_at(start) == start + window + grace
    assert collection.dies_at(start) == start + window + grace + retention


def test_labels_are_what_is_estimated():
    assert CARRIER.labels() == ("AA", "B6")
    assert DESTINATION.labels() == ("ATL", "BOS")
    assert replace(CARRIER, values=(), other=False).labels() == ("0", "1", "2")
    assert replace(CARRIER, values=()).labels() == ("0", "1")


def test_width_and_cohorts_are_those_of_the_mechanism():
    assert (CARRIER.width, CARRIER.cohorts) == (3, 1)
    assert (DESTINATION.width, DESTINATION.cohorts) == (128, 8)
