"""A collection's fingerprint covers all that determines the meaning of a report, and nothing else."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.messages import PinMessages

CARRIER = Collection("carrier", KRR(3, 1 << 63), values=("AA", "B6"), other=True)
RAPPOR = Rappor(128, 2, 8, 1 << 29, 3 << 29, 5 << 29)
DESTINATION = Collection("destination", RAPPOR, candidates=("ATL", "BOS"), memoize=True)
TWICE = LongitudinalKRR(KRR(3, 3 << 62), KRR(3, 1 << 63))
HOME = Collection("home", TWICE, values=("ATL", "BOS"), other=True, memoize=True)
CABIN = Collection("cabin", HotRappor(3, 1, 1 << 29, 3 << 29, 5 << 29), values=("first", "rest", "crew"))
DELAY = Collection("delay", SquareWave(-60.0, 180.0, 4, 1, 3 << 62))
KEPT = Collection("kept", LongitudinalHash.from_epsilons(2.0, 1.0, 130), candidates=("ATL",), memoize=True)
SEARCH = Collection("search", LocalHash(130, 3, 1 << 63), candidates=("ATL", "BOS"))
TREE = Collection("tree", PrefixTree((2, 4), LocalHash(130, 3, 1 << 63)), alphabet="abc")
MEALS = Collection("meals", HotRappor(9, 2, 1 << 29, 3 << 29, 5 << 29), memoize=True)


def test_golden_fingerprints():
    """Pinned: a changed fingerprint would reject the reports of every deployed producer."""
    assert f"{CARRIER.fingerprint:016x}" == "0a1246dfa43c0386"
    assert f"{DESTINATION.fingerprint:016x}" == "0529dab085d5e8c0"
    assert f"{HOME.fingerprint:016x}" == "0698a9d5b41e9b63"
    assert f"{CABIN.fingerprint:016x}" == "be00d186f6b3912d"
    assert f"{MEALS.fingerprint:016x}" == "19d4ab2ab57e2b35"
    assert f"{DELAY.fingerprint:016x}" == "c4df31a431b77935"
    assert f"{TREE.fingerprint:016x}" == "c9a841f12053b241"


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
def test_fingerprint_changes_with_the_meaning(change):
    assert replace(CARRIER, **change).fingerprint != CARRIER.fingerprint


@pytest.mark.parametrize("change", [(156, 3, 1 << 63), (130, 3, (1 << 63) + 1), (132, 5, 1 << 63)])
def test_each_parameter_of_local_hashing_changes_the_fingerprint_and_candidates_do_not(change):
    assert replace(SEARCH, mechanism=LocalHash(*change)).fingerprint != SEARCH.fingerprint
    assert replace(SEARCH, candidates=()).fingerprint == SEARCH.fingerprint


@pytest.mark.parametrize(
    "field", ["bits", "hashes", "cohorts", "flip_threshold", "p_threshold", "q_threshold"]
)
def test_each_parameter_of_rappor_changes_the_fingerprint(field):
    step = 8 if field == "bits" else 1
    changed = replace(RAPPOR, **{field: getattr(RAPPOR, field) + step})
    assert replace(DESTINATION, mechanism=changed).fingerprint != DESTINATION.fingerprint


@pytest.mark.parametrize("field", ["buckets", "hot", "flip_threshold", "p_threshold", "q_threshold"])
def test_each_parameter_of_one_and_k_hot_changes_the_fingerprint(field):
    changed = replace(MEALS.mechanism, **{field: getattr(MEALS.mechanism, field) + 1})
    assert replace(MEALS, mechanism=changed).fingerprint != MEALS.fingerprint


@pytest.mark.parametrize("step", ["permanent", "instantaneous"])
def test_each_step_of_longitudinal_krr_changes_the_fingerprint(step):
    changed = replace(TWICE, **{step: KRR(3, (1 << 63) + 1)})
    assert replace(HOME, mechanism=changed).fingerprint != HOME.fingerprint


@pytest.mark.parametrize("field", ["minimum", "maximum", "steps", "half_width", "threshold"])
def test_each_parameter_of_square_wave_changes_the_fingerprint(field):
    changed = replace(DELAY.mechanism, **{field: getattr(DELAY.mechanism, field) + 1})
    assert replace(DELAY, mechanism=changed).fingerprint != DELAY.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"candidates": ("LAX",)},
        {"grace_seconds": 0},
        {"retention_seconds": 0},
        {"minimum_reports": 1},
        {"change_alarms_a_year": 1.0},
    ],
    ids=str,
)
def test_fingerprint_ignores_what_reports_do_not_depend_on(change):
    assert replace(DESTINATION, **change).fingerprint == DESTINATION.fingerprint


@given(st.floats(0, 4e9), st.integers(1, 86400), st.integers(0, 3600), st.integers(0, 3600))
def test_windows_tile_time(moment, window, grace, retention):
    collection = replace(CARRIER, window_seconds=window, grace_seconds=grace, retention_seconds=retention)
    start = collection.window_start(moment)
    assert start % window == 0
    assert start <= moment < collection.window_end(start) == start + window
    assert collection.closes_at(start) == start + window + grace
    assert collection.dies_at(start) == start + window + grace + retention


def test_labels_name_the_estimated_entries():
    assert CARRIER.labels() == ("AA", "B6")
    assert DESTINATION.labels() == ("ATL", "BOS")
    assert replace(CARRIER, values=(), other=False).labels() == ("0", "1", "2")
    assert replace(CARRIER, values=()).labels() == ("0", "1")
    assert HOME.labels() == ("ATL", "BOS")
    assert CABIN.labels() == ("first", "rest", "crew")
    assert MEALS.labels() == tuple("012345678")
    assert replace(MEALS, other=True).labels() == tuple("01234567")
    assert DELAY.labels() == ("-60", "0", "60", "120")


@pytest.mark.parametrize("other", [False, True])
def test_each_entry_has_a_label(other):
    of_integers = replace(CARRIER, values=(), other=other)
    for one in (CARRIER, DESTINATION, HOME, CABIN, SEARCH, DELAY, replace(MEALS, other=other), of_integers):
        assert one.entries == len(one.labels())


def test_values_are_integers_when_none_are_listed():
    taken = {one.name: one.takes_integers for one in (CARRIER, DESTINATION, HOME, CABIN, MEALS)}
    assert taken == {"carrier": False, "destination": False, "home": False, "cabin": False, "meals": True}
    assert replace(CARRIER, values=()).takes_integers
    assert not replace(DESTINATION, candidates=()).takes_integers
    assert not DELAY.takes_integers
    assert not replace(SEARCH, candidates=()).takes_integers


def test_width_and_cohorts_come_from_the_mechanism():
    assert (CARRIER.width, CARRIER.cohorts) == (3, 1)
    assert (DESTINATION.width, DESTINATION.cohorts) == (128, 8)
    assert (HOME.width, HOME.cohorts) == (3, 1)
    assert (CABIN.width, CABIN.cohorts) == (8, 1)
    assert (MEALS.width, MEALS.cohorts) == (16, 1)
    assert (DELAY.width, DELAY.cohorts) == (6, 1)
    assert (SEARCH.width, SEARCH.cohorts) == (390, 1)


def test_functions_that_clients_keep_depend_on_name_and_permanent_step_alone():
    """Those drawn for each report are keyed by the fingerprint."""
    assert SEARCH.hash_key == SEARCH.fingerprint
    assert (KEPT.hash_key, KEPT.entries, KEPT.takes_integers) == (4667093137825857552, 1, False)
    later = replace(KEPT, window_seconds=7, mechanism=LongitudinalHash.from_epsilons(2.0, 0.5, 130, 3))
    assert later.fingerprint != KEPT.fingerprint
    assert later.hash_key == KEPT.hash_key
    for change in ({"name": "other"}, {"mechanism": LongitudinalHash.from_epsilons(3.0, 1.0, 130, 3)}):
        assert replace(KEPT, **change).hash_key != KEPT.hash_key


def test_a_tree_is_searched_for_any_text_and_alphabet():
    """Candidates and alphabet change no fingerprint; lengths do. Its cohorts are the levels."""
    assert (TREE.cohorts, TREE.width, TREE.entries, TREE.labels()) == (2, 390, 0, ())
    assert not TREE.takes_integers
    searched = replace(TREE, alphabet="", candidates=("a", "b"))
    assert (searched.fingerprint, searched.hash_key) == (TREE.fingerprint, TREE.fingerprint)
    assert searched.labels() == ("a", "b")
    longer = replace(TREE, mechanism=PrefixTree((2, 5), LocalHash(130, 3, 1 << 63)))
    assert longer.fingerprint != TREE.fingerprint


def test_mechanism_names_match_the_collection_file():
    names = [one.mechanism.name for one in (CARRIER, DESTINATION, HOME, CABIN, MEALS, SEARCH, KEPT, DELAY)]
    kinds = ["k-rr", "rappor", "k-rr-longitudinal", "rappor-one-hot", "rappor-k-hot", "local-hash"]
    assert names == [*kinds, "local-hash-longitudinal", "number"]


def test_epsilon_inf_of_each_mechanism():
    assert DESTINATION.epsilon_inf == RAPPOR.epsilon_inf
    assert HOME.epsilon_inf == TWICE.permanent.epsilon
    assert KEPT.epsilon_inf == KEPT.mechanism.epsilon_inf
    assert MEALS.epsilon_inf == MEALS.mechanism.epsilon_inf
    for fresh in (
        CARRIER,
        CABIN,
        SEARCH,
        replace(SEARCH, memoize=True),
        replace(CARRIER, memoize=True),
        replace(HOME, memoize=False),
    ):
        assert fresh.epsilon_inf == math.inf


@pytest.mark.parametrize(
    "mechanism", [replace(RAPPOR, flip_threshold=0), replace(MEALS.mechanism, flip_threshold=0)]
)
def test_memoizing_without_noise_is_rejected(mechanism):
    with pytest.raises(ValueError, match="memoize"):
        Collection("destination", mechanism, memoize=True)
    assert Collection("destination", mechanism).epsilon_inf == math.inf


def test_messages(pin_messages: PinMessages) -> None:
    silent = replace(RAPPOR, flip_threshold=0)
    pin_messages({"memoizing without noise": lambda: Collection("destination", silent, memoize=True)})
