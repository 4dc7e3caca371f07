"""Whole batches, from a caller's values to wire bytes, for every kind of mechanism.

Most tests remove the noise (f = 0, p and q within 1e-9 of 0 and 1; k-RR with a threshold of 2**64 - 1), which
leaves the value's encoding; a test fails by chance with probability below 1e-4 x 1e-9.
"""

from dataclasses import replace

import numpy as np
import pytest

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.bloom_filter import bloom_rows
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.responders import batch
from deniable.producers.responders.factory import responder_of
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import report_bytes
from tests.support.messages import PinMessages
from tests.support.producers.sources import RepeatableWords

SECRET = Secret(bytes(range(32)))
VALUES = ("AA", "B6", "9E", "DL", "UA", "WN", "AS", "F9", "HA")
QUIET = (1e-9, 1e-9, 1 - 1e-9)

TRUE_KRR = KRR(9, 2**64 - 1)
KRR_LIST = Collection("krr", TRUE_KRR, values=VALUES)
LONGITUDINAL = Collection("long", LongitudinalKRR(KRR.from_epsilon(9, 1.0), TRUE_KRR), values=VALUES)
ONE_HOT = Collection("one-hot", HotRappor.from_probabilities(9, 1, *QUIET), values=VALUES)
ONE_HOT_OTHER = Collection("one", HotRappor.from_probabilities(10, 1, *QUIET), values=VALUES, other=True)
K_HOT = Collection("k-hot", HotRappor.from_probabilities(9, 3, *QUIET), values=VALUES, memoize=True)
K_HOT_OTHER = Collection("k", HotRappor.from_probabilities(10, 3, *QUIET), values=VALUES, other=True)
BLOOM = Collection("bloom", Rappor.from_probabilities(16, 2, 4, *QUIET), memoize=True)
HASHED = Collection("hashed", LocalHash(96, 7, 2**64 - 1))
HASHED_LONG = Collection("hashed-long", LongitudinalHash(96, 7, *[2**64 - 1] * 2), memoize=True)
NOISY = Collection("noisy", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
TREE = Collection("tree", PrefixTree((1, 2, 4), LocalHash(96, 7, 2**64 - 1)))
KINDS = [
    KRR_LIST,
    LONGITUDINAL,
    ONE_HOT,
    ONE_HOT_OTHER,
    K_HOT,
    K_HOT_OTHER,
    BLOOM,
    HASHED_LONG,
    HASHED,
    TREE,
    NOISY,
]
every_kind = pytest.mark.parametrize("collection", KINDS, ids=lambda collection: collection.name)


def respond(collection, values, clients=None, seed=1):
    """Cohorts, reports and number of unknown values of one batch."""
    responder = responder_of(collection, SECRET, RepeatableWords(seed))
    cohorts, reports = responder.prepare(values, clients).respond(slice(None))
    return cohorts, reports, responder.unknown


def shown(collection, values, clients=None, seed=1):
    """The buckets set in each report of RAPPOR without hashing."""
    reports = respond(collection, values, clients, seed)[1]
    return [set(np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist()) for row in reports]


def as_values(collection, texts):
    """Texts as values of this collection."""
    mechanism = collection.mechanism
    return [{text} for text in texts] if getattr(mechanism, "hot", 1) > 1 else list(texts)


@every_kind
def test_reports_have_the_wire_format(collection):
    for values in (VALUES, VALUES[:1], ()):
        cohorts, reports, unknown = respond(collection, as_values(collection, values))
        assert cohorts.dtype == np.uint16
        assert cohorts.shape == (len(values),)
        assert (cohorts < collection.cohorts).all()
        size = report_bytes(collection.mechanism.wire_number, collection.width)
        assert (reports.shape, reports.dtype) == ((len(values), size), np.uint8)
        assert unknown == 0


@every_kind
def test_values_do_not_change_the_drawn_words(collection):
    """Neither the work nor later draws, such as pack ids, depend on values."""
    clients = [f"client-{number}" for number in range(30)]
    for owners in (None, clients):
        following = []
        for texts in (["AA"] * 30, ["9E", "ZZ", "\udc80"] * 10):
            words = RepeatableWords(1)
            responder = responder_of(collection, SECRET, words)
            responder.prepare(as_values(collection, texts), owners).respond(slice(None))
            following.append(words.words64(1)[0])
        assert following[0] == following[1]


@pytest.mark.parametrize("collection", KINDS[:-3], ids=lambda collection: collection.name)
def test_batch_is_the_same_in_slices_and_chunks(collection, monkeypatch):
    """Each slice gets its values and clients, whatever slices came before."""
    texts = [VALUES[number % 9] for number in range(50)]
    clients = [f"client-{number % 7}" for number in range(50)]
    cohorts, reports, _ = respond(collection, as_values(collection, texts), clients)
    monkeypatch.setattr(batch, "CHUNK_BYTES", 16)
    whole = responder_of(collection, SECRET, RepeatableWords(2)).prepare(
        as_values(collection, texts), clients
    )
    parts = [whole.respond(part) for part in (slice(17, 60), slice(0, 17))]
    assert np.array_equal(np.concatenate([parts[1][0], parts[0][0]]), cohorts)
    assert np.array_equal(np.concatenate([parts[1][1], parts[0][1]]), reports)


@every_kind
def test_batch_shows_its_clients_and_does_not_show_them(collection):
    responder = responder_of(collection, SECRET, RepeatableWords(1))
    values = as_values(collection, ["canary-7391", "AA"])
    assert responder.prepare(values, ["ann", "bob"]).clients == ["ann", "bob"]
    assert responder.prepare(values, None).clients is None
    assert repr(responder.prepare(values, ["ann", "bob"])) == "Batch(count=2)"
    with pytest.raises(ValueError, match="clients"):
        responder.prepare(values, "ann")
    with pytest.raises(TypeError, match=collection.name):
        responder.prepare([b"7391"], None)
    assert responder.unknown == 0


def bloom(f, quiet=1e-9):
    return Rappor.from_probabilities(64, 2, 4, f, quiet, 1 - quiet)


def hot(buckets, ones, f, quiet=1e-9):
    return HotRappor.from_probabilities(buckets, ones, f, quiet, 1 - quiet)


def longitudinal(epsilon_inf, threshold=2**64 - 1):
    return LongitudinalKRR(KRR.from_epsilon(9, epsilon_inf), KRR(9, threshold))


@pytest.mark.parametrize(
    ("values", "mechanism", "same", "others"),
    [
        (
            (),
            bloom(0.5),
            bloom(0.5, 1e-8),
            [bloom(0.51), Rappor.from_probabilities(64, 3, 4, 0.5, 1e-9, 1 - 1e-9)],
        ),
        (VALUES, hot(9, 1, 0.5), hot(9, 1, 0.5, 1e-8), [hot(9, 1, 0.51), hot(10, 1, 0.5)]),
        (VALUES, longitudinal(1.0), longitudinal(1.0, 2**64 - 99), [longitudinal(1.01)]),
    ],
    ids=["bloom", "hot", "longitudinal"],
)
def test_only_permanent_parameters_redraw_permanent_responses(values, mechanism, same, others):
    """If redrawn with a new p, responses could be averaged; if kept with a new f, compared."""
    clients = [f"client-{number}" for number in range(100)]

    def permanent_responses(name, mechanism):
        collection = Collection(name, mechanism, values=values, memoize=True)
        return respond(collection, ["AA"] * 100, clients)[1].tobytes()

    first = permanent_responses("c", mechanism)
    assert permanent_responses("c", same) == first
    assert permanent_responses("d", mechanism) != first
    for other in others:
        assert permanent_responses("c", other)[:800] != first[:800]


def test_larger_hot_redraws_the_permanent_response():
    """Otherwise two reports with the same flips would reveal the difference of two subsets."""
    clients = [f"client-{number}" for number in range(100)]
    two, three = (
        respond(Collection("c", hot(9, ones, 0.5), values=VALUES, memoize=True), [{"AA"}] * 100, clients)[1]
        for ones in (2, 3)
    )
    assert not np.array_equal(two, three)


# k-RR


def test_krr_spreads_unknown_values_over_all_buckets():
    _, reports, unknown = respond(KRR_LIST, [*VALUES, *["ZZ"] * 900], ["ann"] * 909)
    assert reports[:9].ravel().tolist() == list(range(9))
    assert unknown == 900
    assert np.bincount(reports[9:].ravel(), minlength=9).min() > 50


def test_longitudinal_krr_repeats_a_permanent_response():
    """Two batches, two seeds; other clients and values have other responses."""
    first = respond(LONGITUDINAL, ["AA"] * 40, [f"{number % 20}" for number in range(40)])[1].ravel()
    assert np.array_equal(first[:20], first[20:])
    assert np.array_equal(
        respond(LONGITUDINAL, ["AA"] * 20, list(map(str, range(20))), seed=2)[1].ravel(), first[:20]
    )
    assert len(np.unique(first)) > 3
    assert len(np.unique(respond(LONGITUDINAL, list(VALUES) * 5, ["ann"] * 45)[1])) > 3


def test_longitudinal_krr_without_clients_is_fresh():
    assert len(np.unique(respond(LONGITUDINAL, ["AA"] * 200)[1])) == 9


def test_unknown_values_share_one_permanent_response():
    """If it were redrawn, a few reports would reveal that the value is not listed."""
    texts = ["ZZ", "YY", "ZZ", ""] * 5
    for client in map(str, range(20)):
        assert len(np.unique(respond(LONGITUDINAL, texts, [client] * 20, seed=3)[1])) == 1
    clients = list(map(str, range(900)))
    placed = respond(LONGITUDINAL, ["ZZ"] * 900, clients)[1].ravel()
    assert np.bincount(placed, minlength=9).min() > 50


def test_longitudinal_krr_with_a_bucket_for_other():
    mechanism = LongitudinalKRR(KRR(10, 2**64 - 1), KRR(10, 2**64 - 1))
    collection = Collection("long", mechanism, values=VALUES, other=True)
    _, reports, unknown = respond(collection, ["AA", "ZZ", ""], ["ann"] * 3)
    assert reports.ravel().tolist() == [0, 9, 9]
    assert unknown == 2


# RAPPOR


def test_bloom_reports_hold_the_filter_of_the_clients_cohort():
    words = ["JFK", "Zürich", "x" * 5000, ""] * 10
    cohorts, reports, _ = respond(BLOOM, words, [f"client-{number}" for number in range(40)])
    assert set(cohorts.tolist()) == {0, 1, 2, 3}
    assert np.array_equal(reports, bloom_rows(words, cohorts, BLOOM.mechanism))


def test_text_without_utf_8_is_reported_like_any_other():
    cohorts, reports, _ = respond(BLOOM, ["\udc80"], ["ann"])
    assert np.array_equal(reports, bloom_rows(["?"], cohorts, BLOOM.mechanism))


def test_memoized_response_repeats_and_unmemoized_is_fresh():
    """4,001 reports of one client: the majority is its permanent response, which 16 of 128 bits leave."""
    clients, forgetful = ["ann"] * 4001, Collection("noisy", NOISY.mechanism, memoize=False)
    for collection, noise in ((NOISY, range(4, 40)), (forgetful, range(1))):
        cohorts, reports, _ = respond(collection, ["JFK"] * 4001, clients)
        assert len(set(cohorts.tolist())) == 1
        majority = np.unpackbits(reports, axis=1, bitorder="little").mean(axis=0) > 0.5
        truth = np.unpackbits(bloom_rows(["JFK"], cohorts[:1], NOISY.mechanism)[0], bitorder="little")
        assert (majority != truth).sum() in noise


def test_local_hashing_reports_the_bucket_under_the_drawn_function():
    """Texts of any length and alphabet, also of 120,000 bytes."""
    functions = hash_functions_of(HASHED.mechanism, HASHED.fingerprint)
    texts = ["AA", "naïve" * 20_000, "AA", "\udc80"] * 500
    _, reports, unknown = respond(HASHED, texts)
    function, bucket = np.divmod(reports.view("<u2")[:, 0].astype(np.int64), 7)
    assert bucket.tolist() == functions.buckets(functions.words(texts), function).tolist()
    assert set(function.tolist()) == set(range(96))
    assert unknown == 0


def test_longitudinal_hashing_reports_the_bucket_under_the_function_of_the_client():
    functions = hash_functions_of(HASHED_LONG.mechanism, HASHED_LONG.hash_key)
    texts, clients = ["AA", "naïve", "AA", "\udc80"] * 500, [f"client {n // 4}" for n in range(2000)]
    _, reports, unknown = respond(HASHED_LONG, texts, clients)
    function, bucket = np.divmod(reports.view("<u2")[:, 0].astype(np.int64), 7)
    assert bucket.tolist() == functions.buckets(functions.words(texts), function).tolist()
    assert len(set(zip(clients, function.tolist(), strict=True))) == 500
    assert len(set(function.tolist())) > 80
    assert unknown == 0
    strangers = respond(HASHED_LONG, ["AA"] * 2000)[1].view("<u2")[:, 0] // 7
    assert set(strangers.tolist()) == set(range(96))


def test_permanent_buckets_repeat_and_depend_on_the_bucket_alone():
    """The second step is silent, so reports are permanent responses; a client's buckets have one each."""
    steps = LongitudinalKRR.from_epsilons(7, 1.0, 0.9)
    mechanism = LongitudinalHash(96, 7, steps.permanent.threshold, 2**64 - 1)
    collection = Collection("kept", mechanism, memoize=True)
    functions = hash_functions_of(mechanism, collection.hash_key)
    texts = [f"text {number}" for number in range(100)]
    responses = set()
    for client in [f"client {number}" for number in range(20)]:
        reports = respond(collection, texts, [client] * 100, seed=3)[1].view("<u2")[:, 0].astype(np.int64)
        again = respond(collection, texts[::-1], [client] * 100, seed=4)[1].view("<u2")[::-1, 0]
        assert reports.tolist() == again.tolist()
        function, shown_buckets = np.divmod(reports, 7)
        buckets = functions.buckets(functions.words(texts), function)
        response_of = dict(zip(buckets.tolist(), shown_buckets.tolist(), strict=True))
        assert [response_of[each] for each in buckets.tolist()] == shown_buckets.tolist()
        responses.add(tuple(response_of[bucket] for bucket in range(7)))
    assert len(responses) > 15


def test_window_and_second_step_change_no_permanent_bucket():
    """Another fingerprint, but the same functions and responses: an unchanged value reveals nothing more."""
    changed = replace(HASHED_LONG, mechanism=LongitudinalHash(96, 7, 2**64 - 1, 2**64 - 2), window_seconds=5)
    assert changed.fingerprint != HASHED_LONG.fingerprint
    clients = [f"client {number}" for number in range(500)]
    assert np.array_equal(*(respond(each, ["AA"] * 500, clients)[1] for each in (HASHED_LONG, changed)))
    permanent = replace(HASHED_LONG, mechanism=LongitudinalHash(96, 7, 2**64 - 2, 2**64 - 1))
    assert permanent.hash_key != HASHED_LONG.hash_key


def test_a_tree_reports_the_prefix_of_the_level_of_the_client():
    """Clients keep their level whatever their values are, and draw each function anew."""
    mechanism = TREE.mechanism
    functions = hash_functions_of(mechanism.oracle, TREE.hash_key)
    texts, clients = ["AA", "naïve", "A", "\udc80"] * 500, [f"client {n // 4}" for n in range(2000)]
    levels, reports, unknown = respond(TREE, texts, clients)
    function, bucket = np.divmod(reports.view("<u2")[:, 0].astype(np.int64), 7)
    for level in range(3):
        rows = np.flatnonzero(levels == level)
        prefixes = [texts[row].encode("utf-8", "replace")[: (1, 2, 4)[level]] for row in rows]
        words = mechanism.words(prefixes, level, functions)
        assert bucket[rows].tolist() == functions.buckets(words, function[rows]).tolist()
        assert len(rows) > 500
    assert len(set(zip(clients, levels.tolist(), strict=True))) == 500
    assert set(function.tolist()) == set(range(96))
    assert unknown == 0


def test_levels_of_clients_depend_on_no_value():
    """Other values, another epsilon, other lengths of as many levels: the same levels."""
    clients = [f"client {number}" for number in range(300)]
    other = replace(TREE, mechanism=PrefixTree((2, 3, 9), LocalHash.from_epsilon(1.0)))
    drawn = [respond(TREE, ["AA"] * 300, clients)[0], respond(other, VALUES[:3] * 100, clients)[0]]
    assert np.array_equal(*drawn)
    strangers = respond(TREE, ["AA"] * 300)[0]
    assert not np.array_equal(strangers, drawn[0])


def test_one_hot_sets_the_bit_of_the_bucket():
    assert shown(ONE_HOT, list(VALUES)) == [{number} for number in range(9)]
    assert shown(ONE_HOT, "HA", "ann") == [{8}]


def test_unknown_one_hot_value_is_other_or_no_bucket():
    assert shown(ONE_HOT_OTHER, ["ZZ", "AA", ""]) == [{9}, {0}, {9}]
    assert shown(ONE_HOT, ["ZZ", "AA", ""]) == [set(), {0}, set()]
    assert respond(ONE_HOT, ["ZZ", "AA", ""])[2] == respond(ONE_HOT_OTHER, ["ZZ", "AA", ""])[2] == 2


def test_k_hot_sets_a_bit_for_each_member():
    values = [{"AA", "HA"}, ["B6", "B6", "9E"], (), ("UA",), {"DL", "UA", "WN"}]
    assert shown(K_HOT, values) == [{0, 8}, {1, 2}, set(), {4}, {3, 4, 5}]
    assert shown(K_HOT, {"AA", "HA"}) == [{0, 8}]


def test_unknown_members_of_k_hot():
    values = [{"AA", "ZZ"}, {"ZZ", "YY"}, {"AA"}]
    assert shown(K_HOT_OTHER, values) == [{0, 9}, {9}, {0}]
    assert shown(K_HOT, values) == [{0}, set(), {0}]
    assert respond(K_HOT, values)[2] == 3


def test_too_large_set_always_shows_one_subset():
    """Fresh subsets would reveal all members in time."""
    large = [set(VALUES[:6])] * 40
    for client in ("ann", "bob"):
        kept = shown(K_HOT, large, [client] * 40) + shown(K_HOT, large, [client] * 40, seed=2)
        assert all(each == kept[0] for each in kept)
        assert kept[0] < set(range(6))
        assert len(kept[0]) == 3
    subsets = {frozenset(each) for each in shown(K_HOT, large, list(map(str, range(40))))}
    assert len(subsets) > 10
    assert len({frozenset(each) for each in shown(K_HOT, large)}) > 10


def test_messages(pin_messages: PinMessages) -> None:
    unlisted = Collection("hot", ONE_HOT.mechanism)
    pin_messages(
        {"no values of RAPPOR without hashing": lambda: responder_of(unlisted, SECRET, RepeatableWords(1))}
    )
