"""The same secret, client, value and words give the same permanent response and report as in Python."""

import json
import math

import pytest

from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.edge.browser.expected import (
    CLIENT,
    SECRET,
    javascript,
    plain_entry,
    reports,
    signing_key,
)
from tests.support.edge.browser.node import asked
from tests.support.edge.browser.vectors import FILE, vectors

KEY = signing_key()
TEXTS = ["JFK", "", "naïve café", "日本", "\U0001f600", "x" * 1000, "LGA", "\ud800 alone", "JFK"]
LISTED = ("JFK", "LGA", "naïve café", "\U0001f600")
INTEGERS = [0, 1, 5, -1, 2**31, 2**70, -(2**70), 3]


def bloom(bits, hashes, cohorts, f, p, q, memoize):
    return Collection("words", Rappor.from_probabilities(bits, hashes, cohorts, f, p, q), memoize=memoize)


def hot(buckets, most, values, f=0.25, **given):
    return Collection("c", HotRappor.from_probabilities(buckets, most, f, 0.2, 0.7), values, **given)


def number(minimum, maximum, steps, epsilon):
    return Collection("c", SquareWave.from_epsilon(minimum, maximum, steps, epsilon))


def pair(first, second, epsilon):
    """The first field takes others; of the second one, they get a random value."""
    fields = (Field("one", first, True), Field("two", second, False))
    mechanism = PairKRR.from_epsilons(len(first) + 1, len(second), epsilon, 1.0)
    return Collection("c", mechanism, pair_labels(*fields), fields=fields)


def bit_pair(first, second, epsilon):
    fields = (Field("one", first, True), Field("two", second, False))
    mechanism = OneHotPair.from_epsilon(len(first) + 1, len(second), epsilon)
    return Collection("c", mechanism, pair_labels(*fields), fields=fields)


MANY = tuple(f"value {number}" for number in range(300))
RANGES = {
    name: SquareWave.from_epsilon(*range_, 2.0)
    for name, range_ in {
        "number at its edges": (0.1, 0.7, 300),
        "number at its edges, from below 0": (-1 / 3, 719.5, 7),
    }.items()
}
NUMBERS = [0, -0.0, 0.1, 719.4999999999999, 719.5, 1e300, -1e300, math.nan, math.inf, -math.inf, 2**70, 100]
PAIRS = [("a", "c"), ("b / b", "d"), ("x", "c"), ("b", "nobody's"), ("(other)", ""), ["a", "c"]]
SETS = [["a"], ["a", "b", "c", "d", "e"], [], {"b", "e"}, ["a", "a"], ["nobody's"], ["a", "b", "c"]]
COLLECTIONS = {
    "k-RR of a list": (Collection("c", KRR.from_epsilon(4, 1.0), LISTED), TEXTS),
    "k-RR with other": (Collection("c", KRR.from_epsilon(5, 1.0), LISTED, other=True), TEXTS),
    "k-RR of integers": (Collection("c", KRR.from_epsilon(300, 2.5)), INTEGERS),
    "k-RR of 2^31": (Collection("c", KRR.from_epsilon(2**31, 16.0)), INTEGERS),
    "k-RR of two": (Collection("c", KRR.from_epsilon(2, 0.01)), INTEGERS),
    "longitudinal": (Collection("c", LongitudinalKRR.from_epsilons(4, 4.0, 1.0), LISTED), TEXTS),
    "longitudinal with other": (
        Collection("c", LongitudinalKRR.from_epsilons(70_001, 9.0, 2.0), other=True),
        INTEGERS,
    ),
    "Bloom": (bloom(128, 2, 8, 0.25, 0.35, 0.65, False), TEXTS),
    "Bloom, memoized": (bloom(128, 2, 8, 0.25, 0.35, 0.65, True), TEXTS),
    "Bloom, odd thresholds": (bloom(128, 2, 65535, 0.3, 0.3141, 0.77, True), TEXTS),
    "Bloom, 8 bits": (bloom(8, 1, 1, 0.5, 0.25, 0.75, True), TEXTS),
    "Bloom, 72 bits": (bloom(72, 16, 3, 0.1, 0.2, 0.9, True), TEXTS),
    "Bloom, 256 bits": (bloom(256, 16, 300, 0.1, 0.2, 0.9, True), TEXTS),
    "Bloom, 264 bits": (bloom(264, 8, 2, 0.1, 0.2, 0.9, True), TEXTS),
    "Bloom, 4096 bits": (bloom(4096, 8, 2, 0.7, 0.01, 0.02, True), TEXTS[:3]),
    "Bloom without permanent noise": (bloom(64, 2, 4, 0.0, 0.25, 0.75, False), TEXTS),
    **{
        f"local hash of {buckets}": (
            Collection("c", LocalHash.from_epsilon(epsilon, None, buckets)),
            TEXTS,
        )
        for buckets, epsilon in [(2, 0.5), (3, 1.0), (5, 1.0), (7, 2.0), (11, 2.0), (61, 4.0), (251, 6.0)]
    },
    "local hash of few functions": (Collection("c", LocalHash.from_epsilon(1.0, 26, 3)), TEXTS),
    "local hash of 2^20": (Collection("c", LocalHash.from_epsilon(1.0, 2**20 // 3, 3)), TEXTS),
    **{
        f"longitudinal hash of {buckets}": (
            Collection("c", LongitudinalHash.from_epsilons(4.0, epsilon, None, buckets), memoize=True),
            TEXTS,
        )
        for buckets, epsilon in [(2, 0.5), (3, 1.0), (53, 3.5)]
    },
    "number": (number(-0.5, 719.5, 256, 2.0), NUMBERS),
    "number of 4 steps": (number(0, 1, 4, 0.1), NUMBERS),
    "number of 512 steps": (number(-1e300, 1e300, 512, 8.0), NUMBERS),
    "number in a narrow range": (number(0.1, 0.1 + 1e-6, 300, 1.0), [*NUMBERS, 0.10000005]),
    **{
        name: (
            Collection("c", mechanism),
            [edge for each in mechanism.edges.tolist() for edge in (math.nextafter(each, -1e9), each)],
        )
        for name, mechanism in RANGES.items()
    },
    "pair": (pair(("a", "b / b"), ("c", "d", "b"), 1.0), PAIRS),
    "pair of many": (pair(MANY, ("c", "d", "e"), 3.0), [*PAIRS, ("value 299", "e")]),
    "pair of bits": (bit_pair(("a", "b / b"), ("c", "d", "b"), 1.0), PAIRS),
    "pair of many bits": (bit_pair(MANY, ("c", "d", "e"), 3.0), [*PAIRS, ("value 299", "e")]),
    "one-hot": (hot(3, 1, ("JFK", "LGA", "naïve café")), TEXTS),
    "one-hot, memoized": (hot(4, 1, ("JFK", "LGA", "naïve café"), memoize=True, other=True), TEXTS),
    "one-hot of many": (hot(301, 1, MANY, memoize=True, other=True), [*TEXTS, "value 255", "value 299"]),
    "k-hot": (hot(5, 3, tuple("abcde")), SETS),
    "k-hot, memoized": (hot(6, 2, tuple("abcde"), memoize=True, other=True), SETS),
    "k-hot of many": (hot(301, 7, MANY, memoize=True, other=True), [*SETS, [*MANY], set(MANY[:100])]),
}


@pytest.fixture(scope="module")
def javascript_sources():
    with asked() as answers:
        yield answers


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTIONS)
def test_same_words_give_the_same_reports(javascript_sources, name):
    """Every word that Python draws is drawn, and no other; each value is reported twice by two devices."""
    collection, values = COLLECTIONS[name]
    for client in (CLIENT, "ann"):
        expected = reports(collection, values * 2, seed=7, client=client)
        given = [
            {"truth": javascript(value), "words": each["words"]}
            for value, each in zip(values * 2, expected, strict=True)
        ]
        entry = plain_entry(collection, KEY)
        found = javascript_sources.ask(
            "respond", entry=entry, secret=SECRET.hex(), client=client, reports=given
        )
        assert [(each["cohort"], each["rows"][0], each["used"]) for each in found] == [
            (each["cohort"], each["report"], len(each["words"])) for each in expected
        ]


def test_another_secret_or_client_gives_another_permanent_response(javascript_sources):
    """The comparison above can fail: the permanent response depends on secret, client and value."""
    collection, _ = COLLECTIONS["Bloom, memoized"]
    entry = plain_entry(collection, KEY)
    words = reports(collection, ["JFK"], seed=7)[0]["words"]

    def permanent(secret, client, truth):
        given = [{"truth": truth, "words": words}]
        (found,) = javascript_sources.ask(
            "respond", entry=entry, secret=secret.hex(), client=client, reports=given
        )
        return found["rows"][1]

    own = permanent(SECRET, CLIENT, "JFK")
    assert own == permanent(SECRET, CLIENT, "JFK")
    others = [
        permanent(bytes(32), CLIENT, "JFK"),
        permanent(SECRET, "bob", "JFK"),
        permanent(SECRET, CLIENT, "LGA"),
    ]
    assert own not in others


VECTOR = json.loads(FILE.read_text())


def test_vectors_are_those_of_python():
    """The file is for clients in other languages: it changes only with Python's randomizers."""
    assert json.loads(json.dumps(vectors())) == VECTOR


@pytest.mark.parametrize("number", range(len(VECTOR["collections"])))
def test_vectors_hold_in_javascript(javascript_sources, number):
    vector = VECTOR["collections"][number]
    given = [{"truth": each["value"], "words": each["words"]} for each in vector["reports"]]
    fields = {"entry": vector["entry"], "secret": VECTOR["secret"], "client": VECTOR["client"]}
    found = javascript_sources.ask("respond", reports=given, **fields)
    assert [(each["cohort"], each["rows"][0]) for each in found] == [
        (each["cohort"], each["report"]) for each in vector["reports"]
    ]
